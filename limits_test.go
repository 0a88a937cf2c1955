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

	scene(t, "ends the context of one attempt", func(w *world) {
		var causes []error
		began := time.Now()
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return "", ctx.Err()
		}))
		te := failure(w, enqueue(w, typ, ""))
		equal(w, "kind", te.Kind, task.KindTimeout)
		equal(w, "attempts", len(causes), 2)
		for _, cause := range causes {
			if !errors.Is(cause, weaver.ErrTimeout) {
				w.Errorf("cause = %v, want ErrTimeout", cause)
			}
		}
		near(w, "two attempts and a pause", time.Since(began), 2*time.Minute+2*time.Second)
	})

	scene(t, "reaches a step, is recorded, and lets nothing else start", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "slow", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}, weaver.StepRetry(10), weaver.RecordError())
			if next := weaver.Do(ctx, "next", func(context.Context) error { w.Error("a step began after the timeout"); return nil }); !errors.Is(next, weaver.ErrTimeout) {
				w.Errorf("the next step returned %v, want ErrTimeout", next)
			}
			return "", err
		}))
		h := enqueue(w, typ, "")
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindTimeout)
		equal(w, "failed step", te.FailedStep, "slow")
		for _, s := range w.history(h.ID()).Steps {
			equal(w, "what the timeout caused is no result of the step", s.State, task.StepFailed)
		}
		equal(w, "tries", len(w.history(h.ID()).Steps), 2)
	})

	scene(t, "does not spoil a success", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "just in time", nil
		}))
		equal(w, "output", result(w, enqueue(w, typ, "")), "just in time")
	})
}

func TestDeadline(t *testing.T) {
	typ := weaver.Define[string, string]("engine.deadline.run.v1", weaver.ExpireAfter(time.Minute))

	scene(t, "of a running task ends its context", func(w *world) {
		var cause error
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", ctx.Err()
		}))
		began := time.Now()
		h := enqueue(w, typ, "")
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateCancelled)
		equal(w, "kind", te.Kind, task.KindDeadline)
		equal(w, "cause", errors.Is(cause, weaver.ErrDeadline), true)
		near(w, "time", time.Since(began), time.Minute)
		w.wantOutcomes(h.ID(), task.OutcomeCancelled)
	})

	scene(t, "of a running task is kept by its own worker", func(w *world) {
		f := newFaults(w)
		f.fail("Reap", store.ErrUnavailable) // the store does not end the task itself
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "in flight", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "too late", nil
			})
			if !errors.Is(err, weaver.ErrDeadline) {
				w.Errorf("Step returned %v, want ErrDeadline", err)
			}
			return "", errors.New("no")
		})}})
		began := time.Now()
		h := enqueue(w, typ, "")
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindDeadline)
		equal(w, "time", time.Since(began), time.Minute)
		w.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})

	scene(t, "of a waiting task ends it without a worker for it", func(w *world) {
		w.run() // an engine without handlers reaps all the same
		waiting := map[string]*weaver.Handle[string]{
			"ready":   enqueue(w, typ, ""),
			"delayed": enqueue(w, typ, "", weaver.Delay(time.Hour)),
		}
		began := time.Now()
		for name, h := range waiting {
			te := failure(w, h)
			equal(w, "state of the "+name, te.State, weaver.StateCancelled)
			equal(w, "kind of the "+name, te.Kind, task.KindDeadline)
			near(w, "time of the "+name, time.Since(began), time.Minute)
			equal(w, "attempts of the "+name, te.Attempts, 0)
		}
	})

	scene(t, "of a blocked task ends it", func(w *world) {
		w.run(typ.Handler(func(context.Context, string) (string, error) { return "", weaver.Blocked("help") }))
		h := enqueue(w, typ, "")
		blocks(w, h)
		time.Sleep(2 * time.Minute)
		equal(w, "kind", failure(w, h).Kind, task.KindDeadline)
	})

	scene(t, "a task that is done in time does not notice", func(w *world) {
		w.run(typ.Handler(func(context.Context, string) (string, error) { return "ok", nil }))
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "ok")
		time.Sleep(time.Hour)
		w.wantState(h.ID(), weaver.StateSucceeded)
	})
}

func TestCancel(t *testing.T) {
	typ := weaver.Define[string, string]("engine.cancel.run.v1")

	scene(t, "a task that does not run ends at once", func(w *world) {
		for _, opts := range [][]weaver.EnqueueOption{nil, {weaver.Delay(time.Hour)}} {
			h := enqueue(w, typ, "", opts...)
			w.must(w.client.Cancel(w.Context(), h.ID(), weaver.By("ops"), weaver.Reason("not needed")))
			got := w.get(h.ID())
			equal(w, "state", got.State, weaver.StateCancelled)
			equal(w, "who", got.CancelBy, "ops")
			equal(w, "why", got.CancelReason, "not needed")
		}
		w.idle(typ.Handler(func(context.Context, string) (string, error) { w.Error("it ran"); return "", nil }))
	})

	scene(t, "a running task hears of it at once", func(w *world) {
		running := make(chan struct{})
		var heard time.Time
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-ctx.Done()
			heard = time.Now()
			return "", context.Cause(ctx)
		}))
		h := enqueue(w, typ, "")
		<-running
		asked := time.Now()
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.By("ann")))
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindCancelled)
		equal(w, "message", te.Message, "cancelled by ann")
		equal(w, "time until the handler heard", heard.Sub(asked), 0)
		w.wantOutcomes(h.ID(), task.OutcomeCancelled)
		equal(w, "decisions", len(w.history(h.ID()).Decisions), 0)
	})

	scene(t, "a handler that still succeeds has succeeded", func(w *world) {
		running := make(chan struct{})
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-ctx.Done()
			return "done anyway", nil
		}))
		h := enqueue(w, typ, "")
		<-running
		w.must(w.client.Cancel(w.Context(), h.ID()))
		equal(w, "output", result(w, h), "done anyway")
	})

	scene(t, "any other end is cancelled", func(w *world) {
		running := make(chan struct{})
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			running <- struct{}{}
			<-ctx.Done()
			return "", weaver.Blocked("a person, please")
		}))
		h := enqueue(w, typ, "")
		<-running
		w.must(w.client.Cancel(w.Context(), h.ID()))
		equal(w, "state", failure(w, h).State, weaver.StateCancelled)
	})

	scene(t, "Force ends a running task whatever its handler does", func(w *world) {
		running, leave := make(chan struct{}), make(chan struct{})
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			close(running)
			<-leave // deaf to its context
			return "too late", weaver.Do(context.WithoutCancel(ctx), "late", func(context.Context) error { return nil })
		}))
		h := enqueue(w, typ, "")
		<-running
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force(), weaver.By("ops"), weaver.Reason("stuck")))
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateCancelled)
		wantError(w, te, nil, "ops", "stuck")
		close(leave)
		time.Sleep(time.Hour)
		w.wantState(h.ID(), weaver.StateCancelled)
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
		equal(w, "verb in the audit", w.history(h.ID()).Audit[0].Verb, "force_cancel")
	})

	scene(t, "another process hears with its next heartbeat", func(w *world) {
		running := make(chan struct{})
		w.runConfig(polled(w.store), weaver.Config{Lease: 30 * time.Second, Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, _ string) (string, error) {
				close(running)
				<-ctx.Done()
				return "", context.Cause(ctx)
			}),
		}})
		h := enqueue(w, typ, "")
		<-running
		asked := time.Now()
		w.must(w.client.Cancel(w.Context(), h.ID()))
		fails(w, h)
		if took := time.Since(asked); took > 11*time.Second {
			w.Errorf("it took %s, want at most a third of the lease", took)
		}
	})

	scene(t, "a step that ends before the worker heard is not stored", func(w *world) {
		g := newGate()
		w.runConfig(polled(w.store), weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if err := g.pass(ctx); err != nil {
				return "", err
			}
			_, err := weaver.Step(ctx, "after the cancel", func(context.Context) (int, error) { return 1, nil })
			if !errors.Is(err, weaver.ErrCancelled) || !errors.Is(context.Cause(ctx), weaver.ErrCancelled) {
				w.Errorf("Step returned %v and the context's cause is %v, want ErrCancelled", err, context.Cause(ctx))
			}
			return "", err
		})}})
		h := enqueue(w, typ, "")
		<-g.in
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.By("ann")))
		g.open()
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateCancelled)
		wantError(w, te, nil, "ann")
		equal(w, "recorded steps", len(w.history(h.ID()).Steps), 0)
	})

	scene(t, "a retried task may be cancelled and retried again", func(w *world) {
		h := enqueue(w, typ, "")
		w.must(w.client.Cancel(w.Context(), h.ID()))
		w.must(w.client.Retry(w.Context(), h.ID()))
		w.must(w.client.Cancel(w.Context(), h.ID()))
		w.must(w.client.Retry(w.Context(), h.ID()))
		w.idle(typ.Handler(func(context.Context, string) (string, error) { return "ok", nil }))
		equal(w, "output", result(w, h), "ok")
	})
}
