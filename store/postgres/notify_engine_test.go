package postgres_test

import (
	"context"
	"flag"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
)

var rounds = flag.Int("rounds", 20, "enqueues of TestIdleLatency")

// running runs an engine until the end of the test.
func running(t *testing.T, db *postgres.DB, h weaver.Handler) *weaver.Engine {
	t.Helper()
	eng, err := weaver.New(db, weaver.Config{Namespace: space, Handlers: []weaver.Handler{h}, Logger: slog.New(slog.DiscardHandler)})
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

// latencies are how long handlers took to start.
type latencies []time.Duration

func (l latencies) at(percent int) time.Duration {
	slices.Sort(l)
	return l[(len(l)-1)*percent/100]
}

// An idle engine starts what was enqueued at once, also when another process did that.
func TestIdleLatency(t *testing.T) {
	t.Parallel()
	_, here, there := two(t)
	started := make(chan time.Time, 1)
	typ := weaver.Define[int, string]("acme.test.latency.v1")
	eng := running(t, here, typ.Handler(func(context.Context, int) (string, error) {
		started <- time.Now()
		return "", nil
	}))
	client, err := weaver.NewClient(there, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the engine's row says that it is idle", 10*time.Second, func() bool {
		var n int
		err := here.Pool().QueryRow(t.Context(), `SELECT count(*) FROM weaver.weaver_workers WHERE idle_since IS NOT NULL`).Scan(&n)
		return err == nil && n == 1
	})
	for _, c := range []struct {
		from string
		c    *weaver.Client
	}{{"the engine's process", eng.Client}, {"another process", client}} {
		var total, delay latencies
		for n := range *rounds {
			begun := time.Now()
			if _, err := typ.Enqueue(t.Context(), c.c, n); err != nil {
				t.Fatal(err)
			}
			enqueued := time.Now()
			select {
			case at := <-started:
				total, delay = append(total, at.Sub(begun)), append(delay, at.Sub(enqueued))
			case <-time.After(30 * time.Second):
				t.Fatal("the handler did not start")
			}
			pass(70 * time.Millisecond) // idle again
		}
		t.Logf("from %s: Enqueue begins → handler p50 %v, p99 %v; Enqueue returns → handler p50 %v, p99 %v", c.from, total.at(50), total.at(99), delay.at(50), delay.at(99))
		if p50 := delay.at(50); p50 > 200*time.Millisecond { // those who look by themselves do so each second
			t.Errorf("from %s: half of the handlers started later than %v after the enqueue", c.from, p50)
		}
	}
}

// Those who wait in a process look with one query a second, not with one each.
func TestWaitersShareAQuery(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t, "weaver", migrateURL)
	pooled := pgtest.Bouncer(t, url, "transaction")
	here, there := openURL(t, pooled), openURL(t, url)
	typ := weaver.Define[int, string]("acme.test.waited.v1")
	client, err := weaver.NewClient(here, weaver.ClientConfig{Namespace: space})
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 50
	var handles []*weaver.Handle[string]
	for n := range waiters {
		h, err := typ.Enqueue(t.Context(), client, n)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	var left atomic.Int64
	left.Store(waiters)
	ended := make(chan error, waiters)
	for _, h := range handles {
		go func() {
			_, err := h.Wait(t.Context())
			left.Add(-1)
			ended <- err
		}()
	}
	commits := func() (n int64) {
		t.Helper()
		err := there.Pool().QueryRow(t.Context(), `SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	pass(1500 * time.Millisecond) // each has looked for itself
	before := commits()
	pass(3 * time.Second)
	if n := commits() - before; n > 2*waiters {
		t.Errorf("%d transactions in 3 s of %d waiters", n, waiters)
	}
	if n := left.Load(); n != waiters {
		t.Errorf("%d waits ended of tasks that did not", waiters-n)
	}
	running(t, there, typ.Handler(func(context.Context, int) (string, error) { return "", nil }))
	for range waiters {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("waits do not end")
		}
	}
}
