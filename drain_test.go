package weaver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// Under `weaver dev` a drain lets a running step end and starts no other. A handler without steps
// keeps its lease for 2 s, not for the DrainTimeout and the time to return.
func TestDrain_Dev(t *testing.T) {
	t.Setenv("WEAVER_DEV", "1")
	typ := weaver.Define[string, string]("engine.drain.dev.v1", weaver.NoRetry())
	inBubble(t, func(fx *fixture) {
		e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Hour, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, in string) (string, error) {
				for _, name := range []string{"first", "second"} {
					if err := weaver.Do(ctx, name, func(ctx context.Context) error { time.Sleep(time.Second); return ctx.Err() }); err != nil {
						return "", err
					}
				}
				return in, nil
			}),
		}})
		stepping := enqueue(fx, typ, "steps")
		synctest.Wait()
		began := time.Now()
		fx.must(e.stop())
		equal(fx, "time of the drain", time.Since(began), time.Second)
		fx.wantOutcomes(stepping.ID(), task.OutcomeReleased)
		equal(fx, "recorded steps", len(fx.history(stepping.ID()).Steps), 1)

		e = fx.start(fx.store, weaver.Config{DrainTimeout: time.Hour, Handlers: []weaver.Handler{
			typ.Handler(func(context.Context, string) (string, error) { time.Sleep(time.Minute); return "", nil }),
		}})
		synctest.Wait()
		began = time.Now()
		if err := e.stop(); !errors.As(err, new(*task.RunningError)) {
			fx.Errorf("stop: %v, want that a handler still runs", err)
		}
		equal(fx, "time of the drain", time.Since(began), 2100*time.Millisecond)
		fx.wantOutcomes(stepping.ID(), task.OutcomeReleased, task.OutcomeReleased)
		time.Sleep(time.Minute)
	})
}

func TestDrain(t *testing.T) {
	typ := weaver.Define[string, string]("engine.drain.run.v1", weaver.NoRetry())

	subtest(t, "waits for handlers and keeps their leases", func(fx *fixture) {
		e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Hour, Lease: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, in string) (string, error) {
				time.Sleep(time.Minute) // 60 lease lengths
				return in, context.Cause(ctx)
			}),
		}})
		h := enqueue(fx, typ, "x")
		synctest.Wait()
		fx.run() // another engine reaps meanwhile
		fx.must(e.stop())
		equal(fx, "output", result(fx, h), "x")
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})

	subtest(t, "ends contexts after DrainTimeout and gives leases back at no cost", func(fx *fixture) {
		var cause error
		e := fx.start(fx.store, weaver.Config{DrainTimeout: 5 * time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "", ctx.Err()
			}),
		}})
		h := enqueue(fx, typ, "x")
		synctest.Wait()
		began := time.Now()
		fx.must(e.stop())
		equal(fx, "time of the drain", time.Since(began), 5*time.Second)
		equal(fx, "cause", errors.Is(cause, weaver.ErrDraining), true)
		got := fx.get(h.ID())
		equal(fx, "state", got.State, weaver.StateReady)
		equal(fx, "attempts that count", got.AttemptCount, 0)
		fx.wantOutcomes(h.ID(), task.OutcomeReleased)
		fx.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		equal(fx, "output", result(fx, h), "x")
	})

	subtest(t, "StopNow spends no DrainTimeout, before the end of Run's context and after it", func(fx *fixture) {
		for _, drainFirst := range []bool{false, true} {
			e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Hour, Handlers: []weaver.Handler{
				typ.Handler(func(ctx context.Context, _ string) (string, error) {
					<-ctx.Done()
					return "", context.Cause(ctx)
				}),
			}})
			h := enqueue(fx, typ, "x")
			synctest.Wait()
			began := time.Now()
			if drainFirst {
				time.AfterFunc(time.Minute, e.StopNow)
				fx.must(e.stop())
				equal(fx, "time of the drain", time.Since(began), time.Minute)
			} else {
				e.StopNow()
				select {
				case <-e.ended:
				case <-time.After(time.Minute):
					fx.Error("Run goes on")
				}
				fx.must(e.stop())
				equal(fx, "time of the drain", time.Since(began), 0)
			}
			got := fx.get(h.ID())
			equal(fx, "state", got.State, weaver.StateReady)
			equal(fx, "attempts that count", got.AttemptCount, 0)
			fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		}
	})

	subtest(t, "StopNow without a Run does nothing, and holds for one Run only", func(fx *fixture) {
		e := fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		}})
		e.StopNow()
		h := enqueue(fx, typ, "x")
		fx.must(e.RunUntilIdle(fx.Context()))
		equal(fx, "output", result(fx, h), "x")
		e.StopNow()
		h = enqueue(fx, typ, "y")
		fx.must(e.RunUntilIdle(fx.Context()))
		equal(fx, "output", result(fx, h), "y")
	})

	subtest(t, "does not wait for steps that would begin now", func(fx *fixture) {
		ran := 0
		e := fx.start(fx.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, in string) (string, error) {
				for _, name := range []string{"a", "b", "c"} {
					err := weaver.Do(ctx, name, func(context.Context) error {
						ran++
						time.Sleep(700 * time.Millisecond)
						return nil
					})
					if err != nil {
						return "", err
					}
				}
				return in, nil
			}),
		}})
		h := enqueue(fx, typ, "x")
		synctest.Wait()
		fx.must(e.stop())
		equal(fx, "steps that ran before the end", ran, 2)
		var kept []string
		for _, s := range fx.history(h.ID()).Steps {
			kept = append(kept, s.Name)
		}
		equal(fx, "the step in flight keeps its value", len(kept), 2)
		fx.wantState(h.ID(), weaver.StateReady)
	})

	subtest(t, "names handlers that do not return, and fences them off", func(fx *fixture) {
		leave, late := make(chan struct{}), make(chan error, 1)
		f := newFaults(fx)
		e := fx.start(f.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				<-leave // it ignores its context
				late <- weaver.Do(ctx, "late", func(context.Context) error { return nil })
				return "too late", nil
			}),
		}})
		h := enqueue(fx, typ, "x")
		synctest.Wait()
		began := time.Now()
		err := e.stop()
		var running *task.RunningError
		if !errors.As(err, &running) || len(running.Tasks) != 1 {
			fx.Fatalf("Run returned %v, want a *RunningError with one task", err)
		}
		wantError(fx, err, nil, typ.Name(), h.ID().String(), "did not return")
		equal(fx, "time of the drain", time.Since(began), 3*time.Second)
		fx.wantState(h.ID(), weaver.StateReady)

		fx.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return "by another worker", nil }))
		equal(fx, "output", result(fx, h), "by another worker")
		close(leave)
		wantError(fx, <-late, weaver.ErrAttemptOver)
		synctest.Wait()
		got, err := typ.Get(fx.Context(), fx.client, h.ID())
		fx.must(err)
		equal(fx, "output after the handler that ignored its context returned", got.Output, "by another worker")
		equal(fx, "what its worker wrote: the release", f.count("Finish"), 1)
		fx.wantOutcomes(h.ID(), task.OutcomeReleased, task.OutcomeSuccess)
	})

	subtest(t, "an engine runs once at a time, and again after its end", func(fx *fixture) {
		eng := fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })}})
		for range 3 {
			ctx, cancel := context.WithCancel(fx.Context())
			done := make(chan error, 1)
			go func() { done <- eng.Run(ctx) }()
			equal(fx, "output", result(fx, enqueue(fx, typ, "x")), "x")
			wantError(fx, eng.Run(fx.Context()), weaver.ErrRunning)
			wantError(fx, eng.RunUntilIdle(fx.Context()), weaver.ErrRunning)
			cancel()
			fx.must(<-done)
		}
	})

	subtest(t, "a context that has ended starts nothing", func(fx *fixture) {
		ctx, cancel := context.WithCancel(fx.Context())
		cancel()
		h := enqueue(fx, typ, "x")
		err := fx.newEngine(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })}}).Run(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			fx.Errorf("Run returned %v", err)
		}
		fx.wantState(h.ID(), weaver.StateReady)
	})
}

func TestDrainStartsNothing(t *testing.T) {
	typ := weaver.Define[int, int]("engine.drained.run.v1")

	subtest(t, "stopping waits for the running ones", func(fx *fixture) {
		g := newGate()
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			return n, g.pass(ctx)
		})}})
		h := enqueue(fx, typ, 1)
		<-g.in
		stopped := make(chan error, 1)
		go func() { stopped <- e.stop() }()
		synctest.Wait()
		late := enqueue(fx, typ, 2)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		select {
		case err := <-stopped:
			fx.Fatalf("Run returned %v while a handler ran", err)
		default:
		}
		fx.wantState(late.ID(), weaver.StateReady) // no task is started any more
		g.open()
		fx.must(<-stopped)
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})
}
