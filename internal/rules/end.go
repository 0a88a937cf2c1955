package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Ending is the effect of a cancel, or of the deadline, on an unfinished task.
type Ending int

// The endings.
const (
	EndsNow      Ending = iota // ends cancelled, or begins its undo phase ([Transition.BeginUndo])
	EndAsked                   // runs: its worker is asked to end it
	InPhase                    // continues its undo
	ForcesUndo                 // continues its undo without the running attempt ([ForceUndo])
	AbandonsUndo               // gives its undo up ([AbandonUndo])
)

// Unfinished holds the fields that determine an [Ending].
type Unfinished struct {
	State   task.State
	Phase   *task.UndoPhase // nil: it is not being undone
	Force   bool            // the cancel ends it at once
	Abandon bool            // the cancel ends its undo
}

// ResolveEnd returns the effect of a cancel or the deadline on a task.
func ResolveEnd(t *Unfinished) Ending {
	switch {
	case t.Phase != nil && (t.Abandon || t.Force && t.Phase.Forced):
		return AbandonsUndo
	case t.Phase != nil && t.Force:
		return ForcesUndo
	case t.Phase != nil:
		return InPhase
	case t.Force:
		return EndsNow
	case t.State == task.Running:
		return EndAsked
	}
	return EndsNow
}

// Began reports whether a stored task has run since it was enqueued or revived. A task that
// waits for its needs has not run since, unless it asked for one of them (join).
func Began(s task.State, why task.Waiting, join task.Join, attempts int) bool {
	return attempts > 0 && (s != task.Pending || why != task.WaitDeps || join != task.JoinNone)
}

// asked turns the transition after an attempt without success into the end of a task that was
// asked to end. The task is cancelled, or fails for its budget. The decision is dropped. An
// attempt that would not have ended the task did not know of the request.
func (t *Transition) asked(c *CancelRequest, deadline time.Time) Transition {
	unaware := !t.State.Terminal()
	if c.Kind == task.KindBudget {
		ended := Transition{Failure: t.Failure, Unaware: unaware}
		ended.failForBudget(c.Reason)
		return ended
	}
	return Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: CancelFailure(*c, deadline), Unaware: unaware}
}

// InTime reports whether the deadline lets a due task start: it has not passed, or the task is
// being undone.
func InTime(t *task.Task, now time.Time) bool { return t.Undo != nil || !Past(t.DeadlineAt, now) }
