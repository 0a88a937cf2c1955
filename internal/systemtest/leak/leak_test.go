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
)

// leakStores opens an empty store of each kind, and says how to close it.
var leakStores = []struct {
	name string
	open func(t *testing.T) (s weaver.Store, shut func() error)
}{
	{"memstore", func(*testing.T) (weaver.Store, func() error) {
		return memstore.New(), func() error { return nil }
	}},
	{"sqlite memory", func(t *testing.T) (weaver.Store, func() error) {
		db, err := sqlite.OpenMemory(t.Context())
		return migrated(t, db, err)
	}},
	{"sqlite file", func(t *testing.T) (weaver.Store, func() error) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weaver.db"), sqlite.Synchronous(sqlite.Normal))
		return migrated(t, db, err)
	}},
}

func migrated(t *testing.T, db *sqlite.DB, err error) (weaver.Store, func() error) {
	t.Helper()
	if err == nil {
		err = db.Migrate(t.Context())
	}
	if err != nil {
		t.Fatalf("open a store: %v", err)
	}
	return db, db.Close
}

// leakRounds is how often each day is lived: what leaks once in a while shows
// itself, and what the first round left behind would meet the second.
const leakRounds = 3

// TestNoGoroutineIsLeft lives through a worker's days on each store, in real
// time, and closes everything: no goroutine may be left. It is not parallel,
// because the goroutines of others could not be told from ours.
func TestNoGoroutineIsLeft(t *testing.T) {
	// The one thing ignored: what ran before this test, such as the test
	// binary's own signal handling.
	before := goleak.IgnoreCurrent()
	for _, kind := range leakStores {
		for _, day := range leakDays {
			t.Run(kind.name+"/"+day.name, func(t *testing.T) {
				for range leakRounds {
					s, shut := kind.open(t)
					day.live(&leakDay{T: t, store: s, client: leakClient(t, s)})
					if err := shut(); err != nil {
						t.Fatalf("close the store: %v", err)
					}
					goleak.VerifyNone(t, before)
				}
			})
		}
	}
}

// TestLeaksAreFound leaves things open: each must be reported, and no longer
// when it is closed.
func TestLeaksAreFound(t *testing.T) {
	before := goleak.IgnoreCurrent()
	leaks := map[string]func(d *leakDay) (end func()){
		"an engine that runs": func(d *leakDay) func() {
			e := d.start(weaver.Config{Handlers: leakHandlers(nil)})
			d.succeeds(leakSteps, "x")
			return func() { d.must(e.stop()) }
		},
		"somebody who listens to a file": func(d *leakDay) func() {
			s, shut := leakStores[2].open(d.T)
			stop, _ := s.(store.Notifier).Notify(weaver.DefaultNamespace, func(store.Notice) {})
			return func() {
				stop()
				d.must(shut())
			}
		},
		"handlers that do not return, on every store": func(d *leakDay) func() {
			leave := make(chan struct{})
			var shuts, stops []func() error
			for _, kind := range leakStores {
				s, shut := kind.open(d.T)
				e := (&leakDay{T: d.T, store: s, client: leakClient(d.T, s)}).startDeaf(leave)
				shuts, stops = append(shuts, shut), append(stops, e.stop)
			}
			var wg sync.WaitGroup // each Run waits two seconds more for its handler
			for _, stop := range stops {
				wg.Go(func() {
					if _, ok := errors.AsType[*weaver.RunningError](stop()); !ok {
						d.Error("Run does not name the handler that did not return")
					}
				})
			}
			wg.Wait()
			return func() {
				close(leave)
				for _, shut := range shuts {
					d.must(shut())
				}
			}
		},
	}
	for name, leak := range leaks {
		t.Run(name, func(t *testing.T) {
			s := memstore.New()
			end := leak(&leakDay{T: t, store: s, client: leakClient(t, s)})
			if err := goleak.Find(before); err == nil {
				t.Error("goleak found nothing")
			}
			end()
			goleak.VerifyNone(t, before)
		})
	}
}

// leakDay is the stage of one day: an open store, and a client of it.
type leakDay struct {
	*testing.T
	store  weaver.Store
	client *weaver.Client
}

func leakClient(t *testing.T, s weaver.Store) *weaver.Client {
	t.Helper()
	c, err := weaver.NewClient(s, weaver.ClientConfig{Logger: leakLog})
	if err != nil {
		t.Fatalf("NewClient: %v", err)
	}
	return c
}

var leakLog = slog.New(slog.NewTextHandler(io.Discard, nil))

func (d *leakDay) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// leakEngine is an engine that runs.
type leakEngine struct {
	*weaver.Engine
	stop func() error // ends Run and returns its error
}

func (d *leakDay) engine(cfg weaver.Config) *weaver.Engine {
	d.Helper()
	cfg.Logger = leakLog
	e, err := weaver.New(d.store, cfg)
	d.must(err)
	return e
}

func (d *leakDay) start(cfg weaver.Config) leakEngine {
	d.Helper()
	e := d.engine(cfg)
	ctx, cancel := context.WithCancel(d.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return leakEngine{Engine: e, stop: func() error {
		cancel()
		return <-done
	}}
}

func (d *leakDay) enqueue(typ *weaver.Type[string, string], in string) *weaver.Handle[string] {
	d.Helper()
	h, err := typ.Enqueue(d.Context(), d.client, in)
	d.must(err)
	return h
}

// succeeds runs a task to its good end.
func (d *leakDay) succeeds(typ *weaver.Type[string, string], in string) {
	d.Helper()
	out, err := d.enqueue(typ, in).Wait(d.Context())
	d.must(err)
	if out != in {
		d.Errorf("%s answered %q, want %q", typ.Name(), out, in)
	}
}

// fails runs a task to its bad end.
func (d *leakDay) fails(typ *weaver.Type[string, string]) {
	d.Helper()
	_, err := d.enqueue(typ, "x").Wait(d.Context())
	if _, ok := errors.AsType[*weaver.TaskError](err); !ok {
		d.Errorf("%s ended with %v, want a *weaver.TaskError", typ.Name(), err)
	}
}

// startDeaf starts an engine whose handler ignores its context until leave is
// closed.
func (d *leakDay) startDeaf(leave <-chan struct{}) leakEngine {
	d.Helper()
	in := make(chan struct{}, 1)
	e := d.start(weaver.Config{DrainTimeout: time.Millisecond, Handlers: []weaver.Handler{
		leakGate.Handler(func(context.Context, string) (string, error) {
			in <- struct{}{}
			<-leave
			return "", nil
		}),
	}})
	d.enqueue(leakGate, "x")
	<-in
	return e
}

// The task types of these days.
var (
	leakSteps = weaver.Define[string, string]("simtest.leak.steps.v1")
	leakSleep = weaver.Define[string, string]("simtest.leak.sleep.v1")
	leakFlaky = weaver.Define[string, string]("simtest.leak.flaky.v1", weaver.MaxAttempts(3), weaver.Backoff(time.Millisecond))
	leakFail  = weaver.Define[string, string]("simtest.leak.fail.v1", weaver.NoRetry())
	leakPanic = weaver.Define[string, string]("simtest.leak.panic.v1", weaver.NoRetry())
	leakSlow  = weaver.Define[string, string]("simtest.leak.slow.v1", weaver.NoRetry(), weaver.Timeout(5*time.Millisecond))
	leakGate  = weaver.Define[string, string]("simtest.leak.gate.v1")
)

// leakHandlers are handlers of all of them; that of leakGate tells in that it
// runs, and waits for the end of its context.
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

// leakDays are the days of a worker.
var leakDays = []struct {
	name string
	live func(d *leakDay)
}{
	{"tasks of every kind", func(d *leakDay) {
		e := d.start(weaver.Config{Handlers: leakHandlers(nil)})
		d.succeeds(leakSteps, "a")
		d.succeeds(leakSleep, "b")
		d.succeeds(leakFlaky, "c")
		d.fails(leakFail)
		d.fails(leakPanic)
		d.fails(leakSlow)
		d.must(e.stop())
	}},
	{"a command", func(d *leakDay) {
		e := d.start(weaver.Config{Handlers: leakHandlers(nil)})
		self, err := os.Executable()
		d.must(err)
		h, err := builtin.Run.Enqueue(d.Context(), d.client, builtin.RunInput{
			Argv: []string{self, "-test.run=^$"},
			Env:  map[string]string{"GORACE": "atexit_sleep_ms=0"}, // otherwise the race detector takes a second to say nothing
		})
		d.must(err)
		_, err = h.Wait(d.Context())
		d.must(err)
		d.must(e.stop())
	}},
	{"StopNow, and cancels of what runs and what waits", func(d *leakDay) {
		in := make(chan struct{})
		e := d.start(weaver.Config{Handlers: leakHandlers(in), DrainTimeout: time.Hour})
		h := d.enqueue(leakGate, "x")
		<-in
		d.must(d.client.Cancel(d.Context(), h.ID()))
		if _, err := h.Wait(d.Context()); err == nil {
			d.Error("a cancelled task succeeded")
		}
		d.enqueue(leakGate, "y")
		<-in
		e.StopNow()
		d.must(e.stop())
	}},
	{"RunUntilIdle, twice with one engine and once with a context that has ended", func(d *leakDay) {
		e := d.engine(weaver.Config{Handlers: leakHandlers(nil)})
		for range 2 {
			for range 20 {
				d.enqueue(leakSteps, "x")
			}
			d.enqueue(leakSleep, "x") // is left, or not
			d.must(e.RunUntilIdle(d.Context()))
		}
		ctx, cancel := context.WithCancel(d.Context())
		cancel()
		_ = e.RunUntilIdle(ctx) // whatever it says
	}},
	{"a handler that returns long after its context ended", func(d *leakDay) {
		leave := make(chan struct{})
		e := d.startDeaf(leave)
		time.AfterFunc(20*time.Millisecond, func() { close(leave) })
		d.must(e.stop())
	}},
	{"a listener that the store's Close ends", func(d *leakDay) {
		if s, ok := d.store.(store.Notifier); ok {
			s.Notify(weaver.DefaultNamespace, func(store.Notice) {})
		}
		d.enqueue(leakSteps, "x")
	}},
	{"two engines, and waits that are given up", func(d *leakDay) {
		in := make(chan struct{}, 2)
		one, two := d.start(weaver.Config{Handlers: leakHandlers(in)}), d.start(weaver.Config{Handlers: leakHandlers(in), DrainTimeout: time.Millisecond})
		h := d.enqueue(leakGate, "x")
		<-in
		ctx, cancel := context.WithTimeout(d.Context(), time.Millisecond)
		defer cancel()
		if _, err := h.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			d.Errorf("Wait: %v, want that its context ended", err)
		}
		for range 20 {
			d.succeeds(leakSteps, "z")
		}
		one.StopNow()
		d.must(one.stop())
		d.must(two.stop())
	}},
}

// A listener that comes when the file is closed hears nothing, and nothing
// goes on looking at the file for it.
func TestNobodyListensToAClosedFile(t *testing.T) {
	before := goleak.IgnoreCurrent()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weaver.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	stop, _ := db.Notify("default", func(store.Notice) {})
	goleak.VerifyNone(t, before)
	stop()
}
