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

// CleanupLimit is the maximum duration of cleanups, counted from the moment when the attempt was asked to end.
const CleanupLimit = 30 * time.Second

// ErrCleanupTooLong ends the context of a cleanup and prevents later ones.
var ErrCleanupTooLong = errors.New("the cleanup exceeded its time limit after the attempt was asked to end")

// cleanupKey marks the context of a cleanup, which survives the end of the attempt's context.
type cleanupKey struct{}

func inCleanup(ctx context.Context) bool { return ctx.Value(cleanupKey{}) != nil }

// staysKey marks a context under which writes are recorded even though the attempt was asked to end.
type staysKey struct{}

func stays(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), staysKey{}, true)
}

// cutShort reports whether the end of the attempt, and not of the task, may have interrupted a cleanup. The task must
// then clean up again.
func (a *Attempt) cutShort() bool {
	held := context.Cause(a.held)
	return a.task.CleanupWhenCancelled && (errors.Is(held, ErrDraining) || errors.Is(held, ErrLeaseUncertain))
}

// scope returns the context of the attempt that bounds a step with ctx: the attempt's own or, for a cleanup and for a
// context with staysKey, that of the lease.
func (a *Attempt) scope(ctx context.Context) context.Context {
	if inCleanup(ctx) || ctx.Value(staysKey{}) != nil {
		return a.held
	}
	return a.ctx
}

// stepKind returns the kind under which a step with ctx is recorded.
func stepKind(ctx context.Context) task.StepKind {
	if inCleanup(ctx) {
		return task.KindCleanup
	}
	return task.KindStep
}

// Cleanup is Step for a function that undoes other steps. It runs and is recorded even if the attempt was asked to
// end by a cancel, its deadline or a timeout. The limit is CleanupLimit after that request; an undo phase has no
// limit. The end of the lease ends a cleanup, and so does an end of the attempt whose task continues.
func (a *Attempt) Cleanup(ctx context.Context, name string, opts StepOptions, fn func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	if a.cleanupLeft() <= 0 {
		err := fmt.Errorf("cleanup %q, %s after the request to end: %w", name, CleanupLimit, ErrCleanupTooLong)
		if !a.recordedStep(name) {
			a.noteCleanup(name, opts.UndoRetry, a.storeNow(), err)
		}
		return nil, err
	}
	if a.of != nil && !a.recordedStep(name) { // the task succeeded: this is not the cleanup that undoes it
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

// outlive returns the context of a cleanup: ctx without its end. It ends with the lease, or CleanupLimit after the
// attempt was asked to end.
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

// cleanupLeft returns the remaining time for cleanups of this attempt, as far as its end is known: a cancel may come
// at any time.
func (a *Attempt) cleanupLeft() time.Duration {
	end, ends := int64(math.MaxInt64), []int64{a.timesOut.Load(), a.cancelledAt.Load(), a.deadline}
	if a.undoes() { // a cancel does not end an undo phase
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
