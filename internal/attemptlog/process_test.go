//go:build unix

package attemptlog_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goweaver/weaver/internal/attemptlog"
	"github.com/goweaver/weaver/task"
)

// TestMain runs the process that TestWriterIsKilled kills: it writes a log, prints a line, and ends with its parent.
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

// A log that another process writes is not removed. After that process was killed its log can be read as far as it
// was written, and can be removed.
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

// A closed log is free although a program that is being started holds a copy of its descriptor, as every program does
// until it executes.
func TestClosedBesideAFork(t *testing.T) {
	t.Parallel()
	f, a := folder(t, t.TempDir(), 80, 0), attempt()
	w := f.Writer(a)
	write(t, w, "x")
	copyOf(t, filepath.Join(f.Dir(), a.Job.String(), a.Task.String()+".1.log"))
	end(t, w)
	if err := f.RemoveOf(a); err != nil || has(f, a) {
		t.Errorf("log %v, %v", has(f, a), err)
	}
}

// copyOf duplicates this process' descriptor of a file, as fork does.
func copyOf(t *testing.T, path string) {
	t.Helper()
	var want, is syscall.Stat_t
	if err := syscall.Stat(path, &want); err != nil {
		t.Fatal(err)
	}
	for fd := range 1024 {
		if syscall.Fstat(fd, &is) == nil && is.Dev == want.Dev && is.Ino == want.Ino {
			again, err := syscall.Dup(fd)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Close(again) })
			return
		}
	}
	t.Fatalf("%s is not open", path)
}
