package sqlite

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// transition is what becomes of a task and its attempt.
type transition struct {
	state    task.State
	waiting  task.Waiting
	readyAt  time.Time   // pending and ready
	setReady bool        // readyAt is the task's new ready_at
	failure  *task.Error // of the attempt, and of the task unless that succeeded
	keep     bool        // the task keeps the error it has
	output   json.RawMessage
	outcome  task.Outcome // as recorded
	decision *task.Decision
	revoke   bool // the epoch rises
	forgive  bool // crashes before do not count any more
	internal bool
}

func kindOf(e *task.Error) task.ErrorKind {
	if e == nil {
		return task.KindNone
	}
	return e.Kind
}

// ofTask is the error that the task shows afterwards.
func (e *transition) ofTask() *task.Error {
	if e.state == task.Succeeded {
		return nil
	}
	return e.failure
}

// resolve returns what a finish means. It is pure.
func (f *finishing) resolve(fin *store.Finish, h *leaseRow) transition {
	if fin.Outcome == task.OutcomeSuccess {
		return transition{state: task.Succeeded, outcome: fin.Outcome, output: fin.Output, forgive: true}
	}
	if h.cancelled != "" {
		return transition{
			state: task.Cancelled, outcome: task.OutcomeCancelled,
			failure: store.CancelError(h.cancelled, h.by, h.reason, conn.Instant(h.deadline)),
		}
	}
	e := transition{outcome: fin.Outcome, failure: fin.Error}
	switch fin.Outcome {
	case task.OutcomeSuspended:
		e.failure, e.keep = nil, true
		e.later(f.tx.now, fin.WakeAt.Truncate(time.Microsecond), task.WaitSleep)
	case task.OutcomeReleased:
		e.failure, e.keep, e.revoke = nil, true, true
		e.state, e.readyAt = task.Ready, f.tx.now
	case task.OutcomeCancelled:
		e.state = task.Cancelled
	default:
		e.internal = fin.Error != nil && fin.Error.Kind == task.KindInternal
		f.decided(fin, &e)
	}
	return e
}

// later makes the task wait until an instant, or ready when that has passed.
func (e *transition) later(now, at time.Time, why task.Waiting) {
	e.readyAt, e.setReady = at, true
	e.state = task.Ready
	if at.After(now) {
		e.state, e.waiting = task.Pending, why
	}
}

// decided applies the decision on a failure; errors of the engine itself come
// without one.
func (f *finishing) decided(fin *store.Finish, e *transition) {
	kind := task.DecideRetry
	switch {
	case fin.Decision != nil:
		d := *fin.Decision
		d.NextReadyAt = time.Time{}
		e.decision, kind = &d, d.Kind
	case fin.Delay < 0:
		kind = task.DecideMarkDead
	}
	switch kind {
	case task.DecideRetry:
		e.later(f.tx.now, f.tx.now.Add(max(0, fin.Delay)).Truncate(time.Microsecond), task.WaitRetry)
		if e.decision != nil {
			e.decision.NextReadyAt = e.readyAt
		}
	case task.DecideBlock:
		e.state, e.waiting = task.Blocked, task.WaitManual
	case task.DecideSucceed:
		e.state, e.output, e.forgive = task.Succeeded, fin.Output, true
	default:
		e.state = task.Failed
	}
}

// check refuses what no engine reports.
func check(fin *store.Finish) error {
	switch fin.Outcome {
	case task.OutcomeSuccess, task.OutcomeSuspended, task.OutcomeReleased, task.OutcomeCancelled:
		return nil
	case task.OutcomeFailure, task.OutcomeBlocked, task.OutcomeDecodeFailed:
	default:
		return fmt.Errorf("finish task %v: outcome %q cannot be reported", fin.Lease.Task, fin.Outcome)
	}
	if fin.Decision == nil {
		if fin.Error == nil || fin.Error.Kind != task.KindInternal {
			return fmt.Errorf("finish task %v: outcome %q without a decision", fin.Lease.Task, fin.Outcome)
		}
		return nil
	}
	switch fin.Decision.Kind {
	case task.DecideRetry, task.DecideMarkDead, task.DecideBlock, task.DecideSucceed:
		return nil
	}
	return fmt.Errorf("finish task %v: decision %q cannot be carried out", fin.Lease.Task, fin.Decision.Kind)
}
