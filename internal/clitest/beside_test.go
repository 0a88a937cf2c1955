package clitest_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A worker and a run of the same store share the work, and the run reports all of it.
func TestRunBesideAWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const tasks = 24
	var file strings.Builder
	file.WriteString("name: shared\ntasks:\n")
	for i := range tasks { // each waits until both processes run tasks
		fmt.Fprintf(&file, "  t%d: {run: \"echo t%[1]d by $PPID >>ledger; while ! grep -v \\\"by $PPID\\\" ledger; do sleep 0.05; done\"}\n", i)
	}
	write(t, filepath.Join(dir, "shared.yaml"), file.String())
	worker := start(t, dir, "worker", "--handlers", "builtin", "--slots", "2")
	worker.await("worker on ")

	run := start(t, dir, "run", "--slots", "2", "shared.yaml")
	if code := run.end(); code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, run.stdout.String(), run.stderr.String())
	}
	worker.signal(syscall.SIGTERM)
	if code := worker.end(); code != 0 {
		t.Errorf("the worker's exit code is %d:\n%s", code, worker.stderr.String())
	}
	run.says("shared succeeded in ", fmt.Sprintf(": %d tasks.", tasks))
	for i := range tasks {
		for _, what := range []string{"started", "succeeded in "} {
			if n := strings.Count(run.stdout.String(), fmt.Sprintf(" t%d: %s", i, what)); n != 1 {
				t.Errorf("the run says %d times that t%d %s", n, i, what)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "ledger"))), "\n")
	if len(lines) != tasks {
		t.Errorf("%d commands were run, want %d", len(lines), tasks)
	}
}

// Work of another process is reported while it happens, not only at the end.
func TestRunReportsWhatAWorkerDoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "held.yaml"), `name: held
tasks:
  a: {run: "while ! test -f go; do sleep 0.05; done"}
  b: {run: "while ! test -f go; do sleep 0.05; done"}
`)
	worker := start(t, dir, "worker", "--slots", "1")
	worker.await("worker on ")
	run := start(t, dir, "run", "--slots", "1", "held.yaml")
	first := run.await(": started")
	second := run.await(": started")
	if a := strings.Contains(first+second, " a: "); !a || !strings.Contains(first+second, " b: ") {
		t.Errorf("it printed %q and %q, want a and b", first, second)
	}
	write(t, filepath.Join(dir, "go"), "")
	if code := run.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	worker.signal(syscall.SIGTERM)
	worker.await("worker stopped: 1 attempt run, 1 succeeded")
}

// A file that several processes start concurrently becomes one job, and its commands run once.
func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "once.yaml"), "name: once\ntasks:\n  a: {run: \"echo a >>ledger; while ! test -f go; do sleep 0.05; done\"}\n  b: {run: \"echo b >>ledger\", needs: [a]}\n")
		if code := start(t, dir, "migrate", "up").end(); code != 0 {
			t.Fatalf("migrate: exit code %d", code)
		}
		var all []*process
		for range 4 {
			all = append(all, start(t, dir, "run", "once.yaml"))
		}
		for _, p := range all {
			p.await(": job ")
		}
		write(t, filepath.Join(dir, "go"), "")
		for _, p := range all {
			if code := p.end(); code != 0 {
				t.Errorf("round %d: exit code %d:\n%s%s", round, code, p.stdout.String(), p.stderr.String())
			}
			p.says("once succeeded in ")
		}
		if got := read(t, filepath.Join(dir, "ledger")); got != "a\nb\n" {
			t.Errorf("round %d: the ledger is %q", round, got)
		}
	}
}

// A worker runs tasks that another process submits.
func TestSubmitBesideAWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "two.yaml"), "name: two\ntasks:\n  a: {run: \"echo a >>ledger\"}\n  b: {run: \"echo b >>ledger\", needs: [a]}\n")
	worker := start(t, dir, "worker")
	worker.await("worker on ")
	for i := range 3 {
		if code := start(t, dir, "submit", "two.yaml").end(); code != 0 {
			t.Fatalf("submit: exit code %d", code)
		}
		worker.await("b: succeeded in ")
		if got, want := read(t, filepath.Join(dir, "ledger")), strings.Repeat("a\nb\n", i+1); got != want {
			t.Fatalf("the ledger is %q, want %q", got, want)
		}
	}
	worker.signal(syscall.SIGINT)
	if code := worker.end(); code != 0 {
		t.Errorf("the worker's exit code is %d", code)
	}
	worker.says("worker stopped: 6 attempts run, 6 succeeded, 0 failed")
}
