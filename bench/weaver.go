package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
)

type syncMode int

const (
	full syncMode = iota
	normal
)

func (m syncMode) String() string { return [...]string{"FULL", "NORMAL"}[m] }

var (
	noopType = weaver.Define[int, weaver.None]("bench.load.noop.v1")
	stepType = weaver.Define[int, int]("bench.load.step.v1")
	seqType  = weaver.Define[int, int]("bench.load.sequence.v1")
)

// quiet discards the logs of expected events, so that they do not affect the figures.
var quiet = slog.New(slog.DiscardHandler)

// onStore opens a new file store, runs f, and removes the file.
func onStore(ctx context.Context, mode syncMode, f func(db *sqlite.DB) error) (err error) {
	dir, err := os.MkdirTemp("", "weaver-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sync := sqlite.Full
	if mode == normal {
		sync = sqlite.Normal
	}
	db, err := sqlite.Open(ctx, filepath.Join(dir, "bench.db"), sqlite.Synchronous(sync))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	return f(db)
}

// place opens a new store of some kind, runs f, and removes it.
type place func(ctx context.Context, f func(db store.Store) error) error

// inFile is a file store.
func inFile(mode syncMode) place {
	return func(ctx context.Context, f func(db store.Store) error) error {
		return onStore(ctx, mode, func(db *sqlite.DB) error { return f(db) })
	}
}

// throughput enqueues n tasks of a type and then measures an engine, with 1,000 slots by default, until the last handler's result
// is durable.
func throughput(ctx context.Context, n int, mode syncMode, h weaver.Handler, drafts func(i int) weaver.Draft, plugins ...weaver.Plugin) (perSecond float64, err error) {
	return throughputOf(ctx, n, inFile(mode), weaver.Config{Handlers: []weaver.Handler{h}, Plugins: plugins}, drafts)
}

func throughputOf(ctx context.Context, n int, in place, cfg weaver.Config, drafts func(i int) weaver.Draft) (perSecond float64, err error) {
	cfg.Concurrency, cfg.Logger = cmp.Or(cfg.Concurrency, 1000), quiet
	err = in(ctx, func(db store.Store) error {
		eng, err := weaver.New(db, cfg)
		if err != nil {
			return err
		}
		for i := 0; i < n; {
			batch := make([]weaver.Draft, 0, 1000)
			for ; i < n && len(batch) < cap(batch); i++ {
				batch = append(batch, drafts(i))
			}
			if _, err := eng.EnqueueTasks(ctx, batch...); err != nil {
				return err
			}
		}
		begin := time.Now()
		if err := eng.RunUntilIdle(ctx); err != nil {
			return err
		}
		perSecond = float64(n) / time.Since(begin).Seconds()
		left, _, err := eng.List(ctx, weaver.Filter{States: []weaver.State{weaver.StateReady, weaver.StateRunning, weaver.StatePending, weaver.StateFailed}, Limit: 1})
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("task %s is %s: not everything ran", left[0].ID, left[0].State)
		}
		return nil
	})
	return perSecond, err
}

func noop(ctx context.Context, n int, in place) (float64, error) {
	h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
	return throughputOf(ctx, n, in, weaver.Config{Handlers: []weaver.Handler{h}}, func(i int) weaver.Draft { return noopType.With(i) })
}

func oneStep(ctx context.Context, n int, mode syncMode) (float64, error) {
	h := stepType.Handler(func(ctx context.Context, i int) (int, error) {
		return weaver.Step(ctx, "double", func(context.Context) (int, error) { return 2 * i, nil })
	})
	return throughput(ctx, n, mode, h, func(i int) weaver.Draft { return stepType.With(i) })
}

// sequential measures one task with n sequential steps.
func sequential(ctx context.Context, n int, in place) (perSecond float64, err error) {
	var took time.Duration
	h := seqType.Handler(func(ctx context.Context, n int) (int, error) {
		begin := time.Now()
		sum := 0
		for i := range n {
			v, err := weaver.Step(ctx, fmt.Sprintf("step-%d", i), func(context.Context) (int, error) { return i, nil })
			if err != nil {
				return 0, err
			}
			sum += v
		}
		took = time.Since(begin)
		return sum, nil
	})
	err = in(ctx, func(db store.Store) error {
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Logger: quiet})
		if err != nil {
			return err
		}
		if _, err := seqType.Enqueue(ctx, eng, n); err != nil {
			return err
		}
		return eng.RunUntilIdle(ctx)
	})
	return float64(n) / took.Seconds(), err
}

// idle measures the time from single enqueues, on an idle engine, until their handler runs.
func idle(ctx context.Context, n int, in place) (lat []time.Duration, err error) {
	begun := make(chan time.Time, 1)
	h := noopType.Handler(func(context.Context, int) (weaver.None, error) {
		begun <- time.Now()
		return weaver.None{}, nil
	})
	err = in(ctx, func(db store.Store) error {
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Logger: quiet})
		if err != nil {
			return err
		}
		stop := background(ctx, eng)
		defer func() { err = errors.Join(err, stop()) }()
		for i := range n {
			time.Sleep(5 * time.Millisecond) // idle again
			before := time.Now()
			if _, err := noopType.Enqueue(ctx, eng, i); err != nil {
				return err
			}
			lat = append(lat, (<-begun).Sub(before))
		}
		return nil
	})
	return lat, err
}

func background(ctx context.Context, eng *weaver.Engine) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// enqueueSingle measures n enqueues of one task each from several goroutines.
func enqueueSingle(ctx context.Context, n, goroutines int, in place) (perSecond float64, err error) {
	err = in(ctx, func(db store.Store) error {
		client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
		if err != nil {
			return err
		}
		var next atomic.Int64
		var wg sync.WaitGroup
		errs := make(chan error, goroutines)
		begin := time.Now()
		for range goroutines {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					if _, err := noopType.Enqueue(ctx, client, int(i)); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		perSecond = float64(n) / time.Since(begin).Seconds()
		close(errs)
		return <-errs
	})
	return perSecond, err
}

func enqueueBatch(ctx context.Context, n, size int, in place) (perSecond float64, err error) {
	err = in(ctx, func(db store.Store) error {
		client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
		if err != nil {
			return err
		}
		ins := make([]int, size)
		begin := time.Now()
		for done := 0; done < n; done += len(ins) {
			if _, err := noopType.EnqueueMany(ctx, client, ins); err != nil {
				return err
			}
		}
		perSecond = float64(n) / time.Since(begin).Seconds()
		return nil
	})
	return perSecond, err
}
