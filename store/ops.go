package store

import "context"

// Ops holds the operations of operators and maintenance.
type Ops interface {
	// Operate applies commands, each atomically, and audits those of operators. Results are in order;
	// a failed command has its error in its result (ErrNotFound, ErrState, ErrChanged) and changes
	// nothing.
	Operate(ctx context.Context, ns string, cmds ...Command) ([]CommandResult, error)

	// Collect deletes a batch of data past the retention rules of req. It deletes finished jobs with
	// all their tasks, and finished tasks outside jobs with their children and their audit; or it
	// deletes values. A task stays while a task outside its job has an edge to it: children are
	// deleted with their parents, and needed or awaited tasks after their dependents. Values are
	// deleted from succeeded tasks that no remaining task may read again (task.Task.ValuesDropped).
	//
	// It proceeds by ID, from the oldest to those too young to expire, and reads at most 1,000 rows in
	// addition to those that it moves. Concurrent callers are safe, each with its own cursor. After an
	// error the same call may be repeated. req.Blobs, req.Expiries, req.Feed and req.Stats select
	// other batches. Error: ErrBadCursor.
	Collect(ctx context.Context, ns string, req CollectRequest) (CollectResult, error)

	// Publish (CanPublish) records the outcomes req.Pushed, and returns due tasks whose hints are to be
	// sent, in claim order (W4). It marks their dispatch rows as sent for req.Hold and commits before
	// it returns, so that a worker that receives a hint finds the row unlocked. It skips rows with a
	// mark that has not ended, paused queues and types, locked rows, and all but the first 256 due
	// rows of each lane. Any number of publishers may call it concurrently; each hint goes to one of
	// them. A row that is written again, because its task became claimable again, has no mark.
	//
	// An outcome changes only a row that still has its mark. A hint that the transport took is not
	// sent again for Pushed.For, and the row has no error any more. With Pushed.Error the row keeps
	// the error.
	Publish(ctx context.Context, ns string, req PublishRequest) (PublishResult, error)

	// Session returns the state of the database session of a worker that joined through this Store. If
	// workers each keep a session, other workers treat a worker as dead, and take its leases, when its
	// session has been down for longer than its WorkerInfo.SessionGrace. false: the worker keeps no
	// session, and no other worker draws conclusions from that; this answer is constant while the
	// worker is joined.
	//
	// Session is called for every step: it makes no query and never blocks.
	Session(ns string, id WorkerID) (Session, bool)

	// Migrate upgrades the schema of a store to this program's version; before that, Ready returns
	// ErrNotMigrated. It is idempotent, and processes may call it concurrently. Errors:
	// ErrNewerSchema, ErrForeignDatabase, ErrReadOnly, ErrBusy.
	Migrate(ctx context.Context) error

	// MigrationStatus lists the migrations of this program, by version, then unknown ones found in the
	// store. It only reads.
	MigrationStatus(ctx context.Context) ([]MigrationStatus, error)

	// Warnings returns the current warnings for operators: a reader that prevents log truncation, a
	// clock that was set. An engine calls it every third of a lease and logs them. It waits for no
	// writer and only reads.
	Warnings(ctx context.Context) []Warning
}
