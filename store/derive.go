package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Availability is what decides, beside a task's own row, how it reads.
type Availability struct {
	Dispatch time.Time // available_at of its dispatch row; zero: it has none
	Waiter   time.Time // due_at of its row among the waiters of its key; zero: it has none
	Parked   time.Time // due_at of its own pause; zero: it is not claimable but for that, or not paused
	Pause    task.PauseKind
}

// Derive turns a stored task into what a reader sees at now: a pending task
// whose dispatch row came due is ready, one that is paused, with its type or its
// queue or by itself, or whose key is taken, is pending for that reason. In its undo
// phase a task that is due stays pending for the undo. ReadyAt becomes the time from
// which it is claimable.
func Derive(t *task.Task, s Availability, now time.Time) {
	if s.Pause == task.PauseTask {
		t.Pause = s.Pause
	}
	if t.State != task.Pending && t.State != task.Ready {
		if t.State != task.Blocked {
			t.ReadyAt = time.Time{}
		}
		return
	}
	switch {
	case !s.Waiter.IsZero():
		t.State, t.Waiting, t.ReadyAt = task.Pending, task.WaitConcurrency, s.Waiter
	case !s.Parked.IsZero():
		t.State, t.Waiting, t.ReadyAt = task.Pending, task.WaitPaused, s.Parked
	case s.Dispatch.IsZero():
	case s.Pause != task.PauseNone:
		t.State, t.Waiting, t.Pause, t.ReadyAt = task.Pending, task.WaitPaused, s.Pause, s.Dispatch
	case s.Dispatch.After(now), t.Waiting == task.WaitUndo:
		t.ReadyAt = s.Dispatch
	default:
		t.State, t.Waiting, t.ReadyAt = task.Ready, task.WaitNone, s.Dispatch
	}
}
