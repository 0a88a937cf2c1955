package sweep_test

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// spendsAndFails spends 3 in a step and fails as long as its input asks for that.
func spendsAndFails(ctx context.Context, fx *fixture, in string) (string, error) {
	out, err := weaver.Step(ctx, "dear", func(ctx context.Context) (string, error) { return in, weaver.Spend(ctx, 3) })
	if err != nil || in != "flaky" {
		return out, err
	}
	select {
	case <-fx.marked("fixed"):
		return out, nil
	default:
		return "", errors.New("not yet")
	}
}

// budgetCases test budgets: use is counted once, whatever fails and whenever a process dies.
var budgetCases = []testCase{
	{
		name:      "a job whose attempts are used up, with more of them",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers:  handles(typeA, spendsAndFails),
		run: func(fx *fixture) {
			j := weaver.NewJob("attempts", weaver.Budget{MaxTotalAttempts: 3, MaxCost: 1000})
			flaky := j.Add("flaky", typeA.With("flaky"))
			j.Add("after", typeA.With("after"), weaver.Needs(flaky))
			j.Add("later", typeA.With("later", weaver.Delay(time.Hour)))
			h, err := fx.client.Submit(fx.ctx, j)
			fx.must(err)
			jobEnds(fx, h, task.JobFailed)
			used(fx, h, 3, 3)
			fx.mark("fixed")
			_, err = fx.client.RetryJob(fx.ctx, h.ID(), weaver.AddAttempts(9))
			fx.must(err)
			jobEnds(fx, h, task.JobSucceeded)
			used(fx, h, 6, 9)
		},
	},
}

// used compares a job's use of its budget.
func used(fx *fixture, h *weaver.JobHandle, attempts int, cost int64) {
	j, err := fx.client.Job(fx.ctx, h.ID())
	fx.must(err)
	if j.AttemptsUsed != attempts || j.Cost != cost {
		fx.errorf("the job used %d attempts and spent %d, want %d and %d", j.AttemptsUsed, j.Cost, attempts, cost)
	}
}
