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

// Spend adds to the cost of the step that ctx belongs to, in micro-units (millionths of any unit: a
// dollar, a token). The cost is recorded with the step or with a failed try, and a retry does not
// reset it; a replayed step costs nothing. MaxCost and Budget.MaxCost limit it: a step that exceeds a
// limit is still recorded, then the context of the attempt ends with cause ErrCancelled. If the
// handler nevertheless returns success its task has succeeded, else it fails with the error kind
// budget.
//
// Errors: an error for a call outside a step, which fails the task; ErrNoTask; ErrAttemptOver when the
// step has ended; an error for a negative cost.
func Spend(ctx context.Context, microUnits int64) error { return engine.Spend(ctx, microUnits) }

// MaxCost limits the total cost of a task's steps in all its attempts, in micro-units; see Spend. The
// limit of its job applies, too. 0, the default, means no limit.
func MaxCost(microUnits int64) Option { return option.MaxCost.Set(microUnits) }

// MaxRepairs limits the repairs of a task's input (Repair); default 2, 0 disables repairs. After the
// last one the task is blocked. RepairInput and Retry reset the count; an Unblock allows one more.
func MaxRepairs(n int) Option { return option.MaxRepairs.Set(n) }

// MaxNoProgress limits the consecutive attempts of a task that record nothing new: no step, no child,
// no changed input. Then the task is blocked, for its budget, instead of retried. Default 50. The
// default Decider does that; other Deciders see the count (decide.Input.IdleAttempts).
func MaxNoProgress(n int) Option { return option.MaxNoProgress.Set(n) }

// AddAttempts makes RetryJob raise the total number of attempts of the job's tasks
// (Budget.MaxTotalAttempts), and Retry that of the task (MaxAttempts). A value below 1 is
// ErrInvalidOption.
func AddAttempts(n int) OperateOption {
	return operateOption(func(s *operateSettings) { s.addAttempts = &n })
}

// AddCost makes RetryJob raise the cost limit of the job (Budget.MaxCost), and Retry that of the task
// (MaxCost), in micro-units. A value below 1 is ErrInvalidOption; for a task without MaxCost it is
// ErrState.
func AddCost(microUnits int64) OperateOption {
	return operateOption(func(s *operateSettings) { s.addCost = &microUnits })
}

// raise raises the budget of a job if the options ask for it, and reads the job again.
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

// endedForBudget counts the tasks of a job that ended for a used-up budget.
func (c *Client) endedForBudget(ctx context.Context, id JobID) (n int, err error) {
	ended, err := c.jobTasks(ctx, id, task.Failed, task.Cancelled)
	for i := range ended {
		if e := ended[i].Error; e != nil && e.Kind == task.KindBudget {
			n++
		}
	}
	return n, err
}
