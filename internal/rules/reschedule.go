package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// CheckReschedule refuses to reschedule a task that neither waits for a time nor is due, and a
// task that is being undone (undoing). s and why are the stored state and waiting reason.
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

// Rescheduled is the result of a reschedule for a task.
type Rescheduled struct {
	State     task.State
	Waiting   task.Waiting
	NotBefore time.Time // the task's own; zero: none
	Due       time.Time // of its dispatch row and of its sleep
}

// Reschedule resolves a reschedule that [CheckReschedule] allowed. at is the new instant, zero
// for now. why is the stored waiting reason, due the current due time. ok is false if the task
// is due already and nothing changes.
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
