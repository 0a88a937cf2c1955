package weaver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// revoke revokes the lease of a running task, as a reaper on another node would, and makes the task
// claimable again.
func (fx *fixture) revoke(id weaver.TaskID) {
	fx.Helper()
	fx.must(fx.client.Cancel(fx.Context(), id, weaver.Force()))
	fx.must(fx.client.Retry(fx.Context(), id))
}

func TestLostLease(t *testing.T) {
	typ := weaver.Define[string, string]("engine.lease.run.v1")

	for name, end := range map[string]func(ctx context.Context) (string, error){
		"a success": func(context.Context) (string, error) { return "by the loser", nil },
		"a failure": func(context.Context) (string, error) { return "", errors.New("no") },
		"a step": func(ctx context.Context) (string, error) {
			return weaver.Step(ctx, "late", func(context.Context) (string, error) { return "by the loser", nil })
		},
		"a sleep":    func(ctx context.Context) (string, error) { return "", weaver.Sleep(ctx, "nap", time.Hour) },
		"a block":    func(context.Context) (string, error) { return "", weaver.Blocked("help") },
		"a progress": func(ctx context.Context) (string, error) { return "", weaver.Progress(ctx, 66, 100) },
		"a child": func(ctx context.Context) (string, error) {
			_, err := weaver.Start(ctx, "child", weaver.Define[string, string]("engine.lease.child.v1"), "")
			return "", err
		},
	} {
		subtest(t, "writes nothing: "+name, func(fx *fixture) {
			g := newGate()
			// Without notices the loser learns of it from its next heartbeat.
			fx.runConfig(polled(fx.store), weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				g.in <- struct{}{}
				<-g.out
				return end(ctx)
			})}})
			h := enqueue(fx, typ, "")
			<-g.in
			fx.revoke(h.ID())
			fx.idle(typ.Handler(func(context.Context, string) (string, error) { return "by the winner", nil }))
			before := fx.history(h.ID())
			g.open()
			time.Sleep(2 * store.DefaultLease)
			after := fx.history(h.ID())
			equal(fx, "output", string(after.Task.Output), `"by the winner"`)
			equal(fx, "attempts", len(after.Attempts), len(before.Attempts))
			equal(fx, "decisions", len(after.Decisions), 0)
			equal(fx, "recorded steps", len(after.Steps), 0)
			equal(fx, "progress", after.Task.Progress, nil)
			list, _, err := fx.client.List(fx.Context(), weaver.Filter{})
			fx.must(err)
			equal(fx, "tasks", len(list), 1)
		})
	}

	subtest(t, "ends the handler's context and starts no step", func(fx *fixture) {
		running := make(chan struct{})
		var cause error
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", weaver.Do(ctx, "late", func(context.Context) error { fx.Error("a step began without a lease"); return nil })
		})}})
		h := enqueue(fx, typ, "")
		<-running
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		if !errors.Is(cause, weaver.ErrLeaseLost) {
			fx.Errorf("cause = %v, want ErrLeaseLost", cause)
		}
		fx.wantState(h.ID(), weaver.StateCancelled)
		equal(fx, "results that it tried to write", f.count("Finish"), 0)
	})

	subtest(t, "is the local verdict when it could not be renewed in time", func(fx *fixture) {
		f := newFaults(fx)
		running := make(chan struct{}, 1)
		var cause error
		var ended time.Duration
		attempts := 0
		fx.runConfig(f.store, weaver.Config{Lease: 30 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if attempts++; attempts > 1 {
				return "ok", nil
			}
			began := time.Now()
			running <- struct{}{}
			<-ctx.Done()
			cause, ended = context.Cause(ctx), time.Since(began)
			return "", weaver.Do(ctx, "late", func(context.Context) error { fx.Error("a step began under an uncertain lease"); return nil })
		})}})
		h := enqueue(fx, typ, "")
		<-running
		f.cut()
		time.AfterFunc(28*time.Second, f.mend) // before the lease expires in the store
		equal(fx, "output", result(fx, h), "ok")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			fx.Errorf("cause = %v, want ErrLeaseUncertain", cause)
		}
		equal(fx, "valid for the TTL less a sixth", ended, 25*time.Second)
		fx.wantOutcomes(h.ID(), task.OutcomeReleased, task.OutcomeSuccess)
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
	})
}

// A lease of 30 s is locally valid for 25 s from the start of the last renewal, or of the claim.
func TestLocalLeaseValidity(t *testing.T) {
	typ := weaver.Define[string, string]("engine.validity.run.v1")

	subtest(t, "does not outlast a heartbeat that hangs", func(fx *fixture) {
		var hangs atomic.Bool
		s := newFaults(fx)
		s.hooks.Heartbeat = func(ctx context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if !hangs.Load() {
				return next()
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		var ended time.Duration
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if weaver.Current(ctx).AttemptNo > 1 {
				return "ok", nil
			}
			began := time.Now()
			hangs.Store(true)
			<-ctx.Done()
			cause, ended = context.Cause(ctx), time.Since(began)
			hangs.Store(false)
			return "", ctx.Err()
		})}})
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "ok")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			fx.Errorf("cause = %v, want ErrLeaseUncertain", cause)
		}
		equal(fx, "the lease was valid for", ended, 25*time.Second)
	})

	// The claim's answer takes longer than the lease is valid.
	subtest(t, "that is over when the claim's answer arrives starts no handler", func(fx *fixture) {
		s := newFaults(fx)
		calls := 0
		var begun atomic.Int32
		s.hooks.Claim = func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			calls++
			got, err := next()
			if calls == 1 {
				time.Sleep(26 * time.Second)
			}
			return got, err
		}
		hs, err := typ.EnqueueMany(fx.Context(), fx.client, make([]string, 50))
		fx.must(err)
		fx.runConfig(s.store, weaver.Config{Concurrency: len(hs), Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if begun.Add(1); ctx.Err() != nil {
				fx.Errorf("a handler began with a context that had ended: %v", context.Cause(ctx))
			}
			return in, nil
		})}})
		for _, h := range hs {
			result(fx, h)
			equal(fx, "the first attempt", fx.history(h.ID()).Attempts[0].Outcome, task.OutcomeReleased)
		}
		equal(fx, "handlers begun", int(begun.Load()), len(hs))
	})

	// In memory a claim waits in the store until a task is due.
	subtest(t, "begins with the answer of a claim that waited", func(fx *fixture) {
		fx.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		time.Sleep(store.DefaultLease - time.Second)
		h := enqueue(fx, typ, "x")
		result(fx, h)
		equal(fx, "attempts", fx.get(h.ID()).AttemptNo, 1)
	})

	// The claim's answer arrives just in time, while a heartbeat without the new lease hangs.
	subtest(t, "does not outlast a heartbeat that hangs without it", func(fx *fixture) {
		s, began := newFaults(fx), time.Now()
		s.hooks.Claim = func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			got, err := next()
			if len(got.Tasks) > 0 && got.Tasks[0].Task.Priority == 1 && got.Tasks[0].Task.AttemptNo == 1 {
				time.Sleep(22 * time.Second)
			}
			return got, err
		}
		s.hooks.Heartbeat = func(ctx context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if at := time.Since(began); at < 29*time.Second || at > 33*time.Second {
				return next()
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var ended time.Duration
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			switch {
			case in == "first":
				time.Sleep(time.Minute)
			case weaver.Current(ctx).AttemptNo == 1:
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				ended = time.Since(began)
			}
			return in, ctx.Err()
		})}})
		first := enqueue(fx, typ, "first")
		time.Sleep(15 * time.Second)
		result(fx, enqueue(fx, typ, "late", weaver.Priority(1)))
		result(fx, first)
		equal(fx, "the late one ended after", ended, 40*time.Second)
	})

	subtest(t, "is checked by every step itself", func(fx *fixture) {
		release := make(chan struct{})
		s := newFaults(fx)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-release // no other role checks the lease meanwhile
			return next()
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			nothing := func(context.Context) error { return nil }
			time.Sleep(25*time.Second - time.Millisecond)
			if err := weaver.Do(ctx, "in time", nothing); err != nil {
				fx.Errorf("Step under a valid lease returned %v", err)
			}
			time.Sleep(time.Millisecond)
			began := func(context.Context) error {
				fx.Error("a step began under a lease that is no longer valid")
				return nil
			}
			if err := weaver.Do(ctx, "too late", began); !errors.Is(err, weaver.ErrLeaseUncertain) {
				fx.Errorf("Step under a lease that is no longer valid returned %v", err)
			}
			close(release)
			return "ok", nil
		})}})
		result(fx, enqueue(fx, typ, ""))
	})

	subtest(t, "counts from before the claim and the heartbeat", func(fx *fixture) {
		for _, beats := range []bool{false, true} {
			const late = 3 * time.Second // delay of each answer to Claim and Heartbeat
			s := newFaults(fx)
			s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
				got, err := next()
				time.Sleep(late)
				return got, err
			}
			s.hooks.Claim = func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
				got, err := next()
				if len(got.Tasks) > 0 {
					time.Sleep(late)
				}
				return got, err
			}
			var ended time.Time
			e := fx.start(s.store, weaver.Config{DrainTimeout: time.Millisecond, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if beats {
					time.Sleep(12 * time.Second) // after the first renewal was sent
				}
				s.cut()
				<-ctx.Done()
				ended = time.Now()
				return "", ctx.Err()
			})}})
			synctest.Wait()
			asked := time.Now()
			h := enqueue(fx, typ, "")
			time.Sleep(time.Minute)
			want := 25 * time.Second
			if beats {
				want += 13 * time.Second // a third of the lease after the claim's answer
			}
			if e.stop() == nil {
				fx.Error("Run without a store stopped without an error")
			}
			equal(fx, "valid since the claim was asked for", ended.Sub(asked).Round(time.Second), want)
			fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		}
	})
}
