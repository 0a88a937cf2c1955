package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
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
			f := newFaults(w)
			slow := true
			w.runConfig(f.store, weaver.Config{
				Lease: ttl,
				Sink: event.SinkFunc(func(e event.Event) {
					if _, ok := e.(event.StepStarted); ok && slow {
						slow = false
						f.fail("Heartbeat", store.ErrUnavailable)
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

// Whether a cancel or a passed deadline, the cause is the store's, and after it
// listeners hear of no step.
func TestTheStoreSaysWhyATaskHasToEnd(t *testing.T) {
	typ := weaver.Define[string, string]("engine.told.run.v1")
	for kind, cause := range map[task.ErrorKind]error{task.KindCancelled: weaver.ErrCancelled, task.KindDeadline: weaver.ErrDeadline} {
		scene(t, string(kind), func(w *world) {
			h := enqueue(w, typ, "x")
			ended := make(chan error, 1)
			s := newFaults(w)
			s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
				beats, err := next()
				for i := range beats {
					beats[i].Cancel = kind
				}
				return beats, err
			}
			w.runConfig(s.store, weaver.Config{
				Sink: event.SinkFunc(func(e event.Event) {
					if _, ok := e.(event.StepStarted); ok {
						w.Error("listeners heard of a step")
					}
				}),
				Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
					<-ctx.Done()
					if err := weaver.Do(ctx, "s", func(context.Context) error { return nil }); err == nil {
						w.Error("a step ran after the end")
					}
					ended <- context.Cause(ctx)
					return "", ctx.Err()
				})},
			})
			if got := <-ended; !errors.Is(got, cause) {
				w.Errorf("the context ended with %v, want %v", got, cause)
			}
			fails(w, h)
		})
	}
}
