package weaver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestCancel(t *testing.T) {
	typ := weaver.Define[string, string]("engine.cancel.run.v1")

	subtest(t, "a task that does not run ends at once", func(fx *fixture) {
		for _, opts := range [][]weaver.EnqueueOption{nil, {weaver.Delay(time.Hour)}} {
			h := enqueue(fx, typ, "", opts...)
			fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.By("ops"), weaver.Reason("not needed")))
			got := fx.get(h.ID())
			equal(fx, "state", got.State, weaver.StateCancelled)
			equal(fx, "who", got.CancelBy, "ops")
			equal(fx, "why", got.CancelReason, "not needed")
		}
		fx.idle(typ.Handler(func(context.Context, string) (string, error) { fx.Error("it ran"); return "", nil }))
	})

	subtest(t, "a running task is notified at once", func(fx *fixture) {
		running := make(chan struct{})
		var ended time.Time
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-ctx.Done()
			ended = time.Now()
			return "", context.Cause(ctx)
		}))
		h := enqueue(fx, typ, "")
		<-running
		asked := time.Now()
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.By("ann")))
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindCancelled)
		equal(fx, "message", te.Message, "cancelled by ann")
		equal(fx, "time until the handler's context ended", ended.Sub(asked), 0)
		fx.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(fx, "decisions", len(fx.history(h.ID()).Decisions), 0)
	})

	subtest(t, "a handler that still succeeds has succeeded", func(fx *fixture) {
		running := make(chan struct{})
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-ctx.Done()
			return "done anyway", nil
		}))
		h := enqueue(fx, typ, "")
		<-running
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "output", result(fx, h), "done anyway")
	})

	subtest(t, "a handler that ends in any other way is cancelled", func(fx *fixture) {
		running := make(chan struct{})
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			running <- struct{}{}
			<-ctx.Done()
			return "", weaver.Blocked("a person, please")
		}))
		h := enqueue(fx, typ, "")
		<-running
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
	})

	subtest(t, "Force ends a running task whatever its handler does", func(fx *fixture) {
		running, leave := make(chan struct{}), make(chan struct{})
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-leave // it ignores its context
			return "too late", weaver.Do(context.WithoutCancel(ctx), "late", func(context.Context) error { return nil })
		}))
		h := enqueue(fx, typ, "")
		<-running
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force(), weaver.By("ops"), weaver.Reason("stuck")))
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateCancelled)
		wantError(fx, te, nil, "ops", "stuck")
		close(leave)
		time.Sleep(time.Hour)
		fx.wantState(h.ID(), weaver.StateCancelled)
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
		equal(fx, "verb in the audit", fx.history(h.ID()).Audit[0].Verb, "force_cancel")
	})

	subtest(t, "another process learns of it from its next heartbeat", func(fx *fixture) {
		running := make(chan struct{})
		fx.runConfig(polled(fx.store), weaver.Config{Lease: 30 * time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				close(running)
				<-ctx.Done()
				return "", context.Cause(ctx)
			}),
		}})
		h := enqueue(fx, typ, "")
		<-running
		asked := time.Now()
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		if took := time.Since(asked); took > 11*time.Second {
			fx.Errorf("it took %s, want at most a third of the lease", took)
		}
	})

	subtest(t, "a step that ends before the worker learns of it is not stored", func(fx *fixture) {
		g := newGate()
		fx.runConfig(polled(fx.store), weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := g.pass(ctx); err != nil {
				return "", err
			}
			_, err := weaver.Step(ctx, "after the cancel", func(context.Context) (int, error) { return 1, nil })
			if !errors.Is(err, weaver.ErrCancelled) || !errors.Is(context.Cause(ctx), weaver.ErrCancelled) {
				fx.Errorf("Step returned %v and the context's cause is %v, want ErrCancelled", err, context.Cause(ctx))
			}
			return "", err
		})}})
		h := enqueue(fx, typ, "")
		<-g.in
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.By("ann")))
		g.open()
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateCancelled)
		wantError(fx, te, nil, "ann")
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
	})

	subtest(t, "a retried task may be cancelled and retried again", func(fx *fixture) {
		h := enqueue(fx, typ, "")
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		fx.idle(typ.Handler(func(context.Context, string) (string, error) { return "ok", nil }))
		equal(fx, "output", result(fx, h), "ok")
	})
}

func TestCancelInAStep(t *testing.T) {
	typ := weaver.Define[int, int]("engine.cancelled.run.v1")

	subtest(t, "cancel stops before the next step, ends the step's context, and does not store what was in flight", func(fx *fixture) {
		var cause error
		inStep := make(chan struct{})
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			if err := weaver.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			_, err := weaver.Step(ctx, "in flight", func(ctx context.Context) (int, error) {
				close(inStep)
				<-ctx.Done()
				cause = context.Cause(ctx)
				return n, nil // the handler still got its value
			})
			if !errors.Is(err, weaver.ErrCancelled) {
				fx.Errorf("Step returned %v, want ErrCancelled", err)
			}
			err = weaver.Do(ctx, "next", func(context.Context) error {
				fx.Error("the step after the cancel ran")
				return nil
			})
			return 0, err
		}))
		h := enqueue(fx, typ, 1)
		<-inStep
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.By("ann"), weaver.Reason("wrong order")))
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateCancelled)
		equal(fx, "kind", te.Kind, task.KindCancelled)
		wantError(fx, te, nil, "ann", "wrong order")
		if !errors.Is(cause, weaver.ErrCancelled) {
			fx.Errorf("the step's context ended with cause %v", cause)
		}
		steps := fx.history(h.ID()).Steps
		if len(steps) != 1 || steps[0].Name != "before" {
			fx.Errorf("stored steps: %+v, want the one before the cancel", steps)
		}
	})
}
