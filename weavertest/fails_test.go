package weavertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// failEnv makes TestFailing run the case that it names, which must fail. The case runs in a process of its own,
// because a test with a failing subtest cannot pass.
const failEnv = "WEAVERTEST_FAILING"

// failing are uses of this package that must fail the user's test, with parts of the expected message.
var failing = map[string]struct {
	play func(t *testing.T)
	says []string
}{
	"capsule, a renamed step": {func(t *testing.T) {
		weavertest.ReplayCapsule(t, shipType.Handler(func(ctx context.Context, in shipment) (string, error) {
			return weaver.Step(ctx, "address", func(context.Context) (string, error) { return "ran outside", nil })
		}), shipped(t))
	}, []string{"the code goes another way", `it asks for the step "address", which is not recorded`, `it does not ask for the step "label" (0), which is recorded`}},
	"capsule, another output": {func(t *testing.T) {
		outside := 0
		same := ship(&outside)
		weavertest.ReplayCapsule(t, shipType.Handler(func(ctx context.Context, in shipment) (string, error) {
			out, err := same(ctx, in)
			return strings.ToUpper(out), err
		}), shipped(t))
	}, []string{"the code goes another way", `its output is "LABEL OF LAMP, PACKED LAMP, AT HOME, SLIP", recorded is "label of lamp, packed lamp, at home, slip"`}},
	"capsule, another error": {func(t *testing.T) {
		outside := 0
		same := ship(&outside)
		weavertest.ReplayCapsule(t, shipType.Handler(func(ctx context.Context, in shipment) (string, error) {
			if _, err := same(ctx, in); err != nil {
				return "", err
			}
			return "", errors.New("new trouble")
		}), shipped(t))
	}, []string{"it ends with failure (new trouble), recorded is success"}},
	"capsule of another type": {func(t *testing.T) {
		weavertest.ReplayCapsule(t, charge.Handler(func(context.Context, int) (string, error) { return "", nil }), shipped(t))
	}, []string{"has no task of the type weavertest", "weavertest.shop.ship.v1"}},
	"step names that change": {func(t *testing.T) {
		attempts := 0
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			attempts++
			return "", weaver.Do(ctx, fmt.Sprint("attempt ", min(attempts, 2)), func(context.Context) error { return nil })
		}))
		weavertest.Replay(t, e, charge, 1)
	}, []string{`step "attempt 1" was recorded, but the last attempt never asked for it`, "step names must be the same in every attempt"}},
	"step names made of the time": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			return "", weaver.Do(ctx, "at "+time.Now().Format(time.Stamp), func(context.Context) error { return nil })
		}))
		weavertest.Replay(t, e, charge, 1)
		t.Log("went on")
	}, []string{`step "at `, "step names must be the same in every attempt"}},
	"one step name of two that changes": {func(t *testing.T) {
		attempts := 0
		t.Cleanup(func() { t.Logf("%d attempts", attempts) })
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			attempts++
			for _, name := range []string{"reserve", fmt.Sprint("attempt ", attempts)} {
				if err := weaver.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
					return "", err
				}
			}
			return "", nil
		}))
		weavertest.Replay(t, e, charge, 1)
		t.Log("went on")
	}, []string{`step "attempt 2" was recorded`, "6 attempts"}}, // five kills: one per step, and three more
	"a name of a sleep that changes": {func(t *testing.T) {
		attempts := 0
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			attempts++
			if err := weaver.Do(ctx, "reserve", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return "", weaver.Sleep(ctx, fmt.Sprint("attempt ", attempts), time.Hour)
		}))
		weavertest.Replay(t, e, charge, 1)
		t.Log("went on")
	}, []string{`step "attempt 2" was recorded`}},
	"a run without a handler": {func(t *testing.T) {
		weavertest.Run(t, weavertest.New(t, mail.Handler(sendMail)), charge, 1)
		t.Log("went on")
	}, []string{"weavertest.billing.charge.v1 has no handler here", "give weavertest.New its Handler"}},
	"a replay without a handler": {func(t *testing.T) {
		weavertest.Replay(t, weavertest.New(t), charge, 1)
		t.Log("went on")
	}, []string{"weavertest.billing.charge.v1 has no handler here"}},
	"a replay of a task that fails": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", weaver.Permanent(errors.New("card refused")) }))
		weavertest.Replay(t, e, charge, 1)
		t.Log("went on") // must not be reached
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
	"a run that waits for ever": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", nil }))
		if err := e.PauseQueue(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		weavertest.Run(t, e, charge, 1)
		t.Log("went on")
	}, []string{"which is pending (paused) in queue \"default\", would never end"}},
	"a run whose handler never ends": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		weavertest.Run(t, e, charge, 1)
		t.Log("went on")
	}, []string{"which is running in queue \"default\", would never end"}},
	"a handler that does not end when it is idle": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(ctx context.Context, _ int) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		enqueue(t, e)
		weavertest.RunUntilIdle(t, e)
		t.Log("went on")
	}, []string{"a handler would never end"}},
	"a handler that ignores its context": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { time.Sleep(time.Hour); return "", nil }))
		enqueue(t, e)
		weavertest.Advance(t, e, time.Second)
	}, []string{"the engine: ", "did not return after their context ended: [weavertest.billing.charge.v1 "}},
	"time that goes back": {func(t *testing.T) {
		weavertest.Advance(t, weavertest.New(t), -time.Second)
		t.Log("went on")
	}, []string{"Advance(-1s): time does not go back"}},
	"a task that goes on without a handler": {func(t *testing.T) {
		e := weavertest.New(t)
		weavertest.Continue(t, e, charge, enqueue(t, e))
		t.Log("went on")
	}, []string{"weavertest.billing.charge.v1 has no handler here"}},
	"a task that goes on as another type": {func(t *testing.T) {
		e := weavertest.New(t, mail.Handler(sendMail))
		weavertest.Continue(t, e, mail, enqueue(t, e))
		t.Log("went on")
	}, []string{"is a weavertest.billing.charge.v1, not a weavertest.mail.send.v1"}},
	"a task that goes on and is still blocked": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", weaver.Blocked("how much?") }))
		weavertest.Continue(t, e, charge, enqueue(t, e))
		t.Log("went on")
	}, []string{"blocked", "how much?"}},
	"a job that fails": {func(t *testing.T) {
		e := weavertest.New(t, charge.Handler(func(context.Context, int) (string, error) { return "", weaver.Permanent(errors.New("card refused")) }))
		weavertest.RunJob(t, e, payments())
		t.Log("went on")
	}, []string{"(payments) is failed: first is failed: card refused; second is cancelled: "}},
	"a job without a handler": {func(t *testing.T) {
		weavertest.RunJob(t, weavertest.New(t), payments())
		t.Log("went on")
	}, []string{
		"(payments), of which first is ready in queue \"default\", and its type weavertest.billing.charge.v1 has no handler here",
		"second is pending (deps)", "would never end",
	}},
	"a job that cannot be": {func(t *testing.T) {
		weavertest.RunJob(t, weavertest.New(t), weaver.NewJob("empty"))
		t.Log("went on")
	}, []string{"the job is empty"}},
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

func enqueue(t *testing.T, e *weavertest.Env) weaver.TaskID {
	t.Helper()
	h, err := charge.Enqueue(t.Context(), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	return h.ID()
}

func payments() *weaver.Job {
	j := weaver.NewJob("payments")
	j.Add("second", charge.With(2), weaver.Needs(j.Add("first", charge.With(1))))
	return j
}

// placed matches a message of this package with its file and line.
var placed = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: weavertest: .*$`)

func TestFailing(t *testing.T) {
	if name := os.Getenv(failEnv); name != "" {
		failing[name].play(t)
		return
	}
	if runtime.GOOS == "js" {
		t.Skip("a browser starts no processes")
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
			for _, line := range placed.FindAllString(text, -1) {
				if !strings.Contains(line, " fails_test.go:") {
					t.Errorf("the message names no line of the test: %s", line)
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
