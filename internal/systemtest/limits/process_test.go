package limits_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// childEnv makes this test binary a worker of the store that it names.
const childEnv = "WEAVER_LIMITS_CHILD"

func TestMain(m *testing.M) {
	at := os.Getenv(childEnv)
	if at == "" {
		os.Exit(m.Run())
	}
	if err := child(at); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

// database is the store of a test.
type database interface {
	store.Store
	Close() error
	Migrate(ctx context.Context) error
}

func open(ctx context.Context, at string) (database, error) {
	if strings.HasPrefix(at, "postgres://") {
		return postgres.Open(pgharness.With(ctx, pgharness.Settings{FsyncOff: true}), at)
	}
	return sqlite.Open(ctx, at, sqlite.Synchronous(sqlite.Normal), sqlite.BusyTimeout(20*time.Second))
}

// child runs a worker until its input ends.
func child(at string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	db, err := open(ctx, at)
	for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil { // too many processes for the machine
		db, err = open(ctx, at)
	}
	if err != nil {
		return err
	}
	eng, err := weaver.New(db, weaver.Config{
		Concurrency: 16, Lease: 10 * time.Second, CrashBudget: -1, DrainTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Handlers: []weaver.Handler{call.Handler(handle), turn.Handler(handle)},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if err := eng.Run(ctx); err != nil && !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return db.Close()
}

var (
	call = weaver.Define[time.Duration, weaver.None]("acme.limits.call.v1", weaver.MaxAttempts(3), weaver.Backoff(20*time.Millisecond), weaver.BackoffMax(100*time.Millisecond))
	turn = weaver.Define[time.Duration, weaver.None]("acme.limits.turn.v1", weaver.FairBy("tenant"))
)

// handle works for a while; one task in ten sleeps before, one attempt in ten fails. Each starts again then.
func handle(ctx context.Context, takes time.Duration) (weaver.None, error) {
	cur := weaver.Current(ctx)
	fmt.Println("began", cur.TaskID, cur.AttemptNo, time.Now().UnixMicro())
	if cur.TaskID[len(cur.TaskID)-1]%10 == 0 {
		if err := weaver.Sleep(ctx, "rest", 20*time.Millisecond); err != nil {
			return weaver.None{}, err
		}
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return weaver.None{}, ctx.Err()
	}
	if cur.Type == call.Name() && rand.IntN(10) == 0 {
		return weaver.None{}, errors.New("the partner is busy")
	}
	return weaver.None{}, nil
}

// attempt identifies an attempt.
type attempt struct {
	id weaver.TaskID
	no int
}

// beginnings are the times at which handlers began.
type beginnings struct {
	sync.Mutex
	at map[attempt]time.Time
}

// read reads the output of a worker.
func (b *beginnings) read(out *bufio.Reader) error {
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			return nil // also a line that a kill cut off
		}
		var id string
		var no int
		var mic int64
		if _, err := fmt.Sscanf(line, "began %s %d %d\n", &id, &no, &mic); err != nil {
			return fmt.Errorf("a worker said %q: %w", line, err)
		}
		of, err := task.ParseID(id)
		if err != nil {
			return err
		}
		b.Lock()
		b.at[attempt{of, no}] = time.UnixMicro(mic)
		b.Unlock()
	}
}

// process is a running worker.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	in   io.Closer
	says *strings.Builder
	read chan error // of its output
	gone bool
}

// start starts a worker and waits until it is ready.
func start(t *testing.T, at string, began *beginnings) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.Command(os.Args[0]), says: new(strings.Builder), read: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+at)
	p.cmd.Stderr = p.says
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in = in
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() { p.read <- began.read(lines) }()
	t.Cleanup(p.end)
	if err != nil || line != "ready\n" {
		t.Fatalf("a worker said %q: %v", line, err)
	}
	return p
}

// kill ends the worker like kill -9.
func (p *process) kill() {
	p.Helper()
	p.gone = true
	if err := errors.Join(p.cmd.Process.Kill(), <-p.read); err != nil {
		p.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
	_ = p.in.Close()
}

// end asks the worker to end.
func (p *process) end() {
	if p.gone {
		return
	}
	p.gone = true
	_ = p.in.Close()
	if err := errors.Join(<-p.read, p.cmd.Wait()); err != nil {
		p.Errorf("a worker ended: %v\n%s", err, p.says)
	}
}
