package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// crowd counts the running handlers by kind.
type concurrency struct {
	mu        sync.Mutex
	now, most map[string]int
}

func newConcurrency() *concurrency {
	return &concurrency{now: map[string]int{}, most: map[string]int{}}
}

// stay runs for a second and counts as a kind.
func (c *concurrency) stay(kind string) { c.stayFor(kind, time.Second) }

func (c *concurrency) stayFor(kind string, d time.Duration) {
	c.mu.Lock()
	c.now[kind]++
	c.most[kind] = max(c.most[kind], c.now[kind])
	c.mu.Unlock()
	time.Sleep(d)
	c.mu.Lock()
	c.now[kind]--
	c.mu.Unlock()
}

func TestSlots(t *testing.T) {
	typ := weaver.Define[string, string]("engine.slots.run.v1")

	subtest(t, "bound the handlers that run at once", func(fx *fixture) {
		c := newConcurrency()
		fx.runConfig(fx.store, weaver.Config{Concurrency: 3, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			c.stay("all")
			return in, nil
		})}})
		hs, err := typ.EnqueueMany(fx.Context(), fx.client, make([]string, 10))
		fx.must(err)
		began := time.Now()
		for _, h := range hs {
			result(fx, h)
		}
		equal(fx, "most at once", c.most["all"], 3)
		equal(fx, "time", time.Since(began).Round(100*time.Millisecond), 4*time.Second)
	})

	subtest(t, "are shared by queues within their own limits, and other queues are left alone", func(fx *fixture) {
		c := newConcurrency()
		fx.runConfig(fx.store, weaver.Config{
			Concurrency: 10,
			Queues:      map[string]int{"slow": 1, "fast": 4},
			Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
				c.stay(in)
				return in, nil
			})},
		})
		var hs []*weaver.Handle[string]
		for range 8 {
			for _, q := range []string{"slow", "fast"} {
				hs = append(hs, enqueue(fx, typ, q, weaver.Queue(q)))
			}
		}
		other := enqueue(fx, typ, "other", weaver.Queue("other"))
		began := time.Now()
		for _, h := range hs {
			result(fx, h)
		}
		equal(fx, "most of slow", c.most["slow"], 1)
		equal(fx, "most of fast", c.most["fast"], 4)
		equal(fx, "time of eight slow ones", time.Since(began).Round(100*time.Millisecond), 8*time.Second)
		fx.wantState(other.ID(), weaver.StateReady)
	})

	subtest(t, "of a queue are no more than its limit when handlers end one by one", func(fx *fixture) {
		for _, s := range []store.Store{fx.store, polled(openStore(fx))} {
			fx := newFixture(fx.T, s)
			c := newConcurrency()
			stop := fx.start(s, weaver.Config{
				Concurrency: 10, Queues: map[string]int{"narrow": 2, "wide": 7},
				Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
					queue, seconds := "", 0
					_, err := fmt.Sscan(in, &queue, &seconds)
					c.stayFor(queue, time.Duration(seconds)*time.Second)
					return "", err
				})},
			}).stop
			var hs []*weaver.Handle[string]
			for i := range 30 {
				for _, q := range []string{"narrow", "wide"} {
					hs = append(hs, enqueue(fx, typ, fmt.Sprint(q, " ", 1+i*i%7), weaver.Queue(q)))
				}
			}
			for _, h := range hs {
				result(fx, h)
			}
			equal(fx, "most of the narrow queue", c.most["narrow"], 2)
			equal(fx, "most of the wide queue", c.most["wide"], 7)
			fx.must(stop())
		}
	})

	subtest(t, "are given by priority, then by age", func(fx *fixture) {
		var order []string
		for i, p := range []int{5, 9, 1, 5, 1, 9} {
			enqueue(fx, typ, fmt.Sprint(p, "-", i), weaver.Priority(p))
		}
		fx.must(fx.newEngine(fx.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			order = append(order, in)
			return in, nil
		})}}).RunUntilIdle(fx.Context()))
		equal(fx, "order", fmt.Sprint(order), "[1-2 1-4 5-0 5-3 9-1 9-5]")
	})

	subtest(t, "are given when a task is due", func(fx *fixture) {
		var began []string
		fx.run(typ.Handler(func(_ context.Context, in string) (string, error) {
			began = append(began, fmt.Sprint(in, " ", time.Now().UTC().Format(time.TimeOnly)))
			return in, nil
		}))
		midnight := time.Now() // start time of every bubble
		for _, h := range []*weaver.Handle[string]{
			enqueue(fx, typ, "past", weaver.At(midnight.Add(-time.Hour))),
			enqueue(fx, typ, "at", weaver.At(midnight.Add(time.Hour))),
			enqueue(fx, typ, "delay", weaver.Delay(2*time.Hour)),
			enqueue(fx, typ, "last wins", weaver.Delay(time.Minute), weaver.At(midnight.Add(3*time.Hour))),
		} {
			result(fx, h)
		}
		equal(fx, "starts", fmt.Sprint(began), "[past 00:00:00 at 01:00:00 delay 02:00:00 last wins 03:00:00]")
	})

	subtest(t, "a paused queue starts nothing, and goes on when resumed", func(fx *fixture) {
		g := newGate()
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) { return in, g.pass(ctx) }))
		running := enqueue(fx, typ, "running", weaver.Queue("billing"))
		<-g.in
		fx.must(fx.client.PauseQueue(fx.Context(), "billing", weaver.By("ops"), weaver.Reason("month end")))
		waiting := enqueue(fx, typ, "waiting", weaver.Queue("billing"))
		g.open()
		equal(fx, "a running one ends", result(fx, running), "running")
		time.Sleep(time.Hour)
		got := fx.get(waiting.ID())
		equal(fx, "state", got.State, weaver.StatePending)
		equal(fx, "it waits for", got.Waiting, task.WaitPaused)
		pause := fx.history(waiting.ID()).QueuePause
		if pause == nil || pause.Actor != "ops" || pause.Reason != "month end" {
			fx.Errorf("the history's pause: %+v", pause)
		}
		resumed := time.Now()
		fx.must(fx.client.ResumeQueue(fx.Context(), "billing"))
		<-g.in
		equal(fx, "time to its start", time.Since(resumed), 0)
		g.open()
		result(fx, waiting)
	})

	subtest(t, "tasks of unknown types are left alone", func(fx *fixture) {
		unknown := weaver.Define[string, string]("engine.slots.unknown.v1")
		h := enqueue(fx, unknown, "x")
		fx.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		result(fx, enqueue(fx, typ, "x"))
		fx.wantState(h.ID(), weaver.StateReady)
	})

	subtest(t, "other namespaces are left alone", func(fx *fixture) {
		dev, err := weaver.NewClient(fx.store, weaver.ClientConfig{Namespace: "acme-dev"})
		fx.must(err)
		h, err := typ.Enqueue(fx.Context(), dev, "x")
		fx.must(err)
		handler := typ.Handler(func(ctx context.Context, _ string) (string, error) { return weaver.Current(ctx).Namespace, nil })
		fx.run(handler)
		equal(fx, "namespace", result(fx, enqueue(fx, typ, "x")), weaver.DefaultNamespace)
		got, err := h.Get(fx.Context())
		fx.must(err)
		equal(fx, "state there", got.State, weaver.StateReady)
		fx.runConfig(fx.store, weaver.Config{Namespace: "acme-dev", Handlers: []weaver.Handler{handler}})
		equal(fx, "namespace", result(fx, h), "acme-dev")
	})
}

// The return of an abandoned handler must not free another attempt's slot.
func TestSlotsAfterAnAbandonedHandler(t *testing.T) {
	typ := weaver.Define[string, string]("engine.slots.given.v1", weaver.Queue("narrow"))
	inBubble(t, func(fx *fixture) {
		var mu sync.Mutex
		running, most := 0, 0
		release := make(chan struct{})
		eng := fx.newEngine(fx.store, weaver.Config{
			Queues: map[string]int{"narrow": 1}, DrainTimeout: time.Second,
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				if in == "stuck" && weaver.Current(ctx).AttemptNo == 1 {
					<-release
					return in, nil
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return in, nil
			})},
		})
		ctx, cancel := context.WithCancel(fx.Context())
		done := make(chan error, 1)
		go func() { done <- eng.Run(ctx) }()
		stuck := enqueue(fx, typ, "stuck")
		synctest.Wait()
		cancel()
		var names *task.RunningError
		if err := <-done; !errors.As(err, &names) {
			fx.Errorf("Run = %v, want a *RunningError", err)
		}
		close(release)
		synctest.Wait()

		ctx, cancel = context.WithCancel(fx.Context())
		go func() { done <- eng.Run(ctx) }()
		hs := []*weaver.Handle[string]{stuck, enqueue(fx, typ, "a"), enqueue(fx, typ, "b")}
		for _, h := range hs {
			result(fx, h)
		}
		cancel()
		fx.must(<-done)
		mu.Lock()
		defer mu.Unlock()
		equal(fx, "handlers of the queue at once", most, 1)
	})
}

func TestConcurrencyKey(t *testing.T) {
	typ := weaver.Define[string, string]("engine.keys.run.v1")
	other := weaver.Define[string, string]("engine.keys.other.v1")

	for _, limit := range []int{1, 3} {
		subtest(t, fmt.Sprintf("lets %d run at once, across types, and drops none", limit), func(fx *fixture) {
			c := newConcurrency()
			handler := func(_ context.Context, in string) (string, error) {
				c.stay(in)
				return in, nil
			}
			fx.run(typ.Handler(handler), other.Handler(handler))
			var hs []*weaver.Handle[string]
			for i := range 12 {
				k := []*weaver.Type[string, string]{typ, other}[i%2]
				hs = append(hs, enqueue(fx, k, "org_1", weaver.ConcurrencyKey("org_1", limit)))
				hs = append(hs, enqueue(fx, k, "org_2", weaver.ConcurrencyKey("org_2", limit)))
			}
			free := enqueue(fx, typ, "free")
			began := time.Now()
			result(fx, free)
			equal(fx, "a task without the key does not wait", time.Since(began).Round(100*time.Millisecond), time.Second)
			for _, h := range hs {
				result(fx, h)
			}
			equal(fx, "most with the first key", c.most["org_1"], limit)
			equal(fx, "most with the second key", c.most["org_2"], limit)
			equal(fx, "time", time.Since(began).Round(100*time.Millisecond), time.Duration(12/limit)*time.Second)
		})
	}

	subtest(t, "is free while its holder sleeps, retries, or is blocked", func(fx *fixture) {
		attempts := 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "next" {
				return in, nil
			}
			switch attempts++; attempts {
			case 1:
				return "", weaver.RetryAfter(time.Hour, fmt.Errorf("later"))
			case 2:
				return "", weaver.Blocked("help")
			}
			return in, weaver.Sleep(ctx, "nap", time.Hour)
		}))
		holder := enqueue(fx, typ, "holder", weaver.ConcurrencyKey("k"))
		for range 3 {
			synctest.Wait()
			began := time.Now()
			result(fx, enqueue(fx, typ, "next", weaver.ConcurrencyKey("k")))
			equal(fx, "wait for the key", time.Since(began), 0)
			if got := fx.get(holder.ID()); got.State == weaver.StateBlocked {
				fx.must(fx.client.Unblock(fx.Context(), holder.ID(), nil))
			} else {
				time.Sleep(61 * time.Minute)
			}
		}
		equal(fx, "output", result(fx, holder), "holder")
		equal(fx, "runs of the holder", attempts, 4)
	})
}

func TestClaimer(t *testing.T) {
	typ := weaver.Define[int, int]("engine.claimer.run.v1")

	subtest(t, "the poll interval and the lease are configurable", func(fx *fixture) {
		// A store without notices is polled.
		began := time.Time{}
		handler := typ.Handler(func(_ context.Context, n int) (int, error) {
			began = time.Now()
			time.Sleep(time.Minute)
			return n, nil
		})
		for _, poll := range []time.Duration{0, 20 * time.Second} {
			f := newFaults(fx)
			e := fx.start(polled(f.store), weaver.Config{Handlers: []weaver.Handler{handler}, Poll: poll, Lease: 9 * time.Second})
			synctest.Wait() // the first poll was empty
			asked := time.Now()
			h := enqueue(fx, typ, 1)
			_ = result(fx, h)
			if poll == 0 {
				poll = time.Second
			}
			near(fx, "time from the enqueue to the next look", began.Sub(asked), poll)
			if beats := f.count("Heartbeat"); beats < 19 || beats > 30 {
				fx.Errorf("%d heartbeats in a minute, want one per third of 9s", beats)
			}
			fx.must(e.stop())
		}
	})

	subtest(t, "enqueue wakes an idle worker at once", func(fx *fixture) {
		var began time.Time
		fx.run(typ.Handler(func(_ context.Context, n int) (int, error) {
			began = time.Now()
			return n, nil
		}))
		time.Sleep(time.Hour + 123*time.Millisecond)
		asked := time.Now()
		result(fx, enqueue(fx, typ, 1))
		equal(fx, "time from the enqueue to the handler", began.Sub(asked), 0)
	})
}

func TestRepliesOfClaims(t *testing.T) {
	typ := weaver.Define[string, string]("engine.run.errors.v1", weaver.NoRetry())
	echo := typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil })

	// The claim commits, and Run's context ends before its answer arrives.
	subtest(t, "arrive when the drain has begun, and the tasks run", func(fx *fixture) {
		s := newFaults(fx)
		s.hooks.Claim = func(ctx context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			got, err := next()
			if err != nil || len(got.Tasks) == 0 {
				return got, err
			}
			select {
			case <-time.After(2 * time.Second):
				return got, nil
			case <-ctx.Done():
				return store.ClaimResult{}, context.Cause(ctx)
			}
		}
		e := fx.start(s.store, weaver.Config{Handlers: []weaver.Handler{echo}})
		h := enqueue(fx, typ, "x")
		time.Sleep(time.Second)
		fx.wantState(h.ID(), weaver.StateRunning)
		fx.must(e.stop())
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})

	subtest(t, "are lost, and the claim is repeated in time though a call hangs", func(fx *fixture) {
		s := newFaults(fx)
		calls := 0
		s.hooks.Claim = func(ctx context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			switch calls++; calls {
			case 1:
				_, _ = next()
				return store.ClaimResult{}, store.ErrUnavailable
			case 2:
				<-ctx.Done()
				return store.ClaimResult{}, context.Cause(ctx)
			}
			return next()
		}
		h := enqueue(fx, typ, "x")
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{echo}})
		time.Sleep(store.DefaultLease * 2 / 3)
		fx.wantState(h.ID(), weaver.StateSucceeded)
		equal(fx, "attempts", fx.get(h.ID()).AttemptNo, 1)
	})
}
