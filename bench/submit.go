package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/store/sqlite"
)

// Submissions: the longest durations of single enqueues during the submission of a job of n tasks and a join, in the
// same process and in another one.

// besideEnv makes this program enqueue into the named store until its standard input ends, and print the longest
// duration.
const besideEnv = "WEAVER_BENCH_BESIDE"

func (r *report) submit(ctx context.Context) error {
	return r.submitTo(ctx, "", func(f func(place string, db store.Store) error) error {
		dir, err := os.MkdirTemp("", "weaver-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file := filepath.Join(dir, "bench.db")
		return withStore(ctx, file, func(db store.Store) error { return f(file, db) })
	})
}

func (r *report) pgSubmit(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	return r.submitTo(ctx, "Postgres: ", func(f func(place string, db store.Store) error) error { return s.opened(ctx, f) })
}

func (r *report) submitTo(ctx context.Context, where string, in func(func(place string, db store.Store) error) error) error {
	var took, here, there figure
	for range r.runs {
		err := in(func(place string, db store.Store) error {
			t, a, b, err := submitBeside(ctx, place, db, r.n)
			took, here, there = append(took, t), append(here, a), append(there, b)
			return err
		})
		if err != nil {
			return err
		}
	}
	r.row(where+fmt.Sprintf("ms to submit a job of %d", r.n+1), took.String(), "", "")
	r.row("  longest wait of an enqueue beside it, ms, same process", here.String(), "", "")
	r.row("  another process", there.String(), "", "")
	return nil
}

// submitBeside returns, in ms, the duration of the submission and of the longest concurrent enqueues.
func submitBeside(ctx context.Context, place string, db store.Store, n int) (took, here, there float64, err error) {
	client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
	if err != nil {
		return 0, 0, 0, err
	}
	// Join as a worker would: without a worker SQLite's processes do not take turns.
	if err := db.Join(ctx, weaver.DefaultNamespace, store.WorkerInfo{ID: "bench", Name: "bench", TTL: time.Minute}); err != nil {
		return 0, 0, 0, err
	}
	j := weaver.NewJob("large")
	all := make([]*weaver.Node, n)
	for i := range all {
		all[i] = j.Add("n"+strconv.Itoa(i), noopType.With(i))
	}
	j.Add("join", noopType.With(0), weaver.Needs(all...))

	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), besideEnv+"="+place), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	answer := bufio.NewReader(out)
	if _, err := answer.ReadString('\n'); err != nil { // it began
		return 0, 0, 0, errors.Join(err, cmd.Wait())
	}
	stop := make(chan struct{})
	worst := make(chan float64, 1)
	failed := make(chan error, 1)
	go func() {
		w, err := enqueueUntil(ctx, client, stop)
		worst <- w
		failed <- err
	}()
	time.Sleep(200 * time.Millisecond)
	began := time.Now()
	_, err = client.Submit(ctx, j)
	took = float64(time.Since(began)) / 1e6
	close(stop)
	here = <-worst
	err = errors.Join(err, <-failed, in.Close())
	line, rerr := answer.ReadString('\n')
	there, perr := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return took, here, there, errors.Join(err, rerr, perr, cmd.Wait())
}

// enqueueUntil enqueues every 5 ms and returns the longest duration of an enqueue, in ms.
func enqueueUntil(ctx context.Context, client *weaver.Client, stop <-chan struct{}) (float64, error) {
	var worst time.Duration
	for {
		select {
		case <-stop:
			return float64(worst) / 1e6, nil
		case <-time.After(5 * time.Millisecond):
		}
		began := time.Now()
		if _, err := heldType.Enqueue(ctx, client, 0); err != nil {
			return 0, err
		}
		worst = max(worst, time.Since(began))
	}
}

// enqueueBeside is the other process.
func enqueueBeside(ctx context.Context, place string) error {
	return withStore(ctx, place, func(db store.Store) error {
		client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
		if err != nil {
			return err
		}
		if _, err := heldType.Enqueue(ctx, client, 0); err != nil {
			return err
		}
		fmt.Println("began")
		stop := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(stop)
		}()
		worst, err := enqueueUntil(ctx, client, stop)
		fmt.Println(worst)
		return err
	})
}

// withStore opens the store at a path, or at the URL of a server.
func withStore(ctx context.Context, place string, f func(db store.Store) error) (err error) {
	if strings.Contains(place, "://") {
		db, err := postgres.Open(ctx, place)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return f(db)
	}
	db, err := sqlite.Open(ctx, place, sqlite.Synchronous(sqlite.Full))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	return f(db)
}
