package clitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Right after kill -9 of the process that runs a task, why, task show and job show report the dead process and the
// command that continues its task. They write nothing, and work on a read-only store with read-only lock files.
func TestWhyAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "held.yaml"), `name: held
tasks:
  a: {run: "echo up; while ! test -f go; do sleep 0.05; done"}
  b: {run: "true", needs: [a]}
`)
	run := start(t, dir, "run", "-o", "json", "held.yaml")
	up := run.await(`"up`)
	job, a := field(up, "job_id"), field(up, "task_id")
	look := func(args ...string) string {
		t.Helper()
		p := start(t, dir, args...)
		if code := p.end(); code != 0 {
			t.Fatalf("%s: exit code %d:\n%s", strings.Join(args, " "), code, p.stderr.String())
		}
		return p.stdout.String()
	}
	const gone = "its process is gone"
	for _, id := range []string{job, a} {
		if text := look("why", id); strings.Contains(text, gone) {
			t.Errorf("a process that lives is said to be gone:\n%s", text)
		}
	}
	run.signal(syscall.SIGKILL)
	run.end()
	locks, err := filepath.Glob(filepath.Join(dir, "weaver.db.workers", "[0-9a-f]*"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("lock files: %v, %v", locks, err)
	}
	if err := os.Chmod(locks[0], 0o400); err != nil {
		t.Fatal(err)
	}
	const goesOn = gone + "; `weaver worker` or `weaver run held.yaml` goes on"
	for _, args := range [][]string{{"why", a}, {"why", job}, {"task", "show", a}, {"job", "show", job}} {
		if text := look(args...); !strings.Contains(text, goesOn) {
			t.Errorf("%s does not say %q:\n%s", strings.Join(args, " "), goesOn, text)
		}
	}
	for _, args := range [][]string{{"task", "show", a}, {"job", "show", job}} {
		if text := look(append(args, "-o", "json")...); !strings.Contains(text, `"process_gone"`) {
			t.Errorf("%s -o json has no process_gone:\n%s", strings.Join(args, " "), text)
		}
	}
	if _, err := os.Stat(locks[0]); err != nil {
		t.Errorf("a look removed the lock file: %v", err)
	}

	// The suggested command works at once.
	write(t, filepath.Join(dir, "go"), "")
	look("run", "held.yaml")
	if text := look("why", job); strings.Contains(text, gone) {
		t.Errorf("after it went on:\n%s", text)
	}
}
