package weaver

import (
	"context"

	"github.com/goweaver/weaver/internal/engine"
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
// Errors: ErrSpendOutside outside of a step, ErrNoTask, ErrAttemptOver when the step
// has ended, and one for a cost below 0.
func Spend(ctx context.Context, microUnits int64) error { return engine.Spend(ctx, microUnits) }

// MaxCost limits what the steps of a task may spend in all its attempts, in
// micro-units; see Spend. A total of its job counts beside it. 0, the default, sets no
// limit.
func MaxCost(microUnits int64) Option {
	return option(func(s *settings) {
		if microUnits < 0 {
			s.problem("MaxCost(%d): want micro-units, or 0 for no limit", microUnits)
			return
		}
		s.task.MaxCost = microUnits
	})
}

// MaxRepairs limits how often the input of a task may be repaired; default 2.
func MaxRepairs(n int) Option {
	return option(func(s *settings) {
		if n < 0 {
			s.problem("MaxRepairs(%d): want 0 or more", n)
			return
		}
		s.task.MaxRepairs = n
	})
}

// MaxNoProgress limits how many attempts of a task in a row may record nothing new: no
// step, no child, no other input. Then the task is blocked, for its budget, instead of
// tried again. Default 50. The default Decider does that; others see the count
// (decide.Input.IdleAttempts).
func MaxNoProgress(n int) Option {
	return option(func(s *settings) {
		if n < 1 {
			s.problem("MaxNoProgress(%d): want at least 1", n)
			return
		}
		s.task.MaxNoProgress = n
	})
}

// AddAttempts makes RetryJob add to the attempts that the tasks of the job have
// together (Budget.MaxTotalAttempts).
func AddAttempts(n int) OperateOption {
	return operateOption(func(s *operateSettings) { s.addAttempts = &n })
}

// AddCost makes RetryJob add to what the tasks of the job may spend together
// (Budget.MaxCost), in micro-units.
func AddCost(microUnits int64) OperateOption {
	return operateOption(func(s *operateSettings) { s.addCost = &microUnits })
}

// raise raises the budget of a job whose tasks st has, if the options say so, and
// returns the tasks as they are then.
func (c *Client) raise(ctx context.Context, st JobStatus, opts []OperateOption, ack *RetryAck) (_ JobStatus, raised bool, err error) {
	var s operateSettings
	for _, o := range opts {
		o.applyOperate(&s)
	}
	if s.addAttempts == nil && s.addCost == nil {
		return st, false, nil
	}
	_, err = c.operate(ctx, "retry job "+st.ID.String(), opts, func(s operateSettings) store.Command {
		cmd := store.RaiseBudget{Audit: s.audit, Job: st.ID}
		if s.addAttempts != nil {
			cmd.AddAttempts = *s.addAttempts
		}
		if s.addCost != nil {
			cmd.AddCost = *s.addCost
		}
		return cmd
	})
	if err != nil {
		return st, true, err
	}
	ended := endedForBudget(st.Tasks)
	if st, err = c.JobStatus(ctx, st.ID); err != nil {
		return st, true, err
	}
	ack.Retried = max(0, ended-endedForBudget(st.Tasks))
	return st, true, nil
}

// endedForBudget counts tasks that ended because a budget was used up.
func endedForBudget(tasks []TaskInfo) (n int) {
	for i := range tasks {
		if t := &tasks[i]; t.State.Terminal() && t.Error != nil && t.Error.Kind == task.KindBudget {
			n++
		}
	}
	return n
}
