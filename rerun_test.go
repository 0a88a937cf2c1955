package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestRerun(t *testing.T) {
	typ := weaver.Define[string, string]("engine.rerun.run.v1", weaver.NoRetry(), weaver.Label("team", "pay"))
	// It runs three steps, whose values have the input and the number of runs.
	steps := func(runs map[string]int) weaver.Handler {
		return typ.Handler(func(ctx context.Context, in string) (string, error) {
			var out string
			for _, name := range []string{"a", "b", "c"} {
				v, err := weaver.Step(ctx, name, func(context.Context) (string, error) {
					runs[name]++
					return fmt.Sprint(in, name, runs[name]), nil
				})
				if err != nil {
					return "", err
				}
				out += v + " "
			}
			if in == "fails" {
				return "", errors.New("no luck")
			}
			return out, nil
		})
	}

	subtest(t, "a new task with the same input and options, or edited ones", func(fx *fixture) {
		runs := map[string]int{}
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{steps(runs)}})
		h := enqueue(fx, typ, "x", weaver.IdempotencyKey("once"), weaver.Priority(2), weaver.Metadata("m", "1"))
		equal(fx, "the first", result(fx, h), "xa1 xb1 xc1 ")
		got, err := fx.client.Rerun(fx.Context(), h.ID(), weaver.By("ops"))
		fx.must(err)
		equal(fx, "the disposition", got.Disposition, store.DispositionCreated)
		out, err := typ.Wait(fx.Context(), fx.client, got.ID)
		fx.must(err)
		equal(fx, "the rerun", out, "xa2 xb2 xc2 ")
		n, old := fx.get(got.ID), fx.get(h.ID())
		equal(fx, "it repeats", n.RerunOf, old.ID)
		equal(fx, "its key", n.IdempotencyKey, "")
		equal(fx, "the old key", old.IdempotencyKey, "once")
		equal(fx, "its options", fmt.Sprint(n.Priority, n.Labels, n.Metadata), fmt.Sprint(2, old.Labels, old.Metadata))

		got, err = fx.client.Rerun(fx.Context(), h.ID(), weaver.RerunInput("y"), weaver.RerunWith(weaver.Priority(1), weaver.IdempotencyKey("other")))
		fx.must(err)
		out, err = typ.Wait(fx.Context(), fx.client, got.ID)
		fx.must(err)
		equal(fx, "the edited one", out, "ya3 yb3 yc3 ")
		equal(fx, "its priority", fx.get(got.ID).Priority, 1)
		again, err := fx.client.Rerun(fx.Context(), h.ID(), weaver.RerunWith(weaver.IdempotencyKey("other")))
		fx.must(err)
		equal(fx, "with the key of another", fmt.Sprint(again.ID, again.Disposition), fmt.Sprint(got.ID, store.DispositionExisting))
	})

	subtest(t, "from a step, with the values of those before it", func(fx *fixture) {
		runs := map[string]int{}
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{steps(runs)}})
		h := enqueue(fx, typ, "fails")
		_ = failure(fx, h)
		got, err := fx.client.RerunFrom(fx.Context(), h.ID(), "b", weaver.RerunInput("x"))
		fx.must(err)
		out, err := typ.Wait(fx.Context(), fx.client, got.ID)
		fx.must(err)
		equal(fx, "the rerun", out, "failsa1 xb2 xc2 ")
		equal(fx, "the steps that ran", fmt.Sprint(fx.history(got.ID).Attempts[0].StepsRun), "[b c]")
	})

	subtest(t, "from a race, which is run again", func(fx *fixture) {
		racer := weaver.Define[string, int]("engine.rerun.race.v1")
		yes := weaver.DefineSignal[bool]("yes")
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{racer.Handler(func(ctx context.Context, _ string) (int, error) {
			if err := weaver.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return weaver.Race(ctx, "first", weaver.OnSleep(time.Hour), weaver.OnSignal[bool](yes, nil))
		})}})
		h := enqueue(fx, racer, "x")
		equal(fx, "the first winner", result(fx, h), 0)
		for _, from := range []string{"first", "first[1]"} {
			got, err := fx.client.RerunFrom(fx.Context(), h.ID(), from)
			fx.must(err)
			fx.must(yes.Send(fx.Context(), fx.client, got.ID, "k", true))
			winner, err := racer.Wait(fx.Context(), fx.client, got.ID)
			fx.must(err)
			equal(fx, "the winner of the rerun from "+from, winner, 1)
			equal(fx, "the steps that ran", len(fx.history(got.ID).Attempts[0].StepsRun) > 0 && fx.history(got.ID).Attempts[0].StepsRun[0] == "before", false)
		}
		_, err := fx.client.RerunFrom(fx.Context(), h.ID(), "fir")
		wantError(fx, err, weaver.ErrNoSuchStep, `"fir"`)
	})

	subtest(t, "mistakes", func(fx *fixture) {
		fx.run(steps(map[string]int{}))
		h := enqueue(fx, typ, "x")
		result(fx, h)
		j := weaver.NewJob("nightly")
		a := j.Add("a", typ.With("x"))
		j.Add("b", typ.With("x"), weaver.Needs(a))
		jh, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		tasks, err := fx.client.JobTasks(fx.Context(), jh.ID())
		fx.must(err)
		for _, n := range tasks {
			if n.Node == "b" {
				_, err = fx.client.Rerun(fx.Context(), n.ID)
			}
		}
		wantError(fx, err, weaver.ErrState, "rerun", "needs other tasks")
		_, err = fx.client.Rerun(fx.Context(), task.ID{1})
		wantError(fx, err, weaver.ErrNotFound, "rerun")
		_, err = fx.client.RerunFrom(fx.Context(), h.ID(), "d")
		wantError(fx, err, weaver.ErrNoSuchStep, `"d"`)
		_, err = fx.client.Rerun(fx.Context(), h.ID(), weaver.RerunInput(make(chan int)))
		wantError(fx, err, weaver.ErrInvalidInput, "rerun")
		known, err := weaver.New(fx.store, weaver.Config{Handlers: []weaver.Handler{steps(map[string]int{})}})
		fx.must(err)
		_, err = known.Rerun(fx.Context(), h.ID(), weaver.RerunInput(7))
		wantError(fx, err, weaver.ErrInvalidInput, "rerun", typ.Name(), "number")
		_, err = fx.client.Rerun(fx.Context(), h.ID(), weaver.RerunWith(weaver.Priority(77)))
		wantError(fx, err, weaver.ErrInvalidOption, "Priority")
		_, err = fx.client.Rerun(fx.Context(), h.ID(), weaver.Force())
		wantError(fx, err, weaver.ErrInvalidOption, "Force")
		wantError(fx, fx.client.Retry(fx.Context(), h.ID(), weaver.RerunInput(1)), weaver.ErrInvalidOption, "RerunInput")
	})
}
