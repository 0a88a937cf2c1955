package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Record is what a running attempt writes.
//
// What a new step or failed try cost (task.Step.Cost) is added to its task, and to
// its job if that limits it. A task that is over its own limit then, or its job's,
// is asked to end with the cancel kind budget; the other tasks of such a job end, or
// are asked to, with job_budget (ChoreSpent).
type Record struct {
	Lease     task.Lease
	Step      *task.Step    // TaskID and CompletedAt are filled in by the store; StartedAt too, from Elapsed
	Elapsed   time.Duration // of the step
	Sleep     time.Duration // a sleep step: wake after this long, by the store's clock; with Step.WakeAt set that instant counts
	Artifacts []NewArtifact // recorded with a completed step, once
	Tasks     []task.New    // a start step: enqueued in the same transaction; when the first has an idempotency key, the store fills in the id that stands under it as the step's value

	// A step of the kind signal is recorded in the state waiting. The answer has it
	// completed if the signal was sent before, the oldest one that no wait took, or
	// if the wait has timed out, by the store's clock. Recorded again, in the same
	// attempt or another, it keeps its WakeAt. Timeout is how long it waits, from
	// the first record on; 0: for ever. Recorded as completed, without a value, it is
	// withdrawn: no signal goes to it any more. One that is completed by then stays
	// as it is, and is the answer.
	//
	// A step of the kind call is recorded in the state waiting, with the number of
	// its children as ChildrenLeft and the first of them as Tasks; more come
	// with further records of the step, which say how many are stored as ChildrenStored.
	// The answer has the step as it stands then. Children have their Node from the
	// store (the step's name and the number of the child in brackets) and neither
	// needs nor idempotency keys. Over a limit of children: ErrLimit.
	Timeout  time.Duration
	Progress *task.Progress // latest report

	// A step of the kind undo in the state waiting, with one task whose UndoOf is a child of
	// the task, which is in its undo phase, or of the one that it undoes: the child succeeded,
	// and is undone by that task, which belongs to the job of the record's, and is in
	// its undo phase from the beginning. No step is stored. The answer names the task that has
	// the idempotency key of the new one, if there is one. ErrStepConflict: there is no such
	// child, or it did not succeed.
	//
	// UndoOf is set, with each step of the kind undo, by the attempt of an undo task: the task
	// whose step was undone. That one's step counts as never run.
	UndoOf task.ID

	// Events are stored if the rest of the record is, or stood there already; at most
	// MaxEvents. A row whose number is taken is the same one.
	Events []EventRow

	// SQLTx: the function of a StepTx wants a *sql.Tx. It counts where the store has
	// transactions of several types.
	SQLTx bool

	// Checkpoint replaces the value that the task keeps under its name. The store
	// fills in all but Name and Value. A value that was not there sets crash_count
	// back to 0, as a step does. It goes without a Step.
	Checkpoint *task.Checkpoint
}

// RecordResult answers one Record.
type RecordResult struct {
	Err      error
	Step     task.Step  // as stored, or as it stood already
	Enqueued []Enqueued // one per Tasks
	Same     bool       // of a checkpoint: its value was there already
	Asked    string     // why the task was asked to end, by what the step cost; "": it was not. A repetition does not say it again
}

// Tx is a caller's transaction, wrapped by the adapter that knows its driver.
type Tx interface {
	// Driver names the adapter, for messages.
	Driver() string
	// Handle returns what user code works with: a *sql.Tx or a pgx.Tx.
	Handle() any
}
