package weaver_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestOutcomes(t *testing.T) {
	typ := weaver.Define[string, string]("engine.outcomes.run.v1", weaver.NoRetry())

	subtest(t, "are written although DrainTimeout has passed", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Finish = func(ctx context.Context, _ []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
			select {
			case <-time.After(10 * time.Second):
				return next()
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		e := fx.start(s.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "ok", nil }),
		}})
		h := enqueue(fx, typ, "")
		synctest.Wait()
		fx.must(e.stop())
		time.Sleep(10 * time.Second)
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})

	subtest(t, "do not take the slots of handlers, and no more are on their way than there are slots", func(fx *fixture) {
		for name, cfg := range map[string]weaver.Config{"slots": {Concurrency: 2}, "a queue": {Concurrency: 9, Queues: map[string]int{"default": 2}}} {
			s := newFaults(fx)
			answered := make(chan struct{})
			s.hooks.Finish = func(_ context.Context, _ []store.Finish, next func() ([]store.FinishResult, error)) ([]store.FinishResult, error) {
				<-answered
				return next()
			}
			var running, most, ran atomic.Int32
			cfg.Handlers = []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
				ran.Add(1)
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				running.Add(-1)
				return "", nil
			})}
			e := fx.start(s.store, cfg)
			many := make([]*weaver.Handle[string], 12)
			for i := range many {
				many[i] = enqueue(fx, typ, "")
			}
			time.Sleep(time.Minute) // less than the queue's leases last
			equal(fx, name+": handlers at once", most.Load(), 2)
			if cfg.Concurrency == 2 {
				equal(fx, name+": handlers that ran", ran.Load(), 4)
			}
			close(answered)
			for _, h := range many {
				result(fx, h)
			}
			equal(fx, name+": handlers at once in the end", most.Load(), 2)
			fx.must(e.stop())
		}
	})

	subtest(t, "of a lease that was lost are not an error of the engine", func(fx *fixture) {
		g := newGate()
		fx.runConfig(polled(fx.store), weaver.Config{Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) { return "ok", g.pass(ctx) }),
		}})
		h := enqueue(fx, typ, "")
		<-g.in
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		g.open()
		synctest.Wait()
		equal(fx, "lines that it was lost", len(fx.log.lines(fx, "the lease was lost before the result was written")), 1)
		equal(fx, "lines that it could not be written", len(fx.log.lines(fx, "the result of an attempt could not be written")), 0)
	})

	subtest(t, "of a deadline that the store has not seen are cancelled, and what was in flight is not kept", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Reap = func(context.Context, store.ReapRequest, func() (store.ReapResult, error)) (store.ReapResult, error) {
			return store.ReapResult{Next: -1}, nil // the store does not end tasks at their deadline
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "late", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "late", nil
			})
		})}})
		h := enqueue(fx, typ, "", weaver.ExpireAfter(time.Second))
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindDeadline)
		fx.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
	})

	subtest(t, "of a suspended attempt suspend it, whatever a middleware returns", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{
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
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "rested")
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
	})

	// wait is result with a time limit: without a result the clock would run on.
	wait := func(fx *fixture, h *weaver.Handle[string]) error {
		ctx, cancel := context.WithTimeout(fx.Context(), 30*24*time.Hour)
		defer cancel()
		_, err := h.Wait(ctx)
		return err
	}

	subtest(t, "are written although the decider panics", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{
			Decider:  decide.Func(func(decide.Input) decide.Decision { panic("no idea") }),
			Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) { return "", errors.New("no") })},
		})
		h := enqueue(fx, typ, "")
		if err := wait(fx, h); errors.Is(err, context.DeadlineExceeded) {
			fx.Fatalf("the task did not end: %v", err)
		}
		fx.wantOutcomes(h.ID(), task.OutcomeFailure)
	})

	subtest(t, "of the engine's own errors end the task after ten attempts", func(fx *fixture) {
		s := newFaults(fx)
		attempts := 0
		s.hooks.StepTx = func(_ context.Context, _ *storehook.StepTx, next func() (store.RecordResult, error)) (store.RecordResult, error) {
			if attempts <= 12 {
				return store.RecordResult{}, store.ErrFull
			}
			return next()
		}
		fx.runConfig(s.store, weaver.Config{Lease: 3 * time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			return weaver.StepTx(ctx, "save", func(context.Context, *sql.Tx) (string, error) { return "ok", nil })
		})}})
		h := enqueue(fx, typ, "")
		if err := wait(fx, h); err == nil {
			fx.Errorf("the task was tried %d times and succeeded", attempts)
		}
		if n := len(slices.Compact(fx.outcomes(h.ID()))); n != 1 || attempts != 10 {
			fx.Errorf("%d attempts, want 10 failures", attempts)
		}
	})
}
