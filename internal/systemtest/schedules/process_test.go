package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

// childEnv makes this test binary a worker of the store that it names.
const childEnv = "WEAVER_SCHEDULES_CHILD"

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
	if err != nil {
		return err
	}
	eng, err := weaver.New(db, weaver.Config{
		Concurrency: 8, Lease: 2 * time.Second, CrashBudget: -1, DrainTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Handlers: []weaver.Handler{tick.Handler(handle)},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return errors.Join(eng.Run(ctx), db.Close())
}

// work is the input of a run.
type work struct{ Takes time.Duration } // in one run of four

var tick = weaver.Define[work, weaver.None]("acme.schedules.tick.v1")

func handle(ctx context.Context, in work) (weaver.None, error) {
	at, ok := weaver.ScheduledAt(ctx)
	if now := time.Now(); !ok || now.Before(at) {
		return weaver.None{}, weaver.Permanent(fmt.Errorf("the run of %s (%t) began at %s", at, ok, now))
	}
	if in.Takes == 0 || rand.IntN(4) > 0 {
		return weaver.None{}, nil
	}
	select {
	case <-time.After(in.Takes):
		return weaver.None{}, nil
	case <-ctx.Done():
		return weaver.None{}, ctx.Err()
	}
}

// process is a running worker.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	in   io.Closer
	says *strings.Builder
	gone bool
}

// start starts a worker and waits until it is ready.
func start(t *testing.T, at string) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.Command(os.Args[0]), says: new(strings.Builder)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+at)
	p.cmd.Stderr = p.says
	in, err1 := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in = in
	t.Cleanup(p.end)
	if n, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatalf("a worker said %d bytes: %v", n, err)
	}
	return p
}

// kill ends the worker like kill -9.
func (p *process) kill() {
	p.Helper()
	p.gone = true
	if err := p.cmd.Process.Kill(); err != nil {
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
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("a worker ended: %v\n%s", err, p.says)
	}
}
