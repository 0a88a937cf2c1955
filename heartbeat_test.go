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
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestRenewal(t *testing.T) {
	typ := weaver.Define[string, string]("engine.renewal.run.v1")
	// untilEnded returns a handler that ends with its context, or after two lease lengths.
	untilEnded := func(cause *error, ended *time.Duration) weaver.Handler {
		return typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "again", nil
			}
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(2 * store.DefaultLease):
				return "ok", nil
			}
			*cause, *ended = context.Cause(ctx), time.Since(began)
			return "", ctx.Err()
		})
	}
	// undecided answers Retry for every lease.
	undecided := func(req store.HeartbeatRequest) ([]store.Beat, error) {
		beats := make([]store.Beat, len(req.Leases))
		for i := range beats {
			beats[i].Retry = true
		}
		return beats, nil
	}

	subtest(t, "that a store could not decide is asked for again within a second", func(fx *fixture) {
		began := time.Now()
		s := newFaults(fx)
		s.hooks.Heartbeat = func(_ context.Context, req store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if time.Since(began) < 23*time.Second {
				return undecided(req)
			}
			return next()
		}
		var cause error
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{untilEnded(&cause, new(time.Duration))}})
		if got := result(fx, enqueue(fx, typ, "")); got != "ok" {
			fx.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	subtest(t, "that a store could not decide does not extend the lease", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Heartbeat = func(_ context.Context, req store.HeartbeatRequest, _ func() ([]store.Beat, error)) ([]store.Beat, error) {
			return undecided(req)
		}
		var cause error
		var ended time.Duration
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{untilEnded(&cause, &ended)}})
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "again")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			fx.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
		}
		equal(fx, "the lease was valid for", ended, 25*time.Second)
	})

	subtest(t, "that failed is tried again within a second", func(fx *fixture) {
		f := newFaults(fx)
		var cause error
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{untilEnded(&cause, new(time.Duration))}})
		h := enqueue(fx, typ, "")
		time.Sleep(5 * time.Second)
		f.cut()
		time.Sleep(18 * time.Second)
		f.mend()
		if got := result(fx, h); got != "ok" {
			fx.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	subtest(t, "that hangs once is tried again in time", func(fx *fixture) {
		s, hung := newFaults(fx), false
		s.hooks.Heartbeat = func(ctx context.Context, req store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if hung || len(req.Leases) == 0 {
				return next()
			}
			hung = true
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{untilEnded(&cause, new(time.Duration))}})
		if got := result(fx, enqueue(fx, typ, "")); got != "ok" || !hung {
			fx.Errorf("the handler was ended for %v, though its lease could be renewed in time", cause)
		}
	})

	subtest(t, "that hangs since before the claim does not hide the end of the lease", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Heartbeat = func(ctx context.Context, _ store.HeartbeatRequest, _ func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		var ended time.Duration
		fx.runConfig(polled(s.store), weaver.Config{Handlers: []weaver.Handler{untilEnded(&cause, &ended)}})
		time.Sleep(11 * time.Second) // the first heartbeat hangs, without leases to renew
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "again")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			fx.Errorf("the handler was ended for %v, want ErrLeaseUncertain", cause)
		}
		equal(fx, "the lease was valid for", ended, 25*time.Second)
	})

	// An engine in memory that was idle joins again before it renews.
	subtest(t, "goes on when the Join before it hangs", func(fx *fixture) {
		s := newFaults(fx)
		var joined atomic.Int32 // by two roles of the engine
		s.hooks.Join = func(ctx context.Context, _ store.WorkerInfo, next func() (storehook.None, error)) (storehook.None, error) {
			if joined.Add(1) == 1 {
				return next()
			}
			<-ctx.Done()
			return storehook.None{}, context.Cause(ctx)
		}
		var cause error
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{untilEnded(&cause, new(time.Duration))}})
		time.Sleep(time.Hour)
		if got := result(fx, enqueue(fx, typ, "")); got != "ok" {
			fx.Errorf("the handler was ended for %v", cause)
		}
		if j, n := joined.Load(), s.count("Heartbeat"); j < 2 || n < 4 {
			fx.Errorf("the engine joined %d times and renewed %d times in two leases, want 2 and 4 at least", j, n)
		}
	})

	// After that time the worker's row may be deleted, and with it the proof that the process is
	// alive; a heartbeat restores only the row.
	subtest(t, "begins with a Join after a long silence", func(fx *fixture) {
		began := time.Now()
		s := newFaults(fx)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if time.Since(began) < 10*time.Minute {
				return nil, store.ErrUnavailable
			}
			return next()
		}
		fx.runConfig(polled(s.store), weaver.Config{Handlers: []weaver.Handler{untilEnded(new(error), new(time.Duration))}})
		time.Sleep(store.DefaultLease)
		equal(fx, "joins at first", s.count("Join"), 1)
		time.Sleep(20 * time.Minute)
		equal(fx, "joins in all", s.count("Join"), 2)
	})

	subtest(t, "is not asked for when the lease is lost", func(fx *fixture) {
		s := newFaults(fx)
		var mu sync.Mutex
		var asked []task.Lease
		s.hooks.Heartbeat = func(_ context.Context, req store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, req.Leases...)
			return next()
		}
		release := make(chan struct{})
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
			<-release // it ignores its context
			return "", nil
		})}})
		h := enqueue(fx, typ, "")
		synctest.Wait()
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		mu.Lock()
		equal(fx, "the lease that is lost was asked for", len(asked), 1)
		asked = nil
		mu.Unlock()
		time.Sleep(2 * store.DefaultLease)
		mu.Lock()
		equal(fx, "leases asked for since", len(asked), 0)
		mu.Unlock()
		close(release)
	})
}

func TestHeartbeatsKeepATask(t *testing.T) {
	typ := weaver.Define[int, int]("engine.heartbeat.run.v1")

	subtest(t, "heartbeats keep a task, and a dead worker's tasks are taken over without a restart", func(fx *fixture) {
		fetched, blocking := 0, true
		handler := typ.Handler(func(ctx context.Context, n int) (int, error) {
			n, err := weaver.Step(ctx, "fetch", func(context.Context) (int, error) { fetched++; return n + 1, nil })
			if err != nil || !blocking {
				return n, err
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		f := newFaults(fx)
		dying := fx.start(f.store, weaver.Config{Handlers: []weaver.Handler{handler}})
		h := enqueue(fx, typ, 1)
		synctest.Wait()
		fx.run(handler) // takes over

		time.Sleep(10 * time.Minute) // twenty lease lengths, between its steps
		fx.wantState(h.ID(), weaver.StateRunning)
		equal(fx, "attempts while the worker lives", fx.get(h.ID()).AttemptNo, 1)

		blocking = false
		f.cut()
		died := time.Now()
		equal(fx, "output", result(fx, h), 2)
		if waited := time.Since(died); waited > 2*store.DefaultLease {
			fx.Errorf("taken over after %s, want within two leases of %s", waited, store.DefaultLease)
		}
		equal(fx, "runs of the completed step", fetched, 1)
		fx.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeSuccess)
		if dying.stop() == nil {
			fx.Error("Run of the worker without a store returned nil")
		}
	})
}

func TestRestoredStore(t *testing.T) {
	typ := weaver.Define[string, string]("engine.restored.run.v1", weaver.NoRetry())

	// In memory an idle engine renews no lease, and after the restore it is idle.
	subtest(t, "a restore does not count as a crash", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{CrashBudget: 1, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return in, nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		})}})
		h := enqueue(fx, typ, "x")
		synctest.Wait()
		_, err := fx.store.Operate(fx.Context(), weaver.DefaultNamespace, store.Restored{})
		fx.must(err)
		time.Sleep(2 * store.DefaultLease)
		fx.wantState(h.ID(), weaver.StateSucceeded) // one crash would have failed the task
		equal(fx, "the first attempt", fx.history(h.ID()).Attempts[0].Outcome, task.OutcomeLeaseLost)
	})
}
