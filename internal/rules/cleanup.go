package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// A task that cleans up when it is cancelled ([task.New.CleanupWhenCancelled])
// and has run before does not end while it waits. It becomes claimable with its
// cancel request on it, and runs once more, for its cleanup (ADR 0020). The
// attempt that begins with the request is the last one: only a lost lease and a
// release, after which it is not known how far it came, let another follow.

// Ending is what a cancel, or the deadline, does to a task that has not ended.
type Ending int

// The endings.
const (
	EndsNow    Ending = iota // it ends cancelled
	EndAsked                 // it runs: its worker is asked to end it
	CleansUp                 // it does not run, and is due now, once more, for its cleanup
	CleanupDue               // it is due for its cleanup already
)

// Unfinished is what an [Ending] follows from.
type Unfinished struct {
	State    task.State
	Waiting  task.Waiting
	Join     task.Join
	Attempts int  // that have begun
	CleansUp bool // when it is cancelled
	Asked    bool // to end
	Force    bool // the cancel is to end it at once
}

// ResolveEnd says what a cancel or the deadline does to a task. One that waits
// for its needs has nothing to undo: it has not run, or has ended since, unless it
// asked for one of them.
func ResolveEnd(t *Unfinished) Ending {
	switch {
	case t.Force:
		return EndsNow
	case t.State == task.Running:
		return EndAsked
	case t.Asked:
		return CleanupDue
	case t.CleansUp && t.Attempts > 0 && (t.Waiting != task.WaitDeps || t.Join != task.JoinNone):
		return CleansUp
	}
	return EndsNow
}

// asked is what becomes of a task that was asked to cancel, after an attempt
// without success that would lead to a transition. It is cancelled, or runs once
// more to clean up: because the attempt, which did not begin with the request,
// reports that it did not know of it, or because it was released and could not do
// what it should. What was decided is not done.
func (t *Transition) asked(c *CancelRequest, deadline, now time.Time) Transition {
	if !c.CleansUp || t.State.Terminal() || c.Before && t.Outcome != task.OutcomeReleased {
		if c.Kind == task.KindBudget {
			ended := Transition{Failure: t.Failure, Uncounted: c.Before}
			ended.failForBudget(c.Reason)
			return ended
		}
		return Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: CancelFailure(*c, deadline), Uncounted: c.Before}
	}
	up := *t
	up.State, up.Waiting, up.ReadyAt, up.SetReadyAt, up.Decision = task.Ready, task.WaitNone, now, false, nil
	up.Join, up.JoinOutput, up.Awaited, up.CountsRepair = task.JoinNone, nil, false, false
	return up
}

// InTime reports whether a due task may start as far as its deadline is
// concerned: that has not passed, or the task runs only to clean up.
func InTime(t *task.Task, now time.Time) bool {
	return t.CancelRequested || t.Undo != nil || !Past(t.DeadlineAt, now)
}
