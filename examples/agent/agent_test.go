//go:build !js

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/cli"
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

const asProgram = "AGENT_TEST_AS_PROGRAM"

// process is the program running in a folder.
type process struct {
	*testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	said  strings.Builder
}

func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.CommandContext(t.Context(), os.Args[0], append(args, "--dir", dir, "--pace", "5ms")...)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
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

// killAt kills the program at a line that contains a text.
func (p *process) killAt(text string) {
	p.Helper()
	for p.lines.Scan() {
		p.said.WriteString(p.lines.Text() + "\n")
		if strings.Contains(p.lines.Text(), text) {
			if err := p.cmd.Process.Kill(); err != nil {
				p.Fatal(err)
			}
			_ = p.cmd.Wait() // it was killed
			return
		}
	}
	p.Fatalf("it never said %q, but:\n%s", text, &p.said)
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

// weaverCommand runs the command on the store of a folder and returns its output.
func weaverCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Run(t.Context(), cli.App{}, append(args, "--store", "sqlite:"+filepath.Join(dir, "weaver.db")), strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("%s: exit code %d:\n%s", args, code, &out)
	}
	return out.String()
}

// says checks that a text contains parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// Killed at each stage the agent continues, and `weaver why` explains its work.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, moment := range []string{"answer: plan: ", "planned 2 topics", ": think: ", "repairing ", "answer: waits (signal)"} {
		start(t, dir).killAt(moment)
	}
	says(t, weaverCommand(t, dir, "why", "agent/answer"), `waits for the signal "approved"`)
	says(t, weaverCommand(t, dir, "why", "agent/answer/decompose[1]"),
		"could not read its input", "words: want a whole number, and it is a JSON string", "It was decided to repair its input")
	says(t, weaverCommand(t, dir, "task", "show", "agent/answer/decompose[1]"), `{"name":"rocks","words":5}`, "  repair ", "repairs        1 of 2 used")
	says(t, weaverCommand(t, dir, "task", "show", "agent/answer/decompose[1]/repair[1]"), "succeeded", "path: words", "200 micro-units")
	for range 2 { // sending it twice has one effect
		weaverCommand(t, dir, "task", "signal", "agent/answer", Approved.Name(), `"ann"`, "--key", "click-1")
	}
	start(t, dir).killAt("approved by ann")
	start(t, dir).end(true)
	text, err := os.ReadFile(filepath.Join(dir, "ANSWER"))
	if want := "Why is the sea salty? Rivers carry salt into it. Rain washes salt from rocks. (approved by ann)\n"; err != nil || string(text) != want {
		t.Errorf("the answer is %q, %v, want %q", text, err, want)
	}
	check(t, dir)
}

// check checks the store for violations.
func check(t *testing.T, dir string) {
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
	snap, err := db.Snapshot(t.Context(), weaver.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range store.Check(snap) {
		t.Error(v)
	}
}

// A budget limits the cost of tokens, and the job ends with that reason.
func TestBudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir, "--budget", "900").end(false)
	says(t, weaverCommand(t, dir, "why", "agent"), "budget", "900")
	if _, err := os.Stat(filepath.Join(dir, "ANSWER")); err == nil {
		t.Error("there is an answer")
	}
	check(t, dir)
}
