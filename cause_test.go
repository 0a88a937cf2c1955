package weaver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// What a handler's context says, and when it ends.
func TestContextOfAHandler(t *testing.T) {
	typ := weaver.Define[string, string]("engine.context.run.v1", weaver.NoRetry())

	// A deadline has a timer of its own, which must not speak first.
	scene(t, "that has a deadline says why it ended", func(w *world) {
		var cause error
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", ctx.Err()
		})}})
		h := enqueue(w, typ, "", weaver.ExpireAfter(time.Hour))
		synctest.Wait()
		w.must(w.client.Cancel(w.Context(), h.ID(), weaver.Force()))
		synctest.Wait()
		if !errors.Is(cause, weaver.ErrLeaseLost) {
			w.Errorf("cause = %v, want ErrLeaseLost", cause)
		}
		equal(w, "results that it tried to write", f.count("Finish"), 0)
	})

	scene(t, "that was asked to end twice names who asked first", func(w *world) {
		s := newFaults(w)
		beats := 0
		s.hooks.Heartbeat = func(_ context.Context, _ store.HeartbeatRequest, next func() ([]store.Beat, error)) ([]store.Beat, error) {
			got, err := next()
			for i := range got {
				got[i] = store.Beat{Cancel: task.KindCancelled, By: "the second", Reason: "it is late"}
				if beats++; beats == 1 {
					got[i].By, got[i].Reason = "the first", "it is wrong"
				}
			}
			return got, err
		}
		w.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			time.Sleep(weaver.DefaultLease) // in no hurry
			return "", ctx.Err()
		})}})
		te := failure(w, enqueue(w, typ, ""))
		wantError(w, te, nil, "the first", "it is wrong")
		if beats < 2 {
			w.Errorf("it was asked %d times, want twice or more", beats)
		}
	})

	scene(t, "ends with the handler, for goroutines that outlive it", func(w *world) {
		ends := map[string]func() (string, error){
			"ok": func() (string, error) { return "ok", nil },
			"no": func() (string, error) { return "", errors.New("no") },
		}
		left := map[string]context.Context{}
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			left[in] = ctx
			return ends[in]()
		}))
		for name := range ends {
			enqueue(w, typ, name, weaver.ExpireAfter(time.Hour))
			synctest.Wait()
			if ctx := left[name]; ctx == nil || ctx.Err() == nil {
				w.Errorf("%s: the handler's context (%v) goes on after its end", name, ctx)
			}
		}
	})
}
