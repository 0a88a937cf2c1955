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
	Signals    []task.Signal
	Artifacts  []task.Artifact
	Blobs      []BlobRow
	Dispatch   []DispatchRow
	Keys       []KeyRow
	Waiters    []WaiterRow
	Audit      []AuditEntry
	Paused     []string // queues

	PausedTypes []string
	PausedTasks []PausedTask
	Chores      []ChoreRow
	Checkpoints []task.Checkpoint
	Types       []AnnouncedType
}

// EdgeRow is one stored edge.
type EdgeRow struct {
	Task, Needs task.ID
	Kind        task.EdgeKind
	Done        bool // the needed task has ended and this edge was counted

	Step       string      // the call whose child it is; such an edge is not among the task's RemainingDeps
	Awaited    int         // the attempt of Task that waits, or waited, for this one: a child (of Kind done), or one that it asked for (success); 0: none
	EndedState task.State  // of an awaited edge that is done: how that had ended then
	EndedError *task.Error // why, unless it succeeded: kind, code and message (rules.EndedError)
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
	Key         string
	DueAt       time.Time
	Task        task.ID
	Queue, Type string
}

// Now is the machine's clock, in the precision that all stores keep. A store's
// own clock follows it and never goes back.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond).Round(0) }

// ChoreKind says what a chore does.
type ChoreKind string

// PausedTask is a task that is paused by itself.
type PausedTask struct {
	Task  task.ID
	DueAt time.Time // available_at of the dispatch row that it would have; zero: none
}

// The kinds of chores, with what their Subject is.
const (
	// ChoreCancelJob ends the tasks of a job that were not looked at yet. Until
	// it is done they are neither claimed nor ended for a need.
	ChoreCancelJob ChoreKind = "cancel_job" // the job
	// ChoreChildren cancels the children of a task that has ended before them.
	ChoreChildren ChoreKind = "children" // the task that has ended
	// ChoreDeleteJob removes the tasks of a job, and then the job.
	ChoreDeleteJob ChoreKind = "delete_job" // the job
	// ChoreDeleteTask removes what was recorded about a task, and then the task.
	ChoreDeleteTask ChoreKind = "delete_task" // the task
	// ChoreDropValues removes the values of the signals and steps of a task.
	ChoreDropValues ChoreKind = "drop_values" // the task
	// ChoreDecompose stores children of a task that decomposed. The task waits for
	// them, and its job counts them, as if they were stored.
	ChoreDecompose ChoreKind = "decompose" // the task that decomposed
	// ChoreEdges marks the open edges towards a task that has ended.
	ChoreEdges ChoreKind = "edges" // the task that is needed
	// ChoreEnqueue inserts the tasks of a large job that are kept as drafts. Its counters
	// have all of them. Until it is done no task of the job is claimed.
	ChoreEnqueue ChoreKind = "enqueue" // the job
	// ChoreForget erases what is left of the values and texts of a task.
	ChoreForget ChoreKind = "forget" // the task
	// ChorePause wakes the keys of a queue that was paused.
	ChorePause ChoreKind = "pause" // the queue
	// ChoreEvents deletes what is left of the event rows of a task that was deleted.
	ChoreEvents ChoreKind = "events" // the task
	// ChorePauseType wakes the keys of a task type that was paused.
	ChorePauseType ChoreKind = "pause_type" // the type
	// ChoreRevive brings back the dependents of a task that was brought back.
	// The task that was retried, its Root, is not claimable until all are done.
	ChoreRevive ChoreKind = "revive" // the task that is needed
	// ChoreReviveChildren brings back the children of a task that was retried which
	// were cancelled because it had ended.
	ChoreReviveChildren ChoreKind = "revive_children" // the task that was retried
	// ChoreRaise brings back the tasks of a job that ended for its budget, which was
	// raised. Until it is done no task of the job is claimed.
	ChoreRaise ChoreKind = "raise_budget" // the job
	// ChoreSpent ends the tasks of a job whose budget is used up, once the chores of
	// earlier moves are done: those of a kind that comes before it. Until it is done
	// no task of the job is claimed.
	ChoreSpent ChoreKind = "spent_job" // the job
	// ChoreWakeKey moves further waiters of a concurrency key to dispatch.
	ChoreWakeKey ChoreKind = "wake_key" // the key
)

// ChoreRow is work that follows from a committed operation and was too much for
// its transaction. Any reaper works it off, 1,000 rows at a time.
type ChoreRow struct {
	Kind    ChoreKind
	Subject string  // an ID as text, a key, or the name of a queue or type
	Root    task.ID // of ChoreRevive

	Children int // of ChoreDecompose and ChoreEnqueue: the number of tasks that are not stored yet
}
