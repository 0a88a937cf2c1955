package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Transition is the new state of a task, with the end of the attempt that led to it.
type Transition struct {
	State   task.State
	Waiting task.Waiting
	ReadyAt time.Time // pending and ready: the earliest claim

	// SetReadyAt makes ReadyAt the task's own not-before instant; otherwise it
	// is only the due time of the dispatch row.
	SetReadyAt bool
	// KeepError keeps the task's current error.
	KeepError bool
	Output    json.RawMessage // if succeeded

	Join       task.Join       // of a task that waits for its children or for a requested task
	Awaited    bool            // the caller writes the edge to the requested task
	JoinOutput json.RawMessage // the output with which the task ends when its children have succeeded

	// Undo is the new undo phase of the task if SetUndo is true.
	Undo    *task.UndoPhase
	SetUndo bool
	Begins  bool        // the phase begins, and the task's earlier waits are over
	Verdict *task.Error // the error that a task keeps when its undo phase ends

	// Unaware reports that the task ends although its handler did not return by itself, and so
	// did not clean up.
	Unaware bool

	// The attempt's fields.
	Outcome  task.Outcome   // as recorded
	Failure  *task.Error    // may be nil
	Decision *task.Decision // may be nil; the store sets TaskID, AttemptNo and At

	RaiseEpoch     bool // the lease's epoch is spent, although no other worker took the lease
	ResetCrashes   bool // crashes of earlier attempts do not count any more
	CountsRepair   bool // counts as a repair of the input
	CountsInternal bool // counts as a consecutive internal error; false resets that count
	Uncounted      bool // does not count against MaxAttempts, for any outcome
	Idle           int  // consecutive attempts without a new record, including this one
}

// NotBefore returns the task's own not-before instant, or zero, and whether the transition
// sets it.
func (t *Transition) NotBefore() (at time.Time, set bool) {
	if t.Begins {
		return time.Time{}, true
	}
	return t.ReadyAt, t.SetReadyAt
}

// TaskError returns the task's error after the transition, unless KeepError is true.
func (t *Transition) TaskError() *task.Error {
	if t.State == task.Succeeded {
		return nil
	}
	return t.Failure
}

// EndKind returns the kind of the error with which a task ends.
func (t *Transition) EndKind() task.ErrorKind {
	if t.KeepError {
		return KindOf(t.Verdict)
	}
	return KindOf(t.TaskError())
}

// CountsAttempt reports whether the attempt counts against MaxAttempts.
func (t *Transition) CountsAttempt() bool {
	return !t.Uncounted && task.Counts(t.Outcome, KindOf(t.Failure))
}

// checkFinish refuses a malformed finish, which no engine reports: an outcome that only stores
// record, a failure without a decision, a decision that stores cannot carry out.
func checkFinish(f *store.Finish) error {
	if err := checkEvents(&f.Lease, f.Events); err != nil {
		return err
	}
	if f.EndsAs != "" {
		return checkUndo(f)
	}
	switch f.Outcome {
	case task.OutcomeSuccess, task.OutcomeCancelled:
		return nil
	case task.OutcomeReleased:
		return checkReleased(f)
	case task.OutcomeSuspended:
		return checkSuspend(f)
	case task.OutcomeDecompose:
		return checkDecompose(f)
	case task.OutcomeAddDependency:
		return checkDependency(f)
	case task.OutcomeFailure, task.OutcomeBlocked, task.OutcomeDecodeFailed:
	default:
		return fmt.Errorf("finish task %v: outcome %q cannot be reported", f.Lease.Task, f.Outcome)
	}
	if f.Decision == nil {
		if KindOf(f.Error) != task.KindInternal {
			return fmt.Errorf("finish task %v: outcome %q without a decision", f.Lease.Task, f.Outcome)
		}
		return nil
	}
	if blocks := f.Decision.Kind == task.DecideBlock; blocks && f.Waiting != task.WaitNone && f.Waiting != task.WaitManual && f.Waiting != task.WaitBudget {
		return fmt.Errorf("finish task %v: it cannot be blocked for %q", f.Lease.Task, f.Waiting)
	}
	switch f.Decision.Kind {
	case task.DecideRetry, task.DecideMarkDead, task.DecideBlock, task.DecideSucceed:
		return nil
	case task.DecideDecompose, task.DecideRepair:
		return checkDecompose(f)
	case task.DecideAddDependency:
		return checkDependency(f)
	}
	return fmt.Errorf("finish task %v: decision %q cannot be carried out", f.Lease.Task, f.Decision.Kind)
}

// checkReleased refuses an error of a released attempt that is not the worker's.
func checkReleased(f *store.Finish) error {
	if f.Error != nil && f.Error.Kind != task.KindWorker {
		return fmt.Errorf("finish task %v: a released attempt has an error of kind %q", f.Lease.Task, f.Error.Kind)
	}
	return nil
}

// ResolveFinish is the finish table. It returns the transition for a finish that [CheckFinish]
// accepted. A task that was asked to cancel ends cancelled unless it succeeded. deadline is
// the task's deadline, for the failure message.
func ResolveFinish(f *store.Finish, cancel CancelRequest, deadline, now time.Time) Transition {
	if f.Outcome == task.OutcomeSuccess {
		return Transition{State: task.Succeeded, Outcome: f.Outcome, Output: f.Output, ResetCrashes: true}
	}
	t := Transition{Outcome: f.Outcome, Failure: f.Error}
	switch f.Outcome {
	case task.OutcomeSuspended: // the general case: see ResolveSuspend
		t.suspend(f, now)
	case task.OutcomeReleased:
		t.KeepError, t.RaiseEpoch = true, true
		if t.State, t.ReadyAt = task.Ready, now; f.Delay > 0 {
			t.waitUntil(Instant(now.Add(f.Delay)), task.WaitRetry, now)
		}
	case task.OutcomeCancelled:
		t.State = task.Cancelled
	case task.OutcomeDecompose:
		t.Failure = nil
		t.decompose(f)
	case task.OutcomeAddDependency: // the general case: see ResolveDependency
		t.State, t.Waiting, t.Join, t.KeepError = task.Pending, task.WaitDeps, task.JoinDependency, true
	default:
		t.CountsInternal = KindOf(f.Error) == task.KindInternal
		t.decide(f, now)
	}
	if cancel.Kind != "" {
		t = t.asked(&cancel, deadline)
	}
	return t
}

// waitUntil makes the task wait until an instant, or ready if the instant has passed.
func (t *Transition) waitUntil(at time.Time, why task.Waiting, now time.Time) {
	t.SetReadyAt, t.ReadyAt = true, at
	t.State, t.Waiting = Available(at, why, now)
}

// decide applies the decision on a failure. An internal error has no decision: it is retried
// after Delay, or fails the task if Delay is negative.
func (t *Transition) decide(f *store.Finish, now time.Time) {
	kind := task.DecideRetry
	switch {
	case f.Decision != nil:
		d := *f.Decision
		d.NextReadyAt, d.ChildIDs = time.Time{}, nil
		t.Decision, kind = &d, d.Kind
	case f.Delay < 0:
		kind = task.DecideMarkDead
	}
	switch kind {
	case task.DecideRetry:
		t.waitUntil(Instant(now.Add(max(0, f.Delay))), task.WaitRetry, now)
		if t.Decision != nil {
			t.Decision.NextReadyAt = t.ReadyAt
		}
	case task.DecideBlock:
		t.State, t.Waiting = task.Blocked, cmp.Or(f.Waiting, task.WaitManual)
	case task.DecideSucceed:
		t.State, t.Output, t.ResetCrashes = task.Succeeded, f.Output, true
	case task.DecideDecompose, task.DecideRepair:
		t.decompose(f)
		t.CountsRepair = kind == task.DecideRepair
		t.KeepError, t.Decision.ChildIDs = false, childIDs(f)
	case task.DecideAddDependency: // the general case: see ResolveDependency
		t.State, t.Waiting, t.Join = task.Pending, task.WaitDeps, task.JoinDependency
	default:
		t.State = task.Failed
	}
}

// Recorded is a finish as stored.
type Recorded struct {
	Outcome  task.Outcome
	Error    *task.Error       // of the task if the finish ended it, else of the attempt; may be nil
	Decision task.DecisionKind // may be ""
	At       time.Time
	Undo     *task.UndoPhase // the task's current undo phase, or nil
}

// ReplayedResult answers a repeated report of a finish with its recorded result (R8). Later
// changes of the task do not matter, with one exception. A finish that began an undo phase is
// recognized by the phase, and once the phase is over the answer is the end of the task. A
// finish with an add_dependency is answered as waiting.
func ReplayedResult(f *store.Finish, was Recorded) store.FinishResult {
	as := store.Overruled{Outcome: was.Outcome, Decision: was.Decision, Error: was.Error}
	res := store.FinishResult{State: task.Failed}
	switch {
	case f.EndsAs != "" || was.Outcome == task.OutcomeUndoFailed:
		t := ResolveUndo(f, &task.UndoPhase{EndsAs: cmp.Or(f.EndsAs, task.Failed)}, 0, false, was.At)
		res.State, res.Waiting = t.State, t.Waiting
	case was.Undo != nil && was.Undo.Began.Equal(was.At):
		as.EndsAs, as.Error = was.Undo.EndsAs, was.Undo.Error
		res.State, res.Waiting = task.Pending, task.WaitUndo
	case refusedBefore(f, was), was.Outcome == task.OutcomeFailure && KindOf(was.Error) == task.KindBudget:
	default:
		var cancel CancelRequest
		if was.Outcome == task.OutcomeCancelled {
			cancel.Kind = task.KindCancelled
		}
		t := ResolveFinish(f, cancel, time.Time{}, was.At)
		res.State, res.Waiting = t.State, t.Waiting
	}
	res.Overruled = overruled(f, &as)
	return res
}

// Conflicting returns [store.ErrConflict] for a finish whose lease already ended with another
// outcome.
func Conflicting(l *task.Lease) error {
	return fmt.Errorf("task %v, epoch %d: %w: this lease already ended with another outcome", l.Task, l.Epoch, store.ErrConflict)
}
