package weaver_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// lost is a task whose worker has been silent for an hour.
func silentTask(fx *fixture, typ *weaver.Type[string, string]) *weaver.Handle[string] {
	fx.Helper()
	h := enqueue(fx, typ, "")
	dead := store.WorkerInfo{ID: "dead", Name: "dead", TTL: time.Second}
	fx.must(fx.store.Join(fx.Context(), weaver.DefaultNamespace, dead))
	got, err := fx.store.Claim(fx.Context(), weaver.DefaultNamespace, store.ClaimRequest{
		Worker: dead.ID, Name: dead.Name, LeaseID: task.NewLeaseID(), TTL: dead.TTL, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
	})
	fx.must(err)
	equal(fx, "tasks claimed", len(got.Tasks), 1)
	time.Sleep(time.Hour)
	return h
}

func TestReaper(t *testing.T) {
	typ := weaver.Define[string, string]("engine.reaper.run.v1")
	unhandled := weaver.Define[string, string]("engine.reaper.unhandled.v1")
	ok := typ.Handler(func(context.Context, string) (string, error) { return "ok", nil })

	subtest(t, "asks again during its warm-up", func(fx *fixture) {
		s := newFaults(fx)
		began := time.Now()
		s.hooks.Reap = func(_ context.Context, _ store.ReapRequest, next func() (store.ReapResult, error)) (store.ReapResult, error) {
			if time.Since(began) < time.Second {
				return store.ReapResult{WarmingUp: true, Next: -1}, nil
			}
			return next()
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{ok}})
		h := enqueue(fx, unhandled, "", weaver.ExpireAfter(time.Minute))
		time.Sleep(time.Minute + store.DefaultLease)
		fx.wantState(h.ID(), weaver.StateCancelled)
	})

	subtest(t, "goes on until nothing is left", func(fx *fixture) {
		s := newFaults(fx)
		var mu sync.Mutex
		calls := 0
		s.hooks.Reap = func(_ context.Context, _ store.ReapRequest, next func() (store.ReapResult, error)) (store.ReapResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 1 {
				return store.ReapResult{Reaped: make([]store.Reaped, 1000), Next: time.Hour}, nil
			}
			return next()
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{ok}})
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		equal(fx, "calls, of which the first found as much as it may", calls, 2)
	})

	// In memory an idle engine renews no lease. It must still be eligible when the leases of another
	// worker expire.
	subtest(t, "is eligible to reap though the engine idles", func(fx *fixture) {
		h := enqueue(fx, unhandled, "")
		fx.run(ok)
		time.Sleep(time.Hour)
		dead := store.WorkerInfo{ID: "dead", Name: "dead", TTL: store.DefaultLease}
		fx.must(fx.store.Join(fx.Context(), weaver.DefaultNamespace, dead))
		got, err := fx.store.Claim(fx.Context(), weaver.DefaultNamespace, store.ClaimRequest{
			Worker: dead.ID, Name: dead.Name, LeaseID: task.NewLeaseID(), TTL: dead.TTL, Limit: 1, Types: map[string]int{unhandled.Name(): 1}, Slots: 1,
		})
		fx.must(err)
		equal(fx, "tasks claimed", len(got.Tasks), 1)
		enqueue(fx, unhandled, "", weaver.ExpireAfter(time.Hour)) // the notice makes the reaper look at what can expire
		time.Sleep(2*store.DefaultLease + time.Second)
		fx.wantState(h.ID(), weaver.StateReady)
	})

	// On a store that cannot prove a process dead its leases expire, and a
	// new worker has to warm up before it takes them.
	subtest(t, "is waited for by RunUntilIdle", func(fx *fixture) {
		h := enqueue(fx, typ, "")
		dead := store.WorkerInfo{ID: "dead", Name: "dead", TTL: time.Second}
		fx.must(fx.store.Join(fx.Context(), weaver.DefaultNamespace, dead))
		claim := store.ClaimRequest{
			Worker: dead.ID, Name: dead.Name, LeaseID: task.NewLeaseID(), TTL: dead.TTL, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
		}
		got, err := fx.store.Claim(fx.Context(), weaver.DefaultNamespace, claim)
		fx.must(err)
		equal(fx, "tasks claimed", len(got.Tasks), 1)
		time.Sleep(time.Hour)
		began := time.Now()
		fx.must(fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(fx.Context()))
		fx.wantState(h.ID(), weaver.StateSucceeded)
		if took := time.Since(began); took > 2*store.DefaultLease {
			fx.Errorf("it ran for %v, want little more than a lease", took)
		}

		// A worker that comes back in time keeps its lease, and ends the wait.
		enqueue(fx, typ, "")
		claim.LeaseID = task.NewLeaseID()
		got, err = fx.store.Claim(fx.Context(), weaver.DefaultNamespace, claim)
		fx.must(err)
		time.Sleep(time.Hour)
		idle := make(chan error)
		go func() {
			idle <- fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(fx.Context())
		}()
		time.Sleep(time.Second)
		beats, err := fx.store.Heartbeat(fx.Context(), weaver.DefaultNamespace, store.HeartbeatRequest{
			Worker: dead.ID, TTL: time.Hour, Leases: []task.Lease{got.Tasks[0].Lease},
		})
		fx.must(err)
		equal(fx, "lost", beats[0].Lost, false)
		fx.must(<-idle)
		fx.wantState(got.Tasks[0].Task.ID, weaver.StateRunning)
	})

	// RunUntilIdle waits for the reaper. The answer of its empty claim is delayed while the reaper
	// makes the task ready.
	subtest(t, "is not overtaken by a claim that found nothing", func(fx *fixture) {
		h := silentTask(fx, typ)
		s, late := newFaults(fx), false
		s.hooks.Claim = func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			got, err := next()
			if !late {
				late = true
				time.Sleep(2 * store.DefaultLease)
			}
			return got, err
		}
		fx.must(fx.newEngine(polled(s.store), weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(fx.Context()))
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})

	subtest(t, "is waited for no longer than two leases", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
			return store.ReapResult{WarmingUp: true, Next: store.DefaultLease}, nil
		}
		began := time.Now()
		fx.must(fx.newEngine(s.store, weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(fx.Context()))
		if took := time.Since(began); took < store.DefaultLease || took > 3*store.DefaultLease {
			fx.Errorf("it waited for %v, want two leases", took)
		}
	})

	// The store sees a heartbeat when it commits it, and answers later.
	subtest(t, "is eligible to reap though the store is slow", func(fx *fixture) {
		h := silentTask(fx, typ)
		s := newFaults(fx)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			got, err := next()
			time.Sleep(store.DefaultLease / 5)
			return got, err
		}
		fx.runConfig(polled(s.store), weaver.Config{Handlers: []weaver.Handler{ok}})
		time.Sleep(2 * store.DefaultLease)
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})

	subtest(t, "wakes the claimer", func(fx *fixture) {
		h := silentTask(fx, typ)
		fx.runConfig(polled(fx.store), weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{ok}})
		time.Sleep(2 * store.DefaultLease) // of which one is the warm-up
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})
}

func TestReaperTakesOverBeforeTheEngineIsIdle(t *testing.T) {
	typ := weaver.Define[string, string]("engine.run.errors.v1", weaver.NoRetry())
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	// RunUntilIdle would otherwise find no due task, and return before its reaper has run.
	subtest(t, "takes over what a dead process ran before the engine is idle", func(fx *fixture) {
		path := filepath.Join(fx.TempDir(), "weaver.db")
		fx = newFixture(fx.T, openFile(fx, path))
		h := enqueue(fx, typ, "x")
		other, err := sqlite.Open(fx.Context(), path)
		fx.must(err)
		dead := store.WorkerID("dead")
		fx.must(other.Join(fx.Context(), weaver.DefaultNamespace, store.WorkerInfo{ID: dead, Name: "dead", TTL: store.DefaultLease}))
		got, err := other.Claim(fx.Context(), weaver.DefaultNamespace, store.ClaimRequest{
			Worker: dead, Name: "dead", LeaseID: task.NewLeaseID(), TTL: store.DefaultLease, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
		})
		fx.must(err)
		equal(fx, "tasks claimed by the dead", len(got.Tasks), 1)
		fx.must(other.Close()) // as if its process had died: it does not leave
		s := newFaults(fx)
		s.hooks.Reap = func(_ context.Context, _ store.ReapRequest, next func() (store.ReapResult, error)) (store.ReapResult, error) {
			time.Sleep(time.Second) // slow to return
			return next()
		}
		fx.must(fx.newEngine(s.store, weaver.Config{Handlers: []weaver.Handler{echo}}).RunUntilIdle(fx.Context()))
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})
}
