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
)

// When tasks are read and operated.
var (
	// ErrNotFound: no such task or job in this namespace.
	ErrNotFound = store.ErrNotFound
	// ErrState: the state of the task does not allow it.
	ErrState = store.ErrState
	// ErrConflict: a signal was sent under this key before, with another payload.
	ErrConflict = store.ErrConflict
	// ErrValuesDropped: a rule of retention dropped what is asked for (Retention.Values).
	ErrValuesDropped = errors.New("its values were dropped by a rule of retention")
	// ErrForgotten: what is asked for was erased (Client.Forget).
	ErrForgotten = engine.ErrForgotten
	// ErrBlocked: the task that is waited for needs a person.
	ErrBlocked = errors.New("the task is blocked")
	// ErrUnbound: a handle of a transaction that the client cannot see the end of.
	ErrUnbound = errors.New("this handle belongs to a transaction: read the task with a client after the commit")
	// ErrNoSuchNode: no task of the job has this name.
	ErrNoSuchNode = errors.New("the job has no such task")
	// ErrWrongType: the task is of another task type.
	ErrWrongType = errors.New("the task is of another type")
)

// Inside handlers.
var (
	// ErrSuspended: the task waits; return. See Suspended.
	ErrSuspended = engine.ErrSuspended
	// ErrNoAnswer: the time that Ask was given passed without an answer.
	ErrNoAnswer = errors.New("nobody answered in time")
	// ErrNoTask: the context is not a handler's.
	ErrNoTask = engine.ErrNoTask
	// ErrAttemptOver: the handler has returned already.
	ErrAttemptOver = engine.ErrAttemptOver
	// ErrDuplicateStep: a step name was used twice in one attempt.
	ErrDuplicateStep = engine.ErrDuplicateStep
	// ErrNestedStep: a step began inside another one.
	ErrNestedStep = engine.ErrNestedStep
	// ErrTxType: StepTx asks for another transaction type than the store's: *sql.Tx on
	// SQLite and PostgreSQL, or pgx.Tx on PostgreSQL.
	ErrTxType = engine.ErrTxType
	// ErrStepTxTooLong: the step's transaction was rolled back.
	ErrStepTxTooLong = store.ErrStepTxTooLong
	// ErrCleanupTooLong: the cleanup was ended, or did not begin, because
	// 30 s had passed since the attempt was asked to end.
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
	Kind       task.ErrorKind
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
