package propagate

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Ops are the set operations of one store, inside one transaction. Every list argument is
// sorted by its first field and has each row once.
type Ops interface {
	// WakeKeys moves waiters of each key back to dispatch: the oldest, up to rules.KeyWakes,
	// and the oldest of each lane for which rules.LaneWakes holds. It returns the keys with
	// more waiters than one transaction moves.
	WakeKeys(keys []string) (more []string, err error)

	// InsertDispatch inserts new dispatch rows (W1). The tasks have no dispatch row.
	InsertDispatch(rows []store.DispatchRow) error

	// MarkEdges marks up to limit unmarked edges towards ended tasks, sorted by need and
	// dependent, and returns them in any order. rest are the tasks with further such edges.
	MarkEdges(ended []Ended, limit int) (marked []Edge, rest []Ended, err error)

	// LowerNeeds applies rules.Waits.After to the dependents that still wait for needs or
	// children, and returns these, sorted by ID. Running or ended dependents stay unchanged.
	LowerNeeds(marked []Marked) ([]Dependent, error)

	// LowerCalls subtracts ended children from waiting calls, for tasks that count them
	// (rules.CountsCalls). It completes calls that reach 0, and raises wake_seq and step_count
	// of their tasks by 1 each. It makes suspended tasks among them ready (rules.Suspended),
	// without a dispatch or waiter row, and returns them: their rows follow with
	// InsertDispatch.
	LowerCalls(ended []CallEnds) ([]Woken, error)

	// MakeReady writes the state of dependents without an open need, and clears their wait for
	// children. Their dispatch rows follow with InsertDispatch.
	MakeReady(tasks []Ready) error

	// WrongChildren returns the edge to the oldest unsuccessful child of the last
	// decomposition, for each task that has such a child.
	WrongChildren(parents []task.ID) ([]Edge, error)

	// Complete writes the end of tasks that end with their children.
	Complete(tasks []Joined) error

	// Unmarked returns the edges of dependents towards ended tasks whose edges a chore has not
	// marked yet.
	Unmarked(dependents []task.ID) ([]Edge, error)

	// IfFailed returns the oldest one or two edges of the kind failed of each dependent. Their
	// needs have ended.
	IfFailed(dependents []task.ID) ([]Edge, error)

	// Cancelling reports for each job whether a chore is ending its tasks.
	Cancelling(jobs []task.ID) ([]bool, error)

	// Nodes returns the names of tasks in their jobs, in the given order; "" for a task
	// without a name.
	Nodes(ids []task.ID) ([]string, error)

	// CancelDependents writes the end of dependents that cannot run any more.
	CancelDependents(tasks []Unmet) error

	// UndoNeeds returns the needs of an undo task for DecideUndo, each kind of end once, and
	// whether its job was cancelled.
	UndoNeeds(id, job task.ID) (needs []rules.UndoNeed, cancelled bool, err error)

	// BeginUndo makes tasks claimable for their undo (rules.Transition.BeginUndo). Their
	// dispatch rows follow with InsertDispatch.
	BeginUndo(tasks []Undoing) error

	// CountJobs adds changes to the counters and the used budgets of jobs, and derives their
	// states. It returns jobs whose state changed, and jobs that end now by rules.Exhausts,
	// whose end it records. It may leave a job to a chore if other chores still move tasks of
	// the job.
	CountJobs(changes []JobChange) (moved []JobState, exhausted []task.ID, err error)

	// AddChores stores work for later transactions: waking keys, and marking the edges towards
	// ended tasks.
	AddChores(keys []string, ended []Ended) error
}

// JobState is a job with its previous and its new state.
type JobState struct {
	Job        task.ID
	Was, State task.JobState
}

// Ended is a task that is in a terminal state and has dependents.
type Ended struct {
	ID  task.ID
	End task.End

	// After is the last dependent, in order, whose edge is known to be marked; zero: unknown.
	After task.ID
}

// Edge is an edge whose need has ended.
type Edge struct {
	Dependent task.ID
	Step      string // the call of the dependent whose child the need is
	rules.EndedNeed
}

// Marked counts the edges of a dependent that were marked.
type Marked struct {
	ID task.ID
	rules.Marked
}

// CallEnds is the number of children of a call that have ended.
type CallEnds struct {
	Task     task.ID
	Step     string
	Children int
}

// Woken is a task that the end of a call made ready.
type Woken struct {
	Job      task.ID
	Was      Contribution
	Dispatch store.DispatchRow // to be inserted
}

// Dependent is a task that waits for its needs or its children.
type Dependent struct {
	ID       task.ID
	Waits    rules.Waits
	Join     task.Join // it waits for its children
	MayFail  bool      // its job allows its failure
	ReadyAt  time.Time
	Deadline time.Time
	Job      task.ID
	Needed   bool              // it has dependents
	Calls    bool              // it has children of a call
	Dispatch store.DispatchRow // to be inserted; its AvailableAt is not set

	Undoable rules.Undoable // the facts for its undo
}

// Ready is a dependent with its new state.
type Ready struct {
	ID      task.ID
	State   task.State
	Waiting task.Waiting
}

// Joined is a task that ends with its children. It succeeds with its kept output, or fails.
type Joined struct {
	ID       task.ID
	Deadline time.Time   // the deadline to stop watching; zero if it had no deadline
	Failure  *task.Error // nil: it succeeds
}

// Unmet is a dependent that cannot run any more.
type Unmet struct {
	ID       task.ID
	Deadline time.Time // the deadline to stop watching; zero if it had no deadline
	Failure  *task.Error
	Undo     bool // it is the undo of a task: its undo phase is over
}

// Undoing is a task whose undo phase begins instead of its end.
type Undoing struct {
	ID       task.ID
	Deadline time.Time // the deadline to stop watching; zero if it had no deadline
	To       rules.Transition
}

// JobChange is the change of a job's counters and used budget by a batch.
type JobChange struct {
	Job      task.ID
	Change   task.JobCounters
	Attempts int
	Cost     int64
}

// Contribution holds the fields of a task that the counters of its job depend on.
type Contribution struct {
	task.End
	Waiting task.Waiting
	Join    task.Join
	Timed   bool // its own instant is set: see [task.Movable]
}

// Unfinished returns the contribution of an unfinished task.
func Unfinished(s task.State, w task.Waiting) Contribution {
	return Contribution{End: task.End{State: s}, Waiting: w}
}

func (c Contribution) count() task.JobCounters { return task.Count(c.End, c.Waiting, c.Join, c.Timed) }
