package clitest_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stubborn is a pipeline whose command ignores SIGINT and SIGTERM.
const stubborn = `name: stubborn
tasks:
  stubborn: {run: "trap '' TERM INT; echo up; while :; do sleep 1; done"}
`

func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"run", "worker"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "stubborn.yaml"), stubborn)
			args := []string{"run", "stubborn.yaml"}
			running := "stubborn| up"
			if verb == "worker" {
				if code := start(t, dir, "submit", "stubborn.yaml").end(); code != 0 {
					t.Fatalf("submit: exit code %d", code)
				}
				args, running = []string{"worker", "--handlers", "builtin"}, "stubborn: started"
			}
			p := start(t, dir, args...)
			p.await(running)
			p.signal(syscall.SIGINT)
			p.await("topping: running tasks may end within 30s; interrupt again to stop them now")
			apart()
			p.signal(syscall.SIGINT)
			want := map[string]int{"run": 1, "worker": 0}[verb]
			if code := p.end(); code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			p.says("topping now")

			// The task is ready again, and the attempt does not count.
			ls := start(t, dir, "task", "ls", "-o", "json")
			ls.end()
			if got := ls.stdout.String(); !strings.Contains(got, `"state": "ready"`) || !strings.Contains(got, `"attempt_count": 0,`) {
				t.Errorf("the task was not given back at no cost:\n%s", got)
			}
			if code := start(t, dir, "doctor").end(); code != 0 {
				t.Errorf("doctor: exit code %d", code)
			}
		})
	}
}

// After one signal running tasks may end, no task is started, and the message says how to continue. The same holds
// for the signals of a closed terminal and of a supervisor that stops the service.
func TestInterruptOnce(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "two.yaml"), `name: two
tasks:
  first: {run: "echo up; while ! test -f go; do sleep 0.05; done"}
  second: {run: "true", needs: [first]}
`)
			p := start(t, dir, "run", "two.yaml")
			p.await("first| up")
			p.signal(s)
			p.signal(s) // at once: the same signal, sent to the process and to its group
			p.await("Stopping: ")
			write(t, filepath.Join(dir, "go"), "")
			if code := p.end(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			p.says("first: succeeded", "stopped: 1 of the 2 tasks", "Go on with `weaver run two.yaml`.")
			if strings.Contains(p.stdout.String(), "second: started") {
				t.Error("it began another task")
			}
			p = start(t, dir, "run", "two.yaml")
			if code := p.end(); code != 0 {
				t.Errorf("the next run's exit code is %d", code)
			}
			p.says("1 of its 2 tasks have ended", "two succeeded in ")
		})
	}
}

// A run under nohup outlives its terminal.
func TestNohup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "one.yaml"), "name: one\ntasks:\n  a: {run: \"echo up; while ! test -f go; do sleep 0.05; done\"}\n")
	p := startProgram(t, dir, "sh", "-c", "trap '' HUP; exec "+program(t)+" run one.yaml")
	p.await("a| up")
	p.signal(syscall.SIGHUP)
	write(t, filepath.Join(dir, "go"), "")
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, p.stdout.String(), p.stderr.String())
	}
	if strings.Contains(p.stdout.String(), "Stopping") {
		t.Error("it stopped")
	}
}
