package weaver_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestPoison(t *testing.T) {
	deadly := weaver.Define[string, string]("engine.poison.run.v1")

	// crashing runs an engine whose process dies d after it started.
	crashing := func(fx *fixture, d time.Duration, cfg weaver.Config) {
		fx.Helper()
		f := newFaults(fx)
		e := fx.start(f.store, cfg)
		time.Sleep(d)
		f.cut()
		if e.stop() == nil {
			fx.Error("the crashed worker stopped without an error")
		}
	}
	hang := func(fx *fixture, started *atomic.Int32) weaver.Handler {
		return deadly.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "fine" && weaver.Current(ctx).AttemptNo > 10 {
				return in, nil
			}
			started.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		})
	}

	subtest(t, "a task that keeps killing its worker fails", func(fx *fixture) {
		h := enqueue(fx, deadly, "deadly")
		var started atomic.Int32
		// One slot: it runs isolated, so no other task can be the cause.
		cfg := weaver.Config{Concurrency: 1, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{hang(fx, &started)}}
		for range 3 {
			crashing(fx, time.Minute, cfg)
		}
		fx.run() // reaps the last lease
		te := failure(fx, h)
		equal(fx, "kind", te.Kind, task.KindPoison)
		wantError(fx, te, nil, "3 leases", "in a row")
		equal(fx, "attempts that count", te.Attempts, 0)
		equal(fx, "starts", started.Load(), 3)
		fx.wantOutcomes(h.ID(), task.OutcomeLeaseLost, task.OutcomeLeaseLost, task.OutcomeLeaseLost)

		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		equal(fx, "crashes after a retry", fx.get(h.ID()).CrashCount, 0)
	})

	subtest(t, "a completed step resets the crash count", func(fx *fixture) {
		h := enqueue(fx, deadly, "deadly")
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
			crashing(fx, time.Minute, weaver.Config{DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{handler}})
		}
		fx.run(handler)
		equal(fx, "output", result(fx, h), "deadly")
	})

	subtest(t, "CrashBudget -1 never gives up", func(fx *fixture) {
		h := enqueue(fx, deadly, "deadly")
		var started atomic.Int32
		for range 6 {
			crashing(fx, time.Minute, weaver.Config{CrashBudget: -1, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{hang(fx, &started)}})
		}
		if got := fx.get(h.ID()); got.State.Terminal() {
			fx.Errorf("the task is %s", got.State)
		}
		equal(fx, "starts", started.Load(), 6)
	})

	subtest(t, "a worker runs few quarantined tasks at once", func(fx *fixture) {
		hs, err := deadly.EnqueueMany(fx.Context(), fx.client, make([]string, 12))
		fx.must(err)
		var started atomic.Int32
		cfg := weaver.Config{Concurrency: 16, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{hang(fx, &started)}}
		for range 2 {
			crashing(fx, time.Minute, cfg)
		}
		equal(fx, "starts", started.Load(), 24)
		c := newConcurrency()
		cfg.Handlers = []weaver.Handler{deadly.Handler(func(_ context.Context, in string) (string, error) {
			c.stay("quarantined")
			return in, nil
		})}
		fx.runConfig(fx.store, cfg)
		for _, h := range hs {
			result(fx, h)
		}
		equal(fx, "most at once: an eighth of the slots", c.most["quarantined"], 2)
	})

	subtest(t, "a worker that always has other work comes to run it alone", func(fx *fixture) {
		bad := enqueue(fx, deadly, "deadly")
		for i := range 3 {
			enqueue(fx, deadly, "fine", weaver.Delay(time.Duration(i)*7*time.Second))
		}
		var others atomic.Int32
		var beside []int32 // number of other running tasks when the deadly one began
		for len(beside) < 3 {
			died := make(chan struct{})
			f := newFaults(fx)
			e := fx.start(f.store, weaver.Config{Concurrency: 7, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{
				deadly.Handler(func(ctx context.Context, in string) (string, error) {
					if in == "deadly" {
						beside = append(beside, others.Load())
						close(died)
						<-ctx.Done()
						return "", ctx.Err()
					}
					others.Add(1)
					defer others.Add(-1)
					select {
					case <-ctx.Done():
						return "", ctx.Err()
					case <-time.After(20 * time.Second):
					}
					_, err := weaver.Start(ctx, "next", deadly, "fine")
					return in, err
				}),
			}})
			select {
			case <-died:
				f.cut()
			case <-time.After(time.Hour):
				fx.Fatalf("the deadly task does not start any more, after %d times", len(beside))
			}
			_ = e.stop()
		}
		fx.runConfig(fx.store, weaver.Config{Concurrency: 1, Lease: 6 * time.Second}) // reaps the last lease
		equal(fx, "the deadly one", failure(fx, bad).Kind, task.KindPoison)
		equal(fx, "what ran beside it the third time", beside[2], 0)
	})

	subtest(t, "the tasks beside it are not marked as poison", func(fx *fixture) {
		var hs []*weaver.Handle[string]
		for range 50 {
			hs = append(hs, enqueue(fx, deadly, "fine"))
		}
		bad := enqueue(fx, deadly, "deadly")
		killed := false
		for round := 0; !killed; round++ {
			if round == 100 {
				fx.Fatal("the deadly task survives for ever")
			}
			// The deadly task kills the process one second after its start; otherwise the process
			// lives long enough for all other tasks.
			died := make(chan struct{})
			f := newFaults(fx)
			e := fx.start(f.store, weaver.Config{Concurrency: 60, DrainTimeout: time.Millisecond, Lease: 6 * time.Second, Handlers: []weaver.Handler{
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
				fx.Errorf("the worker that lives: %v", err)
			}
		}
		equal(fx, "the deadly one", failure(fx, bad).Kind, task.KindPoison)
		for _, h := range hs {
			equal(fx, "a neighbour", result(fx, h), "fine")
		}
	})
}

// A claim reports the number of quarantined tasks of the worker, and their minimum quarantine limit:
// the store leases no further one beyond it.
func TestClaimsReportQuarantinedTasks(t *testing.T) {
	typ := weaver.Define[string, string]("engine.quarantine.run.v1")
	subtest(t, "as they begin and end", func(fx *fixture) {
		limits := map[string]int{`"four"`: 4, `"three"`: 3, `"two"`: 2} // by input
		var mu sync.Mutex
		var reports []string
		s := storehook.New(fx.store, &storehook.Hooks{
			Hide: store.AllCapabilities,
			Claim: func(_ context.Context, req store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
				res, err := next()
				mu.Lock()
				defer mu.Unlock()
				if r := fmt.Sprintf("%d of %d", req.Quarantined, req.QuarantineLimit); !slices.Contains(reports, r) {
					reports = append(reports, r)
				}
				for i := range res.Tasks {
					c := &res.Tasks[i]
					c.Quarantined, c.QuarantineLimit = true, limits[string(c.Task.Input)]
				}
				return res, err
			},
		})
		end := map[string]chan struct{}{"four": make(chan struct{}), "three": make(chan struct{}), "two": make(chan struct{})}
		fx.runConfig(s, weaver.Config{Concurrency: 8, Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, in string) (string, error) {
				<-end[in]
				return in, nil
			}),
		}})
		var handles []*weaver.Handle[string]
		for _, in := range []string{"four", "two", "three"} {
			handles = append(handles, enqueue(fx, typ, in))
			time.Sleep(5 * time.Second)
		}
		for i, in := range []string{"two", "four", "three"} {
			close(end[in])
			result(fx, handles[[]int{1, 0, 2}[i]])
			time.Sleep(5 * time.Second)
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{"0 of 0", "1 of 4", "2 of 2", "3 of 2", "2 of 3", "1 of 3"}
		if !slices.Equal(reports, want) {
			fx.Errorf("the claims reported %q, want %q", reports, want)
		}
	})
}
