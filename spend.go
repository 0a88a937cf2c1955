package weaver

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/option"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Spend adds to what the step that ctx belongs to costs, in micro-units (millionths of
// whatever is counted: a dollar, a token). The cost is written with the step, also with
// a failed try that is recorded, and is not undone by a retry; a step that is replayed
// spends nothing. See MaxCost and Budget.MaxCost for what limits it: when a limit is
// exceeded the step is recorded all the same, and then the context of the attempt ends
// with cause ErrCancelled. If the handler returns success nevertheless its task has
// succeeded, else it fails with the error kind budget.
//
// Errors: one for a call outside of a step, which fails the task, ErrNoTask, ErrAttemptOver when the step
// has ended, and one for a cost below 0.
func Spend(ctx context.Context, microUnits int64) error { return engine.Spend(ctx, microUnits) }

// MaxCost limits what the steps of a task may spend in all its attempts, in
// micro-units; see Spend. A total of its job counts beside it. 0, the default, sets no
// limit.
func MaxCost(microUnits int64) Option { return option.MaxCost.Set(microUnits) }

// MaxRepairs limits how often the input of a task may be repaired (Repair); default 2,
// 0: never. Then the task is blocked. RepairInput, and a Retry, begin to count anew; an
// Unblock allows one more.
func MaxRepairs(n int) Option { return option.MaxRepairs.Set(n) }

// MaxNoProgress limits how many attempts of a task in a row may record nothing new: no
// step, no child, no other input. Then the task is blocked, for its budget, instead of
// tried again. Default 50. The default Decider does that; others see the count
// (decide.Input.IdleAttempts).
func MaxNoProgress(n int) Option { return option.MaxNoProgress.Set(n) }

// AddAttempts makes RetryJob add to the attempts that the tasks of the job have
// together (Budget.MaxTotalAttempts), and Retry to those of the task (MaxAttempts).
// Below 1 it is ErrInvalidOption.
func AddAttempts(n int) OperateOption {
	return operateOption(func(s *operateSettings) { s.addAttempts = &n })
}

// AddCost makes RetryJob add to what the tasks of the job may spend together
// (Budget.MaxCost), and Retry to what the task may (MaxCost), in micro-units. Below 1
// it is ErrInvalidOption; for a task without MaxCost it is ErrState.
func AddCost(microUnits int64) OperateOption {
	return operateOption(func(s *operateSettings) { s.addCost = &microUnits })
}

// raise raises the budget of a job if the options say so, and reads the job as it is
// then.
func (c *Client) raise(ctx context.Context, job *JobInfo, opts []OperateOption, ack *ops.RetryAck) (raised bool, err error) {
	var s operateSettings
	if err := s.apply(opts); err != nil {
		return false, fmt.Errorf("retry job: %w", err)
	}
	if s.cleanups {
		return false, fmt.Errorf("retry job: %w", s.problem(verbOptions{add: true, keep: true}))
	}
	if s.addAttempts == nil && s.addCost == nil {
		return false, nil
	}
	ended, err := c.endedForBudget(ctx, job.ID)
	if err != nil {
		return false, err
	}
	_, err = c.operate(ctx, "retry job "+job.ID.String(), opts, func(s operateSettings) store.Command {
		cmd := store.RaiseBudget{Audit: s.audit, Job: job.ID, KeepSteps: s.keepSteps}
		cmd.AddAttempts, cmd.AddCost = s.added()
		return cmd
	})
	if err != nil {
		return true, err
	}
	if *job, err = c.Job(ctx, job.ID); err != nil {
		return true, err
	}
	still, err := c.endedForBudget(ctx, job.ID)
	ack.Retried = max(0, ended-still)
	return true, err
}

// endedForBudget counts the tasks of a job that ended because a budget was used up.
func (c *Client) endedForBudget(ctx context.Context, id JobID) (n int, err error) {
	ended, err := c.jobTasks(ctx, id, task.Failed, task.Cancelled)
	for i := range ended {
		if e := ended[i].Error; e != nil && e.Kind == task.KindBudget {
			n++
		}
	}
	return n, err
}
