package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Notice names what may have changed.
type Notice struct {
	Due      bool          // dispatch rows that are due, or are due earlier than before
	Tasks    []task.ID     // tasks that ended or blocked
	Jobs     []task.ID     // jobs whose state may have changed
	Cancels  []task.ID     // running tasks that were asked to cancel or lost their lease
	Deadline time.Duration // so long after the notice a deadline passes that was set, of several the soonest; 0: none was set
	Dead     bool          // workers of other processes were found dead: a reaper may take their leases
	Chores   bool          // work was left to reapers (ChoreRow)
	Events   []task.ID     // tasks with new event rows
	Changed  bool          // tasks, jobs, workers or pauses changed in another way: tasks were claimed, a step or progress was recorded, an operator or the collector changed something (not: a command that was refused or applied before, a dry run)
	External bool          // another process or a caller's own transaction wrote: anything may have changed
}

// DeadlineIn notes that a deadline was set, and how long it is away.
func (n *Notice) DeadlineIn(d time.Duration) {
	if d = max(d, 1); n.Deadline == 0 || d < n.Deadline {
		n.Deadline = d
	}
}
