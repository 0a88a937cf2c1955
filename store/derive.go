package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Availability is what decides, beside a task's own row, how it reads.
type Availability struct {
	Dispatch time.Time // available_at of its dispatch row; zero: it has none
	Waiter   time.Time // due_at of its row among the waiters of its key; zero: it has none
	Paused   bool      // its queue is paused
}

// Derive turns a stored task into what a reader sees at now: a pending task
// whose dispatch row came due is ready, one whose queue is paused or whose key
// is taken is pending for that reason. ReadyAt becomes the time from which it
// is claimable.
func Derive(t *task.Task, s Availability, now time.Time) {
	if t.State != task.Pending && t.State != task.Ready {
		if t.State != task.Blocked {
			t.ReadyAt = time.Time{}
		}
		return
	}
	switch {
	case !s.Waiter.IsZero():
		t.State, t.Waiting, t.ReadyAt = task.Pending, task.WaitConcurrency, s.Waiter
	case s.Dispatch.IsZero():
	case s.Paused:
		t.State, t.Waiting, t.ReadyAt = task.Pending, task.WaitPaused, s.Dispatch
	case s.Dispatch.After(now):
		t.ReadyAt = s.Dispatch
	default:
		t.State, t.Waiting, t.ReadyAt = task.Ready, task.WaitNone, s.Dispatch
	}
}
