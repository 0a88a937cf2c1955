package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

// TestMain makes the test binary run as the program, which the tests start and kill.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const asProgram = "RELEASE_TEST_AS_PROGRAM"

// process is the program running in a folder.
type process struct {
	*testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	said  strings.Builder
}

func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.CommandContext(t.Context(), os.Args[0], append(args, "--dir", dir, "--pace", "20ms")...)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = os.Stderr
	pipe, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(pipe)
	return p
}

// until reads up to a line that begins with a text.
func (p *process) until(begin string) {
	p.Helper()
	for p.lines.Scan() {
		p.said.WriteString(p.lines.Text() + "\n")
		if strings.HasPrefix(p.lines.Text(), begin) {
			return
		}
	}
	p.Fatalf("it never said %q, but:\n%s", begin, &p.said)
}

// killAt kills the program at a line.
func (p *process) killAt(begin string) {
	p.Helper()
	p.until(begin)
	if err := p.cmd.Process.Kill(); err != nil {
		p.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed
}

// end waits for the program and checks whether it succeeded.
func (p *process) end(ok bool) {
	p.Helper()
	for p.lines.Scan() {
		p.said.WriteString(p.lines.Text() + "\n")
	}
	if err := p.cmd.Wait(); (err == nil) != ok {
		p.Fatalf("it ended with %v:\n%s", err, &p.said)
	}
}

// approve sends the signal to the release, as `weaver task signal` does.
func approve(t *testing.T, dir, key string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "weaver.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := weaver.NewClient(db, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, _, err := Ship.List(t.Context(), c, weaver.Filter{Limit: 1})
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%d releases: %v", len(tasks), err)
	}
	if err := Approved.Send(t.Context(), c, tasks[0].ID, key, "ann", weaver.By("ann")); err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot(t.Context(), weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Error(v)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Killed during the builds, during the wait for a person, and after the approval, the release continues.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, moment := range []string{"pid", "building", "built"} {
		start(t, dir).killAt(moment)
	}
	approve(t, dir, "click-1")
	approve(t, dir, "click-1") // sending it twice has one effect
	start(t, dir).killAt("approved by ann")
	start(t, dir).end(true)
	if got, want := read(t, dir, "RELEASE"), "v1.0.0, approved by ann: [app-linux app-darwin app-windows]\n"; got != want {
		t.Errorf("released %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "ALARM")); err == nil {
		t.Error("an alarm was raised")
	}
}

// A failed build raises the alarm, and the release fails.
func TestBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir, "--broken", "darwin").end(false)
	if got := read(t, dir, "ALARM"); got != "v1.0.0 was not released\n" {
		t.Errorf("the alarm says %q", got)
	}
}
