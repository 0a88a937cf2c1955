package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

// childEnv makes this test binary a worker. Its value is the config as JSON.
const childEnv = "WEAVER_ORDERS_CHILD"

var quiet = log.New(io.Discard, "", 0)

// config is the configuration of a worker process.
type config struct {
	Store   string // the URL of a PostgreSQL database, or the path of a file
	Locks   string // lock folder
	Partner string
	Asks    bool // the worker uses the adapter as a Reconciler
}

// processes and slots make 64 sends at once.
const (
	processes = 4
	slots     = 16
)

func TestMain(m *testing.M) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	if err := child(raw); err != nil {
		fmt.Fprintln(os.Stderr, "process:", err)
		os.Exit(1)
	}
}

// database is the store of a test.
type database interface {
	order.Store
	Close() error
	Migrate(ctx context.Context) error
}

func open(ctx context.Context, c *config) (database, error) {
	if strings.HasPrefix(c.Store, "postgres://") {
		return postgres.Open(pgharness.With(ctx, pgharness.Settings{FsyncOff: true}), c.Store, postgres.LockFolder(c.Locks))
	}
	return sqlite.Open(ctx, c.Store, sqlite.Synchronous(sqlite.Normal), sqlite.BusyTimeout(20*time.Second))
}

// away reports whether the database may only be restarting.
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknown)
}

// sendOnly hides that an adapter can ask its partner.
type sendOnly struct{ order.Adapter }

// child runs a worker until its input ends. It goes on through restarts of the database.
func child(raw string) error {
	var c config
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	partner, err := order.NewHTTP(order.HTTPConfig{URL: c.Partner})
	if err != nil {
		return err
	}
	var adapter order.Adapter = partner
	if !c.Asks {
		adapter = sendOnly{partner}
	}
	for ctx.Err() == nil {
		err := work(ctx, &c, adapter)
		if err != nil && !away(err) && ctx.Err() == nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

func work(ctx context.Context, c *config, adapter order.Adapter) error {
	db, err := open(ctx, c)
	if err != nil {
		return err
	}
	w, err := order.NewWorker(order.WorkerConfig{
		Store: db, Adapter: adapter, Drain: 2 * time.Second, BreakerOpen: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Config: order.Config{
			Concurrency: slots, Batch: 32, PollInterval: 20 * time.Millisecond, Lease: 2 * time.Second, MaxAttempts: 4,
			Backoff: []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond},
		},
	})
	if err == nil {
		err = w.Run(ctx)
	}
	return errors.Join(err, db.Close())
}

// process is a running worker.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	in   io.Closer
	said string // the file of its stderr
	gone bool
}

func start(t *testing.T, c *config, name string) *process {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, cmd: exec.Command(os.Args[0]), said: filepath.Join(c.Locks, name)}
	stderr, err := os.Create(p.said)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }() // the process has its own
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	p.cmd.Stderr = stderr
	in, err := p.cmd.StdinPipe()
	if err := errors.Join(err, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.in = in
	t.Cleanup(p.end)
	return p
}

// kill ends the worker like kill -9.
func (p *process) kill() {
	p.gone = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	_ = p.in.Close()
	p.check()
}

// end asks the worker to end.
func (p *process) end() {
	if p.gone {
		return
	}
	p.gone = true
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.Errorf("a worker ended: %v", err)
	}
	p.check()
}

// check searches the worker's output for an end of its own and for contradictions.
func (p *process) check() {
	text, err := os.ReadFile(p.said)
	if err != nil {
		p.Error(err)
	}
	for _, word := range []string{"process: ", "panic: ", "fatal error: ", "the ledger disagrees"} {
		if strings.Contains(string(text), word) {
			p.Errorf("a worker said:\n%s", text)
			return
		}
	}
}
