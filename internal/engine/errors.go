package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// What calls inside a handler can return.
var (
	// ErrNoTask: the context is not one that a handler was given.
	ErrNoTask = errors.New("this context belongs to no task: pass the context that the handler was given, or one made from it")
	// ErrAttemptOver: the handler has returned already.
	ErrAttemptOver = errors.New("the attempt is over: a goroutine outlived its handler; wait for it before returning")
	// ErrDuplicateStep: the name was used before in this attempt.
	ErrDuplicateStep = errors.New("the step name was used twice in one attempt: its value is recorded under the name, so each must be unique")
	// ErrNestedStep: a step was begun inside another step.
	ErrNestedStep = errors.New("a step cannot run inside another step: return from the outer one first")
	// ErrNestedTx: a client was used inside StepTx.
	ErrNestedTx = errors.New("a client cannot enqueue inside StepTx, which holds the store's writer: use weaver.InStepTx(ctx)")
	// ErrTxType: the store's transactions are of another type.
	ErrTxType = errors.New("wrong transaction type for this store")
	// ErrStepTxUnsupported: the store has no transactions for user code.
	ErrStepTxUnsupported = errors.New("this store cannot run steps inside its transactions")
	// ErrSuspended: the task waits; the attempt is over and costs nothing.
	ErrSuspended = errors.New("the task is suspended: return, the handler runs again when the wait is over")
)

// Why a handler's context ended (context.Cause).
var (
	// ErrCancelled: the task was cancelled.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrDeadline: the task's deadline passed.
	ErrDeadline = errors.New("the task's deadline has passed")
	// ErrTimeout: the attempt ran longer than the task's timeout.
	ErrTimeout = errors.New("the attempt timed out")
	// ErrLeaseUncertain: the lease could not be renewed in time; another
	// worker may take the task over.
	ErrLeaseUncertain = errors.New("the lease could not be renewed in time")
	// ErrDraining: the engine stops and gave its handlers up.
	ErrDraining = errors.New("the engine is stopping")
)

// Verdict is an error with what the handler says about retrying.
type Verdict struct {
	Kind  VerdictKind
	Delay time.Duration // RetryAfter
	Err   error
}

// VerdictKind is the kind of a verdict.
type VerdictKind int

// What a handler can say about its failure.
const (
	Permanent  VerdictKind = iota + 1 // retrying cannot help
	RetryAfter                        // retry, but not before Delay
	Blocked                           // a person has to help
	NotHere                           // this worker cannot run the task, another one may
)

// Error implements error.
func (v *Verdict) Error() string { return v.Err.Error() }

// Unwrap gives the handler's own error.
func (v *Verdict) Unwrap() error { return v.Err }

// Coded is an error with a code that the handler attached, by which a Decider
// distinguishes it from others.
type Coded struct {
	Code string
	Err  error
}

// Error implements error.
func (c *Coded) Error() string { return c.Err.Error() }

// Unwrap gives the handler's own error.
func (c *Coded) Unwrap() error { return c.Err }

// maxCode is how long a code is kept, in bytes.
const maxCode = 255

// CodeOf returns the code that was attached to an error, to what a step
// returned in an earlier attempt, or to that of a child of a call; "" if none was.
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

// KindError gives an error its kind: decode_error for an input that cannot be
// read, validation_error for a value that must not be stored, internal for
// an error of the engine itself.
type KindError struct {
	Kind task.ErrorKind
	Step string
	Err  error
}

// Error implements error.
func (e *KindError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *KindError) Unwrap() error { return e.Err }

// timedOut adds to the error of an attempt that it timed out, unless that is
// what the error says.
func timedOut(err error, limit time.Duration) error {
	saysOnly := func(end error) bool { return errors.Is(err, end) && err.Error() == end.Error() } // what wraps it says more
	switch {
	case saysOnly(ErrTimeout), saysOnly(context.DeadlineExceeded):
		return fmt.Errorf("%w after %s", ErrTimeout, limit)
	case errors.Is(err, ErrTimeout):
		return fmt.Errorf("limit %s: %w", limit, err)
	}
	return fmt.Errorf("%w after %s: %w", ErrTimeout, limit, err)
}
