package devrun_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/devrun"
)

// helperEnv selects a helper program in this test binary.
const helperEnv = "DEVRUN_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		help(name)
		return
	}
	os.Exit(m.Run())
}

// written is the number of lines that a program writes: more than one read returns, less than a pipe holds.
const written = 4000

// help runs a helper program. Each holds a connection while it is alive.
func help(name string) {
	conn, err := net.Dial("tcp", os.Getenv("WITNESS"))
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	switch name {
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		fmt.Println("stubborn runs")
		select {}
	case "parent": // leaves a stubborn child behind
		ask := make(chan os.Signal, 1)
		signal.Notify(ask, syscall.SIGTERM) // before the test learns that it runs
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), helperEnv+"=stubborn") // the last value counts
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		<-ask
		fmt.Println("parent ends")
	case "runner": // is itself a runner, to be killed
		err := os.Setenv(helperEnv, "parent")
		if err != nil {
			panic(err)
		}
		r, err := devrun.New(devrun.Config{Command: os.Args[:1], Output: devrun.NewOutput(os.Stdout)})
		if err == nil {
			err = r.Run(context.Background())
		}
		panic(err)
	case "writer": // writes many lines and ends in the middle of one
		for i := range written {
			fmt.Println("line", i)
		}
		fmt.Print("the tail")
	}
}

// screen collects the printed lines.
type screen struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed when a new line arrives
	read  int           // lines that next has passed
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, strings.TrimSuffix(string(p), "\n"))
	close(s.more)
	s.more = make(chan struct{})
	return len(p), nil
}

// next waits for a line that contains a text, after the last line that it found.
func (s *screen) next(t *testing.T, text string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		s.mu.Lock()
		for s.read < len(s.lines) {
			s.read++
			if line := s.lines[s.read-1]; strings.Contains(line, text) {
				s.mu.Unlock()
				return line
			}
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-late:
			t.Fatalf("no line with %q; printed:\n%s", text, s.text())
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// run is a running Runner.
type run struct {
	*screen
	runner *devrun.Runner
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, c devrun.Config) *run {
	t.Helper()
	s := &screen{more: make(chan struct{})}
	c.Output, c.Poll = devrun.NewOutput(s), 50*time.Millisecond
	r, err := devrun.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	at := &run{s, r, cancel, make(chan error, 1)}
	go func() { at.ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		r.StopNow()
		if err := <-at.ended; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(s.text())
		}
	})
	return at
}

// stop ends the context and waits for Run to return.
func (r *run) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.ended:
		if r.ended <- nil; err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// witness tells whether the programs that connected to it have ended.
type witness struct{ net.Listener }

func newWitness(t *testing.T) witness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return witness{l}
}

func (w witness) env(helper string) []string {
	return append(os.Environ(), helperEnv+"="+helper, "WITNESS="+w.Addr().String())
}

// gone waits for the end of the given number of programs.
func (w witness) gone(t *testing.T, programs int) {
	t.Helper()
	for range programs {
		conn, err := w.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
			t.Error("a program goes on")
		}
		_ = conn.Close()
	}
}

// source returns a program that prints its version and a line on SIGTERM; it runs the statement atOnce at its start.
func source(version, atOnce string) string {
	return `package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ask := make(chan os.Signal, 1)
	signal.Notify(ask, syscall.SIGTERM)
	fmt.Println("` + version + ` runs with", os.Getenv("GREETING"), os.Args[1:])
	` + atOnce + `
	<-ask
	fmt.Println("` + version + ` drains")
}
`
}

func module(t *testing.T) (dir string, edit func(text string)) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test runs this: it builds programs")
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/app\n\ngo 1.26\n")
	return dir, func(text string) { write(t, filepath.Join(dir, "cmd", "app", "main.go"), text) }
}

// The new program starts after the old one has drained. A failed build and a change without effect keep the old
// program.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir, edit := module(t)
	edit(source("v1", ""))
	temp := t.TempDir()
	env := append(os.Environ(), "GREETING=not this one", "GREETING=hello", "GOTMPDIR="+temp)
	r := start(t, devrun.Config{Dir: dir, Command: []string{"go", "run", "./cmd/app", "a", "b"}, Env: env})
	r.next(t, "dev   | building ./cmd/app")
	r.next(t, "app   | v1 runs with hello [a b]")

	edit(source("v2", "this is no Go"))
	r.next(t, "dev   | cmd/app/main.go changed; building ./cmd/app")
	r.next(t, "build | cmd/app/main.go:14")
	r.next(t, "dev   | the build failed: the running program continues")

	edit(source("v1", ""))
	r.next(t, "dev   | the program is the same as before: it goes on")
	write(t, filepath.Join(dir, "cmd", "other", "main.go"), source("other", ""))
	r.next(t, "dev   | cmd/other/main.go changed")
	r.next(t, "dev   | the program is the same as before: it goes on")

	edit(source("v2", ""))
	r.next(t, "dev   | restarting")
	r.next(t, "app   | v1 drains")
	r.next(t, "dev   | the program exited with code 0")
	r.next(t, "app   | v2 runs with hello [a b]")

	r.stop(t)
	r.next(t, "app   | v2 drains")
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v remain, %v", left, err)
	}
}

// A program that ended by itself is restarted by a change: at once after a long run, later after runs that failed at
// once.
func TestExit(t *testing.T) {
	t.Parallel()
	dir, edit := module(t)
	edit(source("v1", "os.Exit(3)"))
	r := start(t, devrun.Config{Dir: dir, Command: []string{"go", "run", "./cmd/app"}})
	r.next(t, "dev   | the program exited with code 3 after ")
	r.next(t, "dev   | it starts again in 1s, or when a .go file changes")
	r.next(t, "dev   | the program exited with code 3 after ") // by itself
	r.next(t, "dev   | it starts again in 2s, or when a .go file changes")
	const waits = "times in a row: it starts in"
	for code := 4; !strings.Contains(r.text(), waits); code++ {
		if code > 8 {
			t.Fatal("no wait")
		}
		edit(source("again", fmt.Sprintf("os.Exit(%d)", code)))
		r.next(t, fmt.Sprintf("dev   | the program exited with code %d after ", code))
	}
	edit("package other\n")
	r.next(t, "build | go: no main packages to build")
	r.next(t, "dev   | the build failed: it is tried again when a .go file changes")
	r.stop(t)
}

// Stopping during a build ends the build.
func TestStopDuringBuild(t *testing.T) {
	t.Parallel()
	dir, edit := module(t)
	edit(source("v1", ""))
	slow := filepath.Join(dir, "slow")
	write(t, slow, "#!/bin/sh\necho tool runs\nsleep 1000\n")
	if err := os.Chmod(slow, 0o700); err != nil {
		t.Fatal(err)
	}
	r := start(t, devrun.Config{Dir: dir, Command: []string{"go", "run", "-a", "-toolexec", slow, "./cmd/app"}})
	r.next(t, "dev   | building ./cmd/app")
	r.stop(t)
	if strings.Contains(r.text(), "started") {
		t.Errorf("it went on:\n%s", r.text())
	}
}

func TestStubborn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drain time.Duration
		stop  func(*run)
		says  string
	}{
		"until its time is up": {200 * time.Millisecond, func(*run) {}, "dev   | the program did not end within 200ms and was killed"},
		"until told again":     {time.Hour, func(r *run) { r.runner.StopNow() }, `dev   | the program was ended by the signal "killed"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWitness(t)
			r := start(t, devrun.Config{Dir: t.TempDir(), Command: os.Args[:1], Env: w.env("stubborn"), DrainTimeout: c.drain})
			r.next(t, "app   | stubborn runs")
			c.stop(r)
			r.stop(t)
			r.next(t, c.says)
			w.gone(t, 1)
		})
	}
}

// Processes of the program end with it, and also when the runner is killed.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	t.Run("of a program that ends", func(t *testing.T) {
		t.Parallel()
		w := newWitness(t)
		r := start(t, devrun.Config{Dir: t.TempDir(), Command: os.Args[:1], Env: w.env("parent"), DrainTimeout: time.Hour})
		r.next(t, "app   | stubborn runs")
		r.cancel()
		r.next(t, "app   | parent ends")
		r.runner.StopNow()
		r.stop(t)
		w.gone(t, 2)
	})
	t.Run("of a runner that is killed", func(t *testing.T) {
		t.Parallel()
		w := newWitness(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(w.env("runner"), "GOTMPDIR="+t.TempDir()) // a killed process cannot clean up
		s := &screen{more: make(chan struct{})}
		cmd.Stdout = s
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s.next(t, "stubborn runs")
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // it was killed
		w.gone(t, 3)
	})
}

// gate is a screen that blocks until it is opened.
type gate struct {
	*screen
	open chan struct{}
}

func (g gate) Write(p []byte) (int, error) {
	<-g.open
	return g.screen.Write(p)
}

// The last output of a program is printed even though the program has ended.
func TestTail(t *testing.T) {
	t.Parallel()
	w := newWitness(t)
	g := gate{&screen{more: make(chan struct{})}, make(chan struct{})}
	r, err := devrun.New(devrun.Config{Dir: t.TempDir(), Command: os.Args[:1], Env: w.env("writer"), Output: devrun.NewOutput(g)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	w.gone(t, 1)
	close(g.open)
	g.next(t, "app   | the tail")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := strings.Count(g.text(), "app   | line "); n != written {
		t.Errorf("%d lines, want %d", n, written)
	}
}
