package clitest_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ledger returns a pipeline whose tasks write their names when they begin and end. The tasks of a lane follow each
// other.
func ledger() string {
	var b strings.Builder
	b.WriteString("name: ledger\ntasks:\n")
	for _, lane := range []string{"a", "b"} {
		for i := range 4 {
			needs := ""
			if i > 0 {
				needs = fmt.Sprintf(", needs: [%s%d]", lane, i-1)
			}
			fmt.Fprintf(&b, "  %s%d: {run: \"echo begin %[1]s%[2]d >>ledger; echo line; sleep 0.03; echo end %[1]s%[2]d >>ledger\"%[3]s}\n", lane, i, needs)
		}
	}
	b.WriteString("  last: {run: \"echo end last >>ledger\", needs: [a3, b3]}\n")
	return b.String()
}

// A run that is killed after any of its first lines continues with the same job: succeeded tasks do not run again,
// and all tasks end.
func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{0, 1, 2, 3, 5, 8, 11, 14, 17, 20} {
		t.Run(fmt.Sprintf("after line %d", lines), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "ledger.yaml"), ledger())
			first := start(t, dir, "run", "-o", "json", "ledger.yaml")
			for range lines {
				if _, more := first.next(); !more {
					t.Fatalf("it ended before it was killed:\n%s%s", first.stdout.String(), first.stderr.String())
				}
			}
			first.signal(syscall.SIGKILL)
			if code := first.end(); code != -1 {
				t.Fatalf("exit code %d: it was not killed", code)
			}
			known := nodes(first.stdout.String(), "task.succeeded")
			before := strings.Count(read(t, filepath.Join(dir, "ledger")), "\n")

			second := start(t, dir, "run", "-o", "json", "ledger.yaml")
			if code := second.end(); code != 0 {
				t.Fatalf("exit code %d:\n%s%s", code, second.stdout.String(), second.stderr.String())
			}
			again := nodes(second.stdout.String(), "task.started")
			for _, node := range known {
				if slices.Contains(again, node) {
					t.Errorf("%s had succeeded and was run again", node)
				}
			}
			if lines > 0 && job(t, first.stdout.String()) != job(t, second.stdout.String()) {
				t.Error("the second run is another job")
			}

			// A killed command wrote no more output: each end is recorded once, unless a command ended after the kill
			// and before its result was recorded.
			entries := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "ledger"))), "\n")
			ends := map[string]int{}
			for i, e := range entries {
				name, ended := strings.CutPrefix(e, "end ")
				if !ended {
					continue
				}
				if ends[name]++; ends[name] > 2 || ends[name] == 2 && i < before {
					t.Errorf("%s ended %d times", name, ends[name])
				}
			}
			if len(ends) != 9 || !strings.HasSuffix(entries[len(entries)-1], "last") {
				t.Errorf("the ledger is not complete:\n%s", strings.Join(entries, "\n"))
			}
			if code := start(t, dir, "doctor").end(); code != 0 {
				t.Errorf("doctor: exit code %d", code)
			}
		})
	}
}

// A run that is killed often continues each time: these kills do not count against the crash budget of its tasks.
func TestRunIsKilledOften(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "long.yaml"), "name: long\ntasks:\n  pay: {run: \"echo pay >>ledger\"}\n  long: {run: \"echo up; while ! test -f go; do sleep 0.05; done\", needs: [pay]}\n")
	for range 5 {
		p := start(t, dir, "run", "long.yaml")
		p.await("long| up")
		p.signal(syscall.SIGKILL)
		p.end()
	}
	write(t, filepath.Join(dir, "go"), "")
	p := start(t, dir, "run", "long.yaml")
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, p.stdout.String(), p.stderr.String())
	}
	if got := read(t, filepath.Join(dir, "ledger")); got != "pay\n" {
		t.Errorf("the ledger is %q: what had finished was run again", got)
	}
}

// A fresh job begins after all tasks of the old one have ended, whether the old process is alive or was killed.
func TestFreshWaitsForTheOld(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "held.yaml"), `name: held
tasks:
  a: {run: "trap 'sleep 0.2; echo ended >>ledger; exit 1' TERM; echo begun >>ledger; echo up; while :; do sleep 0.05; done"}
`)
			old := start(t, dir, "run", "held.yaml")
			old.await("a| up")
			want := "begun\nended\nbegun\n"
			if killed {
				old.signal(syscall.SIGKILL)
				old.end()
				want = "begun\nbegun\n"
			}
			fresh := start(t, dir, "run", "--fresh", "held.yaml")
			fresh.await("a| up")
			if got := read(t, filepath.Join(dir, "ledger")); got != want {
				t.Errorf("the ledger is %q, want %q", got, want)
			}
			fresh.signal(syscall.SIGKILL)
			fresh.end()
			if !killed {
				if code := old.end(); code != 1 {
					t.Errorf("the old run's exit code is %d, want 1", code)
				}
			}
		})
	}
}

// nodes returns the names of the tasks with one kind of event in a stream.
func nodes(stream, event string) []string {
	var names []string
	for line := range strings.Lines(stream) {
		if strings.HasPrefix(line, `{"event":"`+event+`"`) {
			names = append(names, field(line, "node"))
		}
	}
	return names
}

func job(t *testing.T, stream string) string {
	t.Helper()
	id := field(stream, "job_id")
	if id == "" {
		t.Fatalf("no job in the stream:\n%s", stream)
	}
	return id
}

// field returns the first string under a key.
func field(line, key string) string {
	_, rest, _ := strings.Cut(line, `"`+key+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
