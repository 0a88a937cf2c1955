package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// TestDurably goes through what the durably specification asks for, one
// subtest per item of the project's checklist, whose numbers these are.
func TestDurably(t *testing.T) {
	durablyDefinition(t)
	durablySteps(t)
	durablyEnqueue(t)
	durablyStates(t)
	durablyWorker(t)
	durablyReports(t)
	durablyProcesses(t)
}

type order struct {
	ID    int
	Total int
}

// Validate implements the check of inputs and outputs.
func (o order) Validate() error {
	if o.Total < 0 {
		return fmt.Errorf("Total is %d: want 0 or more", o.Total)
	}
	return nil
}

type receipt struct{ Text string }

// Validate implements the check of inputs and outputs.
func (r *receipt) Validate() error {
	if r.Text == "" {
		return errors.New("Text is empty")
	}
	return nil
}

func durablyDefinition(t *testing.T) {
	charge := weaver.Define[order, receipt]("acme.billing.charge.v1")
	handle := charge.Handler(func(_ context.Context, o order) (receipt, error) {
		return receipt{Text: fmt.Sprintf("order %d: %d", o.ID, o.Total)}, nil
	})

	scene(t, "01 a definition registered twice is refused", func(w *world) {
		_, err := weaver.New(w.store, weaver.Config{Handlers: []weaver.Handler{handle, handle}})
		wantError(w, err, weaver.ErrConfig, "acme.billing.charge.v1", "two handlers", "register each task type once")
	})

	scene(t, "02 a definition enqueues, waits, enqueues many, gets and lists", func(w *world) {
		w.run(handle)
		h := enqueue(w, charge, order{ID: 1, Total: 10})
		equal(w, "the handle's output", result(w, h).Text, "order 1: 10")

		out, err := charge.EnqueueAndWait(w.Context(), w.client, order{ID: 2, Total: 20})
		w.must(err)
		equal(w, "EnqueueAndWait", out.Text, "order 2: 20")

		many, err := charge.EnqueueMany(w.Context(), w.client, []order{{ID: 3}, {ID: 4}})
		w.must(err)
		equal(w, "the last of many", result(w, many[1]).Text, "order 4: 0")

		got, err := charge.Get(w.Context(), w.client, h.ID())
		w.must(err)
		equal(w, "typed input", got.Input, order{ID: 1, Total: 10})
		equal(w, "typed output", got.Output.Text, "order 1: 10")

		list, next, err := charge.List(w.Context(), w.client, weaver.Filter{})
		w.must(err)
		equal(w, "length of the list", len(list), 4)
		equal(w, "cursor at the end", next, "")
		equal(w, "newest first", list[0].Input.ID, 4)
	})

	scene(t, "03 the input is validated at enqueue and nothing is stored", func(w *world) {
		_, err := charge.Enqueue(w.Context(), w.client, order{ID: 1, Total: -5})
		wantError(w, err, weaver.ErrInvalidInput, "acme.billing.charge.v1", "Total is -5", "want 0 or more")
		list, _, err := w.client.List(w.Context(), weaver.Filter{})
		w.must(err)
		equal(w, "stored tasks", len(list), 0)
	})

	scene(t, "04 the output is validated at completion, and the error kept", func(w *world) {
		w.run(charge.Handler(func(context.Context, order) (receipt, error) { return receipt{}, nil }))
		h := enqueue(w, charge, order{ID: 1})
		te := failure(w, h)
		equal(w, "state", te.State, weaver.StateFailed)
		equal(w, "kind", te.Kind, task.KindValidation)
		wantError(w, te, nil, "output", "Text is empty")
		kept := w.get(h.ID())
		equal(w, "attempts: the same code would fail again", kept.AttemptCount, 1)
		if kept.Error == nil || kept.Error.Kind != task.KindValidation {
			w.Errorf("the stored error is %+v", kept.Error)
		}
	})

	scene(t, "05 the same task code runs on every store", func(w *world) {
		// What differs between environments is the store; the handler knows
		// nothing of it. That the code builds for the browser is shown by
		// internal/archtest.
		for _, s := range everyStore(w) {
			other := newWorld(w.T, s)
			other.run(handle)
			equal(w, "output", result(other, enqueue(other, charge, order{ID: 7, Total: 70})).Text, "order 7: 70")
		}
	})
}

func durablySteps(t *testing.T) {
	typ := weaver.Define[string, string]("durably.steps.run.v1")

	scene(t, "06 a completed step is not run again", func(w *world) {
		ran, attempts := 0, 0
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			attempts++
			value, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				ran++
				return fmt.Sprintf("%s fetched in run %d", in, ran), nil
			})
			if err != nil {
				return "", err
			}
			if attempts < 3 {
				return "", errors.New("after the step")
			}
			return value, nil
		}))
		equal(w, "the value", result(w, enqueue(w, typ, "users")), "users fetched in run 1")
		equal(w, "runs of the step", ran, 1)
		equal(w, "runs of the handler", attempts, 3)
	})

	scene(t, "07 a step name used twice is an error", func(w *world) {
		ran := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			for range 2 {
				// Swallowed on purpose: the mistake must show all the same.
				_ = weaver.Do(ctx, "save", func(context.Context) error { ran++; return nil })
			}
			return "ignored", nil
		}))
		te := failure(w, enqueue(w, typ, ""))
		wantError(w, te, nil, `"save"`, "used twice", "must be unique")
		equal(w, "runs of the step", ran, 1)
		equal(w, "attempts", te.Attempts, 1)
	})

	scene(t, "08 the types of step values are inferred", func(w *world) {
		type user struct {
			Name string
			Tags []string
		}
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			users, err := weaver.Step(ctx, "users", func(context.Context) ([]user, error) {
				return []user{{"ann", []string{"a", "b"}}, {"bob", nil}}, nil
			})
			if err != nil {
				return "", err
			}
			count, err := weaver.Step(ctx, "count", func(context.Context) (int, error) { return len(users), nil })
			if err != nil {
				return "", err
			}
			return fmt.Sprint(users[0].Name, users[0].Tags, count+1), nil
		}))
		equal(w, "output", result(w, enqueue(w, typ, "")), "ann[a b] 3")
	})

	scene(t, "09 a failing step ends the attempt, and with NoRetry the task, without hidden retries", func(w *world) {
		once := weaver.Define[string, string]("durably.steps.once.v1", weaver.NoRetry())
		ran := 0
		handler := func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "pay", func(context.Context) (string, error) {
				ran++
				return "", errors.New("card refused")
			})
		}
		w.run(once.Handler(handler), typ.Handler(handler))
		h := enqueue(w, once, "")
		te := failure(w, h)
		equal(w, "runs of the step", ran, 1)
		equal(w, "failed step", te.FailedStep, "pay")
		wantError(w, te, nil, `step "pay"`, "card refused")
		steps := w.history(h.ID()).Steps
		if len(steps) != 1 || steps[0].State != task.StepFailed || steps[0].Error.Message != "card refused" {
			w.Errorf("recorded steps: %+v, want the failed one", steps)
		}

		ran = 0
		te = failure(w, enqueue(w, typ, ""))
		equal(w, "runs of the step with the default of five attempts", ran, 5)
		equal(w, "attempts", te.Attempts, 5)
	})

	scene(t, "10 the index of a step is stable across resumes", func(w *world) {
		attempts := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			names := []string{"a", "b", "c"}
			if attempts > 1 {
				names = []string{"new", "c", "a", "b", "d"} // replay matches by name, not by order
			}
			for _, name := range names {
				err := weaver.Do(ctx, name, func(context.Context) error {
					if name == "c" && attempts == 1 {
						return errors.New("not yet")
					}
					return nil
				})
				if err != nil {
					return "", err
				}
			}
			return "", nil
		}))
		h := enqueue(w, typ, "")
		result(w, h)
		var got []string
		for _, s := range w.history(h.ID()).Steps {
			got = append(got, fmt.Sprintf("%d %s %s", s.Index, s.Name, s.State))
		}
		want := []string{"0 a completed", "1 b completed", "2 c failed", "2 c completed", "3 new completed", "4 d completed"}
		if !slices.Equal(got, want) {
			w.Errorf("steps:\n got %q\nwant %q", got, want)
		}
	})
}
