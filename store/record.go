package store

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// Record is a write of a running attempt.
//
// The cost of a new step or failed try (task.Step.Cost) is added to its task, and to its job if the
// job limits it. A task over its own limit, or its job's, is then asked to end with the cancel kind
// budget. The other tasks of such a job end, or are asked to, with job_budget (ChoreSpent).
type Record struct {
	Lease     task.Lease
	Step      *task.Step    // the store fills in TaskID and CompletedAt, and StartedAt from Elapsed
	Elapsed   time.Duration // of the step
	Sleep     time.Duration // a sleep step: duration by the store's clock; Step.WakeAt takes precedence
	Artifacts []NewArtifact // recorded with a completed step, once
	Tasks     []task.New    // a start step: enqueued in the same transaction; if the first has an idempotency key, the store sets the step's value to the ID under that key

	// A step of the kind signal is recorded in the state waiting. The answer has it completed if the
	// oldest signal not taken was sent before, or if the wait has timed out by the store's clock.
	// Repeating the record, in the same attempt or another, keeps WakeAt. Timeout is the duration of
	// the wait, from the first record on; 0: no limit. Recording it as completed, without a value,
	// withdraws the wait: no signal goes to it any more. A step completed before that is unchanged,
	// and is the answer.
	//
	// A step of the kind call is recorded in the state waiting, with the number of its children as
	// ChildrenLeft and the first of them as Tasks. Further records of the step add more;
	// ChildrenStored is the number of stored ones. The answer has the current step. The store sets the
	// Node of children (the step's name and the number of the child in brackets); they have neither
	// needs nor idempotency keys. Over a limit of children: ErrLimit.
	Timeout  time.Duration
	Progress *task.Progress // latest report

	// A step of the kind undo in the state waiting starts an undo task. It has one task whose UndoOf
	// is a succeeded child of the recording task, which is in its undo phase, or of the task that it
	// undoes. The undo task undoes that child, belongs to the job of the recording task, and starts in
	// its undo phase. No step is stored. The answer names the existing task with the idempotency key
	// of the new one, if there is one. ErrStepConflict: there is no such child, or it did not succeed.
	//
	// The attempt of an undo task sets UndoOf with each step of the kind undo: the task whose step was
	// undone. The undone step counts as never run.
	UndoOf task.ID

	// Events are stored if the rest of the record is stored, or was before; at most MaxEvents. A row
	// whose number exists is the same row.
	Events []EventRow

	// SQLTx: the function of a StepTx wants a *sql.Tx. It matters for a store with several transaction
	// types.
	SQLTx bool

	// Checkpoint replaces the task's value under its name. The store sets all fields but Name and
	// Value. A new value resets crash_count to 0, as a step does. It excludes Step.
	Checkpoint *task.Checkpoint
}

// RecordResult answers one Record.
type RecordResult struct {
	Err      error
	Step     task.Step  // as stored now or before
	Enqueued []Enqueued // one for each of Tasks
	Same     bool       // a checkpoint with the same value existed
	Asked    string     // why the cost of the step ended the task; "" otherwise and for a repetition
}

// Tx is a caller's transaction, wrapped by the adapter that knows its driver.
type Tx interface {
	// Driver returns the name of the adapter, for messages.
	Driver() string
	// Handle returns the driver's transaction: a *sql.Tx or a pgx.Tx.
	Handle() any
}
