package weaver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Errors of submissions.
var (
	// ErrTooLarge: a payload is over the inline limit and no bucket is configured.
	ErrTooLarge = errors.New("payload over the inline limit")
	// ErrInvalidInput: the input's own Validate refused it, or its JSON cannot be stored.
	ErrInvalidInput = errors.New("invalid input")
	// ErrInvalidJob: the job is invalid. Submit lists every problem.
	ErrInvalidJob = errors.New("invalid job")
	// ErrInvalidSchedule: a schedule cannot be stored; the message lists every problem.
	ErrInvalidSchedule = errors.New("invalid schedule")
	// ErrInvalidOption: an option has an invalid value.
	ErrInvalidOption = errors.New("invalid option")
	// ErrNestedTx: a client was used inside StepTx; use InStepTx. A handler that
	// returns it fails its task: another attempt would make the same mistake.
	ErrNestedTx = engine.ErrNestedTx
)

// Errors of creating or starting an engine.
var (
	// ErrConfig: the configuration is invalid. New lists every problem.
	ErrConfig = errors.New("invalid configuration")
	// ErrRunning: the engine is already running.
	ErrRunning = engine.ErrRunning
)

// Errors of reads and commands.
var (
	// ErrNotFound: the namespace has no such task or job.
	ErrNotFound = store.ErrNotFound
	// ErrState: the state of the task does not allow the command.
	ErrState = store.ErrState
	// ErrConflict: an earlier signal with this key has another payload.
	ErrConflict = store.ErrConflict
	// ErrValuesDropped: a retention rule deleted the values (Retention.Values).
	ErrValuesDropped = errors.New("its values were dropped by a rule of retention")
	// ErrForgotten: the values were erased (Client.Forget).
	ErrForgotten = engine.ErrForgotten
	// ErrBlocked: the awaited task needs a person.
	ErrBlocked = errors.New("the task is blocked")
	// ErrUnbound: the handle belongs to a transaction whose end the client cannot observe.
	ErrUnbound = errors.New("this handle belongs to a transaction: read the task with a client after the commit")
	// ErrNoSuchNode: the job has no task with this name.
	ErrNoSuchNode = errors.New("the job has no such task")
	// ErrWrongType: the task is of another task type.
	ErrWrongType = errors.New("the task is of another type")
)

// Errors inside handlers.
var (
	// ErrSuspended: the task waits; return. See Suspended.
	ErrSuspended = engine.ErrSuspended
	// ErrNoAnswer: the time limit of Ask passed without an answer.
	ErrNoAnswer = errors.New("nobody answered in time")
	// ErrNoTask: the context is not a handler's.
	ErrNoTask = engine.ErrNoTask
	// ErrAttemptOver: the handler has already returned.
	ErrAttemptOver = engine.ErrAttemptOver
	// ErrDuplicateStep: a step name was used twice in one attempt.
	ErrDuplicateStep = engine.ErrDuplicateStep
	// ErrNestedStep: a step began inside another step.
	ErrNestedStep = engine.ErrNestedStep
	// ErrTxType: StepTx asks for a transaction type that the store does not have: use *sql.Tx on
	// SQLite and PostgreSQL, or pgx.Tx on PostgreSQL.
	ErrTxType = engine.ErrTxType
	// ErrStepTxTooLong: the step's transaction was rolled back.
	ErrStepTxTooLong = store.ErrStepTxTooLong
	// ErrCleanupTooLong: the cleanup was ended or did not begin, because 30 s had passed since the
	// attempt was asked to end.
	ErrCleanupTooLong = engine.ErrCleanupTooLong
	// ErrNoSuchStep: RerunFrom names a step that the task has not recorded.
	ErrNoSuchStep = errors.New("the task recorded no such step")
	// ErrNoSuchNeed: Output asks for a node that the task does not need.
	ErrNoSuchNeed = errors.New("the task has no such need")
	// ErrNotSucceeded: the need of Output, or the task of JobOutput, did not succeed.
	ErrNotSucceeded = errors.New("the needed task has not succeeded")
)

// Causes of the end of a handler's context, returned by context.Cause. Return soon after any of them;
// the comments describe the task's next state.
var (
	// ErrCancelled: the task was cancelled; it ends cancelled unless the handler still succeeds.
	ErrCancelled = engine.ErrCancelled
	// ErrDeadline: the deadline of the task or job has passed; it ends cancelled unless the handler
	// still succeeds.
	ErrDeadline = engine.ErrDeadline
	// ErrUndoing: the task ends for another reason, after its undos and cleanups
	// (CleanupWhenCancelled).
	ErrUndoing = engine.ErrUndoing
	// ErrTimeout: the attempt exceeded its Timeout. An error that the handler then returns is a
	// failure by timeout, and the task is retried while it has attempts left. If the handler still
	// returns success, the task has succeeded, and running steps record their values; a step that has
	// not begun returns ErrTimeout.
	ErrTimeout = engine.ErrTimeout
	// ErrLeaseLost: another worker has the task, or an operator ended it. Later writes of this attempt
	// are discarded.
	ErrLeaseLost = store.ErrLeaseLost
	// ErrLeaseUncertain: the store was unreachable for so long that the lease may have expired.
	// Another worker may already run the task.
	ErrLeaseUncertain = engine.ErrLeaseUncertain
	// ErrDraining: the engine stops; the task is released at no cost and runs again.
	ErrDraining = engine.ErrDraining
)

// TaskError is the error of Wait for a task that failed or was cancelled.
type TaskError struct {
	ID         TaskID
	Type       string
	State      State // failed or cancelled
	Kind       task.ErrorKind
	Code       string // set by the handler with WithCode; "" by default
	Message    string
	FailedStep string // the step that failed; "" if no step failed
	Attempts   int    // number of attempts that counted
}

// Error implements error.
func (e *TaskError) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	text := fmt.Sprintf("task %s (%s) %s after %d %s", e.ID, e.Type, e.State, e.Attempts, attempts)
	// The state and the kind of the error may be the same word, and the message may begin with it:
	// print it once.
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
