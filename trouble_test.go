package weaver_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var troubled = weaver.Define[weaver.None, int]("acme.trouble.troubled.v1")

// Trouble of the store that a handler meets is no failure of the handler: it
// is tried again without a decision and costs no attempt, unless the handler
// judges it itself.
func TestTroubleOfTheStoreIsNotTheHandlers(t *testing.T) {
	once := 0
	fails := map[string]func(ctx context.Context) error{
		"from the handler": func(context.Context) error { return fmt.Errorf("read a total: %w", store.ErrUnavailable) },
		"from a step": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return fmt.Errorf("lock: %w", store.ErrBusy) })
		},
		"from a step that is tried again": func(ctx context.Context) error {
			return weaver.Do(ctx, "s", func(context.Context) error { return store.ErrFull }, weaver.StepRetry(3), weaver.RecordError())
		},
		"from a step's transaction": func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "s", func(context.Context, *sql.Tx) (int, error) { return 0, store.ErrUnknown })
			return err
		},
	}
	for name, fail := range fails {
		scene(t, name, func(w *world) {
			once = 0
			h := troubled.Handler(func(ctx context.Context, _ weaver.None) (int, error) {
				if once++; once <= 3 {
					return 0, fail(ctx)
				}
				return once, nil
			})
			hd := enqueue(w, troubled, weaver.None{}, weaver.MaxAttempts(1))
			w.run(h)
			result(w, hd)
			hist := w.history(hd.ID())
			if n := len(hist.Attempts); n != 4 || len(hist.Decisions) != 0 || hist.Task.AttemptCount != 1 {
				w.Fatalf("%d attempts of which %d counted, %d decisions; want 4, 1, 0", n, hist.Task.AttemptCount, len(hist.Decisions))
			}
			for _, a := range hist.Attempts[:3] {
				if a.Error == nil || a.Error.Kind != task.KindInternal {
					w.Errorf("attempt %d ended with %v, want an internal error", a.No, a.Error)
				}
			}
			for _, s := range hist.Steps {
				w.Errorf("step %q is recorded as %s: %v", s.Name, s.State, s.Error)
			}
		})
	}
	scene(t, "judged by the handler", func(w *world) {
		h := troubled.Handler(func(context.Context, weaver.None) (int, error) { return 0, weaver.Permanent(store.ErrUnavailable) })
		hd := enqueue(w, troubled, weaver.None{})
		w.run(h)
		if te := failure(w, hd); te.Kind != task.KindHandler {
			w.Errorf("the task ended with %v, want failed at once, as the handler said", te)
		}
	})
}
