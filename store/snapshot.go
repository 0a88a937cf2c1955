package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Snapshot is every row of a namespace, sorted by key. Tasks carry their
// stored state, not the derived one.
type Snapshot struct {
	Now        time.Time
	Generation string
	Tasks      []task.Task
	Jobs       []task.Job
	Edges      []EdgeRow
	Attempts   []task.Attempt // ended ones
	Decisions  []task.Decision
	Steps      []task.Step
	Dispatch   []DispatchRow
	Keys       []KeyRow
	Waiters    []WaiterRow
	Audit      []AuditEntry
	Paused     []string
}

// EdgeRow is one stored edge.
type EdgeRow struct {
	Task, Needs task.ID
	Kind        task.EdgeKind
	Done        bool // the needed task has ended and this edge was counted
}

// DispatchRow says that a task is claimable from AvailableAt on.
type DispatchRow struct {
	Task           task.ID
	Queue, Type    string
	Priority       int
	AvailableAt    time.Time
	ConcurrencyKey string
}

// KeyRow is the state of one concurrency key. Keys that no task holds may be absent.
type KeyRow struct {
	Key       string
	Held, Cap int
}

// WaiterRow is a due task that waits for its key.
type WaiterRow struct {
	Key   string
	DueAt time.Time
	Task  task.ID
}

// Now is the machine's clock, in the precision that all stores keep. A store's
// own clock follows it and never goes back.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond).Round(0) }
