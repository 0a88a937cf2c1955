package engine

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// isTransient reports whether err is a transient store error. A handler that returns one met it, for example while
// reading an output or enqueuing a task. It is not a failure of the handler's own, unless the handler gave it a
// verdict.
func isTransient(err error) bool {
	var v *Verdict
	return !errors.As(err, &v) && store.Transient(nil, err)
}

// noResult reports whether err, returned or panicked by a step's function, says nothing about the step. That is so if
// a context or the attempt ended, the store or its driver failed temporarily, or this worker cannot run the step. It
// is never recorded as the step's result (R10), whatever verdict the function gave it.
func (a *Attempt) noResult(err error) bool {
	for _, end := range []error{
		context.Canceled, context.DeadlineExceeded,
		ErrCancelled, ErrDeadline, ErrTimeout, ErrLeaseUncertain, ErrDraining, ErrSuspended, ErrAttemptOver, ErrCleanupTooLong,
		store.ErrLeaseLost, store.ErrCancelRequested, store.ErrClosed,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	if notHere(err) {
		return true
	}
	var p *task.PanicError
	if errors.As(err, &p) {
		if inner, ok := p.Value.(error); ok && a.noResult(inner) {
			return true
		}
	}
	return store.Transient(a.env.Store, err)
}

// unrecorded returns the error of a step with RecordError whose function failed temporarily. It is not a
// *task.StepError, which callers take for the result.
func unrecorded(se *task.StepError) error {
	return &KindError{Kind: se.Kind, Step: se.Step, Err: noResultError{se}}
}

type noResultError struct{ se *task.StepError }

// Error implements error.
func (e noResultError) Error() string { return e.se.Error() }

// Unwrap returns the error of the step's function.
func (e noResultError) Unwrap() error { return e.se.Err }
