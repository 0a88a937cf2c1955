package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // backlite's own choice of driver
	"github.com/mikestefanello/backlite"
)

// backTask is a no-op of backlite. It keeps completed tasks, as Weaver does.
type backTask struct{ N int }

// Config implements backlite.Task.
func (backTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{
		Name: "noop", MaxAttempts: 5, Timeout: time.Minute, Backoff: time.Second,
		Retention: &backlite.Retention{Data: &backlite.RetainData{}},
	}
}

// onBacklite opens a new file with synchronous=NORMAL, backlite's best setting.
func onBacklite(ctx context.Context, workers int, process func(), f func(c *backlite.Client) error) (err error) {
	dir, err := os.MkdirTemp("", "backlite-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "bench.db")+"?_journal=WAL&_timeout=5000&_synchronous=NORMAL&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // its best setting: one transaction per completion, without waiting for SQLite's lock
	c, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: workers, ReleaseAfter: 10 * time.Minute})
	if err != nil {
		return err
	}
	if err := c.Install(); err != nil {
		return err
	}
	c.Register(backlite.NewQueue(func(context.Context, backTask) error { process(); return nil }))
	return f(c)
}

func backliteNoop(ctx context.Context, n int) (perSecond float64, err error) {
	var wg sync.WaitGroup
	wg.Add(n)
	err = onBacklite(ctx, 1000, wg.Done, func(c *backlite.Client) error {
		for i := 0; i < n; {
			batch := make([]backlite.Task, 0, 1000)
			for ; i < n && len(batch) < cap(batch); i++ {
				batch = append(batch, backTask{N: i})
			}
			if _, err := c.Add(batch...).Ctx(ctx).Save(); err != nil {
				return err
			}
		}
		begin := time.Now()
		c.Start(ctx)
		wg.Wait()
		// Stop returns when the workers have written their last result.
		if !c.Stop(ctx) {
			return errors.New("backlite did not stop")
		}
		perSecond = float64(n) / time.Since(begin).Seconds()
		return nil
	})
	return perSecond, err
}

func backliteIdle(ctx context.Context, n int) (lat []time.Duration, err error) {
	begun := make(chan time.Time, 1)
	err = onBacklite(ctx, 10, func() { begun <- time.Now() }, func(c *backlite.Client) error {
		c.Start(ctx)
		defer c.Stop(ctx)
		for i := range n {
			time.Sleep(5 * time.Millisecond)
			before := time.Now()
			if _, err := c.Add(backTask{N: i}).Ctx(ctx).Save(); err != nil {
				return err
			}
			lat = append(lat, (<-begun).Sub(before))
		}
		return nil
	})
	return lat, err
}
