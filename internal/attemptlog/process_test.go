//go:build unix

package attemptlog_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

// TestMain is the process that TestWriterIsKilled kills: it writes a log and
// says so, and ends with the process that started it.
func TestMain(m *testing.M) {
	dir := os.Getenv("ATTEMPTLOG_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	id, err := task.ParseID(os.Getenv("ATTEMPTLOG_TASK"))
	if err != nil {
		panic(err)
	}
	w := attemptlog.New(attemptlog.Config{Dir: dir}).Writer(attemptlog.Attempt{Task: id, No: 1})
	if _, err := w.Write([]byte("before the kill\nhalf a li")); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("written\n")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A log that another process writes is not removed; when that is killed the
// log can be read as far as it came, and be removed.
func TestWriterIsKilled(t *testing.T) {
	t.Parallel()
	dir, a := t.TempDir(), attemptlog.Attempt{Task: ids.New(), No: 1}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "ATTEMPTLOG_DIR="+dir, "ATTEMPTLOG_TASK="+a.Task.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // it stays open
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "written\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	f := folder(t, dir, 0, 64<<10)
	fill := func() {
		t.Helper()
		for range 2 {
			keep(t, f, attempt(), strings.Repeat("x", 300<<10))
		}
		f.Close()
	}
	fill()
	if got := rest(t, open(t, f, a)); got != "before the kill\nhalf a li" {
		t.Errorf("while it runs: %q", got)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if got := rest(t, open(t, f, a)); got != "before the kill\nhalf a li" {
		t.Errorf("after the kill: %q", got)
	}
	fill()
	if has(f, a) {
		t.Error("the log of a process that was killed is never removed")
	}
}
