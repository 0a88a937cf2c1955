package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Availability holds the rows that, with a task's own row, determine its derived state.
type Availability struct {
	Dispatch time.Time // available_at of its dispatch row; zero: no row
	Waiter   time.Time // due_at of its waiter row; zero: no row
	Parked   time.Time // due_at of its individual pause; zero: not paused, or not claimable for another reason
	Pause    task.PauseKind
}

// Derive sets the state that a reader sees at now. A pending task with a due dispatch row becomes
// ready. A task that is paused, by its type, its queue or itself, or whose key is taken, becomes
// pending for that reason. In its undo phase a due task stays pending for the undo. ReadyAt becomes
// the time from which it is claimable.
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
