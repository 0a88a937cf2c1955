package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

var limitedType = weaver.Define[int, int]("acme.test.limited.v1")

// starts counts the tasks that run, and the most that ran at once.
type starts struct{ running, most atomic.Int32 }

func limitEngine(t *testing.T, db store.Store, handle func(ctx context.Context, in int) (int, error), change func(*weaver.Config)) *weaver.Engine {
	t.Helper()
	cfg := weaver.Config{Concurrency: 20, Handlers: []weaver.Handler{limitedType.Handler(handle)}, Poll: time.Minute}
	if change != nil {
		change(&cfg)
	}
	e, err := weaver.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func runEngine(t *testing.T, e *weaver.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Tasks with a rate start at its pace although nothing polls, and two engines share it.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		var at []time.Time
		lock := make(chan struct{}, 1)
		handle := func(context.Context, int) (int, error) {
			lock <- struct{}{}
			at = append(at, time.Now())
			<-lock
			return 0, nil
		}
		stopA, stopB := runEngine(t, limitEngine(t, db, handle, nil)), runEngine(t, limitEngine(t, db, handle, nil))
		defer stopA()
		defer stopB()
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		handles, err := limitedType.EnqueueMany(t.Context(), client, make([]int, 50), weaver.RateLimit("partner", 10, time.Second, 3))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range handles {
			if _, err := h.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(at) != 50 {
			t.Fatalf("%d starts", len(at))
		}
		for i := range at {
			n := 0
			for _, other := range at {
				if d := other.Sub(at[i]); d >= 0 && d < time.Second {
					n++
				}
			}
			if n > 10+3 {
				t.Errorf("%d tasks started within a second of %s", n, at[i].Sub(began))
			}
		}
		if took := at[49].Sub(began); took > 5*time.Second {
			t.Errorf("50 tasks at 10 per second and a burst of 3 took %s", took)
		}
	})
}

// A limit of running tasks holds across engines, is explained, and opens at once when it is raised.
func TestLimit_Running(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		var n starts
		free := make(chan struct{})
		handle := func(ctx context.Context, _ int) (int, error) {
			n.most.Store(max(n.most.Load(), n.running.Add(1)))
			defer n.running.Add(-1)
			<-free
			return 0, nil
		}
		limits := func(c *weaver.Config) { c.Limits = map[string]weaver.Limit{"queue:billing": {Running: 3}} }
		stopA, stopB := runEngine(t, limitEngine(t, db, handle, limits)), runEngine(t, limitEngine(t, db, handle, limits))
		defer stopA()
		defer stopB()
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		handles, err := limitedType.EnqueueMany(t.Context(), client, make([]int, 12), weaver.Queue("billing"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := n.running.Load(); got != 3 {
			t.Errorf("%d run, want 3", got)
		}
		var waiting *store.History
		for _, h := range handles {
			got, err := client.History(t.Context(), h.ID())
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Limits) > 0 {
				waiting = &got
			}
		}
		if waiting == nil || len(waiting.Limits) != 1 || waiting.Limits[0].InUse != 3 {
			t.Fatalf("no task waits for the limit: %+v", waiting)
		}
		if err := client.SetLimit(t.Context(), "queue:billing", weaver.Limit{Running: 5}, weaver.By("ann"), weaver.Reason("month end")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := n.running.Load(); got != 5 {
			t.Errorf("%d run after the limit was raised, want 5", got)
		}
		list, err := client.Limits(t.Context(), "", 0)
		if err != nil || len(list) != 1 || list[0].By != "ann" || list[0].InUse != 5 {
			t.Errorf("limits %+v, %v", list, err)
		}
		close(free)
		for _, h := range handles {
			if _, err := h.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := n.most.Load(); got > 5 {
			t.Errorf("%d ran at once", got)
		}
	})
}

// A full queue refuses enqueues, and takes them again when tasks have started.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.SetLimit(t.Context(), "queue:small", weaver.Limit{Pending: 5}); err != nil {
			t.Fatal(err)
		}
		if _, err := limitedType.EnqueueMany(t.Context(), client, make([]int, 6), weaver.Queue("small")); !errors.Is(err, weaver.ErrQueueFull) {
			t.Errorf("six tasks: %v", err)
		}
		if _, err := limitedType.EnqueueMany(t.Context(), client, make([]int, 5), weaver.Queue("small")); err != nil {
			t.Fatal(err)
		}
		_, err = limitedType.Enqueue(t.Context(), client, 1, weaver.Queue("small"))
		if !errors.Is(err, weaver.ErrQueueFull) || !strings.Contains(err.Error(), `queue "small" has 5 tasks`) {
			t.Errorf("a sixth task: %v", err)
		}
		if _, err := limitedType.Enqueue(t.Context(), client, 1); err != nil {
			t.Errorf("another queue: %v", err)
		}
		e := limitEngine(t, db, func(context.Context, int) (int, error) { return 0, nil }, nil)
		if err := e.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := limitedType.Enqueue(t.Context(), client, 1, weaver.Queue("small")); err != nil {
			t.Errorf("after the tasks ran: %v", err)
		}
	})
}

// A handler that meets a 429 slows down all tasks of the key.
func TestSlowDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		var calls atomic.Int32
		began := time.Now()
		handle := func(context.Context, int) (int, error) {
			calls.Add(1)
			if time.Since(began) < time.Second {
				return 0, weaver.SlowDown("partner", 10*time.Second)
			}
			return 0, nil
		}
		stop := runEngine(t, limitEngine(t, db, handle, nil))
		defer stop()
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		limit := weaver.RateLimit("partner", 1000, time.Second, 1000)
		if _, err := limitedType.Enqueue(t.Context(), client, 1, limit); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		handles, err := limitedType.EnqueueMany(t.Context(), client, make([]int, 10), limit)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls while the key rests", got)
		}
		for _, h := range handles {
			if _, err := h.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// One tenant with a backlog delays another one by its turn.
func TestFairBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		var big atomic.Int32
		seen := make(chan int32, 100)
		handle := func(ctx context.Context, in int) (int, error) {
			if in == 0 {
				big.Add(1)
			} else {
				seen <- big.Load()
			}
			time.Sleep(10 * time.Millisecond)
			return 0, nil
		}
		const slots = 4
		stop := runEngine(t, limitEngine(t, db, handle, func(c *weaver.Config) { c.Concurrency = slots }))
		defer stop()
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := limitedType.EnqueueMany(t.Context(), client, make([]int, 1000), weaver.FairBy("tenant"), weaver.Label("tenant", "big")); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			time.Sleep(20 * time.Millisecond)
			before := big.Load()
			if _, err := limitedType.Enqueue(t.Context(), client, 1, weaver.FairBy("tenant"), weaver.Label("tenant", fmt.Sprint("small", i))); err != nil {
				t.Fatal(err)
			}
			if between := <-seen - before; between > 2*slots {
				t.Errorf("%d tasks of the big tenant started before the one of small%d", between, i)
			}
		}
	})
}

// Limits of a configuration that cannot be are refused with their names.
func TestLimits_Problems(t *testing.T) {
	t.Parallel()
	_, err := weaver.New(memstore.New(), weaver.Config{Limits: map[string]weaver.Limit{"billing": {Running: 1}, "queue:q": {Starts: 1, Per: time.Second, Burst: -1}}})
	if !errors.Is(err, weaver.ErrConfig) || !strings.Contains(err.Error(), `limit "billing": want queue:NAME`) || !strings.Contains(err.Error(), "must not be negative") {
		t.Errorf("%v", err)
	}
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for want, opt := range map[string]weaver.Option{
		"0 starts":     weaver.RateLimit("k", 0, time.Second, 1),
		"a burst of 0": weaver.RateLimit("k", 1, time.Second, 0),
		"at most one":  weaver.RateLimit("k", 10, 0, 1),
	} {
		if _, err := limitedType.Enqueue(t.Context(), client, 1, opt); !errors.Is(err, weaver.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

var fanType = weaver.Define[int, int]("acme.test.fan.v1")

// At most MaxParallel tasks of a job run at once, the children of its tasks included. A task that waits for children does not count.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		var n starts
		run := func() func() {
			n.most.Store(max(n.most.Load(), n.running.Add(1)))
			return func() { n.running.Add(-1) }
		}
		handle := func(context.Context, int) (int, error) {
			defer run()()
			time.Sleep(time.Second)
			return 1, nil
		}
		fan := fanType.Handler(func(ctx context.Context, _ int) (int, error) {
			defer run()()
			got, err := weaver.CallAll(ctx, "parts", limitedType, []int{1, 2, 3})
			return len(got), err
		})
		engine := func(c *weaver.Config) { c.Handlers = append(c.Handlers, fan) }
		stopA, stopB := runEngine(t, limitEngine(t, db, handle, engine)), runEngine(t, limitEngine(t, db, handle, engine))
		defer stopA()
		defer stopB()
		client, err := weaver.NewClient(db, weaver.ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		job := weaver.NewJob("nightly")
		job.MaxParallel(2)
		for i := range 6 {
			d := limitedType.With(i)
			if i%2 == 0 {
				d = fanType.With(i)
			}
			job.Add(fmt.Sprint("part-", i), d)
		}
		h, err := client.Submit(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := h.Wait(t.Context()); err != nil || r.State != "succeeded" {
			t.Fatalf("the job is %s: %v", r.State, err)
		}
		if n.most.Load() != 2 {
			t.Errorf("%d ran at once, want 2", n.most.Load())
		}
	})
}

func TestMaxParallel_Wrong(t *testing.T) {
	t.Parallel()
	client, err := weaver.NewClient(memstore.New(), weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	job := weaver.NewJob("nightly")
	job.MaxParallel(2)
	job.Add("part", limitedType.With(1, weaver.ConcurrencyKey("disk", 1)))
	none := weaver.NewJob("nightly")
	none.MaxParallel(0)
	none.Add("part", limitedType.With(1))
	for want, j := range map[string]*weaver.Job{`"part" has the ConcurrencyKey "disk"`: job, "MaxParallel(0)": none} {
		if _, err := client.Submit(t.Context(), j); !errors.Is(err, weaver.ErrInvalidJob) || !strings.Contains(err.Error(), want) {
			t.Errorf("Submit: %v, want %s", err, want)
		}
	}
}
