package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Ending is what a cancel, or the deadline, does to a task that has not ended.
type Ending int

// The endings.
const (
	EndsNow      Ending = iota // it ends cancelled, or begins its undo phase ([Transition.BeginUndo])
	EndAsked                   // it runs: its worker is asked to end it
	InPhase                    // its undo goes on
	ForcesUndo                 // its undo goes on without the attempt that runs ([ForceUndo])
	AbandonsUndo               // its undo is given up ([AbandonUndo])
)

// Unfinished is what an [Ending] follows from.
type Unfinished struct {
	State   task.State
	Phase   *task.UndoPhase // nil: it is not being undone
	Force   bool            // the cancel is to end it at once
	Abandon bool            // the cancel is to end its undo
}

// ResolveEnd says what a cancel or the deadline does to a task.
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

// Began reports whether a task that is stored in a state has run since it was brought
// back. One that waits for its needs has not, or has ended since, unless it asked for
// one of them.
func Began(s task.State, why task.Waiting, join task.Join, attempts int) bool {
	return attempts > 0 && (s != task.Pending || why != task.WaitDeps || join != task.JoinNone)
}

// asked is what becomes of a task that was asked to end, after an attempt without
// success that would lead to a transition: it is cancelled, or fails for its budget.
// What was decided is not done. If the attempt would not have ended the task, its
// handler did not know of the request.
func (t *Transition) asked(c *CancelRequest, deadline time.Time) Transition {
	unaware := !t.State.Terminal()
	if c.Kind == task.KindBudget {
		ended := Transition{Failure: t.Failure, Unaware: unaware}
		ended.failForBudget(c.Reason)
		return ended
	}
	return Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: CancelFailure(*c, deadline), Unaware: unaware}
}

// InTime reports whether a due task may start as far as its deadline is
// concerned: that has not passed, or the task is being undone.
func InTime(t *task.Task, now time.Time) bool { return t.Undo != nil || !Past(t.DeadlineAt, now) }
