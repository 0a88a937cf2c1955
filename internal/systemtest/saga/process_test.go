package saga_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

// childEnv makes this test binary a worker. Its value is the orders as JSON.
const childEnv = "WEAVER_SAGA_CHILD"

// orders is the configuration of a worker process.
type orders struct {
	Store   string // the URL of a PostgreSQL database, or the path of a file
	Partner string
}

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
func child(raw string) error {
	var o orders
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	db, err := open(ctx, o.Store)
	if err != nil {
		return err
	}
	eng, err := weaver.New(db, weaver.Config{
		Concurrency: 16, Lease: 2 * time.Second, CrashBudget: -1, DrainTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
		Handlers: []weaver.Handler{buy.Handler(o.buy)},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return errors.Join(eng.Run(ctx), db.Close())
}

var buy = weaver.Define[int, string]("acme.saga.order.v1", weaver.MaxAttempts(2), weaver.Backoff(20*time.Millisecond), weaver.BackoffMax(200*time.Millisecond))

// call sends a request with a key to the partner; of is the key of the effect to undo.
func (o *orders) call(ctx context.Context, verb string, order int, key, of string) error {
	q := url.Values{"verb": {verb}, "order": {strconv.Itoa(order)}, "key": {key}, "of": {of}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.Partner+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", verb, res.StatusCode, strings.TrimSpace(string(text)))
	}
	return err
}

// step runs a step at the partner, with an undo.
func (o *orders) step(ctx context.Context, verb string, order int) error {
	return weaver.Do(ctx, verb, func(ctx context.Context) error {
		return o.call(ctx, verb, order, weaver.Current(ctx).StepKey(verb), "")
	}, weaver.Undo(func(ctx context.Context, u weaver.Undoing[weaver.None]) error {
		return o.call(ctx, verb, order, u.UndoKey, u.Key)
	}), weaver.UndoRetry(0, 20*time.Millisecond, 200*time.Millisecond))
}

// buy charges an order, has it accepted, and ships it.
func (o *orders) buy(ctx context.Context, order int) (string, error) {
	if err := o.step(ctx, "charge", order); err != nil {
		return "", err
	}
	// Each round asks again.
	accepted, err := weaver.Step(ctx, "accept", func(context.Context) (bool, error) { return rand.IntN(4) > 0, nil },
		weaver.Undo(func(context.Context, weaver.Undoing[bool]) error { return nil }))
	switch {
	case err != nil:
		return "", err
	case !accepted:
		return "", weaver.Permanent(errors.New("no stock"))
	}
	if err := weaver.Sleep(ctx, "pack", 50*time.Millisecond); err != nil {
		return "", err
	}
	if err := o.step(ctx, "ship", order); err != nil {
		return "", err
	}
	if rand.IntN(5) == 0 {
		return "", weaver.Permanent(errors.New("the label was lost"))
	}
	return "shipped", nil
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
func start(t *testing.T, o orders) *process {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, cmd: exec.Command(os.Args[0]), says: new(strings.Builder)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
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
