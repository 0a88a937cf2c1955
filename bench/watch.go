package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store/sqlite"
)

// Watch: the cost of live views for the engine of the serving process.

const (
	watchStreams = 100
	watchTasks   = 10 // number of views of a single task
)

// watchViews are the other views.
var watchViews = []string{
	"counts", "queues", "workers", "inbox", "stats", "tasks:", "tasks:state:ready", "tasks:state:running", "tasks:state:failed", "tasks:type:bench.load.*",
}

func (r *report) watch(ctx context.Context) error {
	var told atomic.Int64
	n := 4 * r.n
	var used [2]figure // processor time in seconds
	run := func(i, streams int) func() (float64, error) {
		return func() (float64, error) {
			perSecond, cpu, err := beside(ctx, n, streams, &told)
			used[i] = append(used[i], cpu.Seconds())
			return perSecond, err
		}
	}
	f, err := r.measure(run(0, 0), run(1, watchStreams))
	if err != nil {
		return err
	}
	what := fmt.Sprintf("no-op tasks/s beside %d streams on %d views, FULL", watchStreams, watchTasks+len(watchViews))
	r.row(what, f[1].String(), "no streams "+f[0].String(), ratio(f[1].median()/f[0].median()))
	r.row("  tasks per second of a processor, the readers' among it", human(float64(n)/used[1].median()), "no streams "+human(float64(n)/used[0].median()), ratio(used[0].median()/used[1].median()))
	r.row("  read from the streams, MB per run", human(float64(told.Load())/1e6/float64(r.runs)), "", "")
	return nil
}

// beside runs n no-op tasks during reads of streams over the loopback interface.
func beside(ctx context.Context, n, streams int, told *atomic.Int64) (perSecond float64, cpu time.Duration, err error) {
	err = onStore(ctx, full, func(db *sqlite.DB) error {
		h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Concurrency: 1000, Logger: quiet})
		if err != nil {
			return err
		}
		views := watchViews
		for i := 0; i < n; {
			var batch []weaver.Draft
			for ; i < n && len(batch) < 1000; i++ {
				batch = append(batch, noopType.With(i))
			}
			got, err := eng.EnqueueTasks(ctx, batch...)
			if err != nil {
				return err
			}
			if len(views) == len(watchViews) {
				for _, t := range got[:watchTasks] {
					views = append(views, "task:"+t.ID.String())
				}
			}
		}
		stop, err := readStreams(ctx, eng.Client, views, streams, told)
		if err != nil {
			return err
		}
		begin, usedBefore := time.Now(), processors()
		err = eng.RunUntilIdle(ctx)
		cpu = processors() - usedBefore
		perSecond = float64(n) / time.Since(begin).Seconds()
		return errors.Join(err, stop())
	})
	return perSecond, cpu, err
}

// processors returns the processor time of this process.
func processors() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readStreams serves the API and reads streams of it, one per view, until stop.
func readStreams(ctx context.Context, c *weaver.Client, views []string, n int, told *atomic.Int64) (stop func() error, err error) {
	api, err := httpapi.New(httpapi.Config{Client: c, Authorize: httpapi.Open(httpapi.Principal{Name: "bench", Access: httpapi.Full}), Logger: quiet})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: api}
	go func() { _ = srv.Serve(l) }()
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	stop = func() error {
		cancel()
		api.Stop()
		err := srv.Close()
		readers.Wait()
		return err
	}
	for i := range n {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/v1/watch?topic=%s", l.Addr(), url.QueryEscape(views[i%len(views)])), http.NoBody)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		res, err := http.DefaultClient.Do(r)
		if err == nil && res.StatusCode != http.StatusOK {
			err = errors.Join(errors.New(res.Status), res.Body.Close())
		}
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		readers.Go(func() {
			defer func() { _ = res.Body.Close() }()
			read, _ := io.Copy(io.Discard, res.Body) // until it is cut off
			told.Add(read)
		})
	}
	return stop, nil
}
