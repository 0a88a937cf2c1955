package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// CheckReschedule refuses to reschedule a task that neither waits for a time nor
// is due, and one that is being undone (undoing). Its state and what
// it waits for are those that are stored.
func CheckReschedule(id task.ID, s task.State, why task.Waiting, undoing bool) error {
	const needs = "only tasks that wait for a time, or are due, can be rescheduled"
	switch {
	case s == task.Blocked:
		return refuse(id, s, "and goes on when it is unblocked: "+needs)
	case s != task.Pending && s != task.Ready:
		return refuse(id, s, needs)
	case undoing:
		return refuse(id, s, "but only to be undone: a retry with --cleanup (Cleanups) tries that at once")
	}
	switch why {
	case task.WaitNone, task.WaitDelay, task.WaitRetry, task.WaitSleep:
		return nil
	}
	return refuse(id, s, "and waits: "+string(why)+"; "+needs)
}

// Rescheduled is what a reschedule makes of a task.
type Rescheduled struct {
	State     task.State
	Waiting   task.Waiting
	NotBefore time.Time // the task's own; zero: none
	Due       time.Time // of its dispatch row, and the end of the sleep that it waits for
}

// Reschedule resolves a reschedule that [CheckReschedule] allowed, to an instant,
// which is zero for now. why is what the stored task waits for, due when it is
// or was due so far. ok is false if nothing is to change: it is due already.
func Reschedule(why task.Waiting, due, at, now time.Time) (r Rescheduled, ok bool) {
	if why == task.WaitNone {
		why = task.WaitDelay
	}
	at = Instant(at)
	if at.After(now) {
		r = Rescheduled{NotBefore: at, Due: at}
		r.State, r.Waiting = Available(at, why, now)
		return r, true
	}
	r = Rescheduled{State: task.Ready, Due: now}
	return r, due.After(now)
}
