package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task/event"
)

var (
	callType = weaver.Define[int, int]("bench.waits.call.v1")
	waitType = weaver.Define[int, bool]("bench.waits.signal.v1")
	goOn     = weaver.DefineSignal[bool]("go-on")
)

// callChildren is the number of children of one call.
const callChildren = 1000

// waits compares the children of a call with single tasks. It also compares the time from a signal to the
// continuation of a handler with the time from an enqueue to a start.
func (r *report) waits(ctx context.Context) error {
	f, err := r.measure(
		func() (float64, error) { return calls(ctx, 10) },
		func() (float64, error) { return singles(ctx, 10) },
	)
	if err != nil {
		return err
	}
	r.row(fmt.Sprintf("children/s of calls with %d, FULL", callChildren), f[0].String(), "single tasks "+f[1].String(), ratio(f[0].median()/f[1].median()))
	f, err = r.measure(
		func() (float64, error) { return p50(signals(ctx, 300)) },
		func() (float64, error) { return p50(idle(ctx, 300, inFile(full))) },
	)
	if err != nil {
		return err
	}
	r.row("idle signal → handler goes on, ms p50, FULL", f[0].String(), "enqueue → handler "+f[1].String(), ratio(f[0].median()/f[1].median()))
	return nil
}

func p50(lat []time.Duration, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	slices.Sort(lat)
	return float64(lat[len(lat)/2]) / 1e6, nil
}

// calls measures sequential tasks that call children, from the enqueue until the output is durable.
func calls(ctx context.Context, n int) (float64, error) {
	call := callType.Handler(func(ctx context.Context, n int) (int, error) {
		outs, err := weaver.CallAll(ctx, "fan", noopType, make([]int, n))
		return len(outs), err
	})
	return waves(ctx, n, func(eng *weaver.Engine) error {
		_, err := callType.Enqueue(ctx, eng, callChildren)
		return err
	}, call)
}

// singles is calls for tasks that are enqueued together.
func singles(ctx context.Context, n int) (float64, error) {
	return waves(ctx, n, func(eng *weaver.Engine) error {
		_, err := noopType.EnqueueMany(ctx, eng, make([]int, callChildren))
		return err
	})
}

// waves measures n waves of callChildren tasks each, and returns tasks per second.
func waves(ctx context.Context, n int, wave func(*weaver.Engine) error, handlers ...weaver.Handler) (perSecond float64, err error) {
	handlers = append(handlers, noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil }))
	err = onStore(ctx, full, func(db *sqlite.DB) error {
		var took time.Duration
		for range n {
			eng, err := weaver.New(db, weaver.Config{Handlers: handlers, Concurrency: 1000, Logger: quiet})
			if err != nil {
				return err
			}
			begin := time.Now()
			if err := wave(eng); err != nil {
				return err
			}
			if err := eng.RunUntilIdle(ctx); err != nil {
				return err
			}
			took += time.Since(begin)
			left, _, err := eng.List(ctx, weaver.Filter{States: []weaver.State{weaver.StateReady, weaver.StateRunning, weaver.StatePending, weaver.StateFailed, weaver.StateBlocked}, Limit: 1})
			if err != nil {
				return err
			}
			if len(left) > 0 {
				return fmt.Errorf("task %s is %s: not everything ran", left[0].ID, left[0].State)
			}
		}
		perSecond = float64(n*callChildren) / took.Seconds()
		return nil
	})
	return perSecond, err
}

// suspensions receives each task that leaves its worker.
type suspensions chan weaver.TaskID

// Emit implements event.Sink.
func (s suspensions) Emit(ev event.Event) {
	if ev, ok := ev.(event.TaskSuspended); ok {
		s <- ev.TaskID
	}
}

// signals measures the time from a signal to a waiting task until its handler continues.
func signals(ctx context.Context, n int) (lat []time.Duration, err error) {
	waiting, gone := make(suspensions, 1), make(chan time.Time, 1)
	h := waitType.Handler(func(ctx context.Context, _ int) (bool, error) {
		v, _, err := goOn.Wait(ctx, "wait", 0)
		if err == nil {
			gone <- time.Now()
		}
		return v, err
	})
	err = onStore(ctx, full, func(db *sqlite.DB) error {
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Logger: quiet, Sink: waiting})
		if err != nil {
			return err
		}
		stop := background(ctx, eng)
		defer func() { err = errors.Join(err, stop()) }()
		for i := range n {
			if _, err := waitType.Enqueue(ctx, eng, i); err != nil {
				return err
			}
			id := <-waiting
			time.Sleep(5 * time.Millisecond) // idle again
			before := time.Now()
			if err := goOn.Send(ctx, eng, id, "k", true); err != nil {
				return err
			}
			lat = append(lat, (<-gone).Sub(before))
		}
		return nil
	})
	return lat, err
}
