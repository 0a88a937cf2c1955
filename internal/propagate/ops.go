package propagate

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Ops are the set operations of one store, inside one transaction. Every list
// that they get is sorted by its first field and names each row once.
type Ops interface {
	// WakeKeys moves waiters of each key back to dispatch: as many as
	// rules.KeyWakes says, oldest first, and the oldest of each lane for which
	// rules.LaneWakes says so. It returns the keys that have more of them than one
	// transaction moves.
	WakeKeys(keys []string) (more []string, err error)

	// InsertDispatch inserts fresh dispatch rows (W1). The tasks have none.
	InsertDispatch(rows []store.DispatchRow) error

	// MarkEdges marks up to limit edges towards tasks that have ended which are
	// not marked yet, by need and dependent, and returns them in any order. rest
	// are the tasks that have more of them.
	MarkEdges(ended []Ended, limit int) (marked []Edge, rest []Ended, err error)

	// LowerNeeds lowers what the dependents wait for that still wait for needs or
	// children, as rules.Waits.After has it, and returns those, sorted by ID. The
	// others run or have ended and stay as they are.
	LowerNeeds(marked []Marked) ([]Dependent, error)

	// LowerCalls lowers what is left of calls that wait by the children that have
	// ended, for tasks that count them (rules.CountsCalls). Calls at 0 are completed,
	// and wake_seq and step_count of their tasks raised by 1 each. Of those tasks it
	// makes the suspended ones ready (rules.Suspended), without a dispatch or waiter
	// row, and returns them: their rows follow with InsertDispatch.
	LowerCalls(ended []CallEnds) ([]Woken, error)

	// MakeReady writes the state of dependents that have no open need left, and that
	// they wait for no children. Their dispatch rows follow with InsertDispatch.
	MakeReady(tasks []Ready) error

	// WrongChildren returns, for each task of which a child of its last decomposition
	// ended without success, the edge to the oldest such child.
	WrongChildren(parents []task.ID) ([]Edge, error)

	// Complete writes the end of tasks that end with their children.
	Complete(tasks []Joined) error

	// Unmarked returns the edges of dependents towards tasks that have ended
	// whose edges a chore is still to mark.
	Unmarked(dependents []task.ID) ([]Edge, error)

	// IfFailed returns the oldest one or two edges of the kind failed of each
	// dependent. Their needs have ended.
	IfFailed(dependents []task.ID) ([]Edge, error)

	// Cancelling reports for each job whether a chore ends its tasks.
	Cancelling(jobs []task.ID) ([]bool, error)

	// Nodes returns the names that tasks have in their jobs, in the order asked;
	// "" for a task without one.
	Nodes(ids []task.ID) ([]string, error)

	// CancelDependents writes the end of dependents that cannot run any more.
	CancelDependents(tasks []Unmet) error

	// UndoNeeds returns what DecideUndo sees of the needs of an undo task, each kind of ends
	// once, and whether its job was cancelled.
	UndoNeeds(id, job task.ID) (needs []rules.UndoNeed, cancelled bool, err error)

	// BeginUndo makes tasks claimable for their undo (rules.Transition.BeginUndo): their
	// dispatch rows follow with InsertDispatch.
	BeginUndo(tasks []Undoing) error

	// CountJobs adds changes to the counters of jobs, and to what they have used of
	// their budgets, and derives their states. It returns those whose state is
	// another then, and those that rules.Exhausts says are to end now, of which it
	// notes when that was; one of which chores are still to move tasks may be left
	// to a chore.
	CountJobs(changes []JobChange) (moved []JobState, exhausted []task.ID, err error)

	// AddChores keeps what is left to do for later transactions: waking keys, and
	// marking the edges towards tasks that have ended.
	AddChores(keys []string, ended []Ended) error
}

// JobState is a job and the state that it got.
type JobState struct {
	Job        task.ID
	Was, State task.JobState
}

// Ended is a task that is in a terminal state and has dependents.
type Ended struct {
	ID  task.ID
	End task.End

	// After is the last dependent of those, in their order, whose edges are marked;
	// zero: of none is that known.
	After task.ID
}

// Edge is one edge whose need has ended.
type Edge struct {
	Dependent task.ID
	Step      string // the call of the dependent whose child the need is
	rules.EndedNeed
}

// Marked says which edges of a dependent were marked.
type Marked struct {
	ID task.ID
	rules.Marked
}

// CallEnds says how many children of a call have ended.
type CallEnds struct {
	Task     task.ID
	Step     string
	Children int
}

// Woken is a task that the end of a call made ready.
type Woken struct {
	Job      task.ID
	Was      Contribution
	Dispatch store.DispatchRow // to be written
}

// Dependent is a task that waits for its needs, or for its children.
type Dependent struct {
	ID       task.ID
	Waits    rules.Waits
	Join     task.Join // it waits for its children
	MayFail  bool      // its job allows it
	ReadyAt  time.Time
	Deadline time.Time
	Job      task.ID
	Needed   bool              // an edge leads to it
	Calls    bool              // it has children of a call
	Dispatch store.DispatchRow // to be written; its AvailableAt is not set

	Undoable rules.Undoable // what its end leaves to undo
}

// Ready is a dependent that may be claimed from an instant on.
type Ready struct {
	ID      task.ID
	State   task.State
	Waiting task.Waiting
}

// Joined is a task that ends with its children: it succeeds, with the output that
// it left, or it fails.
type Joined struct {
	ID       task.ID
	Deadline time.Time   // that is not watched any more; zero: it had none
	Failure  *task.Error // nil: it succeeds
}

// Unmet is a dependent that cannot run any more.
type Unmet struct {
	ID       task.ID
	Deadline time.Time // that is not watched any more; zero: it had none
	Failure  *task.Error
	Undo     bool // it is the undo of a task: its undo phase is over
}

// Undoing is a task that would have ended, and whose undo phase begins.
type Undoing struct {
	ID       task.ID
	Deadline time.Time // that is not watched any more; zero: it had none
	To       rules.Transition
}

// JobChange is what a batch adds to the counters of a job, and to what it has used
// of its budget.
type JobChange struct {
	Job      task.ID
	Change   task.JobCounters
	Attempts int
	Cost     int64
}

// Contribution is what the counters of a job see of one of its tasks.
type Contribution struct {
	task.End
	Waiting task.Waiting
	Join    task.Join
	Timed   bool // its own instant is set: see [task.Movable]
}

// Unfinished is how a task that has not ended counts.
func Unfinished(s task.State, w task.Waiting) Contribution {
	return Contribution{End: task.End{State: s}, Waiting: w}
}

func (c Contribution) count() task.JobCounters { return task.Count(c.End, c.Waiting, c.Join, c.Timed) }
