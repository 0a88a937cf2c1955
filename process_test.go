package weaver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// childEnv makes this test binary a worker process on the database it names.
const childEnv = "WEAVER_TEST_WORKER"

func TestMain(m *testing.M) {
	path := os.Getenv(childEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if err := childMain(path); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// childAdd is handled by worker processes: it adds two numbers in a step and,
// if Hang is set, never returns.
var childAdd = weaver.Define[childInput, childOutput]("child.math.add.v1")

type childInput struct {
	A, B int
	Hang bool
}

type childOutput struct{ Sum, Process int }

// childMain is a worker process: it migrates and runs until its standard
// input ends, and says on its standard output how far it is.
func childMain(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := sqlite.Open(ctx, path)
	if err != nil {
		return err
	}
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{childAdd.Handler(
		func(ctx context.Context, in childInput) (childOutput, error) {
			out, err := addInStep(ctx, in)
			if err == nil && in.Hang {
				fmt.Println("hangs")
				<-ctx.Done()
			}
			return out, err
		})}})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	fmt.Println("runs")
	if err := eng.Run(ctx); err != nil {
		return err
	}
	return db.Close()
}

func addInStep(ctx context.Context, in childInput) (childOutput, error) {
	return weaver.Step(ctx, "add", func(context.Context) (childOutput, error) {
		return childOutput{Sum: in.A + in.B, Process: os.Getpid()}, nil
	})
}

// child is a worker process.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	stdin io.Closer
}

// startChild starts a worker process on a database file. It is killed at the
// end of the test unless it was ended before.
func startChild(t testing.TB, path string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+path)
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin, c.lines = stdin, bufio.NewScanner(stdout)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

// says waits until the process prints a line.
func (c *child) says(line string) {
	c.t.Helper()
	for c.lines.Scan() {
		if c.lines.Text() == line {
			return
		}
	}
	c.t.Fatalf("the worker process ended before it said %q: %v", line, c.lines.Err())
}

// kill is kill -9.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // its end is what was asked for
}

// end lets the process drain, and waits for it.
func (c *child) end() {
	c.t.Helper()
	if err := c.stdin.Close(); err != nil {
		c.t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the worker process: %v", err)
	}
}
