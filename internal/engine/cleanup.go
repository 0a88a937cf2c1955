package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/goweaver/weaver/task"
)

// CleanupLimit is how long after an attempt was asked to end its cleanup may
// last.
const CleanupLimit = 30 * time.Second

// ErrCleanupTooLong ends the context of a cleanup, and keeps later ones from
// beginning.
var ErrCleanupTooLong = errors.New("the cleanup took longer than an attempt that was asked to end has for it")

// cleanupKey marks the context of a cleanup, which the attempt's end does not
// end.
type cleanupKey struct{}

func inCleanup(ctx context.Context) bool { return ctx.Value(cleanupKey{}) != nil }

// staysKey marks a context under which is recorded what happened although the attempt was
// asked to end.
type staysKey struct{}

func stays(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), staysKey{}, true)
}

// cutShort reports whether a cleanup may have been kept from its end by what ends
// an attempt alone. Then the task is to clean up once more.
func (a *Attempt) cutShort() bool {
	held := context.Cause(a.held)
	return a.task.CleanupWhenCancelled && (errors.Is(held, ErrDraining) || errors.Is(held, ErrLeaseUncertain))
}

// scope returns the context of the attempt that bounds a step with ctx: its own,
// or, of a cleanup and of what [stays], the lease's.
func (a *Attempt) scope(ctx context.Context) context.Context {
	if inCleanup(ctx) || ctx.Value(staysKey{}) != nil {
		return a.held
	}
	return a.ctx
}

// stepKind is what a step with ctx is recorded as.
func stepKind(ctx context.Context) task.StepKind {
	if inCleanup(ctx) {
		return task.KindCleanup
	}
	return task.KindStep
}

// Cleanup is Step for what undoes others: it runs, and its value is recorded,
// also when the attempt was asked to end by a cancel, its deadline or a timeout,
// until CleanupLimit after that, and without that limit in an undo phase. What ends the
// attempt alone, of a task that goes on, and the end of the lease end a cleanup too.
func (a *Attempt) Cleanup(ctx context.Context, name string, opts StepOptions, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	if a.cleanupLeft() <= 0 {
		err := fmt.Errorf("cleanup %q, %s after the end was asked for: %w", name, CleanupLimit, ErrCleanupTooLong)
		if !a.recordedStep(name) {
			a.noteCleanup(name, opts.UndoRetry, a.storeNow(), err)
		}
		return nil, err
	}
	if a.of != nil && !a.recordedStep(name) { // its task succeeded: it is not what undoes that
		return nil, fmt.Errorf("cleanup %q: %w", name, ErrUndoing)
	}
	ctx, stop := a.outlive(ctx)
	defer stop()
	replays, began := a.recordedStep(name), a.storeNow()
	value, err := a.Step(ctx, name, opts, fn)
	if !replays {
		a.noteCleanup(name, opts.UndoRetry, began, err)
	}
	return value, err
}

// outlive returns the context of a cleanup: ctx without its end. It ends with the
// lease, or CleanupLimit after the attempt was asked to end.
func (a *Attempt) outlive(ctx context.Context) (cleanup context.Context, stop func()) {
	cleanup, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), cleanupKey{}, true))
	limit := time.AfterFunc(a.cleanupLeft(), func() { cancel(ErrCleanupTooLong) })
	lost := context.AfterFunc(a.held, func() { cancel(context.Cause(a.held)) })
	asked := context.AfterFunc(a.ctx, func() { limit.Reset(a.cleanupLeft()) })
	return cleanup, func() {
		lost()
		asked()
		limit.Stop()
		cancel(nil)
	}
}

// cleanupLeft is how long a cleanup of this attempt may still last, as far as its
// end is known: a cancel is when it comes.
func (a *Attempt) cleanupLeft() time.Duration {
	end, ends := int64(math.MaxInt64), []int64{a.timesOut.Load(), a.cancelledAt.Load(), a.deadline}
	if a.undoes() { // which no cancel ends
		ends = ends[:1]
	}
	for _, known := range ends {
		if known != 0 {
			end = min(end, known)
		}
	}
	if end == math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(end-a.env.offset(time.Now())) + CleanupLimit
}
