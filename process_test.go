package weaver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// childEnv makes this test binary a worker process on the database it names.
const childEnv = "WEAVER_TEST_WORKER"

func TestMain(m *testing.M) {
	path := os.Getenv(childEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	main := childMain
	if os.Getenv(followEnv) != "" {
		main = followMain
	}
	if err := main(path); err != nil {
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

// childMain is a worker process: it migrates, runs until its standard input ends, and reports its
// state on its standard output.
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
	eng, err := weaver.New(db, weaver.Config{Lease: time.Hour, Plugins: persist, Handlers: []weaver.Handler{childTells(), childAdd.Handler(
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

// startChild starts a worker process on a database file. It is killed at the end of the test unless it
// has ended.
func startChild(t testing.TB, path string, env ...string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(append(os.Environ(), childEnv+"="+path), env...)
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
	_ = c.cmd.Wait()         // the kill explains its error
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

// TestProcesses runs the tests that need a file and processes that share it. They run in real time.
func TestProcesses(t *testing.T) {
	t.Run("a killed process is taken over at once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		fx := newFixture(t, openFile(t, path))
		h := enqueue(fx, childAdd, childInput{A: 1, B: 2, Hang: true})
		c := startChild(t, path)
		c.says("hangs")
		c.kill()

		// Its lease lasts for an hour.
		fx.run(childAdd.Handler(addInStep))
		out := result(fx, h)
		equal(t, "sum", out.Sum, 3)
		equal(t, "process that ran the step", out.Process, c.cmd.Process.Pid)
		fx.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeSuccess)
	})

	t.Run("migrations are explicit, idempotent, versioned, and safe from two processes at once", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		db, err := sqlite.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		fx := newFixture(t, db)
		t.Cleanup(func() { fx.must(db.Close()) })
		_, err = childAdd.Enqueue(t.Context(), fx.client, childInput{})
		wantError(t, err, store.ErrNotMigrated, "weaver migrate up")
		err = fx.newEngine(db, weaver.Config{}).Run(t.Context())
		wantError(t, err, store.ErrNotMigrated, "weaver migrate up", "Migrate")

		// Two processes and eight handles of this one, all at once.
		a, b := startChild(t, path), startChild(t, path)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				other, err := sqlite.Open(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := other.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
				if err := other.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		a.says("runs")
		b.says("runs")
		out, err := childAdd.EnqueueAndWait(t.Context(), fx.client, childInput{A: 2, B: 3})
		fx.must(err)
		equal(t, "sum", out.Sum, 5)
		a.end()
		b.end()

		before, err := db.MigrationStatus(t.Context())
		fx.must(err)
		fx.must(db.Migrate(t.Context()))
		after, err := db.MigrationStatus(t.Context())
		fx.must(err)
		for i := range before {
			equal(t, "a migration is applied once", after[i], before[i])
		}
		list, _, err := fx.client.List(t.Context(), weaver.Filter{})
		fx.must(err)
		equal(t, "tasks after migrating again", len(list), 1)

		// A newer program migrated the file.
		_, err = db.DB().ExecContext(t.Context(), "INSERT INTO weaver_schema_versions (version, name, checksum, applied_at) VALUES (9999, 'later', 'x', 0)")
		fx.must(err)
		wantError(t, db.Migrate(t.Context()), store.ErrNewerSchema)
		wantError(t, fx.newEngine(db, weaver.Config{}).Run(t.Context()), store.ErrNewerSchema, "this weaver knows")
	})

	t.Run("a result is waited for from another process", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		fx := newFixture(t, openFile(t, path))
		c := startChild(t, path)
		c.says("runs")
		out := result(fx, enqueue(fx, childAdd, childInput{A: 20, B: 22}))
		equal(t, "sum", out.Sum, 42)
		equal(t, "process that did it", out.Process, c.cmd.Process.Pid)
		if out.Process == os.Getpid() {
			t.Error("this process ran it itself")
		}
		c.end()
	})

	t.Run("a result is waited for through another handle, without polling", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weaver.db")
		synctest.Test(t, func(t *testing.T) {
			fx, other := newFixture(t, openFile(t, path)), newFixture(t, openFile(t, path))
			h := enqueue(fx, childAdd, childInput{A: 20, B: 22})
			waited := make(chan error, 1)
			go func() {
				_, err := other.client.Wait(t.Context(), h.ID())
				waited <- err
			}()
			synctest.Wait()
			began := time.Now()
			fx.run(childAdd.Handler(addInStep))
			fx.must(<-waited)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("it took %s to notice", took)
			}
		})
	})
}
