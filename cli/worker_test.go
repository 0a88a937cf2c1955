package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
)

// Every event of a handler reaches the worker's stream as a JSON line, complete and unsplit.
func TestWorkerPrintsEventsAsJSON(t *testing.T) {
	t.Parallel()
	odd := weaver.Define[weaver.None, weaver.None]("test.worker.odd.v1")
	app := cli.App{Handlers: []weaver.Handler{odd.Handler(func(ctx context.Context, _ weaver.None) (weaver.None, error) {
		for _, block := range []any{"caf\xc3", "\xa9 <b>", math.Inf(1), "open\xe6\x97"} {
			if err := weaver.Emit(ctx, "stdout", block); err != nil {
				return weaver.None{}, err
			}
		}
		return weaver.None{}, nil
	})}}
	store := "sqlite:" + filepath.Join(t.TempDir(), "weaver.db")
	run := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := cli.Run(t.Context(), app, append([]string{"--store", store}, args...), strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, stderr.String())
		}
		return stdout.String()
	}
	run("submit", odd.Name(), "{}")
	var events, blocks []string
	out := run("worker", "--until-idle", "-o", "json")
	for line := range strings.Lines(out) {
		var ev struct {
			Event string
			Data  any
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		events = append(events, ev.Event)
		if text, ok := ev.Data.(string); ok {
			blocks = append(blocks, text)
		}
	}
	if got, want := strings.Join(events, " "), "task.started stream.chunk stream.chunk stream.chunk stream.chunk stream.chunk task.succeeded"; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
	if got, want := strings.Join(blocks, "|"), "caf|é <b>|+Inf|open|\ufffd\ufffd"; got != want {
		t.Errorf("blocks %q, want %q", got, want)
	}
	if !strings.Contains(out, "<b>") {
		t.Errorf("what people write is escaped: %s", out)
	}
}

// A worker's lines report each failure and block once; its log does not repeat them. Only the log has the stack of a
// panic.
func TestWorkerSaysFailuresOnce(t *testing.T) {
	t.Parallel()
	odd := weaver.Define[string, weaver.None]("test.worker.fails.v1", weaver.NoRetry())
	app := cli.App{Handlers: []weaver.Handler{odd.Handler(func(_ context.Context, how string) (weaver.None, error) {
		switch how {
		case "panic":
			panic("boom")
		case "block":
			return weaver.None{}, weaver.Blocked("who pays?")
		}
		return weaver.None{}, errors.New("card refused")
	})}}
	for how, want := range map[string][2]string{
		"fail":  {"card refused", ""},
		"block": {"who pays?", ""},
		"panic": {"boom", "worker_test.go"},
	} {
		store := "sqlite:" + filepath.Join(t.TempDir(), "weaver.db")
		var stdout, stderr bytes.Buffer
		for i, args := range [][]string{{"submit", odd.Name(), `"` + how + `"`}, {"worker", "--until-idle"}} {
			stdout.Reset()
			if code := cli.Run(t.Context(), app, append([]string{"--store", store}, args...), strings.NewReader(""), &stdout, &stderr); code != i {
				t.Fatalf("%q: exit code %d: %s", args, code, stderr.String())
			}
		}
		if n := strings.Count(stdout.String(), want[0]); n != 1 {
			t.Errorf("%s: %q stands %d times in the worker's lines:\n%s", how, want[0], n, stdout.String())
		}
		if log := stderr.String(); want[1] == "" && log != "" || !strings.Contains(log, want[1]) {
			t.Errorf("%s: the log is %q, want what contains %q", how, log, want[1])
		}
	}
}

// The summary distinguishes failures that end their task from others. A worker with --until-idle fails if a task
// failed.
func TestWorkerSummary(t *testing.T) {
	t.Parallel()
	flaky := weaver.Define[int, weaver.None]("acme.test.flaky.v1", weaver.MaxAttempts(2))
	app := cli.App{Handlers: []weaver.Handler{flaky.Handler(func(context.Context, int) (weaver.None, error) {
		return weaver.None{}, weaver.RetryAfter(0, errors.New("no luck")) // due before the worker is idle
	})}}
	store := "sqlite:" + filepath.Join(t.TempDir(), "weaver.db")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"submit", flaky.Name(), "1"}, 0, ""},
		{[]string{"worker", "--until-idle"}, 1, "worker stopped: 2 attempts run, 0 succeeded, 1 failed, 1 failed and to be retried"},
		{[]string{"worker", "--until-idle"}, 0, "worker stopped: 0 attempts run"},
	} {
		var stdout, stderr bytes.Buffer
		if code := cli.Run(t.Context(), app, append([]string{"--store", store}, c.args...), strings.NewReader(""), &stdout, &stderr); code != c.code {
			t.Fatalf("%q: exit code %d, want %d: %s", c.args, code, c.code, stderr.String())
		}
		if !strings.Contains(stdout.String(), c.says) {
			t.Errorf("%q: got\n%s\nwant %q", c.args, stdout.String(), c.says)
		}
	}
}
