package postgres_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// running runs an engine until the end of the test.
func running(t *testing.T, db store.Store, cfg weaver.Config) *weaver.Engine {
	t.Helper()
	cfg.Namespace, cfg.Logger = space, slog.New(slog.DiscardHandler)
	eng, err := weaver.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- eng.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return eng
}

// An idle engine with a poll interval of an hour starts an enqueued task at once, also when another
// process enqueued it.
func TestIdleEngineIsTold(t *testing.T) {
	t.Parallel()
	_, here, there := two(t)
	started := make(chan int, 1)
	typ := weaver.Define[int, string]("acme.test.told.v1")
	eng := running(t, here, weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, n int) (string, error) {
		started <- n
		return "", nil
	})}})
	client, err := weaver.NewClient(there, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range []weaver.Enqueuer{eng.Client, client, eng.Client, client} {
		eventually(t, "the engine's row says that it is idle", func() bool {
			var n int
			err := here.Pool().QueryRow(t.Context(), `SELECT count(*) FROM weaver.weaver_workers WHERE idle_since IS NOT NULL`).Scan(&n)
			return err == nil && n == 1
		})
		if _, err := typ.Enqueue(t.Context(), c, n); err != nil {
			t.Fatal(err)
		}
		if got := <-started; got != n {
			t.Errorf("the task %d began, want %d", got, n)
		}
	}
}

// counted counts the queries of waiting callers in a process.
type counted struct {
	*postgres.DB
	reads atomic.Int64 // task reads by waiting callers
	looks atomic.Int64 // shared queries of the process
}

func (c *counted) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	c.reads.Add(1)
	return c.DB.Tasks(ctx, ns, ids...)
}

// Notify implements store.Observe.
func (c *counted) Notify(ns string, ids func() []task.ID, fn func(store.Notice)) (stop func(), complete bool) {
	if ids == nil {
		return c.DB.Notify(ns, nil, fn)
	}
	return c.DB.Notify(ns, func() []task.ID { c.looks.Add(1); return ids() }, fn)
}

// The waiting callers of a process share one query a second.
func TestWaitersShareAQuery(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	pooled := pgtest.Bouncer(t, url, "transaction")
	here, there := &counted{DB: openURL(t, pooled)}, openURL(t, url)
	typ := weaver.Define[int, string]("acme.test.waited.v1")
	client, err := weaver.NewClient(here, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 50
	var left atomic.Int64
	left.Store(waiters)
	ended := make(chan error, waiters)
	for n := range waiters {
		h, err := typ.Enqueue(t.Context(), client, n)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := h.Wait(t.Context())
			left.Add(-1)
			ended <- err
		}()
	}
	eventually(t, "each has looked for itself", func() bool { return here.reads.Load() >= waiters })
	before := here.looks.Load()
	eventually(t, "they have looked together, twice", func() bool { return here.looks.Load() >= before+2 })
	if n := here.reads.Load(); n > 2*waiters {
		t.Errorf("%d reads of %d waiters, want %d at most", n, waiters, 2*waiters)
	}
	if n := left.Load(); n != waiters {
		t.Errorf("%d waits ended of tasks that did not", waiters-n)
	}
	running(t, there, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, int) (string, error) { return "", nil })}})
	for range waiters {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
