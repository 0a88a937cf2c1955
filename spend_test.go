package weaver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestRetryWithMoreOfItsOwnCost(t *testing.T) {
	typ := weaver.Define[string, string]("engine.spend.own.v1", weaver.MaxCost(10), weaver.NoRetry())
	inBubble(t, func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "buy", func(ctx context.Context) (string, error) {
				if err := weaver.Spend(ctx, 8); err != nil || weaver.Current(ctx).AttemptNo < 3 {
					return "", errors.Join(err, errors.New("not yet"))
				}
				return "bought", nil
			})
		}))
		h := enqueue(fx, typ, "")
		_ = failure(fx, h)
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		equal(fx, "the end over its limit", failure(fx, h).Kind, task.KindBudget)
		wantError(fx, fx.client.Retry(fx.Context(), h.ID(), weaver.AddCost(-1)), weaver.ErrInvalidOption, "AddCost(-1)")
		fx.must(fx.client.Retry(fx.Context(), h.ID(), weaver.AddCost(20), weaver.AddAttempts(1)))
		equal(fx, "the output", result(fx, h), "bought")
		got := fx.get(h.ID())
		equal(fx, "its limits", [2]int64{int64(got.MaxAttempts), got.MaxCost}, [2]int64{2, 30})
	})
}

func TestSpend(t *testing.T) {
	type spender = func(ctx context.Context) (string, error)
	run := func(fx *fixture, fn spender, opts ...weaver.EnqueueOption) *weaver.Handle[string] {
		typ := weaver.Define[string, string]("engine.spend.some.v1", weaver.MaxAttempts(3), weaver.Backoff(time.Second))
		h := enqueue(fx, typ, "", opts...)
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return fn(ctx) }))
		return h
	}
	spends := func(ctx context.Context, name string, cost int64) error {
		return weaver.Do(ctx, name, func(ctx context.Context) error { return weaver.Spend(ctx, cost) })
	}
	subtest(t, "is kept with the step, and a replay spends nothing", func(fx *fixture) {
		tries := 0
		h := run(fx, func(ctx context.Context) (string, error) {
			if err := spends(ctx, "once", 40); err != nil {
				return "", err
			}
			err := weaver.Do(ctx, "tries", func(ctx context.Context) error {
				if err := errors.Join(weaver.Spend(ctx, 1), weaver.Spend(ctx, 1)); err != nil {
					return err
				}
				if tries++; tries < 3 {
					return errors.New("not yet")
				}
				return nil
			}, weaver.StepRetry(2, time.Millisecond))
			return "done", err
		})
		result(fx, h)
		history := fx.history(h.ID())
		equal(fx, "the cost of the task", history.Task.Cost, 46)
		equal(fx, "the attempts", history.Task.AttemptNo, 2)
		for _, s := range history.Steps {
			equal(fx, "the cost of "+s.Name, s.Cost, map[string]int64{"once": 40, "tries": 2}[s.Name])
		}
	})
	subtest(t, "inside a step only, and nothing below 0", func(fx *fixture) {
		var leaked context.Context
		h := run(fx, func(ctx context.Context) (string, error) {
			wantError(fx, weaver.Spend(ctx, 1), nil, "inside the function of a Step")
			err := weaver.Do(ctx, "s", func(ctx context.Context) error {
				leaked = ctx
				if err := weaver.Spend(ctx, -1); err == nil {
					fx.Error("a negative cost was accepted")
				}
				return nil
			})
			wantError(fx, weaver.Spend(leaked, 1), weaver.ErrAttemptOver)
			return "", err
		})
		result(fx, h)
		wantError(fx, weaver.Spend(fx.Context(), 1), weaver.ErrNoTask)
		equal(fx, "the cost", fx.get(h.ID()).Cost, 0)
	})
	subtest(t, "over the limit of a task it fails with kind budget, and steps no further", func(fx *fixture) {
		h := run(fx, func(ctx context.Context) (string, error) {
			if err := spends(ctx, "dear", 11); err != nil {
				fx.Errorf("the step that went over: %v", err)
			}
			<-ctx.Done()
			equal(fx, "the cause", context.Cause(ctx), weaver.ErrCancelled)
			return "", spends(ctx, "more", 1)
		}, weaver.MaxCost(10))
		te := failure(fx, h)
		equal(fx, "the kind", te.Kind, task.KindBudget)
		history := fx.history(h.ID())
		equal(fx, "the attempts", len(history.Attempts), 1)
		equal(fx, "the decision", history.Decisions[0].Kind, task.DecideMarkDead)
		equal(fx, "its reason", history.Decisions[0].Reason.Text, "the budget is used up: it spent 11 of 10 micro-units (its max_cost)")
	})
	subtest(t, "a success over the limit stays one", func(fx *fixture) {
		h := run(fx, func(ctx context.Context) (string, error) { return "done", spends(ctx, "dear", 11) }, weaver.MaxCost(10))
		equal(fx, "the output", result(fx, h), "done")
	})
	subtest(t, "in a transaction of the store, too", func(fx *fixture) {
		h := run(fx, func(ctx context.Context) (string, error) {
			return weaver.StepTx(ctx, "tx", func(ctx context.Context, _ any) (string, error) { return "done", weaver.Spend(ctx, 7) })
		})
		result(fx, h)
		equal(fx, "the cost", fx.get(h.ID()).Cost, 7)
	})
}

func TestMaxNoProgress(t *testing.T) {
	for name, tc := range map[string]struct {
		opts  []weaver.EnqueueOption
		steps int // number of attempts that record a step
		want  int // number of attempts
	}{
		"by default":           {nil, 0, task.DefaultMaxNoProgress},
		"by its own limit":     {[]weaver.EnqueueOption{weaver.MaxNoProgress(3)}, 0, 3},
		"counted from a step":  {[]weaver.EnqueueOption{weaver.MaxNoProgress(3)}, 4, 7},
		"MaxAttempts is lower": {[]weaver.EnqueueOption{weaver.MaxNoProgress(9), weaver.MaxAttempts(4)}, 0, 4},
	} {
		subtest(t, name, func(fx *fixture) {
			typ := weaver.Define[string, string]("engine.spend.idle.v1", weaver.MaxAttempts(1000), weaver.Backoff(time.Second), weaver.BackoffMax(time.Second))
			h := enqueue(fx, typ, "", tc.opts...)
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if n := weaver.Current(ctx).AttemptNo; n <= tc.steps {
					if err := weaver.Do(ctx, "step "+string(rune('a'+n)), func(context.Context) error { return nil }); err != nil {
						return "", err
					}
				}
				return "", errors.New("no")
			}))
			if name == "MaxAttempts is lower" {
				fails(fx, h)
			} else {
				blocks(fx, h)
				equal(fx, "it waits for", fx.get(h.ID()).Waiting, task.WaitBudget)
			}
			equal(fx, "the attempts", fx.get(h.ID()).AttemptNo, tc.want)
		})
	}
}

// A job with budgets, from Submit to RetryJob.
func TestBudgetOfAJob(t *testing.T) {
	subtest(t, "limits each task and all of them", func(fx *fixture) {
		typ := weaver.Define[string, string]("engine.spend.flaky.v1", weaver.MaxAttempts(9), weaver.MaxRepairs(5), weaver.Backoff(time.Second))
		var broken atomic.Bool
		broken.Store(true)
		handler := typ.Handler(func(_ context.Context, name string) (string, error) {
			if broken.Load() && name == "flaky" {
				return "", errors.New("not now")
			}
			return name, nil
		})
		job := weaver.NewJob("budgeted", weaver.Budget{MaxTotalAttempts: 4, MaxAttemptsPerTask: 8, MaxRepairs: 1, MaxNoProgress: 7, MaxCost: 1000})
		flaky := job.Add("flaky", typ.With("flaky"))
		job.Add("after", typ.With("after"), weaver.Needs(flaky))
		job.Add("late", typ.With("late", weaver.Delay(time.Hour)))
		h, err := fx.client.Submit(fx.Context(), job)
		fx.must(err)
		fx.run(handler)
		res, err := h.Wait(fx.Context())
		fx.must(err)
		equal(fx, "the state", res.State, task.JobFailed)
		st, err := fx.client.JobStatus(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the attempts used", st.AttemptsUsed, 4)
		equal(fx, "exhausted", st.BudgetUsedUp() && !st.ExhaustedAt.IsZero(), true)
		kinds := map[string]string{}
		tasks, err := fx.client.JobTasks(fx.Context(), h.ID())
		fx.must(err)
		for _, task := range tasks {
			kinds[task.Node] = string(task.State) + "/" + string(task.Error.Kind)
			equal(fx, "MaxAttempts of "+task.Node, task.MaxAttempts, 8)
			equal(fx, "MaxRepairs of "+task.Node, task.MaxRepairs, 1)
			equal(fx, "MaxNoProgress of "+task.Node, task.MaxNoProgress, 7)
		}
		equal(fx, "flaky", kinds["flaky"], "failed/budget")
		equal(fx, "after", kinds["after"], "cancelled/dependency_failed")
		equal(fx, "late", kinds["late"], "cancelled/budget")

		broken.Store(false)
		_, err = fx.client.RetryJob(fx.Context(), h.ID())
		wantError(fx, err, weaver.ErrState, "4 of 4 attempts", "AddAttempts", "--add-attempts 1")
		_, err = fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddCost(1))
		wantError(fx, err, weaver.ErrState, "not enough")
		wantError(fx, fx.client.Cancel(fx.Context(), res.Failed[0].ID, weaver.AddAttempts(1)), weaver.ErrInvalidOption, "RetryJob and Retry only")
		_, err = fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddAttempts(-2))
		wantError(fx, err, weaver.ErrInvalidOption, "AddAttempts(-2)")
		_, err = fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddCost(0))
		wantError(fx, err, weaver.ErrInvalidOption, "AddCost(0)")
		ack, err := fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddAttempts(10), weaver.By("ops"))
		fx.must(err)
		equal(fx, "retried", ack.Retried, 2)
		res, err = h.Wait(fx.Context())
		fx.must(err)
		equal(fx, "the state", res.State, task.JobSucceeded)
		_, err = fx.client.RetryJob(fx.Context(), h.ID(), weaver.AddAttempts(10))
		wantError(fx, err, weaver.ErrState, "it has succeeded")
	})
}
