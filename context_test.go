package weaver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// The time and the cause of the end of a handler's context.
func TestContextOfAHandler(t *testing.T) {
	typ := weaver.Define[string, string]("engine.context.run.v1", weaver.NoRetry())

	// A deadline has its own timer, which must not fire first.
	subtest(t, "that has a deadline says why it ended", func(fx *fixture) {
		var cause error
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", ctx.Err()
		})}})
		h := enqueue(fx, typ, "", weaver.ExpireAfter(time.Hour))
		synctest.Wait()
		fx.must(fx.client.Cancel(fx.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		if !errors.Is(cause, weaver.ErrLeaseLost) {
			fx.Errorf("cause = %v, want ErrLeaseLost", cause)
		}
		equal(fx, "results that it tried to write", f.count("Finish"), 0)
	})

	subtest(t, "that was cancelled twice names the first operator", func(fx *fixture) {
		s := newFaults(fx)
		var beats atomic.Int32
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			got, err := next()
			for i := range got {
				got[i] = store.Beat{Cancel: task.KindCancelled, By: "the second", Reason: "it is late"}
				if beats.Add(1) == 1 {
					got[i].By, got[i].Reason = "the first", "it is wrong"
				}
			}
			return got, err
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			time.Sleep(store.DefaultLease) // it takes its time
			return "", ctx.Err()
		})}})
		te := failure(fx, enqueue(fx, typ, ""))
		wantError(fx, te, nil, "the first", "it is wrong")
		if n := beats.Load(); n < 2 {
			fx.Errorf("it was asked %d times, want twice or more", n)
		}
	})

	subtest(t, "ends with the handler, also for goroutines that outlive it", func(fx *fixture) {
		ends := map[string]func() (string, error){
			"ok": func() (string, error) { return "ok", nil },
			"no": func() (string, error) { return "", errors.New("no") },
		}
		left := map[string]context.Context{}
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			left[in] = ctx
			return ends[in]()
		}))
		for name := range ends {
			enqueue(fx, typ, name, weaver.ExpireAfter(time.Hour))
			synctest.Wait()
			if ctx := left[name]; ctx == nil || ctx.Err() == nil {
				fx.Errorf("%s: the handler's context (%v) goes on after its end", name, ctx)
			}
		}
	})
}

// The cause reported by a heartbeat, a cancel or a passed deadline, ends the handler's context. After
// that no step starts and listeners get no step events.
func TestHeartbeatsReportWhyATaskMustEnd(t *testing.T) {
	typ := weaver.Define[string, string]("engine.cause.run.v1")
	for kind, cause := range map[task.ErrorKind]error{task.KindCancelled: weaver.ErrCancelled, task.KindDeadline: weaver.ErrDeadline} {
		subtest(t, string(kind), func(fx *fixture) {
			h := enqueue(fx, typ, "x")
			ended := make(chan error, 1)
			s := newFaults(fx)
			s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
				beats, err := next()
				for i := range beats {
					beats[i].Cancel = kind
				}
				return beats, err
			}
			fx.runConfig(s.store, weaver.Config{
				Sink: event.SinkFunc(func(e event.Event) {
					if _, ok := e.(event.StepStarted); ok {
						fx.Error("listeners got an event of a step")
					}
				}),
				Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
					<-ctx.Done()
					if err := weaver.Do(ctx, "s", func(context.Context) error { return nil }); err == nil {
						fx.Error("a step ran after the end")
					}
					ended <- context.Cause(ctx)
					return "", ctx.Err()
				})},
			})
			if got := <-ended; !errors.Is(got, cause) {
				fx.Errorf("the context ended with %v, want %v", got, cause)
			}
			fails(fx, h)
		})
	}
}
