package weaver_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestTimeout(t *testing.T) {
	typ := weaver.Define[string, string]("engine.timeout.run.v1", weaver.Timeout(time.Minute), weaver.MaxAttempts(2))

	subtest(t, "ends the context of one attempt", func(fx *fixture) {
		var causes []error
		began := time.Now()
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return "", ctx.Err()
		}))
		te := failure(fx, enqueue(fx, typ, ""))
		equal(fx, "kind", te.Kind, task.KindTimeout)
		equal(fx, "attempts", len(causes), 2)
		for _, cause := range causes {
			if !errors.Is(cause, weaver.ErrTimeout) {
				fx.Errorf("cause = %v, want ErrTimeout", cause)
			}
		}
		near(fx, "two attempts and a pause", time.Since(began), 2*time.Minute+2*time.Second)
	})

	subtest(t, "reaches a step, is recorded, and lets nothing else start", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "slow", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}, weaver.StepRetry(10), weaver.RecordError())
			if next := weaver.Do(ctx, "next", func(context.Context) error { fx.Error("a step began after the timeout"); return nil }); !errors.Is(next, weaver.ErrTimeout) {
				fx.Errorf("the next step returned %v, want ErrTimeout", next)
			}
			return "", err
		}))
		h := enqueue(fx, typ, "")
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindTimeout)
		equal(fx, "failed step", te.FailedStep, "slow")
		for _, s := range fx.history(h.ID()).Steps {
			equal(fx, "what the timeout caused is no result of the step", s.State, task.StepFailed)
		}
		equal(fx, "tries", len(fx.history(h.ID()).Steps), 2)
	})

	subtest(t, "does not spoil a success", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "just in time", nil
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "just in time")
	})

	subtest(t, "a late success is verified with a context that goes on", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			out, err := weaver.Step(ctx, "slow", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "late", nil
			})
			return out, err
		}, weaver.VerifySuccess(func(ctx context.Context, _ string) error { return ctx.Err() })))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "late")
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
		equal(fx, "the step", fx.history(h.ID()).Steps[0].State, task.StepCompleted)
	})
}

func TestDeadline(t *testing.T) {
	typ := weaver.Define[string, string]("engine.deadline.run.v1", weaver.ExpireAfter(time.Minute))

	subtest(t, "of a running task ends its context", func(fx *fixture) {
		var cause error
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", ctx.Err()
		}))
		began := time.Now()
		h := enqueue(fx, typ, "")
		te := failure(fx, h)
		equal(fx, "state", te.State, weaver.StateCancelled)
		equal(fx, "kind", te.Kind, task.KindDeadline)
		equal(fx, "cause", errors.Is(cause, weaver.ErrDeadline), true)
		near(fx, "time", time.Since(began), time.Minute)
		fx.wantOutcomes(h.ID(), task.OutcomeCancelled)
	})

	subtest(t, "of a running task is kept by its own worker", func(fx *fixture) {
		f := newFaults(fx)
		f.fail("Reap", store.ErrUnavailable) // the store does not end the task itself
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "in flight", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "too late", nil
			})
			if !errors.Is(err, weaver.ErrDeadline) {
				fx.Errorf("Step returned %v, want ErrDeadline", err)
			}
			return "", errors.New("no")
		})}})
		began := time.Now()
		h := enqueue(fx, typ, "")
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindDeadline)
		equal(fx, "time", time.Since(began), time.Minute)
		fx.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
	})

	subtest(t, "of a waiting task ends it without a worker for it", func(fx *fixture) {
		fx.run() // an engine without handlers also reaps
		waiting := map[string]*weaver.Handle[string]{
			"ready":   enqueue(fx, typ, ""),
			"delayed": enqueue(fx, typ, "", weaver.Delay(time.Hour)),
		}
		began := time.Now()
		for name, h := range waiting {
			te := failure(fx, h)
			equal(fx, "state of the "+name, te.State, weaver.StateCancelled)
			equal(fx, "kind of the "+name, te.Kind, task.KindDeadline)
			near(fx, "time of the "+name, time.Since(began), time.Minute)
			equal(fx, "attempts of the "+name, te.Attempts, 0)
		}
	})

	subtest(t, "of a blocked task ends it", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { return "", weaver.Blocked("help") }))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		time.Sleep(2 * time.Minute)
		equal(fx, "kind", failure(fx, h).Kind, task.KindDeadline)
	})

	subtest(t, "a task that is done in time does not notice", func(fx *fixture) {
		fx.run(typ.Handler(func(context.Context, string) (string, error) { return "ok", nil }))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "ok")
		time.Sleep(time.Hour)
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})
}
