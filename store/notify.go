package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Notifier is implemented by stores that can wake their users. Notices are
// hints: losing one costs latency only.
type Notifier interface {
	// Notify calls fn, possibly concurrently, after commits in ns until stop
	// returns. fn must not block and must not call the store. complete
	// reports that no change escapes the notices, so that no user needs to
	// poll (a store in this process's memory).
	Notify(ns string, fn func(Notice)) (stop func(), complete bool)
}

// Awaiter is implemented by stores that look for all who wait with one query, instead
// of one for each.
type Awaiter interface {
	// Await calls fn, as Notify does, with notices in ns until stop returns. Each second
	// or so, whoever wrote what, they name in Tasks those of ids, which are of tasks and
	// jobs, that ended, are blocked or do not exist, and all of them while the store
	// cannot look. ids must not call the store. ok is false when the store cannot do
	// it: then nothing was begun.
	Await(ns string, ids func() []task.ID, fn func(Notice)) (stop func(), ok bool)
}

// Waker is implemented by stores that do not learn by themselves when a caller's
// transaction was committed.
type Waker interface {
	// Wake tells all users of a namespace, of other processes too, that there may be
	// work. It does not wait for that.
	Wake(ns string)
}

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
