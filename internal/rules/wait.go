package rules

import (
	"bytes"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A wait inside a handler is a step row in the state waiting, for a signal or for the children
// of a call. It is updated once, to completed (ADR 0023). An external completion of a wait
// raises the task's wake_seq. A suspension that has not seen the new wake_seq leaves the task
// claimable (W3).

// ofWait reports whether a step is of a kind that waits.
func ofWait(k task.StepKind) bool { return k == task.KindSignal || k == task.KindCall }

// IsWait reports whether a record is about a wait: it polls, registers or withdraws the wait.
func IsWait(rec *store.Record) bool {
	return rec.Step != nil && rec.Step.State != task.StepFailed && ofWait(rec.Step.Kind)
}

// checkWait refuses a malformed record of a wait. No engine sends one.
func checkWait(rec *store.Record) error {
	s := rec.Step
	switch waits := s.State == task.StepWaiting; {
	case !ofWait(s.Kind) && !waits:
	case !ofWait(s.Kind):
		return fmt.Errorf("record for task %v: step %q of the kind %q cannot wait", rec.Lease.Task, s.Name, s.Kind)
	case s.Kind == task.KindSignal && s.Signal == "":
		return fmt.Errorf("record for task %v: step %q waits for a signal without a name", rec.Lease.Task, s.Name)
	case s.Kind == task.KindSignal && len(rec.Tasks) > 0 || s.Kind == task.KindCall && !waits:
		return fmt.Errorf("record for task %v: step %q of the kind %q has tasks, or is recorded as %s", rec.Lease.Task, s.Name, s.Kind, s.State)
	case len(s.Value) > 0 || s.Error != nil || s.Cost != 0:
		return fmt.Errorf("record for task %v: step %q of the kind %q is recorded with a cost, or with a value or an error, which it has from others", rec.Lease.Task, s.Name, s.Kind)
	case s.Kind == task.KindCall:
		return checkCall(rec)
	case ofWait(s.Kind) && OfUndo(s):
		return fmt.Errorf("record for task %v: step %q of the kind %q cannot be undone", rec.Lease.Task, s.Name, s.Kind)
	}
	return nil
}

// AcceptWait compares a wait with the step recorded under its name (nil if absent), completed
// or waiting. answered reports that the recorded step is the answer; otherwise the wait is new
// or continues. The attempt does not matter. Errors: [store.ErrStepConflict], and
// [store.ErrCancelRequested] if the task was asked to end.
func AcceptWait(stored, step *task.Step, cancelRequested bool) (answered bool, err error) {
	switch {
	case stored != nil && (stored.Kind != step.Kind || stored.Signal != step.Signal):
		return false, fmt.Errorf("step %q of task %v: %w: attempt %d recorded it", step.Name, step.TaskID, store.ErrStepConflict, stored.AttemptNo)
	case stored != nil && stored.State == task.StepCompleted:
		return true, nil
	case cancelRequested:
		return false, fmt.Errorf("step %q of task %v: %w", step.Name, step.TaskID, store.ErrCancelRequested)
	}
	return false, nil
}

// ResolveWait completes a wait for a signal if it is over, and reports whether it is. signal
// is the oldest signal of its name that no wait took, or nil. A wait also ends by its timeout
// or when its handler withdraws it. A signal takes precedence.
func ResolveWait(wait *task.Step, signal *task.Signal, withdrawn bool, now time.Time) bool {
	switch {
	case signal != nil:
		wait.Value = signal.Payload
	case withdrawn, Past(wait.WakeAt, now):
	default:
		return false
	}
	wait.State, wait.CompletedAt = task.StepCompleted, now
	return true
}

// CheckSignal refuses a malformed signal. No client sends one.
func CheckSignal(cmd *store.SendSignal) error {
	switch {
	case cmd.Name == "":
		return fmt.Errorf("signal to task %v: it has no name", cmd.Task)
	case cmd.Key == "":
		return fmt.Errorf("signal %q to task %v: it has no key", cmd.Name, cmd.Task)
	case len(cmd.Payload) == 0:
		return fmt.Errorf("signal %q to task %v: it has no payload", cmd.Name, cmd.Task)
	}
	return nil
}

// AcceptSignal decides about a signal to a task in a state. stored is the signal sent before
// under this name and key, or nil. With the same payload the signal is a repetition. Errors:
// [store.ErrConflict], [store.ErrState].
func AcceptSignal(cmd *store.SendSignal, s task.State, stored *task.Signal) (existing bool, err error) {
	switch {
	case stored != nil && bytes.Equal(stored.Payload, cmd.Payload):
		return true, nil
	case stored != nil:
		return false, fmt.Errorf("signal %q to task %v: %w: it was sent with the key %q and another payload at %s",
			cmd.Name, cmd.Task, store.ErrConflict, cmd.Key, stored.SentAt.Format(time.RFC3339))
	case s.Terminal():
		return false, refuse(cmd.Task, s, "a task that ended takes no signals")
	}
	return false, nil
}

// KeepSignal refuses ([store.ErrLimit]) another signal for a task that already keeps the
// maximum of untaken signals.
func KeepSignal(id task.ID, kept int) error {
	if kept < task.MaxSignals {
		return nil
	}
	return fmt.Errorf("task %v: %w: it keeps %d signals that no wait took: send more when it has taken some", id, store.ErrLimit, kept)
}

// Suspended reports whether a stored task is suspended. The end of one of its waits makes it
// claimable.
func Suspended(s task.State, why task.Waiting, join task.Join) bool {
	return s == task.Pending && join == task.JoinNone && (why == task.WaitSignal || why == task.WaitSleep || why == task.WaitChildren)
}

// checkSuspend refuses a malformed suspension. No engine reports one.
func checkSuspend(f *store.Finish) error {
	switch f.Waiting {
	case task.WaitNone, task.WaitSleep, task.WaitSignal, task.WaitChildren:
		return nil
	}
	return fmt.Errorf("finish task %v: a suspended task cannot wait for %q", f.Lease.Task, f.Waiting)
}

// ResolveSuspend is [ResolveFinish] for a suspension (W3). wakeSeq is the task's current
// value. If the attempt has seen another value, one of the waits was completed meanwhile, and
// the task runs again at once.
func ResolveSuspend(f *store.Finish, wakeSeq int, cancel CancelRequest, deadline, now time.Time) Transition {
	// Older programs, which know no waits, send neither.
	if f.Waiting != task.WaitNone && wakeSeq != f.WakeSeq {
		t := Transition{Outcome: f.Outcome, KeepError: true}
		t.waitUntil(now, task.WaitNone, now)
		if cancel.Kind != "" {
			return t.asked(&cancel, deadline)
		}
		return t
	}
	return ResolveFinish(f, cancel, deadline, now)
}

// suspend makes the task wait until an instant, if there is one, or until one of its waits is
// completed.
func (t *Transition) suspend(f *store.Finish, now time.Time) {
	t.Failure, t.KeepError = nil, true
	why, at := f.Waiting, Instant(f.WakeAt)
	if why == task.WaitNone {
		why = task.WaitSleep
	}
	if at.IsZero() && why != task.WaitSleep {
		t.State, t.Waiting, t.SetReadyAt = task.Pending, why, true
		return
	}
	t.waitUntil(at, why, now)
}

// Claimable reports whether a task with this transition gets a dispatch row: it waits at most
// for a time.
func (t *Transition) Claimable() bool {
	switch {
	case t.State == task.Ready:
		return true
	case t.State != task.Pending:
		return false
	}
	switch t.Waiting {
	case task.WaitDeps, task.WaitRepair:
		return false
	case task.WaitChildren, task.WaitSignal:
		return t.Join == task.JoinNone && !t.ReadyAt.IsZero()
	}
	return true
}

// Timed reports whether the task's own instant is set afterwards, as far as its job counts it
// ([task.Movable]).
func (t *Transition) Timed() bool { return t.SetReadyAt && !t.ReadyAt.IsZero() }
