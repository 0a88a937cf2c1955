package weaver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// crowd counts how many handlers of each kind run at once.
type crowd struct {
	mu        sync.Mutex
	now, most map[string]int
}

func newCrowd() *crowd { return &crowd{now: map[string]int{}, most: map[string]int{}} }

// stay runs for a second as one of a kind.
func (c *crowd) stay(kind string) {
	c.mu.Lock()
	c.now[kind]++
	c.most[kind] = max(c.most[kind], c.now[kind])
	c.mu.Unlock()
	time.Sleep(time.Second)
	c.mu.Lock()
	c.now[kind]--
	c.mu.Unlock()
}

func TestMiddleware(t *testing.T) {
	typ := weaver.Define[string, string]("engine.middleware.run.v1")
	scene(t, "wraps every handler, the first outermost", func(w *world) {
		var trace []string
		named := func(name string) func(weaver.HandlerFunc) weaver.HandlerFunc {
			return func(next weaver.HandlerFunc) weaver.HandlerFunc {
				return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
					trace = append(trace, name+" in "+string(input))
					out, err := next(ctx, input)
					trace = append(trace, name+" out "+string(out))
					return out, err
				}
			}
		}
		w.runConfig(w.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{named("outer"), named("inner")},
			Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
				trace = append(trace, "handler of "+weaver.Current(ctx).Type)
				return in + "!", nil
			})},
		})
		result(w, enqueue(w, typ, "x"))
		want := []string{`outer in "x"`, `inner in "x"`, "handler of engine.middleware.run.v1", `inner out "x!"`, `outer out "x!"`}
		if !slices.Equal(trace, want) {
			w.Errorf("trace:\n got %q\nwant %q", trace, want)
		}
	})
}

func TestMiddlewareThatAnswersItself(t *testing.T) {
	typ := weaver.Define[string, string]("engine.middleware.own.v1", weaver.NoRetry())
	scene(t, "must return JSON, or nothing", func(w *world) {
		w.runConfig(w.store, weaver.Config{
			Middleware: []func(weaver.HandlerFunc) weaver.HandlerFunc{func(weaver.HandlerFunc) weaver.HandlerFunc {
				return func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
					var out string
					err := json.Unmarshal(input, &out)
					return json.RawMessage(out), err
				}
			}},
			Handlers: []weaver.Handler{typ.Handler(func(context.Context, string) (string, error) {
				w.Error("the handler ran")
				return "", nil
			})},
		})
		equal(w, "its own output", result(w, enqueue(w, typ, `"mine"`)), "mine")
		equal(w, "no output", result(w, enqueue(w, typ, "")), "")
		te := failure(w, enqueue(w, typ, `{"a":`))
		equal(w, "kind", te.Kind, task.KindValidation)
		wantError(w, te, nil, "Middleware", "cannot be stored", "$.a")
	})
}

func TestSlots(t *testing.T) {
	typ := weaver.Define[string, string]("engine.slots.run.v1")

	scene(t, "bound the handlers that run at once", func(w *world) {
		c := newCrowd()
		w.runConfig(w.store, weaver.Config{Concurrency: 3, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			c.stay("all")
			return in, nil
		})}})
		hs, err := typ.EnqueueMany(w.Context(), w.client, make([]string, 10))
		w.must(err)
		began := time.Now()
		for _, h := range hs {
			result(w, h)
		}
		equal(w, "most at once", c.most["all"], 3)
		equal(w, "time", time.Since(began).Round(100*time.Millisecond), 4*time.Second)
	})

	scene(t, "are shared by queues within their own limits, and other queues are left alone", func(w *world) {
		c := newCrowd()
		w.runConfig(w.store, weaver.Config{
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
				hs = append(hs, enqueue(w, typ, q, weaver.Queue(q)))
			}
		}
		other := enqueue(w, typ, "other", weaver.Queue("other"))
		began := time.Now()
		for _, h := range hs {
			result(w, h)
		}
		equal(w, "most of slow", c.most["slow"], 1)
		equal(w, "most of fast", c.most["fast"], 4)
		equal(w, "time of eight slow ones", time.Since(began).Round(100*time.Millisecond), 8*time.Second)
		w.wantState(other.ID(), weaver.StateReady)
	})

	scene(t, "are given by priority, then by age", func(w *world) {
		var order []string
		for i, p := range []int{5, 9, 1, 5, 1, 9} {
			enqueue(w, typ, fmt.Sprint(p, "-", i), weaver.Priority(p))
		}
		w.must(w.newEngine(w.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, in string) (string, error) {
			order = append(order, in)
			return in, nil
		})}}).RunUntilIdle(w.Context()))
		equal(w, "order", fmt.Sprint(order), "[1-2 1-4 5-0 5-3 9-1 9-5]")
	})

	scene(t, "are given when a task is due", func(w *world) {
		var began []string
		w.run(typ.Handler(func(_ context.Context, in string) (string, error) {
			began = append(began, fmt.Sprint(in, " ", time.Now().UTC().Format(time.TimeOnly)))
			return in, nil
		}))
		midnight := time.Now() // as every bubble begins
		for _, h := range []*weaver.Handle[string]{
			enqueue(w, typ, "past", weaver.At(midnight.Add(-time.Hour))),
			enqueue(w, typ, "at", weaver.At(midnight.Add(time.Hour))),
			enqueue(w, typ, "delay", weaver.Delay(2*time.Hour)),
			enqueue(w, typ, "last wins", weaver.Delay(time.Minute), weaver.At(midnight.Add(3*time.Hour))),
		} {
			result(w, h)
		}
		equal(w, "starts", fmt.Sprint(began), "[past 00:00:00 at 01:00:00 delay 02:00:00 last wins 03:00:00]")
	})

	scene(t, "a paused queue starts nothing, and goes on when resumed", func(w *world) {
		g := newGate()
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) { return in, g.pass(ctx) }))
		running := enqueue(w, typ, "running", weaver.Queue("billing"))
		<-g.in
		w.must(w.client.PauseQueue(w.Context(), "billing", weaver.By("ops"), weaver.Reason("month end")))
		waiting := enqueue(w, typ, "waiting", weaver.Queue("billing"))
		g.open()
		equal(w, "a running one ends", result(w, running), "running")
		time.Sleep(time.Hour)
		got := w.get(waiting.ID())
		equal(w, "state", got.State, weaver.StatePending)
		equal(w, "it waits for", got.Waiting, task.WaitPaused)
		pause := w.history(waiting.ID()).QueuePause
		if pause == nil || pause.Actor != "ops" || pause.Reason != "month end" {
			w.Errorf("the history's pause: %+v", pause)
		}
		resumed := time.Now()
		w.must(w.client.ResumeQueue(w.Context(), "billing"))
		<-g.in
		equal(w, "time to its start", time.Since(resumed), 0)
		g.open()
		result(w, waiting)
	})

	scene(t, "tasks of unknown types are left alone", func(w *world) {
		unknown := weaver.Define[string, string]("engine.slots.unknown.v1")
		h := enqueue(w, unknown, "x")
		w.run(typ.Handler(func(_ context.Context, in string) (string, error) { return in, nil }))
		result(w, enqueue(w, typ, "x"))
		w.wantState(h.ID(), weaver.StateReady)
	})

	scene(t, "other namespaces are left alone", func(w *world) {
		dev, err := weaver.NewClient(w.store, weaver.ClientConfig{Namespace: "acme-dev"})
		w.must(err)
		h, err := typ.Enqueue(w.Context(), dev, "x")
		w.must(err)
		handler := typ.Handler(func(ctx context.Context, _ string) (string, error) { return weaver.Current(ctx).Namespace, nil })
		w.run(handler)
		equal(w, "namespace", result(w, enqueue(w, typ, "x")), weaver.DefaultNamespace)
		got, err := h.Get(w.Context())
		w.must(err)
		equal(w, "state there", got.State, weaver.StateReady)
		w.runConfig(w.store, weaver.Config{Namespace: "acme-dev", Handlers: []weaver.Handler{handler}})
		equal(w, "namespace", result(w, h), "acme-dev")
	})
}

func TestConcurrencyKey(t *testing.T) {
	typ := weaver.Define[string, string]("engine.keys.run.v1")
	other := weaver.Define[string, string]("engine.keys.other.v1")

	for _, limit := range []int{1, 3} {
		scene(t, fmt.Sprintf("lets %d run at once, across types, and drops none", limit), func(w *world) {
			c := newCrowd()
			handler := func(_ context.Context, in string) (string, error) {
				c.stay(in)
				return in, nil
			}
			w.run(typ.Handler(handler), other.Handler(handler))
			var hs []*weaver.Handle[string]
			for i := range 12 {
				k := []*weaver.Type[string, string]{typ, other}[i%2]
				hs = append(hs, enqueue(w, k, "org_1", weaver.ConcurrencyKey("org_1", limit)))
				hs = append(hs, enqueue(w, k, "org_2", weaver.ConcurrencyKey("org_2", limit)))
			}
			free := enqueue(w, typ, "free")
			began := time.Now()
			result(w, free)
			equal(w, "a task without the key waits for nobody", time.Since(began).Round(100*time.Millisecond), time.Second)
			for _, h := range hs {
				result(w, h)
			}
			equal(w, "most with the first key", c.most["org_1"], limit)
			equal(w, "most with the second key", c.most["org_2"], limit)
			equal(w, "time", time.Since(began).Round(100*time.Millisecond), time.Duration(12/limit)*time.Second)
		})
	}

	scene(t, "is free while its holder sleeps, retries, or is blocked", func(w *world) {
		attempts := 0
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
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
		holder := enqueue(w, typ, "holder", weaver.ConcurrencyKey("k"))
		for range 3 {
			synctest.Wait()
			began := time.Now()
			result(w, enqueue(w, typ, "next", weaver.ConcurrencyKey("k")))
			equal(w, "wait for the key", time.Since(began), 0)
			if got := w.get(holder.ID()); got.State == weaver.StateBlocked {
				w.must(w.client.Unblock(w.Context(), holder.ID(), nil))
			} else {
				time.Sleep(61 * time.Minute)
			}
		}
		equal(w, "output", result(w, holder), "holder")
		equal(w, "runs of the holder", attempts, 4)
	})
}
