package weaver_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestRenewal(t *testing.T) {
	typ := weaver.Define[string, string]("engine.renewal.run.v1")
	// trusting returns a handler that ends with its context, or after two leases.
	trusting := func(cause *error, ended *time.Duration) weaver.Handler {
		return typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "again", nil
			}
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(2 * weaver.DefaultLease):
				return "ok", nil
			}
			*cause, *ended = context.Cause(ctx), time.Since(began)
			return "", ctx.Err()
		})
	}
	// untold answers that nothing could be told about any lease.
	untold := func(req store.HeartbeatRequest) ([]store.Beat, error) {
		beats := make([]store.Beat, len(req.Leases))
		for i := range beats {
			beats[i].Retry = true
		}
		return beats, nil
	}

	scene(t, "that could not be told is asked for again within a second", func(w *world) {
		began := time.Now()
		s := newFaults(w)
		s.hooks.Heartbeat = func(_ context.Context, req store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if time.Since(began) < 23*time.Second {
				return untold(req)
			}
			return next()
		}
		var cause error
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, new(time.Duration))}})
		if got := result(w, enqueue(w, typ, "")); got != "ok" {
			w.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	scene(t, "that can not be told does not count as one", func(w *world) {
		s := newFaults(w)
		s.hooks.Heartbeat = func(_ context.Context, req store.HeartbeatRequest, _ func() ([]store.Beat, error)) ([]store.Beat, error) {
			return untold(req)
		}
		var cause error
		var ended time.Duration
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, &ended)}})
		equal(w, "output", result(w, enqueue(w, typ, "")), "again")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			w.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
		}
		equal(w, "trusted for", ended, 25*time.Second)
	})

	scene(t, "that failed is tried again within a second", func(w *world) {
		f := newFaults(w)
		var cause error
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, new(time.Duration))}})
		h := enqueue(w, typ, "")
		time.Sleep(5 * time.Second)
		f.cut()
		time.Sleep(18 * time.Second)
		f.mend()
		if got := result(w, h); got != "ok" {
			w.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	scene(t, "that hangs once is tried again in time", func(w *world) {
		s, hung := newFaults(w), false
		s.hooks.Heartbeat = func(ctx context.Context, req store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if hung || len(req.Leases) == 0 {
				return next()
			}
			hung = true
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, new(time.Duration))}})
		if got := result(w, enqueue(w, typ, "")); got != "ok" || !hung {
			w.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	scene(t, "that hangs since before the lease keeps nobody from seeing its end", func(w *world) {
		s := newFaults(w)
		s.hooks.Heartbeat = func(ctx context.Context, _ store.HeartbeatRequest, _ func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		var ended time.Duration
		w.runConfig(polled(s.store), weaver.Config{Handlers: []weaver.Handler{trusting(&cause, &ended)}})
		time.Sleep(11 * time.Second) // the first heartbeat hangs, with nothing to renew
		equal(w, "output", result(w, enqueue(w, typ, "")), "again")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			w.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
		}
		equal(w, "trusted for", ended, 25*time.Second)
	})

	// An engine in memory that was idle announces itself before it renews.
	scene(t, "goes on when the announcement before it hangs", func(w *world) {
		s := newFaults(w)
		var joined atomic.Int32 // by two roles of the engine
		s.hooks.Join = func(ctx context.Context, _ store.WorkerInfo, next func() (storehook.None, error)) (storehook.None, error) {
			if joined.Add(1) == 1 {
				return next()
			}
			<-ctx.Done()
			return storehook.None{}, context.Cause(ctx)
		}
		var cause error
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{trusting(&cause, new(time.Duration))}})
		time.Sleep(time.Hour)
		if got := result(w, enqueue(w, typ, "")); got != "ok" {
			w.Errorf("the handler was ended for %v", cause)
		}
		if j, n := joined.Load(), s.count("Heartbeat"); j < 2 || n < 4 {
			w.Errorf("the engine announced itself %d times and renewed %d times in two leases, want 2 and 4 at least", j, n)
		}
	})

	// After so long the worker may be forgotten, and with its row the proof that
	// it lives; a heartbeat brings back the row only.
	scene(t, "begins with an announcement after a long silence", func(w *world) {
		began := time.Now()
		s := newFaults(w)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if time.Since(began) < time.Hour {
				return nil, store.ErrUnavailable
			}
			return next()
		}
		w.runConfig(polled(s.store), weaver.Config{Handlers: []weaver.Handler{trusting(new(error), new(time.Duration))}})
		time.Sleep(weaver.DefaultLease)
		equal(w, "announcements at first", s.count("Join"), 1)
		time.Sleep(2 * time.Hour)
		equal(w, "announcements in all", s.count("Join"), 2)
	})

	scene(t, "is not asked for when the lease is lost", func(w *world) {
		s := newFaults(w)
		var mu sync.Mutex
		var asked []task.Lease
		s.hooks.Heartbeat = func(_ context.Context, req store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, req.Leases...)
			return next()
		}
		release := make(chan struct{})
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
			<-release // whatever its context says
			return "", nil
		})}})
		h := enqueue(w, typ, "")
		synctest.Wait()
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		mu.Lock()
		equal(w, "the lease that is lost was asked for", len(asked), 1)
		asked = nil
		mu.Unlock()
		time.Sleep(2 * weaver.DefaultLease)
		mu.Lock()
		equal(w, "leases asked for since", len(asked), 0)
		mu.Unlock()
		close(release)
	})
}

// lost is a task whose worker fell silent an hour ago, without a trace.
func lost(w *world, typ *weaver.Type[string, string]) *weaver.Handle[string] {
	w.Helper()
	h := enqueue(w, typ, "")
	dead := store.WorkerInfo{ID: "dead", Name: "dead", TTL: time.Second}
	w.must(w.store.Join(w.Context(), weaver.DefaultNamespace, dead))
	got, err := w.store.Claim(w.Context(), weaver.DefaultNamespace, store.ClaimRequest{
		Worker: dead.ID, Name: dead.Name, LeaseID: task.NewLeaseID(), TTL: dead.TTL, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
	})
	w.must(err)
	equal(w, "tasks claimed", len(got.Tasks), 1)
	time.Sleep(time.Hour)
	return h
}

func TestReaperOfAnEngine(t *testing.T) {
	typ := weaver.Define[string, string]("engine.reaper.run.v1")
	nobody := weaver.Define[string, string]("engine.reaper.nobody.v1")
	ok := typ.Handler(func(context.Context, string) (string, error) { return "ok", nil })

	scene(t, "asks again when it has to pause", func(w *world) {
		s := newFaults(w)
		began := time.Now()
		s.hooks.Reap = func(_ context.Context, _ store.ReapRequest, next func() (store.ReapResult, error)) (store.ReapResult, error) {
			if time.Since(began) < time.Second {
				return store.ReapResult{WarmingUp: true, Next: -1}, nil
			}
			return next()
		}
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{ok}})
		h := enqueue(w, nobody, "", weaver.ExpireAfter(time.Minute))
		time.Sleep(time.Minute + weaver.DefaultLease)
		w.wantState(h.ID(), weaver.StateCancelled)
	})

	scene(t, "goes on until nothing is left", func(w *world) {
		s := newFaults(w)
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
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{ok}})
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		equal(w, "calls, of which the first found as much as it may", calls, 2)
	})

	// In memory an idle engine renews nothing. It must be steady all the same
	// when somebody else's leases expire.
	scene(t, "may judge others though it idles", func(w *world) {
		h := enqueue(w, nobody, "")
		w.run(ok)
		time.Sleep(time.Hour)
		dead := store.WorkerInfo{ID: "dead", Name: "dead", TTL: weaver.DefaultLease}
		w.must(w.store.Join(w.Context(), weaver.DefaultNamespace, dead))
		got, err := w.store.Claim(w.Context(), weaver.DefaultNamespace, store.ClaimRequest{
			Worker: dead.ID, Name: dead.Name, LeaseID: task.NewLeaseID(), TTL: dead.TTL, Limit: 1, Types: map[string]int{nobody.Name(): 1}, Slots: 1,
		})
		w.must(err)
		equal(w, "tasks claimed", len(got.Tasks), 1)
		enqueue(w, nobody, "", weaver.ExpireAfter(time.Hour)) // the reaper hears of it, and looks when what can expire
		time.Sleep(2*weaver.DefaultLease + time.Second)
		w.wantState(h.ID(), weaver.StateReady)
	})

	// On a store that cannot prove a process dead its leases expire, and a
	// newcomer must wait before it takes them.
	scene(t, "is waited for by who runs until nothing is left", func(w *world) {
		h := enqueue(w, typ, "")
		dead := store.WorkerInfo{ID: "dead", Name: "dead", TTL: time.Second}
		w.must(w.store.Join(w.Context(), weaver.DefaultNamespace, dead))
		claim := store.ClaimRequest{
			Worker: dead.ID, Name: dead.Name, LeaseID: task.NewLeaseID(), TTL: dead.TTL, Limit: 1, Types: map[string]int{typ.Name(): 1}, Slots: 1,
		}
		got, err := w.store.Claim(w.Context(), weaver.DefaultNamespace, claim)
		w.must(err)
		equal(w, "tasks claimed", len(got.Tasks), 1)
		time.Sleep(time.Hour)
		began := time.Now()
		w.must(w.newEngine(w.store, weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(w.Context()))
		w.wantState(h.ID(), weaver.StateSucceeded)
		if took := time.Since(began); took > 2*weaver.DefaultLease {
			w.Errorf("it ran for %v, want little more than a lease", took)
		}

		// Somebody who comes back in time keeps his lease, and ends the wait.
		enqueue(w, typ, "")
		claim.LeaseID = task.NewLeaseID()
		got, err = w.store.Claim(w.Context(), weaver.DefaultNamespace, claim)
		w.must(err)
		time.Sleep(time.Hour)
		idle := make(chan error)
		go func() {
			idle <- w.newEngine(w.store, weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(w.Context())
		}()
		time.Sleep(time.Second)
		beats, err := w.store.Heartbeat(w.Context(), weaver.DefaultNamespace, store.HeartbeatRequest{
			Worker: dead.ID, TTL: time.Hour, Leases: []task.Lease{got.Tasks[0].Lease},
		})
		w.must(err)
		equal(w, "lost", beats[0].Lost, false)
		w.must(<-idle)
		w.wantState(got.Tasks[0].Task.ID, weaver.StateRunning)
	})

	// A claim of one who waits for the reaper finds nothing, and its answer is
	// on its way while the reaper makes the task ready.
	scene(t, "is not overtaken by a claim that found nothing", func(w *world) {
		h := lost(w, typ)
		s, late := newFaults(w), false
		s.hooks.Claim = func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			got, err := next()
			if !late {
				late = true
				time.Sleep(2 * weaver.DefaultLease)
			}
			return got, err
		}
		w.must(w.newEngine(polled(s.store), weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(w.Context()))
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "is not waited for without an end", func(w *world) {
		s := newFaults(w)
		s.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
			return store.ReapResult{WarmingUp: true, Next: weaver.DefaultLease}, nil
		}
		began := time.Now()
		w.must(w.newEngine(s.store, weaver.Config{Handlers: []weaver.Handler{ok}}).RunUntilIdle(w.Context()))
		if took := time.Since(began); took < weaver.DefaultLease || took > 3*weaver.DefaultLease {
			w.Errorf("it waited for %v, want two leases", took)
		}
	})

	// The store sees a heartbeat when it commits it, and answers later.
	scene(t, "may judge others though the store is slow", func(w *world) {
		h := lost(w, typ)
		s := newFaults(w)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			got, err := next()
			time.Sleep(weaver.DefaultLease / 5)
			return got, err
		}
		w.runConfig(polled(s.store), weaver.Config{Handlers: []weaver.Handler{ok}})
		time.Sleep(2 * weaver.DefaultLease)
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "wakes the claimer", func(w *world) {
		h := lost(w, typ)
		w.runConfig(polled(w.store), weaver.Config{Poll: time.Hour, Handlers: []weaver.Handler{ok}})
		time.Sleep(2 * weaver.DefaultLease) // for one a newcomer judges nobody
		w.wantState(h.ID(), weaver.StateSucceeded)
	})
}
