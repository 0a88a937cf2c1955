// Package weavertest runs a user's handlers in tests, on a real store (SQLite in memory) and inside a
// testing/synctest bubble: retries, sleeps of a year and deadlines take no time.
//
//	e := weavertest.New(t, Charge.Handler(charge))
//	receipt := weavertest.Run(t, e, Charge, Order{ID: 7})
//	receipt = weavertest.Replay(t, e, Charge, Order{ID: 8}) // killed after every step
//	weavertest.RequireEnqueued(t, e, Mail, func(to string) bool { return to == "ops" })
//
// To test the course of a task, act between calls. RunUntilIdle and Advance run tasks that are due now or within some
// time, the environment's client takes the part of a person, and Continue runs the task to its end.
//
//	h, err := Charge.Enqueue(ctx, e, Order{ID: 9})
//	weavertest.Advance(t, e, 10*24*time.Hour)
//	err = e.Cancel(ctx, h.ID())
//	_, err = weavertest.ContinueErr(t, e, Charge, h.ID())
//
// Handlers run only during calls of this package. Each call makes its own bubble, unless the test is already in one.
// An environment has one time, which continues from call to call and never goes back. Outside bubbles its client
// works at that time too, which [Env.Now] returns. Inside a bubble nothing may wait for the outside world: give
// handlers fakes of their network services.
package weavertest

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
)

// Env is a store in memory with the handlers that run on it. It is also a client: enqueue, read and operate tasks
// with it.
type Env struct {
	*weaver.Client
	db    *sqlite.DB
	cfg   weaver.Config
	clock clock
}

// New returns an empty environment with these handlers; it ends with the test.
func New(t testing.TB, handlers ...weaver.Handler) *Env {
	t.Helper()
	return NewConfig(t, weaver.Config{Handlers: handlers})
}

// NewConfig is New with a Config. The default Logger writes warnings to the test's log. The default Lease is a year:
// a handler that runs for a year of fake time renews it three times and not three million times.
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
	db.DB() // now, because its goroutine must outlive the bubbles of Run and Replay
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	e := &Env{db: db, cfg: cfg}
	e.clock.test, _ = t.(*testing.T)
	e.Client, err = weaver.NewClient(clientStore{db, e}, weaver.ClientConfig{Namespace: cfg.Namespace, InlineLimit: cfg.InlineLimit, Codec: cfg.Codec, Logger: cfg.Logger})
	if err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	if _, err := weaver.New(db, cfg); err != nil {
		t.Fatalf("weavertest: %v", err)
	}
	if e.cfg.Lease == 0 {
		e.cfg.Lease = longLease
	}
	return e
}

// longLease is the default lease of an Env.
const longLease = 365 * 24 * time.Hour

type logWriter struct{ t testing.TB }

// Write implements io.Writer.
func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// DB returns the store, for example for tables of the test's own (DB().DB()).
func (e *Env) DB() *sqlite.DB { return e.db }

// RequireEnqueued fails the test unless a task of the type with a matching input was enqueued; its current state does
// not matter. It returns the matching tasks, oldest first; a nil match matches any task.
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
