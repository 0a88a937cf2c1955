package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/delivery/redis"
	"github.com/goweaver/weaver/internal/redistest"
	"github.com/goweaver/weaver/store"
)

// Redis: Weaver's store is PostgreSQL with a user's settings, and Redis carries hints. asynq's store is Redis. Both keep
// the result of each task.

var doubleType = weaver.Define[int, int]("bench.load.double.v1")

func double() weaver.Handler {
	return doubleType.Handler(func(_ context.Context, i int) (int, error) { return 2 * i, nil })
}

// asynqSettings are those of asynq's Redis. Only "always" keeps an acknowledged task through a power failure, as Weaver
// does.
var asynqSettings = []struct {
	name string
	args []string
}{
	{"without persistence", nil},
	{"appendfsync everysec", []string{"--appendonly", "yes", "--appendfsync", "everysec"}},
	{"appendfsync always", []string{"--appendonly", "yes", "--appendfsync", "always"}},
}

func (r *report) redis(ctx context.Context) (err error) {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	servers := make([]*redistest.Server, len(asynqSettings))
	for i, set := range asynqSettings {
		server, remove, err := redistest.Serve(set.args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
		servers[i] = server
	}
	for _, c := range []struct {
		workers int
		running bool
		what    string
	}{{50, false, "tasks/s of a backlog, 50 workers"}, {1000, false, "tasks/s of a backlog, 1,000 workers"}, {1000, true, "tasks/s enqueued meanwhile, 1,000 workers"}} {
		each := []func() (float64, error){func() (float64, error) {
			return hinted(ctx, servers[0], func(t delivery.Transport) (float64, error) {
				return doubles(ctx, r.n, weaver.Config{Delivery: t, Concurrency: c.workers}, c.running, s.weaver)
			})
		}}
		for _, server := range servers {
			each = append(each, func() (float64, error) { return asynqDoubles(ctx, r.n, server.Addr, c.workers, c.running) })
		}
		f, err := r.measure(each...)
		if err != nil {
			return err
		}
		for i, set := range asynqSettings {
			ours, what := "", ""
			if i == 0 {
				ours, what = f[0].String(), "Postgres, hints through Redis: "+c.what
			}
			r.row(what, ours, "asynq, Redis "+set.name+" "+f[1+i].String(), ratio(f[0].median()/f[1+i].median()))
		}
	}
	return nil
}

// hints compares Weaver with and without hints.
func (r *report) hints(ctx context.Context) (err error) {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	server, remove, err := redistest.Serve()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var each []func() (float64, error)
	for _, running := range []bool{false, true} {
		each = append(each,
			func() (float64, error) {
				return hinted(ctx, server, func(t delivery.Transport) (float64, error) {
					return doubles(ctx, 2*r.n, weaver.Config{Delivery: t}, running, s.weaver)
				})
			},
			func() (float64, error) { return doubles(ctx, 2*r.n, weaver.Config{}, running, s.weaver) })
	}
	f, err := r.measure(each...)
	if err != nil {
		return err
	}
	for i, what := range []string{"of a backlog", "enqueued meanwhile"} {
		with, without := f[2*i], f[2*i+1]
		r.row("Postgres: tasks/s "+what+", hints through Redis", with.String(), "no hints "+without.String(), ratio(with.median()/without.median()))
	}
	return nil
}

var prefixes atomic.Int64 // of the keys of a run

// hinted runs f with a transport that has its own keys.
func hinted[T any](ctx context.Context, s *redistest.Server, f func(t delivery.Transport) (T, error)) (v T, err error) {
	t, err := redis.Open(ctx, s.URL(), redis.Options{Prefix: fmt.Sprint("bench", prefixes.Add(1))})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return f(t)
}

// doubles measures n tasks with a result each, in batches of 1,000: from the start of an engine, or from the first
// enqueue if the engine is running, until the last result is durable.
func doubles(ctx context.Context, n int, cfg weaver.Config, running bool, in place) (perSecond float64, err error) {
	cfg.Handlers = []weaver.Handler{double()}
	if !running {
		return throughputOf(ctx, n, in, cfg, func(i int) weaver.Draft { return doubleType.With(i) })
	}
	cfg.Concurrency, cfg.Logger = cmp.Or(cfg.Concurrency, 1000), quiet
	err = in(ctx, func(db store.Store) error {
		eng, err := weaver.New(db, cfg)
		if err != nil {
			return err
		}
		stop := background(ctx, eng)
		begin := time.Now()
		for done := 0; done < n && err == nil; done += 1000 {
			_, err = doubleType.EnqueueMany(ctx, eng, make([]int, min(1000, n-done)))
		}
		for open := 1; open > 0 && err == nil; {
			var left []weaver.TaskInfo
			left, _, err = eng.List(ctx, weaver.Filter{States: []weaver.State{weaver.StateReady, weaver.StateRunning}, Limit: 1})
			if open = len(left); open > 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		perSecond = float64(n) / time.Since(begin).Seconds()
		return errors.Join(err, stop())
	})
	return perSecond, err
}

// asynqDoubles is doubles for asynq, which enqueues one by one: from 50 goroutines.
func asynqDoubles(ctx context.Context, n int, addr string, workers int, running bool) (perSecond float64, err error) {
	queue := fmt.Sprint("bench", prefixes.Add(1))
	opt := asynq.RedisClientOpt{Addr: addr, PoolSize: 50}
	client, inspector := asynq.NewClient(opt), asynq.NewInspector(opt)
	defer func() { err = errors.Join(err, client.Close(), inspector.Close()) }()
	srv := asynq.NewServer(opt, asynq.Config{Queues: map[string]int{queue: 1}, Concurrency: workers, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond})
	handler := asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		i, err := strconv.Atoi(string(t.Payload()))
		if err == nil {
			_, err = t.ResultWriter().Write([]byte(strconv.Itoa(2 * i)))
		}
		return err
	})
	enqueue := func() error {
		var next atomic.Int64
		var wg sync.WaitGroup
		errs := make(chan error, 50)
		for range cap(errs) {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					task := asynq.NewTask("double", []byte(strconv.Itoa(int(i))), asynq.Queue(queue), asynq.Retention(time.Hour))
					if _, err := client.EnqueueContext(ctx, task); err != nil {
						errs <- err
						return
					}
				}
			})
		}
		wg.Wait()
		close(errs)
		return <-errs
	}
	if !running {
		if err := enqueue(); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	if err := srv.Start(handler); err != nil {
		return 0, err
	}
	if running {
		err = enqueue()
	}
	for done := 0; done < n && err == nil; {
		var q *asynq.QueueInfo
		if q, err = inspector.GetQueueInfo(queue); err == nil {
			if done = q.Completed; done < n {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	perSecond = float64(n) / time.Since(begin).Seconds()
	srv.Shutdown()
	return perSecond, errors.Join(err, inspector.DeleteQueue(queue, true))
}
