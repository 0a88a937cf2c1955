package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Notice lists possible changes of a namespace.
type Notice struct {
	Due      bool          // dispatch rows are due, or due earlier than before
	Tasks    []task.ID     // tasks that ended or blocked
	Jobs     []task.ID     // jobs whose state may have changed
	Cancels  []task.ID     // running tasks that were asked to cancel or lost their lease
	Deadline time.Duration // time until the soonest of the deadlines that were set; 0: no deadline was set
	Dead     bool          // workers of other processes are dead: a reaper may take their leases
	Schedule bool          // a schedule was written
	Chores   bool          // a transaction left work to reapers (ChoreRow)
	Events   []task.ID     // tasks with new event rows
	Changed  bool          // another change of tasks, jobs, workers or pauses: a claim, a recorded step or progress, an operator's command, a collection (not: a refused or repeated command, a dry run)
	External bool          // another process or a caller's own transaction wrote: any change is possible
	Remote   bool          // a notification of the server brought it: each process that listens has it at the same time
}

// DeadlineIn records a new deadline, given as the time until it.
func (n *Notice) DeadlineIn(d time.Duration) {
	if d = max(d, 1); n.Deadline == 0 || d < n.Deadline {
		n.Deadline = d
	}
}
