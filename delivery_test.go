package weaver_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

// hostile is a transport with faults.
type hostile struct {
	*delivery.Memory
	push func([]delivery.Hint) ([]delivery.Hint, error) // nil: takes all
	pop  func([]task.ID) ([]task.ID, error)             // nil: returns all
}

func (h *hostile) Push(ctx context.Context, ns string, hints []delivery.Hint) error {
	if h.push != nil {
		var err error
		if hints, err = h.push(slices.Clone(hints)); len(hints) == 0 {
			return err
		}
	}
	return h.Memory.Push(ctx, ns, hints)
}

func (h *hostile) Pop(ctx context.Context, ns string, lanes []delivery.Lane, limit int, wait time.Duration) ([]task.ID, error) {
	ids, err := h.Memory.Pop(ctx, ns, lanes, limit, wait)
	if h.pop == nil || err != nil {
		return ids, err
	}
	return h.pop(ids)
}

var hintedType = weaver.Define[int, int]("acme.test.hinted.v1")

// fleet runs engines of one store and counts the runs of each task.
type fleet struct {
	t      *testing.T
	client *weaver.Client
	mu     sync.Mutex
	runs   map[int]int
	engs   []*weaver.Engine
	stop   []func()
}

// newFleet starts n engines. Their store sends no notices, so that only Poll and hints wake them.
func newFleet(t *testing.T, n int, tr delivery.Transport, poll time.Duration, hooks storehook.Hooks, change func(i int, cfg *weaver.Config)) *fleet {
	return newFleetOn(t, memstore.New(), n, tr, poll, hooks, change)
}

func newFleetOn(t *testing.T, st store.Store, n int, tr delivery.Transport, poll time.Duration, hooks storehook.Hooks, change func(i int, cfg *weaver.Config)) *fleet {
	hooks.Hide |= store.CanNotify
	s := storehook.New(st, &hooks)
	client, err := weaver.NewClient(s, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, client: client, runs: make(map[int]int)}
	for i := range n {
		cfg := weaver.Config{Delivery: tr, Poll: poll, Concurrency: 8, Handlers: []weaver.Handler{hintedType.Handler(func(_ context.Context, n int) (int, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.runs[n]++
			return n, nil
		})}}
		if change != nil {
			change(i, &cfg)
		}
		eng, err := weaver.New(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- eng.Run(ctx) }()
		f.engs = append(f.engs, eng)
		f.stop = append(f.stop, func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	synctest.Wait()
	return f
}

// enqueue stores tasks from first on.
func (f *fleet) enqueue(first, n int) {
	f.t.Helper()
	for i := range n {
		if _, err := f.client.EnqueueTasks(f.t.Context(), hintedType.With(first+i)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// end stops the engines and checks that each of n tasks ran once.
func (f *fleet) end(n int) {
	f.t.Helper()
	for _, stop := range f.stop {
		stop()
	}
	for i := range n {
		if f.runs[i] != 1 {
			f.t.Errorf("task %d ran %d times, want once", i, f.runs[i])
		}
	}
}

func (f *fleet) ran() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs)
}

// A hint starts a task long before the poll of a worker.
func TestDelivery_HintsWakeIdleWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, delivery.NewMemory(), time.Hour, storehook.Hooks{}, func(i int, cfg *weaver.Config) {
			if i == 0 { // a publisher without handlers
				cfg.Handlers, cfg.Poll = nil, 100*time.Millisecond
			} else {
				cfg.NoPublisher = true
			}
		})
		for i := range 5 {
			f.enqueue(i, 1)
			time.Sleep(time.Second)
			if got := f.ran(); got != i+1 {
				t.Errorf("%d tasks ran after a second, want %d", got, i+1)
			}
		}
		if h := f.engs[1].Hints(); h.Popped != 5 || h.Useless != 0 {
			t.Errorf("the worker counts %+v, want 5 hints", h)
		}
		if h := f.engs[0].Hints(); h.Pushed != 5 {
			t.Errorf("the publisher counts %+v, want 5 hints", h)
		}
		f.end(5)
	})
}

func TestDelivery_HostileTransports(t *testing.T) {
	other := task.NewIDs(nil)
	var drop atomic.Int64
	for name, tr := range map[string]*hostile{
		"drops everything":  {push: func([]delivery.Hint) ([]delivery.Hint, error) { return nil, nil }},
		"doubles each hint": {push: func(h []delivery.Hint) ([]delivery.Hint, error) { return append(h, h...), nil }},
		"adds other IDs":    {pop: func(ids []task.ID) ([]task.ID, error) { return append([]task.ID{other.New(), {}}, ids...), nil }},
		"answers with rubbish at once": {pop: func([]task.ID) ([]task.ID, error) {
			return []task.ID{{}, other.New()}, nil
		}},
		"is gone":         {push: func([]delivery.Hint) ([]delivery.Hint, error) { return nil, errors.New("connection refused") }, pop: func([]task.ID) ([]task.ID, error) { return nil, errors.New("connection refused") }},
		"loses every 2nd": {push: func(h []delivery.Hint) ([]delivery.Hint, error) { return h[:int(drop.Add(1)%2)*len(h)], nil }},
		"refuses for good": {push: func(h []delivery.Hint) ([]delivery.Hint, error) {
			return nil, &delivery.RefusedError{Refused: []delivery.Refusal{{Index: 0, Reason: errors.New("too long")}, {Index: 99}, {Index: -1}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := &hostile{Memory: delivery.NewMemory(), push: tr.push, pop: tr.pop}
				var claims atomic.Int64
				hooks := storehook.Hooks{Claim: func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
					claims.Add(1)
					return next()
				}}
				f := newFleet(t, 3, tr, time.Second, hooks, nil)
				f.enqueue(0, 50)
				time.Sleep(time.Second)
				f.enqueue(50, 50)
				time.Sleep(10 * time.Second)
				if got := f.ran(); got != 100 {
					t.Errorf("%d tasks ran, want 100", got)
				}
				claims.Store(0)
				time.Sleep(100 * time.Second)
				if n := claims.Load(); n > 3*100*4 {
					t.Errorf("3 idle workers made %d claims in 100 s", n)
				}
				f.end(100)
			})
		})
	}
}

// A hint that the transport took is sent again after RedeliverAfter, one that it did not take after a second.
func TestDelivery_HintsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pushes atomic.Int32
		tr := &hostile{Memory: delivery.NewMemory(), push: func([]delivery.Hint) ([]delivery.Hint, error) {
			if pushes.Add(1) == 1 {
				return nil, errors.New("away")
			}
			return nil, nil
		}}
		f := newFleet(t, 1, tr, 100*time.Millisecond, storehook.Hooks{}, func(_ int, cfg *weaver.Config) {
			cfg.Handlers, cfg.RedeliverAfter = nil, time.Minute
		})
		f.enqueue(0, 1)
		for _, want := range []int32{2, 2, 3, 3, 4} {
			time.Sleep(30 * time.Second)
			if got := pushes.Load(); got != want {
				t.Errorf("%d pushes, want %d", got, want)
			}
		}
		f.end(0)
	})
}

// Crash between the mark and the push: the mark ends, and another publisher sends the hint.
func TestDelivery_PublisherDiesBeforeThePush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dies atomic.Bool
		dies.Store(true)
		hooks := storehook.Hooks{Publish: func(_ context.Context, req store.PublishRequest, next func() (store.PublishResult, error)) (store.PublishResult, error) {
			res, err := next()
			if len(res.Tasks) > 0 && dies.CompareAndSwap(true, false) {
				return store.PublishResult{}, errors.New("the connection was lost after the commit")
			}
			return res, err
		}}
		f := newFleet(t, 2, delivery.NewMemory(), time.Hour, hooks, func(i int, cfg *weaver.Config) {
			if i == 0 {
				cfg.Handlers, cfg.Poll = nil, 100*time.Millisecond
			} else {
				cfg.NoPublisher = true
			}
		})
		f.enqueue(0, 3)
		time.Sleep(5 * time.Second)
		if got := f.ran(); got != 3 || dies.Load() {
			t.Errorf("%d tasks ran, want 3", got)
		}
		f.end(3)
	})
}

// A client pushes the hints of its own enqueues, and an outage of the transport does not slow it
// down.
func TestDelivery_ClientPushesHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pushes, hang := 0, false
		tr := &hostile{Memory: delivery.NewMemory()}
		tr.push = func(h []delivery.Hint) ([]delivery.Hint, error) {
			pushes++
			if hang {
				time.Sleep(time.Second)
				return nil, errors.New("timeout")
			}
			return h, nil
		}
		f := newFleet(t, 1, tr, time.Hour, storehook.Hooks{}, func(_ int, cfg *weaver.Config) { cfg.NoPublisher = true })
		client, err := weaver.NewClient(f.client.Store(), weaver.ClientConfig{Delivery: tr})
		if err != nil {
			t.Fatal(err)
		}
		f.client = client
		f.enqueue(0, 2)
		time.Sleep(time.Second)
		if f.ran() != 2 || pushes != 2 {
			t.Errorf("%d tasks ran after %d pushes, want 2", f.ran(), pushes)
		}
		if _, err := client.EnqueueTasks(t.Context(), hintedType.With(12, weaver.Delay(time.Hour))); err != nil || pushes != 2 {
			t.Errorf("a task that is due later: %v, %d pushes, want 2", err, pushes)
		}
		hang = true
		f.enqueue(2, 10)
		if pushes != 3 {
			t.Errorf("%d pushes while the transport fails, want 3", pushes)
		}
		time.Sleep(4 * time.Hour)
		f.end(13)
	})
}
