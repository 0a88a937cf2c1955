package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// A task that cleans up when it is cancelled ([task.New.CleanupWhenCancelled])
// and has run before does not end while it waits. It becomes claimable with its
// cancel request on it, and runs once more, for its cleanup (ADR 0020). The
// attempt that begins with the request is the last one: only a lost lease and a
// release, after which nobody knows how far it came, let another follow.

// Ending is what a cancel, or the deadline, does to a task that has not ended.
type Ending int

// The endings.
const (
	EndsNow   Ending = iota // it ends cancelled
	EndAsked                // it runs: its worker is asked to end it
	CleansUp                // it does not run, and is due now, once more, for its cleanup
	CleanupIs               // it is due for its cleanup already
)

// Unfinished is what an [Ending] follows from.
type Unfinished struct {
	State    task.State
	Waiting  task.Waiting
	Attempts int  // that have begun
	CleansUp bool // when it is cancelled
	Asked    bool // to end
	Force    bool // the cancel is to end it at once
}

// ResolveEnd says what a cancel or the deadline does to a task. One that waits
// for its needs has nothing to undo: it has not run, or has ended since.
func ResolveEnd(t *Unfinished) Ending {
	switch {
	case t.Force:
		return EndsNow
	case t.State == task.Running:
		return EndAsked
	case t.Asked:
		return CleanupIs
	case t.CleansUp && t.Attempts > 0 && t.Waiting != task.WaitDeps:
		return CleansUp
	}
	return EndsNow
}

// goesOn reports whether a task that was asked to cancel runs once more to clean
// up, after an attempt with an outcome that would lead to a state. The attempt
// did not know of the request, if it did not begin with it and does not report
// it; one that was released could not do what it should.
func (c *CancelRequest) goesOn(o task.Outcome, to task.State) bool {
	return c.CleansUp && !to.Terminal() && (!c.Before || o == task.OutcomeReleased)
}

// cleanUp makes a transition lead to a cleanup. What was decided is not done.
func (t *Transition) cleanUp(now time.Time) {
	t.State, t.Waiting, t.ReadyAt, t.SetReadyAt, t.Decision = task.Ready, task.WaitNone, now, false, nil
}

// InTime reports whether a due task may start as far as its deadline is
// concerned: that has not passed, or the task runs only to clean up.
func InTime(t *task.Task, now time.Time) bool { return t.CancelRequested || !Past(t.DeadlineAt, now) }
