package weavertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// failEnv lets TestFailing run the case it names, which must fail: it is
// run in a process of its own, because a failing test cannot pass.
const failEnv = "WEAVERTEST_FAILING"

// failing are uses of this package that must fail the user's test, with what
// it is asked to.
var failing = map[string]struct {
	play func(t *testing.T)
	says []string
}{
	"step names that change": {func(t *testing.T) {
		attempts := 0
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			attempts++
			return "", weaver.Do(ctx, fmt.Sprint("attempt ", min(attempts, 2)), func(context.Context) error { return nil })
		}))
		weavertest.Replay(t, e, charge, 1)
	}, []string{`step "attempt 1" was recorded, but the last attempt never asked for it`, "step names must be the same in every attempt"}},
	"a replay of a task that fails": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", weaver.Permanent(errors.New("card refused")) }))
		weavertest.Replay(t, e, charge, 1)
		t.Log("went on") // must not
	}, []string{"replayed", "card refused"}},
	"a run of a task that fails": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", weaver.Permanent(errors.New("card refused")) }))
		weavertest.Run(t, e, charge, 1)
		t.Log("went on")
	}, []string{"failed", "card refused"}},
	"a run of a task that blocks": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", weaver.Blocked("how much?") }))
		weavertest.Run(t, e, charge, 1)
		t.Log("went on")
	}, []string{"blocked", "how much?"}},
	"nothing enqueued": {func(t *testing.T) {
		weavertest.RequireEnqueued(t, weavertest.New(t), mail, nil)
		t.Log("went on")
	}, []string{"no weavertest.mail.send.v1 was enqueued"}},
	"nothing that matches": {func(t *testing.T) {
		e := weavertest.New(t)
		if _, err := mail.Enqueue(t.Context(), e, "bob"); err != nil {
			t.Fatal(err)
		}
		weavertest.RequireEnqueued(t, e, mail, func(s string) bool { return s == "ann" })
		t.Log("went on")
	}, []string{"no weavertest.mail.send.v1 that matches was enqueued; there are 1", `"bob"`}},
	"two handlers of one type": {func(t *testing.T) {
		weavertest.New(t, mail.Handler(sendMail), mail.Handler(sendMail))
		t.Log("went on")
	}, []string{"mail.send.v1 has two handlers"}},
	"a handler that calls FailNow": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) {
			t.Error("the handler's own check")
			t.FailNow()
			return "", nil
		}))
		weavertest.Run(t, e, charge, 1)
	}, []string{"the handler's own check", "runtime.Goexit"}},
}

func TestFailing(t *testing.T) {
	if name := os.Getenv(failEnv); name != "" {
		failing[name].play(t)
		return
	}
	for name, c := range failing {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFailing$", "-test.v")
			cmd.Env = append(os.Environ(), failEnv+"="+name)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err == nil || !strings.Contains(text, "--- FAIL: TestFailing") {
				t.Errorf("the test passed:\n%s", text)
			}
			for _, says := range c.says {
				if !strings.Contains(text, says) {
					t.Errorf("the test does not say %q:\n%s", says, text)
				}
			}
			for _, bad := range []string{"went on", "deadlock", "\ngoroutine "} {
				if strings.Contains(text, bad) {
					t.Errorf("the test said %q:\n%s", bad, text)
				}
			}
		})
	}
}
