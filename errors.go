package weaver

import (
	"errors"
	"fmt"

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
	// ErrNotBuilt: part of the contract, but not of this version.
	ErrNotBuilt = errors.New("not built yet")
	// ErrForeignTx: the transaction belongs to another driver or database.
	ErrForeignTx = store.ErrForeignTx
	// ErrRestartTx: the caller's transaction cannot go on; begin it again.
	ErrRestartTx = store.ErrRestartTx
	// ErrNestedTx: a client was used inside StepTx; use InStepTx.
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
	// ErrNewerSchema: the store's schema is newer than the program.
	ErrNewerSchema = store.ErrNewerSchema
)

// When tasks are read and operated.
var (
	// ErrNotFound: no such task or job in this namespace.
	ErrNotFound = store.ErrNotFound
	// ErrState: the state of the task does not allow it.
	ErrState = store.ErrState
	// ErrBadCursor: the cursor did not come from a list.
	ErrBadCursor = store.ErrBadCursor
	// ErrBlocked: the task that is waited for needs a person.
	ErrBlocked = errors.New("the task is blocked")
	// ErrUnbound: a handle of a transaction that the client cannot see the end of.
	ErrUnbound = errors.New("this handle belongs to a transaction: read the task with a client after the commit")
	// ErrWrongType: the task is of another task type.
	ErrWrongType = errors.New("the task is of another type")
)

// When the store has trouble.
var (
	ErrUnavailable     = store.ErrUnavailable
	ErrBusy            = store.ErrBusy
	ErrFull            = store.ErrFull
	ErrReadOnly        = store.ErrReadOnly
	ErrNotDatabase     = store.ErrNotDatabase
	ErrForeignDatabase = store.ErrForeignDatabase
	ErrUnknown         = store.ErrUnknown
)

// Inside handlers.
var (
	// ErrSuspended: the task waits; return. See Suspended.
	ErrSuspended = engine.ErrSuspended
	// ErrNoTask: the context is not a handler's.
	ErrNoTask = engine.ErrNoTask
	// ErrAttemptOver: the handler has returned already.
	ErrAttemptOver = engine.ErrAttemptOver
	// ErrDuplicateStep: a step name was used twice in one attempt.
	ErrDuplicateStep = engine.ErrDuplicateStep
	// ErrNestedStep: a step began inside another one.
	ErrNestedStep = engine.ErrNestedStep
	// ErrTxType: StepTx asks for another transaction type than the store's.
	ErrTxType = engine.ErrTxType
	// ErrStepTxTooLong: the step's transaction was rolled back.
	ErrStepTxTooLong = store.ErrStepTxTooLong
	// ErrNoSuchNeed: Output asks for a node that the task does not need.
	ErrNoSuchNeed = errors.New("the task has no such need")
	// ErrNotSucceeded: Output asks for a need that did not succeed.
	ErrNotSucceeded = errors.New("the needed task has not succeeded")
)

// Why a handler's context ended: context.Cause returns one of these.
var (
	ErrCancelled      = engine.ErrCancelled
	ErrDeadline       = engine.ErrDeadline
	ErrTimeout        = engine.ErrTimeout
	ErrLeaseLost      = store.ErrLeaseLost
	ErrLeaseUncertain = engine.ErrLeaseUncertain
	ErrDraining       = engine.ErrDraining
)

// TaskError is what Wait returns for a task that failed or was cancelled.
type TaskError struct {
	ID         TaskID
	Type       string
	State      State // failed or cancelled
	Kind       ErrorKind
	Message    string
	FailedStep string // the step that failed; "" when none did
	Attempts   int    // that counted
}

// Error implements error.
func (e *TaskError) Error() string {
	return fmt.Sprintf("task %s (%s) %s after %d attempts: %s: %s", e.ID, e.Type, e.State, e.Attempts, e.Kind, e.Message)
}

func taskError(t *task.Task) *TaskError {
	e := &TaskError{ID: t.ID, Type: t.Type, State: t.State, Attempts: t.AttemptCount}
	if t.Error != nil {
		e.Kind, e.Message, e.FailedStep = t.Error.Kind, t.Error.Message, t.Error.Step
	}
	return e
}

// StepError is the failure of a step, as its caller sees it. On a replay of
// RecordError it carries the recorded message and no Err.
type StepError = engine.StepError

// PanicError is a panic of a step's function.
type PanicError = engine.PanicError

// RunningError is what Run returns when handlers ignored the end of their
// context: it names them.
type RunningError = engine.RunningError
