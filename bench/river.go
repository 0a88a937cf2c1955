package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverArgs is a no-op of River.
type riverArgs struct {
	N int `json:"n"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "noop" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	work func()
}

// Work implements river.Worker.
func (w *riverWorker) Work(context.Context, *river.Job[riverArgs]) error {
	w.work()
	return nil
}

// river opens a client of River in a new database, tuned like `river bench`. Without workers it only inserts.
func (s *server) river(ctx context.Context, workers int, work func(), f func(pool *pgxpool.Pool, c *river.Client[pgx.Tx]) error) error {
	return s.riverWith(ctx, workers, func(all *river.Workers) { river.AddWorker(all, &riverWorker{work: work}) }, f)
}

func (s *server) riverWith(ctx context.Context, workers int, add func(all *river.Workers), f func(pool *pgxpool.Pool, c *river.Client[pgx.Tx]) error) error {
	return s.database(ctx, func(url string) error {
		pool, err := pgxpool.New(ctx, url+"&pool_max_conns=10")
		if err != nil {
			return err
		}
		defer pool.Close()
		driver := riverpgxv5.New(pool)
		m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
		if err != nil {
			return err
		}
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
		cfg := &river.Config{Logger: quiet, FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond}
		if workers > 0 {
			cfg.Workers = river.NewWorkers()
			add(cfg.Workers)
			cfg.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
		}
		c, err := river.NewClient(driver, cfg)
		if err != nil {
			return err
		}
		return f(pool, c)
	})
}

func riverBatch(n int) []river.InsertManyParams {
	batch := make([]river.InsertManyParams, n)
	for i := range batch {
		batch[i].Args = riverArgs{N: i}
	}
	return batch
}

func (s *server) riverNoop(ctx context.Context, n, workers int) (perSecond float64, err error) {
	var wg sync.WaitGroup
	wg.Add(n)
	err = s.river(ctx, workers, wg.Done, func(pool *pgxpool.Pool, c *river.Client[pgx.Tx]) (err error) {
		for done := 0; done < n; {
			size := min(n-done, 10_000)
			if _, err := c.InsertManyFast(ctx, riverBatch(size)); err != nil {
				return err
			}
			done += size
		}
		perSecond, err = riverRun(ctx, pool, c, &wg, n)
		return err
	})
	return perSecond, err
}

func (s *server) riverMany(ctx context.Context, n, size int) (perSecond float64, err error) {
	err = s.river(ctx, 0, nil, func(_ *pgxpool.Pool, c *river.Client[pgx.Tx]) error {
		begin := time.Now()
		for done := 0; done < n; done += size {
			if _, err := c.InsertMany(ctx, riverBatch(size)); err != nil {
				return err
			}
		}
		perSecond = float64(n) / time.Since(begin).Seconds()
		return nil
	})
	return perSecond, err
}

func (s *server) riverSingle(ctx context.Context, n, goroutines int) (perSecond float64, err error) {
	err = s.river(ctx, 0, nil, func(_ *pgxpool.Pool, c *river.Client[pgx.Tx]) error {
		var next atomic.Int64
		var wg sync.WaitGroup
		errs := make(chan error, goroutines)
		begin := time.Now()
		for range goroutines {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					if _, err := c.Insert(ctx, riverArgs{N: int(i)}, nil); err != nil {
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

func (s *server) riverIdle(ctx context.Context, n int) (lat []time.Duration, err error) {
	begun := make(chan time.Time, 1)
	err = s.river(ctx, 100, func() { begun <- time.Now() }, func(_ *pgxpool.Pool, c *river.Client[pgx.Tx]) (err error) {
		if err := c.Start(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Stop(ctx)) }()
		for i := range n {
			time.Sleep(5 * time.Millisecond) // idle again
			before := time.Now()
			if _, err := c.Insert(ctx, riverArgs{N: i}, nil); err != nil {
				return err
			}
			lat = append(lat, (<-begun).Sub(before))
		}
		return nil
	})
	return lat, err
}
