package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// Errors of calls inside a handler.
var (
	// ErrNoTask: the context does not belong to a handler.
	ErrNoTask = errors.New("this context belongs to no task: pass the context that the handler was given, or one made from it")
	// ErrAttemptOver: the handler has already returned.
	ErrAttemptOver = errors.New("the attempt is over: a goroutine outlived its handler; wait for it before returning")
	// ErrDuplicateStep: the name was already used in this attempt.
	ErrDuplicateStep = errors.New("the step name was used twice in one attempt: its value is recorded under the name, so each must be unique")
	// ErrNestedStep: a step was started inside another step.
	ErrNestedStep = errors.New("a step cannot run inside another step: return from the outer one first")
	// ErrNestedTx: a client was used inside StepTx.
	ErrNestedTx = errors.New("a client cannot enqueue inside StepTx, which holds the store's writer: use weaver.InStepTx(ctx)")
	// ErrTxType: the store's transactions have another type.
	ErrTxType = errors.New("wrong transaction type for this store")
	// ErrStepTxUnsupported: the store has no transactions for user code.
	ErrStepTxUnsupported = errors.New("this store cannot run steps inside its transactions")
	// ErrSuspended: the task waits; the attempt is over and does not count.
	ErrSuspended = errors.New("the task is suspended: return, the handler runs again when the wait is over")
)

// Causes of the end of a handler's context (context.Cause).
var (
	// ErrCancelled: the task was cancelled.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrDeadline: the task's deadline passed.
	ErrDeadline = errors.New("the task's deadline has passed")
	// ErrTimeout: the attempt ran longer than the task's timeout.
	ErrTimeout = errors.New("the attempt timed out")
	// ErrLeaseUncertain: the lease could not be renewed in time; another worker may take over the task.
	ErrLeaseUncertain = errors.New("the lease could not be renewed in time")
	// ErrDraining: the engine is stopping and no longer waits for its handlers.
	ErrDraining = errors.New("the engine is stopping")
)

// Verdict is an error with the handler's instruction about retries.
type Verdict struct {
	Kind  VerdictKind
	Delay time.Duration // of RetryAfter
	Rest  string        // of RetryAfter: the limit that is to rest for Delay, or ""
	Err   error
}

// VerdictKind is the kind of a verdict.
type VerdictKind int

// The kinds of verdicts.
const (
	Permanent  VerdictKind = iota + 1 // retrying cannot help
	RetryAfter                        // retry, but not before Delay
	Blocked                           // a person must help
	NotHere                           // this worker cannot run the task; another one may
)

// Error implements error.
func (v *Verdict) Error() string { return v.Err.Error() }

// Unwrap returns the handler's own error.
func (v *Verdict) Unwrap() error { return v.Err }

// Coded is an error with a code attached by the handler, by which a Decider distinguishes it from others.
type Coded struct {
	Code string
	Err  error
}

// Error implements error.
func (c *Coded) Error() string { return c.Err.Error() }

// Unwrap returns the handler's own error.
func (c *Coded) Unwrap() error { return c.Err }

// maxCode is the maximum length of a stored code, in bytes.
const maxCode = 255

// CodeOf returns the code attached to an error, to the error of a step in an earlier attempt, or to the error of a
// child of a call; "" without a code.
func CodeOf(err error) string {
	var c *Coded
	var se *task.StepError
	var ce *task.CallError
	switch {
	case errors.As(err, &c):
		code := sanitize(c.Code)
		return strings.ToValidUTF8(code[:min(maxCode, len(code))], "")
	case errors.As(err, &se):
		return se.Code
	case errors.As(err, &ce):
		return ce.Code
	}
	return ""
}

// KindError gives an error its kind: decode_error for an unreadable input, validation_error for a value that must not
// be stored, internal for an error of the engine itself.
type KindError struct {
	Kind task.ErrorKind
	Step string
	Err  error
}

// Error implements error.
func (e *KindError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *KindError) Unwrap() error { return e.Err }

// timedOut adds the timeout to the error of an attempt, unless the error already says so.
func timedOut(err error, limit time.Duration) error {
	saysOnly := func(end error) bool { return errors.Is(err, end) && err.Error() == end.Error() } // a wrapping error adds information
	switch {
	case saysOnly(ErrTimeout), saysOnly(context.DeadlineExceeded):
		return fmt.Errorf("%w after %s", ErrTimeout, limit)
	case errors.Is(err, ErrTimeout):
		return fmt.Errorf("limit %s: %w", limit, err)
	}
	return fmt.Errorf("%w after %s: %w", ErrTimeout, limit, err)
}
