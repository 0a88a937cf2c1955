package weaver_test

import (
	"context"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

func TestCoalesce(t *testing.T) {
	typ := weaver.Define[string, string]("engine.coalesce.run.v1")

	subtest(t, "a task that waits takes the latest input", func(fx *fixture) {
		running, goOn := make(chan struct{}, 9), make(chan struct{})
		var got []string
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			got = append(got, in)
			running <- struct{}{}
			<-goOn
			return in, nil
		})}})
		opts := []weaver.EnqueueOption{weaver.ConcurrencyKey("org_1"), weaver.Coalesce()}
		first := enqueue(fx, typ, "1", opts...)
		<-running
		second := enqueue(fx, typ, "2", opts...)
		equal(fx, "beside one that runs", second.Disposition(), store.DispositionCreated)
		for _, in := range []string{"3", "4"} {
			h := enqueue(fx, typ, in, opts...)
			equal(fx, "beside one that waits", h.Disposition(), store.DispositionCoalesced)
			equal(fx, "the task", h.ID(), second.ID())
		}
		close(goOn)
		equal(fx, "the outputs", result(fx, first)+" "+result(fx, second), "1 4")
		equal(fx, "how often it ran", len(got), 2)
	})

	subtest(t, "by an idempotency key, existing says that the input was not taken", func(fx *fixture) {
		opts := []weaver.EnqueueOption{weaver.IdempotencyKey("evt-1"), weaver.Coalesce()}
		first := enqueue(fx, typ, "1", opts...)
		equal(fx, "before it started", enqueue(fx, typ, "2", opts...).Disposition(), store.DispositionCoalesced)
		fx.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		equal(fx, "the output", result(fx, first), "2")
		late := enqueue(fx, typ, "3", opts...)
		equal(fx, "when it has started", late.Disposition(), store.DispositionExisting)
		equal(fx, "the output then", result(fx, late), "2")
		key := enqueue(fx, typ, "3", weaver.ConcurrencyKey("evt-1"), weaver.Coalesce())
		equal(fx, "by a concurrency key", key.Disposition(), store.DispositionCreated)
	})

	subtest(t, "mistakes", func(fx *fixture) {
		_, err := typ.Enqueue(fx.Context(), fx.client, "x", weaver.Coalesce())
		wantError(fx, err, weaver.ErrInvalidOption, "Coalesce needs an IdempotencyKey or a ConcurrencyKey")
		j := weaver.NewJob("nightly")
		j.Add("a", typ.With("x", weaver.ConcurrencyKey("k"), weaver.Coalesce()))
		_, err = fx.client.Submit(fx.Context(), j)
		wantError(fx, err, nil, "a task of a job cannot have Coalesce")
		h := enqueue(fx, typ, "x")
		_, err = fx.client.Rerun(fx.Context(), h.ID(), weaver.RerunWith(weaver.Coalesce()))
		wantError(fx, err, weaver.ErrInvalidOption, "Coalesce")
	})

	subtest(t, "not in a transaction of the program, and not by a step", func(fx *fixture) {
		draft := typ.With("x", weaver.ConcurrencyKey("k"), weaver.Coalesce())
		outer := weaver.Define[string, string]("engine.coalesce.outer.v1", weaver.NoRetry())
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{outer.Handler(func(ctx context.Context, in string) (string, error) {
			switch in {
			case "start":
				_, err := weaver.Start(ctx, "start", typ, "x", weaver.ConcurrencyKey("k"), weaver.Coalesce())
				return "", err
			case "child":
				return "", weaver.Decompose(weaver.JoinRerun, draft)
			}
			_, err := weaver.StepTx(ctx, "step", func(ctx context.Context, _ any) (int, error) {
				_, err := weaver.InStepTx(ctx).EnqueueTasks(ctx, draft)
				return 0, err
			})
			return "", err
		})}})
		for in, want := range map[string]string{"start": "Coalesce", "child": "a child has no Coalesce", "tx": "may only insert"} {
			te := failure(fx, enqueue(fx, outer, in))
			wantError(fx, te, nil, want)
		}
	})
}
