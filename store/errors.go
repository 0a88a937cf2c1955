package store

import "errors"

// Errors of a lease holder's writes.
var (
	// ErrLeaseLost: the task has another epoch or lease, or is not running. Nothing was written.
	ErrLeaseLost = errors.New("the lease is lost: the task was taken over or ended")
	// ErrConflict: another use of this key or lease is recorded.
	ErrConflict = errors.New("conflicts with what is recorded")
	// ErrStepConflict: the step's name already has another value.
	ErrStepConflict = errors.New("another value is recorded for this step")
	// ErrCancelRequested: the task must end; the value was not stored.
	ErrCancelRequested = errors.New("the task is being cancelled")
	// ErrLimit: the task has the maximum number of children, of signals not yet taken, or of nesting
	// levels; or the description of a task type is too large. Nothing was stored.
	ErrLimit = errors.New("over a limit")
	// ErrRefused: the value can never be stored: a text is too long to index or is not valid text, or
	// a database constraint does not allow it. Nothing was stored.
	ErrRefused = errors.New("the store refuses the value")
	// ErrBlobGone: the blob of a value or an artifact is being or was deleted. Nothing was stored;
	// upload the bytes again.
	ErrBlobGone = errors.New("the blob is gone")
	// ErrOtherBucket: the namespace's blobs are in a different bucket. Nothing was stored.
	ErrOtherBucket = errors.New("this is another bucket")
	// ErrStepTxTooLong: the step's transaction was rolled back.
	ErrStepTxTooLong = errors.New("the step's transaction took too long and was rolled back")
	// ErrStepTxRefused: the commit of a StepTx broke a constraint on its function's writes, such as a
	// deferred one. All of them were rolled back.
	ErrStepTxRefused = errors.New("the commit of the step's transaction was refused")
	// ErrStepTxEnded: the function of a StepTx committed or rolled back the transaction. The store
	// kept nothing of the step.
	ErrStepTxEnded = errors.New("the step's function ended the transaction itself")
)

// Errors of reads and commands.
var (
	// ErrNotFound: the namespace has no such task or job.
	ErrNotFound = errors.New("not found")
	// ErrState: the task's state does not allow the command. The message names the states that do.
	ErrState = errors.New("not possible in this state")
	// ErrChanged: the task has changed since the operator read it.
	ErrChanged = errors.New("the task has changed meanwhile")
	// ErrBadCursor: no list returned this cursor.
	ErrBadCursor = errors.New("bad cursor")
	// ErrNoFeed: the namespace keeps no feed of events, or the store does not support one.
	ErrNoFeed = errors.New("no feed of events is kept")
	// ErrStatsQuery: the span, the step or a field of a statistics query is invalid, or the query is
	// too large. The message says which.
	ErrStatsQuery = errors.New("invalid query of statistics")
	// ErrForeignTx: the transaction belongs to another driver or database.
	ErrForeignTx = errors.New("the transaction belongs to another database driver")
	// ErrNilTx: the transaction is nil. It is an ErrForeignTx, too.
	ErrNilTx error = nilTx{}
	// ErrRestartTx: the caller must begin its transaction again.
	ErrRestartTx = errors.New("the transaction must be restarted")
)

// Errors of the store itself.
var (
	// ErrNotMigrated: the schema is missing or older than this program.
	ErrNotMigrated = errors.New("the store's schema is not migrated")
	// ErrNewerSchema: the schema is newer than this program, and an unknown migration is incompatible
	// with older programs.
	ErrNewerSchema = errors.New("the store's schema is newer than this program")
	// ErrUnavailable: the store cannot be reached, or did not answer in time.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrGone: the store's file was deleted, moved or replaced while it was open. It is an
	// ErrUnavailable, too.
	ErrGone = errors.New("the file or its log was deleted or replaced while it was open")
	// ErrBusy: another writer held the store's lock for too long.
	ErrBusy = errors.New("the store is locked by another writer")
	// ErrFull: the disk is full. No acknowledged write is lost.
	ErrFull = errors.New("no space is left for the store")
	// ErrReadOnly: the store cannot be written.
	ErrReadOnly = errors.New("the store is read-only")
	// ErrNotDatabase: the file is not a database of this kind.
	ErrNotDatabase = errors.New("not a database")
	// ErrForeignDatabase: the database has tables of another program under Weaver's names.
	ErrForeignDatabase = errors.New("the database holds other tables under Weaver's names")
	// ErrUnknown: the caller's context ended while its write was being committed.
	ErrUnknown = errors.New("the outcome of the write is unknown")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

type nilTx struct{}

// Error implements error.
func (nilTx) Error() string {
	return "the transaction is nil: begin one, and give it wrapped, as in client.InTx(sqlite.Tx(tx))"
}

// Is reports true for ErrForeignTx.
func (nilTx) Is(target error) bool { return target == ErrForeignTx }
