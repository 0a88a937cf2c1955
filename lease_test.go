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

// revoke takes the lease of a running task away, as a reaper on another node
// would, and lets the task be claimed again.
func (w *world) revoke(id weaver.TaskID) {
	w.Helper()
	w.must(w.client.Cancel(w.Context(), id, weaver.Force()))
	w.must(w.client.Retry(w.Context(), id))
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
		scene(t, "writes nothing: "+name, func(w *world) {
			g := newGate()
			// The loser hears nothing before its next heartbeat.
			w.runConfig(polled(w.store), weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				g.in <- struct{}{}
				<-g.out
				return end(ctx)
			})}})
			h := enqueue(w, typ, "")
			<-g.in
			w.revoke(h.ID())
			w.idle(typ.Handler(func(context.Context, string) (string, error) { return "by the winner", nil }))
			before := w.history(h.ID())
			g.open()
			time.Sleep(2 * weaver.DefaultLease)
			after := w.history(h.ID())
			equal(w, "output", string(after.Task.Output), `"by the winner"`)
			equal(w, "attempts", len(after.Attempts), len(before.Attempts))
			equal(w, "decisions", len(after.Decisions), 0)
			equal(w, "recorded steps", len(after.Steps), 0)
			equal(w, "progress", after.Task.Progress, nil)
			list, _, err := w.client.List(w.Context(), weaver.Filter{})
			w.must(err)
			equal(w, "tasks", len(list), 1)
		})
	}

	scene(t, "ends the handler's context and starts no step", func(w *world) {
		running := make(chan struct{})
		var cause error
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", weaver.Do(ctx, "late", func(context.Context) error { w.Error("a step began without a lease"); return nil })
		})}})
		h := enqueue(w, typ, "")
		<-running
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		if !errors.Is(cause, weaver.ErrLeaseLost) {
			w.Errorf("cause = %v, want ErrLeaseLost", cause)
		}
		w.wantState(h.ID(), weaver.StateCancelled)
		equal(w, "results that it tried to write", f.count("Finish"), 0)
	})

	scene(t, "is not trusted when it could not be renewed in time", func(w *world) {
		f := newFaults(w)
		running := make(chan struct{}, 1)
		var cause error
		var ended time.Duration
		attempts := 0
		w.runConfig(f.store, weaver.Config{Lease: 30 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if attempts++; attempts > 1 {
				return "ok", nil
			}
			began := time.Now()
			running <- struct{}{}
			<-ctx.Done()
			cause, ended = context.Cause(ctx), time.Since(began)
			return "", weaver.Do(ctx, "late", func(context.Context) error { w.Error("a step began under an uncertain lease"); return nil })
		})}})
		h := enqueue(w, typ, "")
		<-running
		f.cut()
		time.AfterFunc(28*time.Second, f.mend) // before the lease expires in the store
		equal(w, "output", result(w, h), "ok")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			w.Errorf("cause = %v, want ErrLeaseUncertain", cause)
		}
		equal(w, "trusted for the TTL less a sixth", ended, 25*time.Second)
		w.wantOutcomes(h.ID(), task.OutcomeReleased, task.OutcomeSuccess)
		equal(w, "attempts that count", w.get(h.ID()).AttemptCount, 1)
	})
}

// A lease of 30 s is trusted for 25 s from the moment at which the last
// renewal, or the claim, was asked for.
func TestTrustInALease(t *testing.T) {
	typ := weaver.Define[string, string]("engine.trust.run.v1")

	scene(t, "does not outlast a heartbeat that hangs", func(w *world) {
		var hangs atomic.Bool
		s := newFaults(w)
		s.hooks.Heartbeat = func(ctx context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			if !hangs.Load() {
				return next()
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var cause error
		var ended time.Duration
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
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
		equal(w, "output", result(w, enqueue(w, typ, "")), "ok")
		if !errors.Is(cause, weaver.ErrLeaseUncertain) {
			w.Errorf("cause = %v, want ErrLeaseUncertain", cause)
		}
		equal(w, "trusted for", ended, 25*time.Second)
	})

	// The claim's answer takes longer than the lease is trusted.
	scene(t, "that is over when the lease comes begins nothing", func(w *world) {
		s := newFaults(w)
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
		hs, err := typ.EnqueueMany(w.Context(), w.client, make([]string, 50))
		w.must(err)
		w.runConfig(s.store, weaver.Config{Concurrency: len(hs), Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if begun.Add(1); ctx.Err() != nil {
				w.Errorf("a handler began with a context that had ended: %v", context.Cause(ctx))
			}
			return in, nil
		})}})
		for _, h := range hs {
			result(w, h)
			equal(w, "the first attempt", w.history(h.ID()).Attempts[0].Outcome, task.OutcomeReleased)
		}
		equal(w, "handlers begun", int(begun.Load()), len(hs))
	})

	// In memory a claim waits in the store until something is due.
	scene(t, "begins with the ride of a claim that waited", func(w *world) {
		w.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		time.Sleep(weaver.DefaultLease - time.Second)
		h := enqueue(w, typ, "x")
		result(w, h)
		equal(w, "attempts", w.get(h.ID()).AttemptNo, 1)
	})

	// It comes just in time, while a heartbeat hangs that was sent without it.
	scene(t, "does not outlast a heartbeat that hangs without it", func(w *world) {
		s, began := newFaults(w), time.Now()
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
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
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
		first := enqueue(w, typ, "first")
		time.Sleep(15 * time.Second)
		result(w, enqueue(w, typ, "late", weaver.Priority(1)))
		result(w, first)
		equal(w, "the late one ended after", ended, 40*time.Second)
	})

	scene(t, "is asked for by every step itself", func(w *world) {
		release := make(chan struct{})
		s := newFaults(w)
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			<-release // no other role checks the lease meanwhile
			return next()
		}
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			nothing := func(context.Context) error { return nil }
			time.Sleep(25*time.Second - time.Millisecond)
			if err := weaver.Do(ctx, "in time", nothing); err != nil {
				w.Errorf("Step under a lease that is trusted returned %v", err)
			}
			time.Sleep(time.Millisecond)
			began := func(context.Context) error { w.Error("a step began under a lease that is not trusted"); return nil }
			if err := weaver.Do(ctx, "too late", began); !errors.Is(err, weaver.ErrLeaseUncertain) {
				w.Errorf("Step under a lease that is not trusted returned %v", err)
			}
			close(release)
			return "ok", nil
		})}})
		result(w, enqueue(w, typ, ""))
	})

	scene(t, "counts from before the claim and the heartbeat", func(w *world) {
		for _, beats := range []bool{false, true} {
			const late = 3 * time.Second // each answer to Claim and Heartbeat
			s := newFaults(w)
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
			e := w.start(s.store, weaver.Config{DrainTimeout: time.Millisecond, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if beats {
					time.Sleep(12 * time.Second) // past the question of the first renewal
				}
				s.cut()
				<-ctx.Done()
				ended = time.Now()
				return "", ctx.Err()
			})}})
			synctest.Wait()
			asked := time.Now()
			h := enqueue(w, typ, "")
			time.Sleep(time.Minute)
			want := 25 * time.Second
			if beats {
				want += 13 * time.Second // a third of the lease after the claim's answer
			}
			if e.stop() == nil {
				w.Error("Run without a store stopped without an error")
			}
			equal(w, "trusted since the claim was asked for", ended.Sub(asked).Round(time.Second), want)
			w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		}
	})
}

func TestStoreThatIsGoneForAWhile(t *testing.T) {
	typ := weaver.Define[int, int]("engine.gone.run.v1", weaver.NoRetry())
	scene(t, "loses nothing and costs no attempt", func(w *world) {
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Concurrency: 5, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			time.Sleep(10 * time.Second)
			return weaver.Step(ctx, "once", func(context.Context) (int, error) { return n * n, nil })
		})}})
		var hs []*weaver.Handle[int]
		for n := range 60 {
			hs = append(hs, enqueue(w, typ, n))
		}
		for range 4 {
			time.Sleep(15 * time.Second)
			f.cut()
			time.Sleep(2 * weaver.DefaultLease)
			f.mend()
		}
		for n, h := range hs {
			equal(w, "output", result(w, h), n*n)
			got := w.get(h.ID())
			equal(w, "attempts that count", got.AttemptCount, 1)
			equal(w, "crashes", got.CrashCount, 0)
			if got.StepCount != 1 {
				w.Errorf("task %d has %d completed steps", n, got.StepCount)
			}
		}
	})

	scene(t, "an enqueue through it says so", func(w *world) {
		f := newFaults(w)
		client, err := weaver.NewClient(f.store, weaver.ClientConfig{})
		w.must(err)
		f.cut()
		_, err = typ.Enqueue(w.Context(), client, 1)
		wantError(w, err, weaver.ErrUnavailable, "enqueue")
	})

	scene(t, "a worker cannot start without it", func(w *world) {
		f := newFaults(w)
		f.cut()
		wantError(w, w.newEngine(f.store, weaver.Config{}).Run(w.Context()), weaver.ErrUnavailable, "join as a worker")
	})

	scene(t, "a drain without it ends", func(w *world) {
		f := newFaults(w)
		running := make(chan struct{})
		e := w.start(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			close(running)
			time.Sleep(time.Second)
			return n, nil
		})}})
		h := enqueue(w, typ, 7)
		<-running
		f.cut()
		began := time.Now()
		wantError(w, e.stop(), weaver.ErrUnavailable, "leave as a worker")
		if took := time.Since(began); took > 10*time.Second {
			w.Errorf("the drain took %s", took)
		}
		equal(w, "lines about the lost result", len(w.log.lines(w, "the result of an attempt could not be written")), 1)
		f.mend()
		w.run(typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil }))
		equal(w, "output", result(w, h), 7)
	})
}
