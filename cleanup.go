package weaver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/internal/engine"
)

// Cleanup is Do for a function that undoes what other steps did. It also begins,
// runs to its end and is recorded after the handler's context ended by a cancel,
// its deadline or a timeout, for 30 s from then on; fn gets a context
// that lasts for so long, and until the lease ends. So a handler that was asked
// to end can give back what it had taken:
//
//	if err := work(ctx); weaver.Final(ctx, err) {
//		return errors.Join(err, weaver.Cleanup(ctx, "refund", refund))
//	} else if err != nil {
//		return err
//	}
//
// Like every step it happens once for the task. Another attempt does not repeat
// the steps that were undone: a handler that undoes them although it is tried
// again (see Final) would succeed with them undone. A retry by an operator, or a rerun
// from a step, is refused after a cleanup ran, unless KeepSteps says that the steps still
// stand.
//
// A cleanup that fails, or is kept from running by that limit, in an attempt with which
// the task would end is tried again before it ends, by further attempts: after 1 s, 2 s, …
// up to 1 min, for 24 h. Until then the task is pending, or running, for the reason undo,
// and shows the error with which it ends. In such attempts the handler's context has ended
// with its cause, or [ErrUndoing]; steps answer with what is on record, an error too, and
// none is run. A cleanup that is given up leaves the task failed, with the kind
// undo_failed; [Permanent] gives it up at once, and an operator's Retry with [Cleanups]
// tries it again. (ADR 0049)
//
// Give a type that relies on its cleanups the option CleanupWhenCancelled. Without
// it a task that is cancelled while it sleeps, waits for its retry, is blocked or
// has lost its worker, and one whose handler panics, ends without them.
//
// It does not run where the task goes on without this attempt: when the engine
// stops (ErrDraining), after a wait (ErrSuspended), and when the lease is lost
// or uncertain. Other errors are those of Step, and ErrCleanupTooLong.
func Cleanup(ctx context.Context, name string, fn func(ctx context.Context) error, opts ...StepOption) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("cleanup %q: %w", name, err)
	}
	set, err := stepOptions(opts)
	switch {
	case fn == nil:
		err = errNilFunc
	case err == nil && set.Undo != nil:
		err = fmt.Errorf("%w: a Cleanup has no Undo", ErrInvalidOption)
	}
	if err != nil {
		return misuse(name, err)
	}
	_, err = a.Cleanup(ctx, name, set, func(ctx context.Context) (json.RawMessage, error) {
		if err := fn(ctx); err != nil {
			return nil, err
		}
		return encodeOutput("value of step "+name, &None{})
	})
	return err
}
