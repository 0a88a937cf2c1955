package engine

import (
	"context"
	"errors"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// isTransient reports whether err is a transient store error. One that came out
// of a handler was met by it (an output to be read, a task to be enqueued), and
// is no failure of its own, unless the handler gave it a verdict.
func isTransient(err error) bool {
	var v *Verdict
	return !errors.As(err, &v) && store.Transient(nil, err)
}

// noResult reports whether err, which a step's function returned or panicked
// with, says nothing about the step: a context ended, the attempt did, the
// store or its driver failed for the moment, or this worker cannot run it. It is never recorded as the step's
// result (R10), whatever verdict the function gave it.
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

// unrecorded is the error of a step with RecordError whose function failed for
// the moment: no *task.StepError, which callers take for the result.
func unrecorded(se *task.StepError) error {
	return &KindError{Kind: se.Kind, Step: se.Step, Err: noResultError{se}}
}

type noResultError struct{ se *task.StepError }

// Error implements error.
func (e noResultError) Error() string { return e.se.Error() }

// Unwrap gives what the step's function returned.
func (e noResultError) Unwrap() error { return e.se.Err }
