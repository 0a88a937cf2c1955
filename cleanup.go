package weaver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/engine"
)

// CleanupLimit is how long after a handler was asked to end its cleanups may
// last, all of them together.
const CleanupLimit time.Duration = engine.CleanupLimit

// Cleanup is Do for a function that undoes what other steps did. It also begins,
// runs to its end and is recorded after the handler's context ended by a cancel,
// its deadline or a timeout, for CleanupLimit from then on; fn gets a context
// that lasts for so long, and until the lease ends. So a handler that was asked
// to end can give back what it had taken:
//
//	if err := work(ctx); err != nil {
//		if weaver.Suspended(err) {
//			return err
//		}
//		return errors.Join(err, weaver.Cleanup(ctx, "refund", refund))
//	}
//
// Like every step it happens once for the task: another attempt of a task that
// is tried again (after a timeout, for one) does not undo it again, nor does it
// repeat the steps that were undone.
//
// A task that is cancelled while it sleeps, waits for its retry or is blocked ends
// without a cleanup, unless it has the option CleanupWhenCancelled.
//
// It does not run where the task goes on without this attempt: when the engine
// stops (ErrDraining), after a wait (ErrSuspended), and when the lease is lost
// or uncertain. Other errors are those of Step, and ErrCleanupTooLong.
func Cleanup(ctx context.Context, name string, fn func(ctx context.Context) error, opts ...StepOption) error {
	a, err := engine.From(ctx)
	if err != nil {
		return fmt.Errorf("cleanup %q: %w", name, err)
	}
	_, err = a.Cleanup(ctx, name, stepOptions(opts), func(ctx context.Context) (json.RawMessage, error) {
		if err := fn(ctx); err != nil {
			return nil, err
		}
		return encodeOutput("value of step "+name, None{})
	})
	return err
}
