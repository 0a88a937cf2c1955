package store

import "errors"

// When a lease holder writes.
var (
	// ErrLeaseLost: the task has another epoch or lease, or does not run.
	// Nothing was written.
	ErrLeaseLost = errors.New("the lease is lost: the task was taken over or ended")
	// ErrConflict: this key or lease is already taken by something else.
	ErrConflict = errors.New("conflicts with what is recorded")
	// ErrStepConflict: the step's name already has another value.
	ErrStepConflict = errors.New("another value is recorded for this step")
	// ErrCancelRequested: the task is to be cancelled; the value was not stored.
	ErrCancelRequested = errors.New("the task is being cancelled")
	// ErrLimit: the task has as many children, or signals that no wait took, as it may
	// have, or is too deep below others; or what describes a task type is too large.
	// Nothing was stored.
	ErrLimit = errors.New("over a limit")
	// ErrRefused: what was given cannot be stored, however often it is tried: a text is
	// too long to be indexed or no text, or a constraint of the database does not allow
	// it. Nothing was stored.
	ErrRefused = errors.New("the store refuses what was given")
	// ErrBlobGone: the blob that a value or an artifact names is being deleted, or was.
	// Nothing was stored; upload the bytes again.
	ErrBlobGone = errors.New("the blob is gone")
	// ErrOtherBucket: the blobs of the namespace are in another bucket than the one that
	// was named. Nothing was stored.
	ErrOtherBucket = errors.New("this is another bucket")
	// ErrStepTxTooLong: the step's transaction was rolled back.
	ErrStepTxTooLong = errors.New("the step's transaction took too long and was rolled back")
	// ErrStepTxRefused: the commit of a StepTx broke a constraint of what its function
	// wrote, such as a deferred one. Nothing of it was kept.
	ErrStepTxRefused = errors.New("the commit of the step's transaction was refused")
	// ErrStepTxEnded: the function of a StepTx committed or rolled back the
	// transaction. Nothing of it was kept.
	ErrStepTxEnded = errors.New("the step's function ended the transaction itself")
)

// When something is asked for.
var (
	// ErrNotFound: no such task or job in this namespace.
	ErrNotFound = errors.New("not found")
	// ErrState: the task's state does not allow it; the message says which does.
	ErrState = errors.New("not possible in this state")
	// ErrChanged: the task is not the one that the operator saw any more.
	ErrChanged = errors.New("the task has changed meanwhile")
	// ErrBadCursor: the cursor did not come from a list.
	ErrBadCursor = errors.New("bad cursor")
	// ErrNoFeed: no feed of events is kept, or the store cannot keep one.
	ErrNoFeed = errors.New("no feed of events is kept")
	// ErrStatsQuery: the span, the step or a field of a query of statistics is impossible,
	// or it asks for too much; the message says what.
	ErrStatsQuery = errors.New("no such statistics can be asked for")
	// ErrForeignTx: the transaction belongs to another driver or database.
	ErrForeignTx = errors.New("the transaction belongs to another database driver")
	// ErrNilTx: there is no transaction. It is an ErrForeignTx too.
	ErrNilTx error = nilTx{}
	// ErrRestartTx: the caller's transaction cannot go on; begin it again.
	ErrRestartTx = errors.New("the transaction must be restarted")
)

// When the store itself fails.
var (
	// ErrNotMigrated: the schema is missing or older than this program.
	ErrNotMigrated = errors.New("the store's schema is not migrated")
	// ErrNewerSchema: the schema is newer than this program, and one of the
	// migrations that it does not know is not made for programs without it.
	ErrNewerSchema = errors.New("the store's schema is newer than this program")
	// ErrUnavailable: the store cannot be reached or answered too late.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrGone: the store's file was deleted, moved or replaced while it was open. It is an
	// ErrUnavailable, too.
	ErrGone = errors.New("the file or its log was deleted or replaced while it was open")
	// ErrBusy: another writer kept the store locked for too long.
	ErrBusy = errors.New("the store is locked by another writer")
	// ErrFull: no space is left; nothing acknowledged was lost.
	ErrFull = errors.New("no space is left for the store")
	// ErrReadOnly: the store cannot be written.
	ErrReadOnly = errors.New("the store is read-only")
	// ErrNotDatabase: the file is not a database of this kind.
	ErrNotDatabase = errors.New("not a database")
	// ErrForeignDatabase: a database, but tables of another program have Weaver's names.
	ErrForeignDatabase = errors.New("the database holds other tables under Weaver's names")
	// ErrUnknown: the caller gave up while its write was being committed.
	ErrUnknown = errors.New("the outcome of the write is unknown")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

type nilTx struct{}

// Error implements error.
func (nilTx) Error() string {
	return "the transaction is nil: begin one, and give it wrapped, as in client.InTx(sqlite.Tx(tx))"
}

// Is makes it an ErrForeignTx.
func (nilTx) Is(target error) bool { return target == ErrForeignTx }
