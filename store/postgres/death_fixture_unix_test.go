//go:build unix

package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// full makes all cases run in full size (`make soak-death`).
var full = os.Getenv("WEAVER_DEATH") != ""

// together runs subtests in parallel. They mostly wait, so the limit of parallel tests does not
// apply to them.
func together(t *testing.T, n int, test func(i int) (string, func(t *testing.T))) {
	t.Helper()
	var all sync.WaitGroup
	defer all.Wait()
	for i := range n {
		name, fn := test(i)
		all.Go(func() { t.Run(name, fn) })
	}
}

// inTurn is together in a short run. In a full run it is sequential, because parallel cases would
// distort the measurements.
func inTurn(t *testing.T, n int, test func(i int) (string, func(t *testing.T))) {
	t.Helper()
	if !full {
		together(t, n, test)
		return
	}
	for i := range n {
		t.Run(test(i))
	}
}

// process holds the settings of a process of these tests.
type process struct {
	URL, Direct string
	NS          string
	Locks       string // lock folder
	Elsewhere   bool   // it acts as a process of another machine
	TTL, Grace  time.Duration
}

// open opens the store with the process's settings.
func (p process) open(ctx context.Context) (*postgres.DB, error) {
	opts := []postgres.Option{postgres.Unsafe(), postgres.LockFolder(p.Locks), postgres.Logger(slog.New(slog.DiscardHandler))}
	if p.Elsewhere {
		opts = append(opts, postgres.OtherMachine())
	}
	if p.Direct != "" {
		opts = append(opts, postgres.DirectURL(p.Direct))
	}
	return postgres.Open(ctx, p.URL, opts...)
}

// held is the kind of task that a worker holds.
var held = weaver.Define[int, string]("acme.test.held.v1")

// engine returns the process's engine with the handler of held.
func (p process) engine(db *postgres.DB, fn func(ctx context.Context, n int) (string, error)) (*weaver.Engine, error) {
	return weaver.New(db, weaver.Config{
		Namespace: p.NS, Handlers: []weaver.Handler{held.Handler(fn)}, Concurrency: 20,
		Lease: p.TTL, SessionGrace: p.Grace, DrainTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
}

// run runs the process's engine in this process until stop, which waits for its end.
func (p process) run(t *testing.T, db *postgres.DB, fn func(ctx context.Context, n int) (string, error)) (stop func()) {
	t.Helper()
	eng, err := p.engine(db, fn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			slog.Info("an engine of the test ended", "error", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// db opens the store for the test.
func (p process) db(t *testing.T) *postgres.DB {
	t.Helper()
	db, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func (p process) enqueue(t *testing.T, db *postgres.DB, n int) task.ID {
	t.Helper()
	client, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: p.NS})
	if err != nil {
		t.Fatal(err)
	}
	h, err := held.Enqueue(t.Context(), client, n)
	if err != nil {
		t.Fatal(err)
	}
	return h.ID()
}

func (p process) task(t *testing.T, db *postgres.DB, id task.ID) task.Task {
	t.Helper()
	tasks, err := db.Tasks(t.Context(), p.NS, id)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("read the task: %v", err)
	}
	return tasks[0]
}

// succeeded waits until a task has succeeded and returns it.
func (p process) succeeded(t *testing.T, db *postgres.DB, id task.ID) (got task.Task) {
	t.Helper()
	eventually(t, "the task has ended", func() bool {
		got = p.task(t, db, id)
		return got.State.Terminal()
	})
	if got.State != task.Succeeded {
		t.Fatalf("the task is %s", got.State)
	}
	return got
}

// innocent checks that a task succeeded in its first attempt and that no crash was counted.
func (p process) innocent(t *testing.T, db *postgres.DB, id task.ID) {
	t.Helper()
	if got := p.succeeded(t, db, id); got.AttemptNo != 1 || got.CrashCount != 0 || got.QuarantineLosses != 0 {
		t.Errorf("attempt %d, %d crashes, %d losses in quarantine: a well worker lost its lease", got.AttemptNo, got.CrashCount, got.QuarantineLosses)
	}
}

// pause waits in real time.
func pause(d time.Duration) { <-time.After(d) }

// child is a worker in a process of its own.
type child struct {
	*exec.Cmd
	t     *testing.T
	lines chan string
}

const childEnv = "WEAVER_TEST_PROCESS"

// start starts a process whose worker claims tasks and holds them.
func (p process) start(t *testing.T) *child {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{exec.Command(os.Args[0], "-test.run=^TestProcess$"), t, make(chan string, 1000)}
	c.Env = append(os.Environ(), childEnv+"="+string(text))
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe() // the child exits when this process closes it
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		c.kill()
		_ = in.Close()
		<-read
		_ = c.Wait() // it was killed
	})
	return c
}

// kill sends SIGKILL.
func (c *child) kill() { _ = c.Process.Kill() } // it may be dead

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

// says waits for a line of output.
func (c *child) says(want string) {
	c.t.Helper()
	end := time.After(30 * time.Second)
	for {
		select {
		case line := <-c.lines:
			if strings.HasPrefix(line, want) {
				return
			}
		case <-end:
			c.t.Fatalf("the process does not say %q within 30 s", want)
		}
	}
}

// TestProcess is the program that start runs.
func TestProcess(t *testing.T) {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	p.run(t, p.db(t), func(ctx context.Context, n int) (string, error) {
		fmt.Println("begun", n)
		for i := 0; ; i++ {
			if _, err := weaver.Step(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) { return i, nil }); err != nil {
				fmt.Println("ended", n, err)
				return "", err
			}
			if err := lasts(ctx, 200*time.Millisecond); err != nil {
				fmt.Println("ended", n, err)
				return "", err
			}
			if n < 0 && i == 15 {
				return "done", nil
			}
		}
	})
	select {}
}
