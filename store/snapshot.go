package store

import (
	"strings"
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
	Attempts   []task.Attempt // finished attempts
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
	Schedules   []Schedule
	Fires       map[string][]ScheduleFire // by schedule, oldest first; nil without fires
}

// EdgeRow is one stored edge.
type EdgeRow struct {
	Task, Needs task.ID
	Kind        task.EdgeKind
	Done        bool // the needed task has ended and this edge was counted

	Step       string      // the call that stored the child; the task's RemainingDeps does not count such an edge
	Awaited    int         // the attempt of Task that waits or waited for a child (Kind done) or a requested task (success); 0: not awaited
	EndedState task.State  // of a done awaited edge: final state at that time
	EndedError *task.Error // its error, unless it succeeded: kind, code and message (rules.EndedError)
}

// DispatchRow makes a task claimable from AvailableAt on.
type DispatchRow struct {
	Task           task.ID
	Queue, Type    string
	Group          string // what it shares a limit or a turn with: rules.LaneGroup
	Priority       int
	AvailableAt    time.Time
	ConcurrencyKey string

	SentUntil time.Time // no publisher sends the hint again before; zero: it was not sent
	Attempts  int       // pushes of the hint
	LastError string    // of the last push; "": the transport took it. HintRefused and a reason: it never will
}

// Refused reports whether the transport refused the hint for good. The task is claimed without it.
func (d *DispatchRow) Refused() bool { return strings.HasPrefix(d.LastError, HintRefused) }

// Leave reports whether a claim with ClaimRequest.LeaveSent leaves the row.
func (d *DispatchRow) Leave(now time.Time) bool {
	return d.SentUntil.After(now) && d.Attempts == 1 && d.LastError == ""
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
	Group       string // of its lane
}

// Now returns the machine's clock in the precision of all stores. A store's own clock follows it and
// never goes back.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond).Round(0) }

// ChoreKind is the kind of a chore.
type ChoreKind string

// PausedTask is an individually paused task.
type PausedTask struct {
	Task  task.ID
	DueAt time.Time // available_at of its suspended dispatch row; zero: no row
}

// The kinds of chores, each with its Subject.
const (
	// ChoreCancelJob ends the remaining tasks of a cancelled job. Until it is done they are neither
	// claimed nor ended for a need.
	ChoreCancelJob ChoreKind = "cancel_job" // the job
	// ChoreChildren cancels the children that a finished task left unfinished.
	ChoreChildren ChoreKind = "children" // the task that has ended
	// ChoreDeleteJob removes the tasks of a job, then the job.
	ChoreDeleteJob ChoreKind = "delete_job" // the job
	// ChoreDeleteTask removes the records of a task, then the task.
	ChoreDeleteTask ChoreKind = "delete_task" // the task
	// ChoreDropValues removes the values of the signals and steps of a task.
	ChoreDropValues ChoreKind = "drop_values" // the task
	// ChoreDecompose stores children of a task that decomposed. The task waits for them, and its job
	// counts them, as if they were already stored.
	ChoreDecompose ChoreKind = "decompose" // the task that decomposed
	// ChoreEdges marks the open edges towards a task that has ended.
	ChoreEdges ChoreKind = "edges" // the task that is needed
	// ChoreEnqueue inserts the drafted tasks of a large job. Its counters include all of them. No task
	// of the job is claimed until it is done.
	ChoreEnqueue ChoreKind = "enqueue" // the job
	// ChoreForget erases the remaining values and texts of a task.
	ChoreForget ChoreKind = "forget" // the task
	// ChorePause wakes the keys of a paused queue.
	ChorePause ChoreKind = "pause" // the queue
	// ChoreEvents deletes the remaining event rows of a deleted task.
	ChoreEvents ChoreKind = "events" // the task
	// ChorePauseType wakes the keys of a paused task type.
	ChorePauseType ChoreKind = "pause_type" // the type
	// ChoreRevive revives the dependents of a revived task. The retried task, its Root, is not
	// claimable until all are done.
	ChoreRevive ChoreKind = "revive" // the task that is needed
	// ChoreReviveChildren revives the children of a retried task that were cancelled because it had
	// ended.
	ChoreReviveChildren ChoreKind = "revive_children" // the task that was retried
	// ChoreRaise revives the tasks of a job that ended for its budget, which was raised. No task of
	// the job is claimed until it is done.
	ChoreRaise ChoreKind = "raise_budget" // the job
	// ChoreSpent ends the tasks of a job whose budget is used up. It runs after the chores of kinds
	// that sort before it. No task of the job is claimed until it is done.
	ChoreSpent ChoreKind = "spent_job" // the job
	// ChoreWakeKey moves further waiters of a concurrency key to dispatch rows.
	ChoreWakeKey ChoreKind = "wake_key" // the key
)

// ChoreRow is deferred work of a committed operation that was too large for its transaction. Any
// reaper does it, 1,000 rows at a time.
type ChoreRow struct {
	Kind    ChoreKind
	Subject string  // an ID as text, a key, or the name of a queue or type
	Root    task.ID // of ChoreRevive

	Children int // ChoreDecompose and ChoreEnqueue: number of tasks not stored yet
}
