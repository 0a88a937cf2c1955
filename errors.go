package weaver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// When tasks are submitted.
var (
	// ErrTooLarge: a payload is over the inline limit and no bucket is there.
	ErrTooLarge = errors.New("payload over the inline limit")
	// ErrInvalidInput: the input's own Validate refused it, or its JSON cannot be stored.
	ErrInvalidInput = errors.New("invalid input")
	// ErrInvalidJob: Submit lists what is wrong with the job.
	ErrInvalidJob = errors.New("invalid job")
	// ErrInvalidOption: an option has an impossible value.
	ErrInvalidOption = errors.New("invalid option")
	// ErrForeignTx: the transaction belongs to another driver or database.
	ErrForeignTx = store.ErrForeignTx
	// ErrRestartTx: the caller's transaction cannot go on; begin it again.
	ErrRestartTx = store.ErrRestartTx
	// ErrNestedTx: a client was used inside StepTx; use InStepTx. A handler that
	// returns it fails its task: another attempt would make the same mistake.
	ErrNestedTx = engine.ErrNestedTx
)

// When an engine is built or started.
var (
	// ErrConfig: New lists every problem of the configuration.
	ErrConfig = errors.New("invalid configuration")
	// ErrRunning: the engine runs already.
	ErrRunning = engine.ErrRunning
	// ErrNotMigrated: the store's schema is missing or older than the program.
	ErrNotMigrated = store.ErrNotMigrated
	// ErrNewerSchema: the store's schema is newer than the program, which cannot run
	// beside it.
	ErrNewerSchema = store.ErrNewerSchema
)

// When tasks are read and operated.
var (
	// ErrNotFound: no such task or job in this namespace.
	ErrNotFound = store.ErrNotFound
	// ErrState: the state of the task does not allow it.
	ErrState = store.ErrState
	// ErrChanged: the task is not the one that was seen any more; see SeenEpoch.
	ErrChanged = store.ErrChanged
	// ErrConflict: a signal was sent under this key before, with another payload.
	ErrConflict = store.ErrConflict
	// ErrLimit: no more signals are kept for the task until its waits take some.
	ErrLimit = store.ErrLimit
	// ErrSignalInTx: a TxClient sends no signals.
	ErrSignalInTx = errors.New("a signal is not sent inside a transaction: it moves the task, which would be locked until that ends; send it with the client after the commit, or enqueue a task that sends it")
	// ErrValuesDropped: a rule of retention dropped what is asked for (RetainValues).
	ErrValuesDropped = errors.New("its values were dropped by a rule of retention")
	// ErrForgotten: what is asked for was erased (Client.Forget).
	ErrForgotten = engine.ErrForgotten
	// ErrNoBucket: a value or an artifact is in a bucket, and none is configured.
	ErrNoBucket = engine.ErrNoBucket
	// ErrRefused: what was given cannot be stored, however often it is tried: a text is
	// too long to be indexed, or a constraint of the database does not allow it.
	ErrRefused = store.ErrRefused
	// ErrBlobGone: bytes were deleted from the bucket before something could name them.
	ErrBlobGone = store.ErrBlobGone
	// ErrOtherBucket: the bucket is not the one that has the namespace's blobs; see
	// Client.AcceptBucket.
	ErrOtherBucket = store.ErrOtherBucket
	// ErrBadCursor: the cursor did not come from a list.
	ErrBadCursor = store.ErrBadCursor
	// ErrNoFeed: no events of all tasks are kept: see Client.KeepEvents.
	ErrNoFeed = store.ErrNoFeed
	// ErrInvalidQuery: the text is no query; QueryError says where and why.
	ErrInvalidQuery = errors.New("invalid query")
	// ErrBlocked: the task that is waited for needs a person.
	ErrBlocked = errors.New("the task is blocked")
	// ErrUnbound: a handle of a transaction that the client cannot see the end of.
	ErrUnbound = errors.New("this handle belongs to a transaction: read the task with a client after the commit")
	// ErrNoSuchNode: no task of the job has this name.
	ErrNoSuchNode = errors.New("the job has no such task")
	// ErrWrongType: the task is of another task type.
	ErrWrongType = errors.New("the task is of another type")
)

// When the store cannot be used. An engine that runs waits and goes on by
// itself; calls that enqueue, read and operate return these.
var (
	// ErrUnavailable: the store cannot be reached or answered too late; try again.
	ErrUnavailable = store.ErrUnavailable
	// ErrGone: the store's file was deleted, moved or replaced while it was open. Nothing
	// is written any more; put it back, or open the store again.
	ErrGone = store.ErrGone
	// ErrBusy: another writer kept the store locked for too long. Look for an
	// open transaction, then try again.
	ErrBusy = store.ErrBusy
	// ErrFull: no space is left. Nothing acknowledged was lost; make room and go on.
	ErrFull = store.ErrFull
	// ErrReadOnly: the store cannot be written; check the permissions of the file
	// and its folder.
	ErrReadOnly = store.ErrReadOnly
	// ErrNotDatabase: the file is not a database of this kind, or is damaged. Name
	// another one, or restore it from a backup.
	ErrNotDatabase = store.ErrNotDatabase
	// ErrForeignDatabase: a database whose tables are not Weaver's; give Weaver a
	// file of its own.
	ErrForeignDatabase = store.ErrForeignDatabase
	// ErrUnknown: the caller gave up while its write was being committed. Look
	// before doing it again, or enqueue with an IdempotencyKey.
	ErrUnknown = store.ErrUnknown
	// ErrClosed: the store was closed, or is being closed; open it again.
	ErrClosed = store.ErrClosed
)

// Inside handlers.
var (
	// ErrSuspended: the task waits; return. See Suspended.
	ErrSuspended = engine.ErrSuspended
	// ErrNoAnswer: the time of AnswerWithin passed without an answer.
	ErrNoAnswer = errors.New("nobody answered in time")
	// ErrNoTask: the context is not a handler's.
	ErrNoTask = engine.ErrNoTask
	// ErrAttemptOver: the handler has returned already.
	ErrAttemptOver = engine.ErrAttemptOver
	// ErrDuplicateStep: a step name was used twice in one attempt.
	ErrDuplicateStep = engine.ErrDuplicateStep
	// ErrNestedStep: a step began inside another one.
	ErrNestedStep = engine.ErrNestedStep
	// ErrSpendOutside: Spend was called outside of a step.
	ErrSpendOutside = engine.ErrSpendOutside
	// ErrStepConflict: the store has another value for this step than the attempt
	// wants to write. The recorded one is kept.
	ErrStepConflict = store.ErrStepConflict
	// ErrTxType: StepTx asks for another transaction type than the store's: *sql.Tx on
	// SQLite and PostgreSQL, or pgx.Tx on PostgreSQL.
	ErrTxType = engine.ErrTxType
	// ErrStepTxTooLong: the step's transaction was rolled back.
	ErrStepTxTooLong = store.ErrStepTxTooLong
	// ErrStepTxRefused: the commit of the step's transaction broke a constraint of what its
	// function wrote, such as a deferred one, or on PostgreSQL a statement failed before and
	// the function returned no error. Nothing of it was kept.
	ErrStepTxRefused = store.ErrStepTxRefused
	// ErrStepTxEnded: the step's function committed or rolled back the transaction
	// itself. Nothing of it was kept, and the task fails at once.
	ErrStepTxEnded = store.ErrStepTxEnded
	// ErrCleanupTooLong: the cleanup was ended, or did not begin, because
	// CleanupLimit had passed since the attempt was asked to end.
	ErrCleanupTooLong = engine.ErrCleanupTooLong
	// ErrNoSuchStep: RerunFrom names a step that the task did not record.
	ErrNoSuchStep = errors.New("the task recorded no such step")
	// ErrNoSuchNeed: Output asks for a node that the task does not need.
	ErrNoSuchNeed = errors.New("the task has no such need")
	// ErrNotSucceeded: Output asks for a need, or JobOutput for a task, that did
	// not succeed.
	ErrNotSucceeded = errors.New("the needed task has not succeeded")
)

// Why a handler's context ended: context.Cause returns one of these. Return
// soon, whatever it is; the comments say what becomes of the task.
var (
	// ErrCancelled: the task was cancelled; it ends cancelled unless the handler
	// succeeds all the same.
	ErrCancelled = engine.ErrCancelled
	// ErrDeadline: the task's or the job's time is over; it ends cancelled unless the
	// handler succeeds all the same.
	ErrDeadline = engine.ErrDeadline
	// ErrUndoing: the task ends for another reason, and its undos and cleanups run first
	// (CleanupWhenCancelled).
	ErrUndoing = engine.ErrUndoing
	// ErrTimeout: the attempt took longer than Timeout allows. An error that the handler
	// returns then is a failure by timeout, and the task is tried again while attempts are
	// left. If the handler returns success all the same, the task has succeeded, and values
	// of steps that were running are recorded; a step that has not begun returns ErrTimeout.
	ErrTimeout = engine.ErrTimeout
	// ErrLeaseLost: another worker has the task, or an operator ended it. Nothing
	// that this attempt still writes is kept.
	ErrLeaseLost = store.ErrLeaseLost
	// ErrLeaseUncertain: the store was not reached for so long that the lease may
	// have expired. Another worker may run the task by now.
	ErrLeaseUncertain = engine.ErrLeaseUncertain
	// ErrDraining: the engine stops; the task is given back at no cost and runs
	// again.
	ErrDraining = engine.ErrDraining
)

// TaskError is what Wait returns for a task that failed or was cancelled.
type TaskError struct {
	ID         TaskID
	Type       string
	State      State // failed or cancelled
	Kind       ErrorKind
	Code       string // that the handler attached with WithCode; "" when none was
	Message    string
	FailedStep string // the step that failed; "" when none did
	Attempts   int    // that counted
}

// Error implements error.
func (e *TaskError) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	text := fmt.Sprintf("task %s (%s) %s after %d %s", e.ID, e.Type, e.State, e.Attempts, attempts)
	// The state and the kind of the error may be the same word, and the message
	// may begin with it: it stands in the text once.
	kind, message := string(e.Kind), e.Message
	of := task.Error{Kind: e.Kind, Message: message, Step: e.FailedStep}
	said := kind == string(e.State)
	switch {
	case said && of.SaysKind():
		message = strings.TrimLeft(strings.TrimPrefix(message, kind), ": ")
	case kind != "" && !said && !of.SaysKind():
		text += ": " + kind
	}
	if message != "" {
		text += ": " + message
	}
	return text
}

func taskError(t *task.Task) *TaskError {
	e := &TaskError{ID: t.ID, Type: t.Type, State: t.State, Attempts: t.AttemptCount}
	if t.Error != nil {
		e.Kind, e.Code, e.Message, e.FailedStep = t.Error.Kind, t.Error.Code, t.Error.Message, t.Error.Step
	}
	return e
}

// StepError is the failure of a step, as its caller sees it. On a replay of
// RecordError it carries the recorded message and no Err.
type StepError = task.StepError

// PanicError is a panic of a step's function.
type PanicError = task.PanicError

// RunningError is what Run returns when handlers ignored the end of their
// context: it names them.
type RunningError = task.RunningError
