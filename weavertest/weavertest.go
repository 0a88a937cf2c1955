// Package weavertest runs a user's handlers in tests: on a real store (SQLite
// in memory) and inside a testing/synctest bubble, so that retries, sleeps of
// a day and deadlines take no time.
//
//	e := weavertest.New(t, Charge.Handler(charge))
//	receipt := weavertest.Run(t, e, Charge, Order{ID: 7})
//	receipt = weavertest.Replay(t, e, Charge, Order{ID: 8}) // killed after every step
//	weavertest.RequireEnqueued(t, e, Mail, func(to string) bool { return to == "ops" })
//
// Run and Replay make a bubble of their own, unless the test is in one
// already. Inside a bubble nothing may wait for the world outside: give
// handlers fakes of their network services.
package weavertest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// Env is a store in memory and the handlers that run on it. It is a client
// too: enqueue, read and operate tasks with it.
type Env struct {
	*weaver.Client
	db    *sqlite.DB
	cfg   weaver.Config
	clock time.Time // where the last bubble stopped
}

// New returns an empty environment with these handlers; it ends with the test.
func New(t testing.TB, handlers ...weaver.Handler) *Env {
	t.Helper()
	return NewConfig(t, weaver.Config{Handlers: handlers})
}

// NewConfig is New with everything a Config can say. Without a Logger,
// warnings go to the test's log.
func NewConfig(t testing.TB, cfg weaver.Config) *Env {
	t.Helper()
	ctx := t.Context()
	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("weavertest: close the store: %v", err)
		}
	})
	if err := db.Migrate(ctx); err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	db.DB() // now: its goroutine must outlive the bubbles of Run and Replay
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	client, err := weaver.NewClient(db, weaver.ClientConfig{Namespace: cfg.Namespace, InlineLimit: cfg.InlineLimit, Logger: cfg.Logger})
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	if _, err := weaver.New(db, cfg); err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	return &Env{Client: client, db: db, cfg: cfg}
}

type logWriter struct{ t testing.TB }

// Write implements io.Writer.
func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// DB returns the store, for example for tables of the test's own (DB().DB()).
func (e *Env) DB() *sqlite.DB { return e.db }

// Run enqueues a task, runs everything that is due until the task has ended,
// and returns its output. Time passes as needed. The test fails when the task
// fails, is cancelled, or blocks.
func Run[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) Out {
	t.Helper()
	out, err := RunErr(t, e, typ, in, opts...)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	return out
}

// RunErr is Run for tasks that are expected to fail: it returns what the
// handle's Wait returned, a *weaver.TaskError or an error that is
// weaver.ErrBlocked.
func RunErr[In, Out any](t *testing.T, e *Env, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) (Out, error) {
	t.Helper()
	var out Out
	var err error
	e.bubble(t, func(t *testing.T) {
		var h *weaver.Handle[Out]
		if h, err = typ.Enqueue(t.Context(), e, in, opts...); err != nil {
			return
		}
		stop := e.start(t, e.db)
		out, err = h.Wait(t.Context())
		if runErr := stop(); runErr != nil {
			t.Errorf("weavertest: the engine: %v", runErr)
		}
	})
	return out, err
}

// start runs an engine on a store until stop is called.
func (e *Env) start(t *testing.T, s weaver.Store) (stop func() error) {
	t.Helper()
	eng, err := weaver.New(s, e.cfg)
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// bubble runs f where time is fake. A bubble of ours begins where the last
// one stopped, or at the present, so that time never goes back for the store.
func (e *Env) bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if inBubble() {
		f(t)
		return
	}
	begin := time.Now()
	if e.clock.After(begin) {
		begin = e.clock
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begin))
		f(t)
		e.clock = time.Now()
	})
}

// inBubble reports whether the caller is in a bubble already: Wait panics
// outside.
func inBubble() (in bool) {
	defer func() {
		if recover() != nil {
			in = false
		}
	}()
	synctest.Wait()
	return true
}

// RequireEnqueued fails the test unless a task of the type whose input
// matches was enqueued, in whatever state it is now. It returns the matching
// tasks, oldest first; a nil match takes any.
func RequireEnqueued[In, Out any](t testing.TB, e *Env, typ *weaver.Type[In, Out], match func(In) bool) []weaver.TypedTask[In, Out] {
	t.Helper()
	var found []weaver.TypedTask[In, Out]
	var seen []string
	f := weaver.Filter{Limit: 1000}
	for {
		page, next, err := typ.List(t.Context(), e.Client, f)
		if err != nil {
			t.Fatalf("weavertest: %v", err)
		}
		for _, task := range page {
			if task.DecodeError != nil {
				t.Fatalf("weavertest: %v", task.DecodeError)
			}
			if match == nil || match(task.Input) {
				found = append([]weaver.TypedTask[In, Out]{task}, found...)
			}
			seen = append(seen, string(task.TaskInfo.Input))
		}
		if next == "" {
			break
		}
		f.After = next
	}
	if len(found) == 0 {
		if len(seen) == 0 {
			t.Fatalf("weavertest: no %s was enqueued", typ.Name())
		}
		t.Fatalf("weavertest: no %s that matches was enqueued; there are %d:\n%s", typ.Name(), len(seen), strings.Join(seen, "\n"))
	}
	return found
}
