package store

import "context"

// Ops is what operators do, and what keeps a store in order.
type Ops interface {
	// Operate applies commands, each in its own atomic step; those of operators are
	// audited. Results come in order; a command that cannot be applied has
	// its error in its result (ErrNotFound, ErrState, ErrChanged) and
	// changes nothing.
	Operate(ctx context.Context, ns string, cmds ...Command) ([]CommandResult, error)

	// Collect removes what the rules of req no longer keep, a bite of it: jobs that
	// have ended, with all their tasks, and tasks outside jobs that have ended, with
	// their children and with their audit; or it drops values. A task stays as long
	// as another one, that is not a task of the same job, has an edge to it: children
	// go with their parents, and what others need or await goes after them. Values
	// are dropped of tasks that succeeded, once no task is left that may read
	// them again (task.Task.ValuesDropped).
	//
	// It goes by IDs, from the oldest to those that were created too late to be old
	// enough, and reads 1,000 rows at most beside those that it moves. It is
	// right with any number of callers at once, each with its own cursor. An error
	// loses nothing: the same bite may be asked for again. With req.Blobs set it
	// collects blobs instead, with req.Expiries, req.Feed or req.Stats what these say.
	// Errors: ErrBadCursor.
	Collect(ctx context.Context, ns string, req CollectRequest) (CollectResult, error)

	// Session returns what this process knows of the session of a worker that joined
	// through this Store. Where workers each keep a session with the database, others
	// take a worker for dead, and its leases with it, when its session has ended for
	// longer than its WorkerInfo.SessionGrace. false: the worker keeps none, and no other
	// worker concludes anything from that; this answer does not change while the worker
	// is joined.
	//
	// It is called for every step: it asks no database and waits for nothing.
	Session(ns string, id WorkerID) (Session, bool)

	// Migrate brings the schema of a store that has one up to this program's version,
	// before which Ready says ErrNotMigrated. It is idempotent, and any number of
	// processes may call it at once. Errors: ErrNewerSchema, ErrForeignDatabase,
	// ErrReadOnly, ErrBusy.
	Migrate(ctx context.Context) error

	// MigrationStatus lists the migrations of this program, by version, and after them
	// those of the store that this program does not know. It writes nothing.
	MigrationStatus(ctx context.Context) ([]MigrationStatus, error)

	// Warnings returns what an operator should know now: a reader that keeps a log from
	// being cut, a clock that was set. An engine asks every third of a lease, and logs
	// them. It waits for no writer, and writes nothing.
	Warnings(ctx context.Context) []Warning
}
