package leak_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/builtin"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// leakStores opens an empty store of each kind and returns its Close.
var leakStores = []struct {
	name string
	open func(t *testing.T) (s store.Store, shut func() error)
}{
	{"memstore", func(*testing.T) (store.Store, func() error) {
		return memstore.New(), func() error { return nil }
	}},
	{"sqlite memory", func(t *testing.T) (store.Store, func() error) {
		db, err := sqlite.OpenMemory(t.Context())
		return migrated(t, db, err)
	}},
	{"sqlite file", func(t *testing.T) (store.Store, func() error) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weaver.db"), sqlite.Synchronous(sqlite.Normal))
		return migrated(t, db, err)
	}},
}

func migrated(t *testing.T, db *sqlite.DB, err error) (store.Store, func() error) {
	t.Helper()
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatalf("open a store: %v", err)
	}
	return db, db.Close
}

// leakRounds is the number of runs of each case. Several runs expose rare leaks and effects of the first round on the
// second.
const leakRounds = 3

// TestNoGoroutineIsLeft runs the cases of a worker on each store, in real time, and closes everything: no goroutine
// may be left. It is not parallel, because it cannot distinguish the goroutines of other tests from its own.
func TestNoGoroutineIsLeft(t *testing.T) {
	// Ignore only goroutines that ran before this test, such as the test binary's signal handling.
	before := goleak.IgnoreCurrent()
	for _, kind := range leakStores {
		for _, c := range leakCases {
			t.Run(kind.name+"/"+c.name, func(t *testing.T) {
				for range leakRounds {
					s, shut := kind.open(t)
					c.run(&fixture{T: t, store: s, client: leakClient(t, s)})
					if err := shut(); err != nil {
						t.Fatalf("close the store: %v", err)
					}
					goleak.VerifyNone(t, before)
				}
			})
		}
	}
}

// TestLeaksAreFound leaves things open. Each must be reported, and no longer after it is closed.
func TestLeaksAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("make test runs this")
	}
	before := goleak.IgnoreCurrent()
	leaks := map[string]func(fx *fixture) (end func()){
		"an engine that runs": func(fx *fixture) func() {
			e := fx.start(weaver.Config{Handlers: leakHandlers(nil)})
			fx.succeeds(leakSteps, "x")
			return func() { fx.must(e.stop()) }
		},
		"a listener of a file": func(fx *fixture) func() {
			s, shut := leakStores[2].open(fx.T)
			stop, _ := s.Notify(weaver.DefaultNamespace, nil, func(store.Notice) {})
			return func() {
				stop()
				fx.must(shut())
			}
		},
		"handlers that do not return, on every store": func(fx *fixture) func() {
			leave := make(chan struct{})
			var shuts, stops []func() error
			for _, kind := range leakStores {
				s, shut := kind.open(fx.T)
				e := (&fixture{T: fx.T, store: s, client: leakClient(fx.T, s)}).startIgnoring(leave)
				shuts, stops = append(shuts, shut), append(stops, e.stop)
			}
			var wg sync.WaitGroup // each Run waits two more seconds for its handler
			for _, stop := range stops {
				wg.Go(func() {
					if _, ok := errors.AsType[*task.RunningError](stop()); !ok {
						fx.Error("Run does not name the handler that did not return")
					}
				})
			}
			wg.Wait()
			return func() {
				close(leave)
				for _, shut := range shuts {
					fx.must(shut())
				}
			}
		},
	}
	for name, leak := range leaks {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			end := leak(&fixture{T: t, store: s, client: leakClient(t, s)})
			if err := goleak.Find(before); err == nil {
				t.Error("goleak found nothing")
			}
			end()
			goleak.VerifyNone(t, before)
		})
	}
}

// fixture is an open store and a client of it, for one case.
type fixture struct {
	*testing.T
	store  store.Store
	client *weaver.Client
}

func leakClient(t *testing.T, s store.Store) *weaver.Client {
	t.Helper()
	c, err := weaver.NewClient(s, weaver.ClientConfig{Logger: leakLog})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	return c
}

var leakLog = slog.New(slog.NewTextHandler(io.Discard, nil))

func (fx *fixture) must(err error) {
	fx.Helper()
	if err != nil {
		fx.Fatal(err)
	}
}

// leakEngine is a running engine.
type leakEngine struct {
	*weaver.Engine
	stop func() error // ends Run and returns its error
}

func (fx *fixture) engine(cfg weaver.Config) *weaver.Engine {
	fx.Helper()
	cfg.Logger = leakLog
	e, err := weaver.New(fx.store, cfg)
	fx.must(err)
	return e
}

func (fx *fixture) start(cfg weaver.Config) leakEngine {
	fx.Helper()
	e := fx.engine(cfg)
	ctx, cancel := context.WithCancel(fx.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return leakEngine{Engine: e, stop: func() error {
		cancel()
		return <-done
	}}
}

func (fx *fixture) enqueue(typ *weaver.Type[string, string], in string) *weaver.Handle[string] {
	fx.Helper()
	h, err := typ.Enqueue(fx.Context(), fx.client, in)
	fx.must(err)
	return h
}

// succeeds runs a task, which must succeed.
func (fx *fixture) succeeds(typ *weaver.Type[string, string], in string) {
	fx.Helper()
	out, err := fx.enqueue(typ, in).Wait(fx.Context())
	fx.must(err)
	if out != in {
		fx.Errorf("%s answered %q, want %q", typ.Name(), out, in)
	}
}

// fails runs a task, which must fail.
func (fx *fixture) fails(typ *weaver.Type[string, string]) {
	fx.Helper()
	_, err := fx.enqueue(typ, "x").Wait(fx.Context())
	if _, ok := errors.AsType[*weaver.TaskError](err); !ok {
		fx.Errorf("%s ended with %v, want a *weaver.TaskError", typ.Name(), err)
	}
}

// startIgnoring starts an engine whose handler ignores its context until leave is closed.
func (fx *fixture) startIgnoring(leave <-chan struct{}) leakEngine {
	fx.Helper()
	in := make(chan struct{}, 1)
	e := fx.start(weaver.Config{DrainTimeout: time.Millisecond, Handlers: []weaver.Handler{
		leakGate.Handler(func(context.Context, string) (string, error) {
			in <- struct{}{}
			<-leave
			return "", nil
		}),
	}})
	fx.enqueue(leakGate, "x")
	<-in
	return e
}

// The task types of the cases.
var (
	leakSteps = weaver.Define[string, string]("systemtest.leak.steps.v1")
	leakSleep = weaver.Define[string, string]("systemtest.leak.sleep.v1")
	leakFlaky = weaver.Define[string, string]("systemtest.leak.flaky.v1", weaver.MaxAttempts(3), weaver.Backoff(time.Millisecond))
	leakFail  = weaver.Define[string, string]("systemtest.leak.fail.v1", weaver.NoRetry())
	leakPanic = weaver.Define[string, string]("systemtest.leak.panic.v1", weaver.NoRetry())
	leakSlow  = weaver.Define[string, string]("systemtest.leak.slow.v1", weaver.NoRetry(), weaver.Timeout(5*time.Millisecond))
	leakGate  = weaver.Define[string, string]("systemtest.leak.gate.v1")
)

// leakHandlers returns handlers of all types. The handler of leakGate sends to in when it runs, and waits for the end
// of its context.
func leakHandlers(in chan<- struct{}) []weaver.Handler {
	wait := func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}
	return append(builtin.Handlers(builtin.Config{}),
		leakSteps.Handler(func(ctx context.Context, s string) (string, error) {
			for i := range 3 {
				err := weaver.Do(ctx, fmt.Sprint("step ", i), func(context.Context) error { return nil })
				if err != nil {
					return "", err
				}
			}
			return weaver.Step(ctx, "last", func(context.Context) (string, error) { return s, nil })
		}),
		leakSleep.Handler(func(ctx context.Context, s string) (string, error) {
			return s, weaver.Sleep(ctx, "nap", 2*time.Millisecond)
		}),
		leakFlaky.Handler(func(ctx context.Context, s string) (string, error) {
			if weaver.Current(ctx).AttemptNo < 3 {
				return "", errors.New("not yet")
			}
			return s, nil
		}),
		leakFail.Handler(func(context.Context, string) (string, error) { return "", errors.New("no luck") }),
		leakPanic.Handler(func(context.Context, string) (string, error) { panic("oh") }),
		leakSlow.Handler(wait),
		leakGate.Handler(func(ctx context.Context, s string) (string, error) {
			in <- struct{}{}
			return wait(ctx, s)
		}),
	)
}

// leakCases are cases of a worker's life.
var leakCases = []struct {
	name string
	run  func(fx *fixture)
}{
	{"tasks of every kind", func(fx *fixture) {
		e := fx.start(weaver.Config{Handlers: leakHandlers(nil)})
		fx.succeeds(leakSteps, "a")
		fx.succeeds(leakSleep, "b")
		fx.succeeds(leakFlaky, "c")
		fx.fails(leakFail)
		fx.fails(leakPanic)
		fx.fails(leakSlow)
		fx.must(e.stop())
	}},
	{"a command", func(fx *fixture) {
		e := fx.start(weaver.Config{Handlers: leakHandlers(nil)})
		self, err := os.Executable()
		fx.must(err)
		h, err := builtin.Run.Enqueue(fx.Context(), fx.client, builtin.RunInput{
			Argv: []string{self, "-test.run=^$"},
			Env:  map[string]string{"GORACE": "atexit_sleep_ms=0"}, // otherwise the race detector adds a second at exit
		})
		fx.must(err)
		_, err = h.Wait(fx.Context())
		fx.must(err)
		fx.must(e.stop())
	}},
	{"StopNow, and cancels of what runs and what waits", func(fx *fixture) {
		in := make(chan struct{})
		e := fx.start(weaver.Config{Handlers: leakHandlers(in), DrainTimeout: time.Hour})
		h := fx.enqueue(leakGate, "x")
		<-in
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		if _, err := h.Wait(fx.Context()); err == nil {
			fx.Error("a cancelled task succeeded")
		}
		fx.enqueue(leakGate, "y")
		<-in
		e.StopNow()
		fx.must(e.stop())
	}},
	{"RunUntilIdle, twice with one engine and once with a context that has ended", func(fx *fixture) {
		e := fx.engine(weaver.Config{Handlers: leakHandlers(nil)})
		for range 2 {
			for range 20 {
				fx.enqueue(leakSteps, "x")
			}
			fx.enqueue(leakSleep, "x") // it may or may not run
			fx.must(e.RunUntilIdle(fx.Context()))
		}
		ctx, cancel := context.WithCancel(fx.Context())
		cancel()
		_ = e.RunUntilIdle(ctx) // with or without an error
	}},
	{"a handler that returns long after its context ended", func(fx *fixture) {
		leave := make(chan struct{})
		e := fx.startIgnoring(leave)
		time.AfterFunc(20*time.Millisecond, func() { close(leave) })
		fx.must(e.stop())
	}},
	{"a listener that the store's Close ends", func(fx *fixture) {
		fx.store.Notify(weaver.DefaultNamespace, nil, func(store.Notice) {})
		fx.enqueue(leakSteps, "x")
	}},
	{"two engines, and waits that are given up", func(fx *fixture) {
		in := make(chan struct{}, 2)
		one, two := fx.start(weaver.Config{Handlers: leakHandlers(in)}), fx.start(weaver.Config{Handlers: leakHandlers(in), DrainTimeout: time.Millisecond})
		h := fx.enqueue(leakGate, "x")
		<-in
		ctx, cancel := context.WithTimeout(fx.Context(), time.Millisecond)
		defer cancel()
		if _, err := h.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			fx.Errorf("Wait: %v, want that its context ended", err)
		}
		for range 20 {
			fx.succeeds(leakSteps, "z")
		}
		one.StopNow()
		fx.must(one.stop())
		fx.must(two.stop())
	}},
}

// A listener that registers after Close gets no notices, and no goroutine checks
// the file for it.
func TestClosedFileHasNoListeners(t *testing.T) {
	before := goleak.IgnoreCurrent()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weaver.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	stop, _ := db.Notify("default", nil, func(store.Notice) {})
	goleak.VerifyNone(t, before)
	stop()
}
