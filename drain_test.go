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

func TestDrain(t *testing.T) {
	typ := weaver.Define[string, string]("engine.drain.run.v1", weaver.NoRetry())

	scene(t, "waits for handlers and keeps their leases", func(w *world) {
		e := w.start(w.store, weaver.Config{DrainTimeout: time.Hour, Lease: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, in string) (string, error) {
				time.Sleep(time.Minute) // 60 leases long
				return in, context.Cause(ctx)
			}),
		}})
		h := enqueue(w, typ, "x")
		synctest.Wait()
		w.run() // somebody else reaps meanwhile
		w.must(e.stop())
		equal(w, "output", result(w, h), "x")
		w.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})

	scene(t, "ends contexts after DrainTimeout and gives leases back at no cost", func(w *world) {
		var cause error
		e := w.start(w.store, weaver.Config{DrainTimeout: 5 * time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "", ctx.Err()
			}),
		}})
		h := enqueue(w, typ, "x")
		synctest.Wait()
		began := time.Now()
		w.must(e.stop())
		equal(w, "time of the drain", time.Since(began), 5*time.Second)
		equal(w, "cause", errors.Is(cause, weaver.ErrDraining), true)
		got := w.get(h.ID())
		equal(w, "state", got.State, weaver.StateReady)
		equal(w, "attempts that count", got.AttemptCount, 0)
		w.wantOutcomes(h.ID(), task.OutcomeReleased)
		w.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		equal(w, "output", result(w, h), "x")
	})

	scene(t, "StopNow spends no patience, before the end of Run's context and after it", func(w *world) {
		for _, drainFirst := range []bool{false, true} {
			e := w.start(w.store, weaver.Config{DrainTimeout: time.Hour, Handlers: []weaver.Handler{
				typ.Handler(func(ctx context.Context, _ string) (string, error) {
					<-ctx.Done()
					return "", context.Cause(ctx)
				}),
			}})
			h := enqueue(w, typ, "x")
			synctest.Wait()
			began := time.Now()
			if drainFirst {
				time.AfterFunc(time.Minute, e.StopNow)
				w.must(e.stop())
				equal(w, "time of the drain", time.Since(began), time.Minute)
			} else {
				e.StopNow()
				select {
				case <-e.ended:
				case <-time.After(time.Minute):
					w.Error("Run goes on")
				}
				w.must(e.stop())
				equal(w, "time of the drain", time.Since(began), 0)
			}
			got := w.get(h.ID())
			equal(w, "state", got.State, weaver.StateReady)
			equal(w, "attempts that count", got.AttemptCount, 0)
			w.must(w.client.Cancel(w.Context(), h.ID()))
		}
	})

	scene(t, "StopNow without a Run does nothing, and holds for one Run only", func(w *world) {
		e := w.newEngine(w.store, weaver.Config{Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }),
		}})
		e.StopNow()
		h := enqueue(w, typ, "x")
		w.must(e.RunUntilIdle(w.Context()))
		equal(w, "output", result(w, h), "x")
		e.StopNow()
		h = enqueue(w, typ, "y")
		w.must(e.RunUntilIdle(w.Context()))
		equal(w, "output", result(w, h), "y")
	})

	scene(t, "does not wait for steps that would begin now", func(w *world) {
		ran := 0
		e := w.start(w.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
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
		h := enqueue(w, typ, "x")
		synctest.Wait()
		w.must(e.stop())
		equal(w, "steps that ran before the end", ran, 2)
		var kept []string
		for _, s := range w.history(h.ID()).Steps {
			kept = append(kept, s.Name)
		}
		equal(w, "the step in flight keeps its value", len(kept), 2)
		w.wantState(h.ID(), weaver.StateReady)
	})

	scene(t, "names handlers that do not return, and fences them off", func(w *world) {
		leave, late := make(chan struct{}), make(chan error, 1)
		f := newFaults(w)
		e := w.start(f.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				<-leave // deaf
				late <- weaver.Do(ctx, "late", func(context.Context) error { return nil })
				return "too late", nil
			}),
		}})
		h := enqueue(w, typ, "x")
		synctest.Wait()
		began := time.Now()
		err := e.stop()
		var running *weaver.RunningError
		if !errors.As(err, &running) || len(running.Tasks) != 1 {
			w.Fatalf("Run returned %v, want a *RunningError with one task", err)
		}
		wantError(w, err, nil, typ.Name(), h.ID().String(), "did not return")
		equal(w, "time of the drain", time.Since(began), 3*time.Second)
		w.wantState(h.ID(), weaver.StateReady)

		w.idle(typ.Handler(func(_ context.Context, in string) (string, error) { return "by another worker", nil }))
		equal(w, "output", result(w, h), "by another worker")
		close(leave)
		wantError(w, <-late, weaver.ErrAttemptOver)
		synctest.Wait()
		got, err := typ.Get(w.Context(), w.client, h.ID())
		w.must(err)
		equal(w, "output after the deaf one returned", got.Output, "by another worker")
		equal(w, "what its worker wrote: the release", f.count("Finish"), 1)
		w.wantOutcomes(h.ID(), task.OutcomeReleased, task.OutcomeSuccess)
	})

	scene(t, "an engine runs once at a time, and again after its end", func(w *world) {
		eng := w.newEngine(w.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })}})
		for range 3 {
			ctx, cancel := context.WithCancel(w.Context())
			done := make(chan error, 1)
			go func() { done <- eng.Run(ctx) }()
			equal(w, "output", result(w, enqueue(w, typ, "x")), "x")
			wantError(w, eng.Run(w.Context()), weaver.ErrRunning)
			wantError(w, eng.RunUntilIdle(w.Context()), weaver.ErrRunning)
			cancel()
			w.must(<-done)
		}
	})

	scene(t, "a context that has ended starts nothing", func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		h := enqueue(w, typ, "x")
		err := w.newEngine(w.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })}}).Run(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			w.Errorf("Run returned %v", err)
		}
		w.wantState(h.ID(), weaver.StateReady)
	})
}

func TestRunUntilIdle(t *testing.T) {
	typ := weaver.Define[int, int]("engine.idle.run.v1")
	scene(t, "runs what its own tasks make due", func(w *world) {
		ran := 0
		handler := typ.Handler(func(ctx context.Context, n int) (int, error) {
			ran++
			if n > 0 {
				_, err := weaver.Start(ctx, "next", typ, n-1)
				return n, err
			}
			return n, nil
		})
		enqueue(w, typ, 50)
		w.must(w.newEngine(w.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{handler}}).RunUntilIdle(w.Context()))
		equal(w, "tasks that ran", ran, 51)
	})
	scene(t, "waits for keys of its own tasks", func(w *world) {
		c := newCrowd()
		for range 5 {
			enqueue(w, typ, 1, weaver.ConcurrencyKey("k"))
		}
		w.idle(typ.Handler(func(_ context.Context, n int) (int, error) { c.stay("k"); return n, nil }))
		list, _, err := w.client.List(w.Context(), weaver.Filter{States: []weaver.State{weaver.StateSucceeded}})
		w.must(err)
		equal(w, "succeeded", len(list), 5)
		equal(w, "most at once", c.most["k"], 1)
	})
	scene(t, "ends with its context", func(w *world) {
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		h := enqueue(w, typ, 1)
		began := time.Now()
		w.must(w.newEngine(w.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})}}).RunUntilIdle(ctx))
		equal(w, "time", time.Since(began), 61*time.Second)
		w.wantState(h.ID(), weaver.StateReady)
	})
	scene(t, "leaves a task alone that another worker runs", func(w *world) {
		g := newGate()
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) { return n, g.pass(ctx) }))
		h := enqueue(w, typ, 1)
		<-g.in
		began := time.Now()
		w.idle(typ.Handler(func(context.Context, int) (int, error) { w.Error("it ran twice"); return 0, nil }))
		equal(w, "time", time.Since(began), 0)
		g.open()
		result(w, h)
	})
}

// Who is told to stop before he began has ended well.
func TestStoppedBeforeItBegan(t *testing.T) {
	typ := weaver.Define[string, string]("engine.stopped.run.v1")
	h := typ.Handler(func(context.Context, string) (string, error) { return "", nil })
	scene(t, "before the first look at the store", func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		if err := w.newEngine(w.store, weaver.Config{Handlers: []weaver.Handler{h}}).Run(ctx); err != nil {
			w.Errorf("Run: %v, want nil", err)
		}
	})
	scene(t, "while it joins", func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		f := newFaults(w)
		f.set(nil, func(call string) error { // the store did it
			if call != "Join" {
				return nil
			}
			cancel()
			return context.Canceled
		})
		if err := w.newEngine(f.store, weaver.Config{Handlers: []weaver.Handler{h}}).Run(ctx); err != nil {
			w.Errorf("Run: %v, want nil", err)
		}
		if f.count("Join") != 1 || f.count("Leave") != 1 {
			w.Errorf("it joined %d times and left %d times, want once each", f.count("Join"), f.count("Leave"))
		}
	})
}
