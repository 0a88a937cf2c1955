package weaver_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestPoison(t *testing.T) {
	deadly := weaver.Define[string, string]("engine.poison.run.v1")

	// crashing runs an engine whose process dies d after it started.
	crashing := func(w *world, d time.Duration, cfg weaver.Config) {
		w.Helper()
		f := newFaults(w)
		e := w.start(f.store, cfg)
		time.Sleep(d)
		f.cut()
		if e.stop() == nil {
			w.Error("the crashed worker stopped without an error")
		}
	}
	hang := func(w *world, started *atomic.Int32) weaver.Handler {
		return deadly.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "fine" && weaver.Current(ctx).AttemptNo > 10 {
				return in, nil
			}
			started.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		})
	}

	scene(t, "a task that keeps killing its worker fails", func(w *world) {
		h := enqueue(w, deadly, "deadly")
		var started atomic.Int32
		// One slot: it is alone, so that nobody else can be to blame.
		cfg := weaver.Config{Concurrency: 1, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{hang(w, &started)}}
		for range 3 {
			crashing(w, time.Minute, cfg)
		}
		w.run() // reaps the last lease
		te := failure(w, h)
		equal(w, "kind", te.Kind, task.KindPoison)
		wantError(w, te, nil, "3 leases", "in a row")
		equal(w, "attempts that count", te.Attempts, 0)
		equal(w, "starts", started.Load(), 3)
		w.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeLeaseLost, task.OutcomeLeaseLost)

		w.must(w.client.Retry(w.Context(), h.ID()))
		equal(w, "crashes after a retry", w.get(h.ID()).CrashCount, 0)
	})

	scene(t, "a completed step forgives the crashes before it", func(w *world) {
		h := enqueue(w, deadly, "deadly")
		attempts := 0
		handler := deadly.Handler(func(ctx context.Context, in string) (string, error) {
			if attempts++; attempts > 6 {
				return in, nil
			}
			if err := weaver.Do(ctx, fmt.Sprint("step ", attempts), func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			<-ctx.Done()
			return "", ctx.Err()
		})
		for range 6 {
			crashing(w, time.Minute, weaver.Config{DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{handler}})
		}
		w.run(handler)
		equal(w, "output", result(w, h), "deadly")
	})

	scene(t, "CrashBudget -1 never gives up", func(w *world) {
		h := enqueue(w, deadly, "deadly")
		var started atomic.Int32
		for range 6 {
			crashing(w, time.Minute, weaver.Config{CrashBudget: -1, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{hang(w, &started)}})
		}
		if got := w.get(h.ID()); got.State.Terminal() {
			w.Errorf("the task is %s", got.State)
		}
		equal(w, "starts", started.Load(), 6)
	})

	scene(t, "a worker runs few suspects at once", func(w *world) {
		hs, err := deadly.EnqueueMany(w.Context(), w.client, make([]string, 12))
		w.must(err)
		var started atomic.Int32
		cfg := weaver.Config{Concurrency: 16, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{hang(w, &started)}}
		for range 2 {
			crashing(w, time.Minute, cfg)
		}
		equal(w, "starts", started.Load(), 24)
		c := newCrowd()
		cfg.Handlers = []weaver.Handler{deadly.Handler(func(_ context.Context, in string) (string, error) {
			c.stay("suspects")
			return in, nil
		})}
		w.runConfig(w.store, cfg)
		for _, h := range hs {
			result(w, h)
		}
		equal(w, "most at once: an eighth of the slots", c.most["suspects"], 2)
	})

	scene(t, "its neighbours are not condemned with it", func(w *world) {
		var hs []*weaver.Handle[string]
		for range 50 {
			hs = append(hs, enqueue(w, deadly, "fine"))
		}
		bad := enqueue(w, deadly, "deadly")
		killed := false
		for round := 0; !killed; round++ {
			if round == 100 {
				w.Fatal("the deadly task survives for ever")
			}
			// The process dies of the deadly task, one second after it began;
			// without it, it lives long enough for everybody else.
			died := make(chan struct{})
			f := newFaults(w)
			e := w.start(f.store, weaver.Config{Concurrency: 60, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{
				deadly.Handler(func(ctx context.Context, in string) (string, error) {
					if in == "deadly" {
						time.AfterFunc(time.Second, func() { close(died) })
						<-ctx.Done()
						return "", ctx.Err()
					}
					select {
					case <-ctx.Done():
						return "", ctx.Err()
					case <-time.After(2 * time.Second):
						return in, nil
					}
				}),
			}})
			select {
			case <-died:
				f.cut()
			case <-time.After(10 * time.Minute):
				killed = true
			}
			if err := e.stop(); killed && err != nil {
				w.Errorf("the worker that lives: %v", err)
			}
		}
		equal(w, "the deadly one", failure(w, bad).Kind, task.KindPoison)
		for _, h := range hs {
			equal(w, "a neighbour", result(w, h), "fine")
		}
	})
}
