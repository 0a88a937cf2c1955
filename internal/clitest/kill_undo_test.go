package clitest_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// After a kill during an undo the next run continues it: the tasks are undone in order, and the alarm comes last.
func TestUndoIsKilled(t *testing.T) {
	t.Parallel()
	for _, undo := range []string{"undo b", "undo a"} { // the undo that the kill interrupts
		t.Run(undo, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "saga.yaml"), strings.NewReplacer("WAIT"+strings.ToUpper(undo[5:]), "test -f killed || sleep 60", "WAITA", "true", "WAITB", "true").Replace(`name: saga
tasks:
  a: {run: "echo a >>ledger", undo: {run: "echo begin undo a >>ledger; WAITA; echo undo a >>ledger"}}
  b: {run: "echo b >>ledger; exit 1", needs: [a], undo: {run: "echo begin undo b >>ledger; WAITB; echo undo b >>ledger"}}
on:
  failure: {run: "echo alarm >>ledger"}
`))
			first := start(t, dir, "run", "-o", "json", "saga.yaml")
			for {
				line, more := first.next()
				if !more {
					t.Fatalf("it ended before it was killed:\n%s%s", first.stdout.String(), first.stderr.String())
				}
				if strings.Contains(line, `"task.started"`) && strings.Contains(line, `"`+undo+`"`) {
					break
				}
			}
			first.signal(syscall.SIGKILL)
			if code := first.end(); code != -1 {
				t.Fatalf("exit code %d: it was not killed", code)
			}
			write(t, filepath.Join(dir, "killed"), "")
			second := start(t, dir, "run", "-o", "json", "saga.yaml")
			if code := second.end(); code != 1 {
				t.Fatalf("exit code %d:\n%s%s", code, second.stdout.String(), second.stderr.String())
			}
			if job(t, first.stdout.String()) != job(t, second.stdout.String()) {
				t.Error("the second run is another job")
			}
			var ends []string
			for entry := range strings.Lines(read(t, filepath.Join(dir, "ledger"))) {
				if !strings.HasPrefix(entry, "begin") {
					ends = append(ends, strings.TrimSpace(entry))
				}
			}
			if !slices.Equal(ends, []string{"a", "b", "undo b", "undo a", "alarm"}) {
				t.Errorf("the ledger has %q", ends)
			}
		})
	}
}
