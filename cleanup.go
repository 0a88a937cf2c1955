package weaver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/internal/engine"
)

// Cleanup is Do for a function that undoes the effects of other steps. It also begins, completes and
// is recorded after the handler's context ended by a cancel, its deadline or a timeout, within 30 s
// from then; the context of fn lasts that long, but not beyond the lease. A handler that was asked to
// end can thus release resources:
//
//	if err := work(ctx); weaver.Final(ctx, err) {
//		return errors.Join(err, weaver.Cleanup(ctx, "refund", refund))
//	} else if err != nil {
//		return err
//	}
//
// Like every step it runs once for the task. Another attempt does not repeat the undone steps: a
// handler that undoes them although it is retried (see Final) would succeed with them undone. After a
// cleanup, a retry by an operator or a rerun from a step is refused unless KeepSteps declares that the
// steps still hold.
//
// A cleanup can fail, or miss that limit, in the attempt that would end the task. Further attempts
// then retry it first: after 1 s, 2 s, … up to 1 min, for 24 h. Until then the task is pending or
// running for the reason undo, and shows its final error. In such attempts the handler's context has
// ended with the cause of the end, or [ErrUndoing]; steps return recorded results, errors included,
// and do not run. A cleanup that is given up leaves the task failed, with the kind undo_failed;
// [Permanent] gives up at once, and an operator's Retry with [Cleanups] retries it. (ADR 0049)
//
// Give a type that relies on its cleanups the option CleanupWhenCancelled. Without it, cleanups do not
// run when the handler panics, or when a task is cancelled while it sleeps, waits for its retry, is
// blocked or has lost its worker.
//
// A cleanup does not run if the task continues without this attempt: when the engine stops
// (ErrDraining), after a wait (ErrSuspended), and when the lease is lost or uncertain. Other errors
// are those of Step, and ErrCleanupTooLong.
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
