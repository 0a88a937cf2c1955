package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Available returns the state of a task that may be claimed from an instant on: ready if the
// instant has passed, else pending for the given reason.
func Available(at time.Time, why task.Waiting, now time.Time) (task.State, task.Waiting) {
	if at.After(now) || why == task.WaitUndo {
		return task.Pending, why
	}
	return task.Ready, task.WaitNone
}

// FirstState returns the state in which a new task is stored, and its not-before instant, or
// zero.
func FirstState(n *task.New, now time.Time) (task.State, task.Waiting, time.Time) {
	at := Instant(n.At)
	if n.At.IsZero() && n.Delay > 0 {
		at = Instant(now.Add(n.Delay))
	}
	if len(n.Needs) > 0 {
		return task.Pending, task.WaitDeps, at
	}
	state, waiting := Available(at, task.WaitDelay, now)
	return state, waiting, at
}

// Deadline returns the deadline of a new task: its own ExpireAfter or the job's deadline,
// whichever is earlier. Zero means never. A deadline never ends an undo.
func Deadline(n *task.New, job time.Time, now time.Time) time.Time {
	if FirstPhase(n.Needs, now) != nil {
		return time.Time{}
	}
	if n.ExpireAfter <= 0 {
		return job
	}
	return Earliest(Instant(now.Add(n.ExpireAfter)), job)
}

// JobDeadline returns the deadline of a new job; zero: never.
func JobDeadline(b task.Budget, now time.Time) time.Time {
	if b.MaxDuration <= 0 {
		return time.Time{}
	}
	return Instant(now.Add(b.MaxDuration))
}

// Earliest returns the earlier of two instants. Zero means never.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Past reports whether a deadline has passed. A zero deadline never passes.
func Past(deadline, now time.Time) bool { return !deadline.IsZero() && !deadline.After(now) }
