package weaver_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task/event"
)

// A listener may take its time, a lease does not: a step's function starts
// only while its lease is trusted (R5).
func TestNoStepStartsAfterASlowListener(t *testing.T) {
	typ := weaver.Define[string, string]("engine.listener.run.v1")
	const ttl = 6 * time.Second
	for name, step := range map[string]func(ctx context.Context, fn func(context.Context) error) error{
		"step": func(ctx context.Context, fn func(context.Context) error) error { return weaver.Do(ctx, "s", fn) },
		"step transaction": func(ctx context.Context, fn func(context.Context) error) error {
			_, err := weaver.StepTx(ctx, "s", func(ctx context.Context, _ *sql.Tx) (weaver.None, error) { return weaver.None{}, fn(ctx) })
			return err
		},
	} {
		scene(t, name, func(w *world) {
			f := newFaults(w, w.store)
			slow := true
			w.runConfig(f, weaver.Config{
				Lease: ttl,
				Sink: event.SinkFunc(func(e event.Event) {
					if _, ok := e.(event.StepStarted); ok && slow {
						slow = false
						f.set(func(call string) error {
							if call == "Heartbeat" {
								return fmt.Errorf("%w: the test cut the line", store.ErrUnavailable)
							}
							return nil
						}, nil)
						time.Sleep(2 * ttl)
						f.mend()
					}
				}),
				Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
					return in, step(ctx, func(ctx context.Context) error {
						if ctx.Err() != nil {
							w.Errorf("the step's function started though its context had ended: %v", context.Cause(ctx))
						}
						return nil
					})
				})},
			})
			result(w, enqueue(w, typ, "x"))
			if slow {
				w.Error("no step was told of")
			}
		})
	}
}
