package weaver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The second return of a handler that was given up must not free the slot of
// another attempt.
func TestSlotsAfterAHandlerThatWasGivenUp(t *testing.T) {
	typ := weaver.Define[string, string]("engine.slots.given.v1", weaver.Queue("narrow"))
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		running, most := 0, 0
		release := make(chan struct{})
		eng := w.newEngine(w.store, weaver.Config{
			Queues: map[string]int{"narrow": 1}, DrainTimeout: time.Second,
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				if in == "stuck" && weaver.Current(ctx).AttemptNo == 1 {
					<-release
					return in, nil
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return in, nil
			})},
		})
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error, 1)
		go func() { done <- eng.Run(ctx) }()
		stuck := enqueue(w, typ, "stuck")
		synctest.Wait()
		cancel()
		var names *weaver.RunningError
		if err := <-done; !errors.As(err, &names) {
			w.Errorf("Run = %v, want a *RunningError", err)
		}
		close(release)
		synctest.Wait()

		ctx, cancel = context.WithCancel(w.Context())
		go func() { done <- eng.Run(ctx) }()
		hs := []*weaver.Handle[string]{stuck, enqueue(w, typ, "a"), enqueue(w, typ, "b")}
		for _, h := range hs {
			result(w, h)
		}
		cancel()
		w.must(<-done)
		mu.Lock()
		defer mu.Unlock()
		equal(w, "handlers of the queue at once", most, 1)
	})
}

func TestOutcomesOnTheirWay(t *testing.T) {
	typ := weaver.Define[string, string]("engine.outcomes.run.v1", weaver.NoRetry())

	scene(t, "arrive although the drain has given up", func(w *world) {
		s := newFaults(w)
		s.hooks.Finish = func(ctx context.Context, _ []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
			select {
			case <-time.After(10 * time.Second):
				return next()
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		e := w.start(s.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "ok", nil }),
		}})
		h := enqueue(w, typ, "")
		synctest.Wait()
		w.must(e.stop())
		time.Sleep(10 * time.Second)
		w.wantState(h.ID(), weaver.StateSucceeded)
	})

	scene(t, "of a lease that was lost are no trouble of the engine", func(w *world) {
		g := newGate()
		w.runConfig(polled(w.store), weaver.Config{Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { return "ok", g.pass(ctx) }),
		}})
		h := enqueue(w, typ, "")
		<-g.in
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		g.open()
		synctest.Wait()
		equal(w, "lines that it was lost", len(w.log.lines(w, "the lease was lost before the result was written")), 1)
		equal(w, "lines that it could not be written", len(w.log.lines(w, "the result of an attempt could not be written")), 0)
	})

	scene(t, "of a deadline that the store has not seen are cancelled, and what was in flight is not kept", func(w *world) {
		s := newFaults(w)
		s.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
			return store.ReapResult{Next: -1}, nil // nobody judges deadlines
		}
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "late", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "late", nil
			})
		})}})
		h := enqueue(w, typ, "", weaver.ExpireAfter(time.Second))
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindDeadline)
		w.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})

	scene(t, "of a suspended attempt suspend it, whatever a middleware answers", func(w *world) {
		w.runConfig(w.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{func(next weaver.HandlerFunc) weaver.HandlerFunc {
				return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
					out, err := next(ctx, input)
					if weaver.Suspended(err) {
						return json.RawMessage(`"swallowed"`), nil
					}
					return out, err
				}
			}},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				return "rested", weaver.Sleep(ctx, "nap", time.Hour)
			})},
		})
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "rested")
		w.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
	})

	// wait is result with a limit: without an outcome the clock would run on.
	wait := func(w *world, h *weaver.Handle[string]) error {
		ctx, cancel := context.WithTimeout(w.Context(), 30*24*time.Hour)
		defer cancel()
		_, err := h.Wait(ctx)
		return err
	}

	scene(t, "are written although the decider panics", func(w *world) {
		w.runConfig(w.store, weaver.Config{
			Decider:  decide.Func(func(decide.Input) decide.Decision { panic("no idea") }),
			Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) { return "", errors.New("no") })},
		})
		h := enqueue(w, typ, "")
		if err := wait(w, h); errors.Is(err, context.DeadlineExceeded) {
			w.Fatalf("the task did not end: %v", err)
		}
		w.wantOutcomes(h.ID(), task.OutcomeFailure)
	})

	scene(t, "of the engine's own errors end the task at last", func(w *world) {
		s := newFaults(w)
		attempts := 0
		s.hooks.StepTx = func(_ context.Context, _ *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
			if attempts <= 12 {
				return store.RecordResult{}, store.ErrFull
			}
			return next()
		}
		w.runConfig(s.store, weaver.Config{Lease: 3 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			return weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return "ok", nil })
		})}})
		h := enqueue(w, typ, "")
		if err := wait(w, h); err == nil {
			w.Errorf("the task was tried %d times and succeeded", attempts)
		}
		if n := len(slices.Compact(w.outcomes(h.ID()))); n != 1 || attempts != 10 {
			w.Errorf("%d attempts, want 10 failures", attempts)
		}
	})
}
