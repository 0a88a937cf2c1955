// Package storebench measures the performance of a store for Weaver: the rate of enqueues and runs, and the delay
// until a task starts. It uses a user's settings: attempts and steps are recorded, and each call returns only when it
// is durable.
package storebench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/group"
	"github.com/goweaver/weaver/store"
)

// Config configures a measurement.
type Config struct {
	Store     store.Store // required
	Namespace string      // required; must be empty
	Tasks     int         // number of no-op tasks, at least 100
	Slots     int         // of the engine, at least 1

	// Measured, if set, is called with each figure as soon as it is known.
	Measured func(Figure)
}

// The names of the figures, in the order in which they are measured.
const (
	EnqueueOne  = "enqueue_one"  // Enqueue, one call at a time
	EnqueueMany = "enqueue_many" // EnqueueMany, 1,000 tasks per call
	Enqueue     = "enqueue"      // Enqueue, 50 callers
	Run         = "run"          // no-op tasks, from the claim to their end
	Steps       = "steps"        // sequential steps of one task
	Start       = "start"        // from the call of Enqueue to the start of the handler, on an idle engine
)

// Figure is one measured quantity.
type Figure struct {
	Name      string        `json:"name"`
	Count     int           `json:"count"`            // calls, tasks or steps
	Took      time.Duration `json:"took_ns"`          // in total
	PerSecond float64       `json:"per_second"`       // Count in a second
	P50       time.Duration `json:"p50_ns,omitempty"` // of one; 0: not measured individually
	P99       time.Duration `json:"p99_ns,omitempty"`
}

const (
	perCall = 1000 // tasks of one EnqueueMany
	callers = 50
	most    = 1000 // of individually measured operations
)

// Measure measures a store. Its tasks stay in the namespace, even if ctx ends it: see Remove.
func Measure(ctx context.Context, c Config) error {
	if c.Tasks < 100 || c.Slots < 1 {
		return fmt.Errorf("%d tasks and %d slots: want 100 or more, and 1 or more", c.Tasks, c.Slots)
	}
	b := &bench{Config: c, started: make(chan time.Time, 1), few: min(c.Tasks/10, most)}
	noop := weaver.Define[weaver.None, weaver.None]("weaver.bench.noop.v1", weaver.NoRetry())
	steps := weaver.Define[int, weaver.None]("weaver.bench.steps.v1", weaver.NoRetry())
	start := weaver.Define[weaver.None, weaver.None]("weaver.bench.start.v1", weaver.NoRetry())
	eng, err := weaver.New(c.Store, weaver.Config{
		Namespace: c.Namespace, Concurrency: c.Slots, NoStats: true, Logger: slog.New(slog.DiscardHandler),
		Handlers: []weaver.Handler{
			noop.Handler(func(context.Context, weaver.None) (none weaver.None, err error) { return none, nil }),
			steps.Handler(func(ctx context.Context, n int) (none weaver.None, err error) {
				for i := range n {
					if err := weaver.Do(ctx, fmt.Sprintf("step-%d", i), func(context.Context) error { return nil }); err != nil {
						return none, err
					}
				}
				return none, nil
			}),
			start.Handler(func(context.Context, weaver.None) (none weaver.None, err error) {
				b.started <- time.Now()
				return none, nil
			}),
		},
	})
	if err != nil {
		return err
	}
	b.eng, b.noop, b.steps, b.start = eng, noop, steps, start
	for _, measure := range []func(context.Context) error{b.enqueueOne, b.enqueueMany, b.enqueue, b.run, b.sequence, b.latency} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

type bench struct {
	Config
	eng         *weaver.Engine
	noop, start *weaver.Type[weaver.None, weaver.None]
	steps       *weaver.Type[int, weaver.None]
	started     chan time.Time // start times of the handler of start
	few         int            // number of individual measurements
	stored      int            // waiting tasks
}

// report passes a figure to Measured. each holds the individual durations, if measured.
func (b *bench) report(name string, count int, took time.Duration, each []time.Duration) {
	f := Figure{Name: name, Count: count, Took: took, PerSecond: float64(count) / max(took, time.Nanosecond).Seconds()}
	if slices.Sort(each); len(each) > 0 {
		f.P50, f.P99 = each[len(each)/2], each[len(each)*99/100]
	}
	if b.Measured != nil {
		b.Measured(f)
	}
}

func (b *bench) enqueueOne(ctx context.Context) error {
	each := make([]time.Duration, 0, b.few)
	begun := time.Now()
	for range b.few {
		began := time.Now()
		if _, err := b.noop.Enqueue(ctx, b.eng, weaver.None{}); err != nil {
			return err
		}
		each = append(each, time.Since(began))
	}
	b.report(EnqueueOne, b.few, time.Since(begun), each)
	b.stored += b.few
	return nil
}

func (b *bench) enqueueMany(ctx context.Context) error {
	begun := time.Now()
	for left := b.Tasks; left > 0; left -= perCall {
		if _, err := b.noop.EnqueueMany(ctx, b.eng, make([]weaver.None, min(left, perCall))); err != nil {
			return err
		}
	}
	b.report(EnqueueMany, b.Tasks, time.Since(begun), nil)
	b.stored += b.Tasks
	return nil
}

func (b *bench) enqueue(ctx context.Context) error {
	var mu sync.Mutex
	var all []time.Duration
	g := group.New(ctx)
	begun := time.Now()
	for range callers {
		g.Go("caller", func(ctx context.Context) error {
			var each []time.Duration
			for range b.few / 10 {
				began := time.Now()
				if _, err := b.noop.Enqueue(ctx, b.eng, weaver.None{}); err != nil {
					return err
				}
				each = append(each, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, each...)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	b.report(Enqueue, len(all), time.Since(begun), all)
	b.stored += len(all)
	return ctx.Err()
}

func (b *bench) run(ctx context.Context) error {
	begun := time.Now()
	if err := b.eng.RunUntilIdle(ctx); err != nil {
		return err
	}
	b.report(Run, b.stored, time.Since(begun), nil)
	return nil
}

func (b *bench) sequence(ctx context.Context) error {
	h, err := b.steps.Enqueue(ctx, b.eng, b.few)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := b.eng.RunUntilIdle(ctx); err != nil {
		return err
	}
	took := time.Since(begun)
	if _, err := h.Wait(ctx); err != nil {
		return err
	}
	b.report(Steps, b.few, took, nil)
	return nil
}

// latency enqueues tasks one after another on an idle engine.
func (b *bench) latency(ctx context.Context) (err error) {
	g := group.New(ctx)
	g.Go("engine", b.eng.Run)
	defer func() {
		g.Cancel(nil)
		err = errors.Join(err, g.Wait())
	}()
	var each []time.Duration
	begun := time.Now()
	for range max(b.few/5, 20) {
		began := time.Now()
		h, err := b.start.Enqueue(ctx, b.eng, weaver.None{})
		if err != nil {
			return err
		}
		select {
		case at := <-b.started:
			each = append(each, at.Sub(began))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if _, err := h.Wait(ctx); err != nil {
			return err
		}
	}
	b.report(Start, len(each), time.Since(begun), each)
	return nil
}

// Remove removes all tasks of a namespace.
func Remove(ctx context.Context, st store.Store, namespace string) error {
	client, err := weaver.NewClient(st, weaver.ClientConfig{Namespace: namespace})
	if err != nil {
		return err
	}
	if _, err := client.CancelMany(ctx, weaver.Filter{}, weaver.Force()); err != nil {
		return err
	}
	req := store.CollectRequest{Retain: []store.Retention{{States: []weaver.State{weaver.StateSucceeded, weaver.StateFailed, weaver.StateCancelled}}}}
	for {
		got, err := st.Collect(ctx, namespace, req)
		if err != nil {
			return err
		}
		if got.Done() {
			break
		}
		req.After = got.Next
	}
	for { // the rest of a task with many steps is left to reapers
		got, err := st.Reap(ctx, namespace, store.ReapRequest{Worker: "bench", TTL: store.DefaultLease, CrashBudget: -1})
		if err != nil || !got.Chores {
			return err
		}
	}
}
