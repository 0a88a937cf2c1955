package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// Usual tasks: an input of 1 KB, two labels and an idempotency key; one of twenty fails once. And jobs: of
// independent tasks, and of chains.

type usualInput struct {
	Order int    `json:"order"`
	Note  string `json:"note"`
}

var (
	usualType = weaver.Define[usualInput, int]("bench.load.usual.v1", weaver.Backoff(time.Millisecond))
	usualNote = strings.Repeat("a line of an order. ", 50)
	errUsual  = errors.New("no such card")
)

// failsOnce reports whether an attempt fails.
func failsOnce(order, attempt int) bool { return order%20 == 7 && attempt == 1 }

func usual(ctx context.Context, n int, in place) (enqueued, ran float64, err error) {
	err = in(ctx, func(db store.Store) error {
		h := usualType.Handler(func(ctx context.Context, in usualInput) (int, error) {
			if failsOnce(in.Order, weaver.Current(ctx).AttemptNo) {
				return 0, errUsual
			}
			return in.Order, nil
		})
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Concurrency: 1000, Logger: quiet})
		if err != nil {
			return err
		}
		begin := time.Now()
		for i := 0; i < n; {
			batch := make([]weaver.Draft, 0, 1000)
			for ; i < n && len(batch) < cap(batch); i++ {
				batch = append(batch, usualType.With(usualInput{i, usualNote}, weaver.IdempotencyKey(fmt.Sprint("order-", i)),
					weaver.Label("team", fmt.Sprint("team-", i%50)), weaver.Label("customer", fmt.Sprint("customer-", i%1000))))
			}
			if _, err := eng.EnqueueTasks(ctx, batch...); err != nil {
				return err
			}
		}
		enqueued = float64(n) / time.Since(begin).Seconds()
		ran, err = untilIdle(ctx, eng, n)
		return err
	})
	return enqueued, ran, err
}

// untilIdle measures a run of n tasks, all of which succeed.
func untilIdle(ctx context.Context, eng *weaver.Engine, n int) (perSecond float64, err error) {
	begin := time.Now()
	if err := eng.RunUntilIdle(ctx); err != nil {
		return 0, err
	}
	perSecond = float64(n) / time.Since(begin).Seconds()
	left, _, err := eng.List(ctx, weaver.Filter{States: []weaver.State{weaver.StateReady, weaver.StateRunning, weaver.StatePending, weaver.StateFailed}, Limit: 1})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("task %s is %s: not everything ran", left[0].ID, left[0].State)
	}
	return perSecond, err
}

// jobTasks measures jobs of 1,000 tasks: chained, in chains of ten, or independent.
func jobTasks(ctx context.Context, n int, chained bool, in place) (perSecond float64, err error) {
	err = in(ctx, func(db store.Store) error {
		h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Concurrency: 1000, Logger: quiet})
		if err != nil {
			return err
		}
		for done := 0; done < n; done += 1000 {
			j := weaver.NewJob("bench")
			var last *weaver.Node
			for i := range min(1000, n-done) {
				var opts []weaver.NodeOption
				if chained && i%10 > 0 {
					opts = append(opts, weaver.Needs(last))
				}
				last = j.Add(fmt.Sprint("n", i), noopType.With(i), opts...)
			}
			if _, err := eng.Submit(ctx, j); err != nil {
				return err
			}
		}
		perSecond, err = untilIdle(ctx, eng, n)
		return err
	})
	return perSecond, err
}

// riverUsualArgs is a usual task of River, with tags for labels and without a key.
type riverUsualArgs struct {
	Order int    `json:"order"`
	Note  string `json:"note"`
}

// Kind implements river.JobArgs.
func (riverUsualArgs) Kind() string { return "usual" }

type riverUsualWorker struct {
	river.WorkerDefaults[riverUsualArgs]
	done func()
}

// Work implements river.Worker.
func (w *riverUsualWorker) Work(_ context.Context, j *river.Job[riverUsualArgs]) error {
	if failsOnce(j.Args.Order, j.Attempt) {
		return errUsual
	}
	w.done()
	return nil
}

// NextRetry implements river.Worker.
func (w *riverUsualWorker) NextRetry(*river.Job[riverUsualArgs]) time.Time { return time.Now() }

func (s *server) riverUsual(ctx context.Context, n, workers int) (enqueued, ran float64, err error) {
	var wg sync.WaitGroup
	wg.Add(n)
	add := func(all *river.Workers) { river.AddWorker(all, &riverUsualWorker{done: wg.Done}) }
	err = s.riverWith(ctx, workers, add, func(pool *pgxpool.Pool, c *river.Client[pgx.Tx]) (err error) {
		begin := time.Now()
		for done := 0; done < n; {
			batch := make([]river.InsertManyParams, min(n-done, 1000))
			for i := range batch {
				order := done + i
				batch[i].Args = riverUsualArgs{order, usualNote}
				batch[i].InsertOpts = &river.InsertOpts{Tags: []string{fmt.Sprint("team-", order%50), fmt.Sprint("customer-", order%1000)}}
			}
			if _, err := c.InsertMany(ctx, batch); err != nil {
				return err
			}
			done += len(batch)
		}
		enqueued = float64(n) / time.Since(begin).Seconds()
		ran, err = riverRun(ctx, pool, c, &wg, n)
		return err
	})
	return enqueued, ran, err
}

// riverRun measures a client until its last result is durable.
func riverRun(ctx context.Context, pool *pgxpool.Pool, c *river.Client[pgx.Tx], wg *sync.WaitGroup, n int) (perSecond float64, err error) {
	begin := time.Now()
	if err := c.Start(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Stop(ctx)) }()
	wg.Wait()
	for open := true; open; {
		if err := pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM river_job WHERE state IN ('available', 'running'))").Scan(&open); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

func (r *report) usual(ctx context.Context) error {
	var enqueued figure
	f, err := r.measure(
		func() (float64, error) {
			in, ran, err := usual(ctx, r.n/2, inFile(full))
			enqueued = append(enqueued, in)
			return ran, err
		},
		func() (float64, error) { return jobTasks(ctx, r.n/5, false, inFile(full)) },
		func() (float64, error) { return jobTasks(ctx, r.n/5, true, inFile(full)) },
	)
	if err != nil {
		return err
	}
	r.row("usual tasks/s (1 KB, labels, a key; 5 % fail once), FULL", f[0].String(), "", "")
	r.row("  enqueues/s of them in batches of 1,000", enqueued.String(), "", "")
	r.row("tasks/s of jobs of 1,000, FULL", f[1].String(), "", "")
	r.row("  in chains of 10", f[2].String(), "", "")
	return nil
}

func (r *report) pgUsual(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	workers := []int{500, 1000, 2000}
	enqueued := make([]figure, 1+len(workers))
	each := []func() (float64, error){func() (float64, error) {
		in, ran, err := usual(ctx, r.n/2, s.weaver)
		enqueued[0] = append(enqueued[0], in)
		return ran, err
	}}
	for i, w := range workers {
		each = append(each, func() (float64, error) {
			in, ran, err := s.riverUsual(ctx, r.n/2, w)
			enqueued[1+i] = append(enqueued[1+i], in)
			return ran, err
		})
	}
	each = append(each,
		func() (float64, error) { return jobTasks(ctx, r.n/5, false, s.weaver) },
		func() (float64, error) { return jobTasks(ctx, r.n/5, true, s.weaver) })
	f, err := r.measure(each...)
	if err != nil {
		return err
	}
	better := func(a, b figure) int { return int(a.median() - b.median()) }
	best, bestIn := slices.MaxFunc(f[1:1+len(workers)], better), slices.MaxFunc(enqueued[1:], better)
	r.row("Postgres: usual tasks/s (1 KB, labels, a key; 5 % fail once)", f[0].String(), "River, tags, no key "+best.String(), ratio(f[0].median()/best.median()))
	r.row("Postgres: enqueues/s of them in batches of 1,000", enqueued[0].String(), "River InsertMany "+bestIn.String(), ratio(enqueued[0].median()/bestIn.median()))
	jobs := f[1+len(workers):]
	r.row("Postgres: tasks/s of jobs of 1,000", jobs[0].String(), "", "")
	r.row("  in chains of 10", jobs[1].String(), "", "")
	return nil
}
