package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// Liveness: the waiting time of heartbeats while others hold the writer, and the remaining throughput. A heartbeat
// waits for the longest function of a user that holds the writer, and for Weaver's longest transaction.

var (
	heldType = weaver.Define[int, weaver.None]("bench.liveness.held.v1") // not served by an engine
	rootType = weaver.Define[int, weaver.None]("bench.liveness.root.v1") // not served either
	slowType = weaver.Define[int, weaver.None]("bench.liveness.step.v1")
)

const livenessWindow = 4 * time.Second

func (r *report) liveness(ctx context.Context) error {
	alone := 0.0
	for _, load := range []struct {
		users int
		takes time.Duration
	}{{0, 0}, {1, 2 * time.Millisecond}, {6, 2 * time.Millisecond}, {20, 2 * time.Millisecond}, {1, 20 * time.Millisecond}, {6, 20 * time.Millisecond}, {20, 20 * time.Millisecond}} {
		var perSecond, worst, begin, share figure
		for range r.runs {
			got, err := underTransactions(ctx, load.users, load.takes)
			if err != nil {
				return err
			}
			perSecond, worst, begin, share = append(perSecond, got.perSecond), append(worst, got.heartbeat), append(begin, got.begin), append(share, got.share)
		}
		what := fmt.Sprintf("%d users × %v", load.users, load.takes)
		if load.users == 0 {
			what, alone = "no users", perSecond.median()
		}
		r.row("no-op tasks/s, FULL, "+what, perSecond.String(), fmt.Sprintf("users hold the lock for %.0f %%", 100*share.median()), ratio(perSecond.median()/alone))
		r.row("  worst heartbeat, ms", worst.String(), fmt.Sprintf("the longest function: %v", load.takes), "")
		if load.users > 0 {
			r.row("  worst BeginTx, ms", begin.String(), "", "")
		}
	}
	var worst figure
	for range r.runs {
		ms, err := underStepTx(ctx, 20, time.Second)
		if err != nil {
			return err
		}
		worst = append(worst, ms)
	}
	r.row("worst heartbeat, ms, 20 StepTx of 1 s", worst.String(), "the longest function: 1s", "")
	for _, c := range growing {
		var worst figure
		for range r.runs {
			ms, err := underData(ctx, c.prepare, c.act)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			worst = append(worst, ms)
		}
		r.row("worst heartbeat, ms, "+c.name, worst.String(), "", "")
	}
	return nil
}

// pulse sends heartbeats for a task of its own until stop, which returns the longest duration of one, in ms.
func pulse(ctx context.Context, db *sqlite.DB) (stop func() (float64, error), err error) {
	client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
	if err != nil {
		return nil, err
	}
	if _, err := heldType.Enqueue(ctx, client, 0, weaver.Queue("pulse")); err != nil {
		return nil, err
	}
	const ttl = time.Minute
	if err := db.Join(ctx, weaver.DefaultNamespace, store.WorkerInfo{ID: "pulse", Name: "pulse", TTL: ttl}); err != nil {
		return nil, err
	}
	claimed, err := db.Claim(ctx, weaver.DefaultNamespace, store.ClaimRequest{
		Worker: "pulse", Name: "pulse", LeaseID: task.NewLeaseID(), TTL: ttl, Limit: 1, Slots: 1,
		Types: map[string]int{heldType.Name(): 1}, Queues: map[string]int{"pulse": 1},
	})
	if err != nil || len(claimed.Tasks) != 1 {
		return nil, fmt.Errorf("claim %d tasks: %w", len(claimed.Tasks), err)
	}
	end, done := make(chan struct{}), make(chan error, 1)
	var worst time.Duration
	go func() {
		for {
			select {
			case <-end:
				done <- nil
				return
			case <-time.After(10 * time.Millisecond):
			}
			before := time.Now()
			_, err := db.Heartbeat(ctx, weaver.DefaultNamespace, store.HeartbeatRequest{Worker: "pulse", TTL: ttl, Leases: []task.Lease{claimed.Tasks[0].Lease}})
			if err != nil {
				done <- err
				return
			}
			worst = max(worst, time.Since(before))
		}
	}()
	return func() (float64, error) {
		close(end)
		err := <-done
		return float64(worst) / 1e6, err
	}, nil
}

type livenessResult struct {
	perSecond, heartbeat, begin float64 // begin and heartbeat in ms
	share                       float64 // share of the time in which users held the lock
}

func underTransactions(ctx context.Context, users int, takes time.Duration) (got livenessResult, err error) {
	err = onStore(ctx, full, func(db *sqlite.DB) (err error) {
		var ran atomic.Int64
		eng, err := weaver.New(db, weaver.Config{Concurrency: 1000, Logger: quiet, Handlers: []weaver.Handler{
			noopType.Handler(func(context.Context, int) (weaver.None, error) { ran.Add(1); return weaver.None{}, nil }),
		}})
		if err != nil {
			return err
		}
		ins := make([]int, 1000)
		for range int(60 * livenessWindow.Seconds()) {
			if _, err := noopType.EnqueueMany(ctx, eng, ins); err != nil {
				return err
			}
		}
		if _, err := db.DB().ExecContext(ctx, "CREATE TABLE orders (n INTEGER)"); err != nil {
			return err
		}
		stopPulse, err := pulse(ctx, db)
		if err != nil {
			return err
		}
		stop := background(ctx, eng)
		loaded, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		begins, helds, errs := make([]time.Duration, users), make([]time.Duration, users), make([]error, users)
		for u := range users {
			all.Go(func() {
				for loaded.Err() == nil && errs[u] == nil {
					began := time.Now()
					var tx *sql.Tx
					if tx, errs[u] = db.DB().BeginTx(ctx, nil); errs[u] != nil {
						return
					}
					held := time.Now()
					begins[u] = max(begins[u], held.Sub(began))
					_, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (1)")
					time.Sleep(takes)
					errs[u] = errors.Join(err, tx.Commit())
					helds[u] += time.Since(held)
				}
			})
		}
		before, began := ran.Load(), time.Now()
		time.Sleep(livenessWindow)
		took := time.Since(began)
		got.perSecond = float64(ran.Load()-before) / took.Seconds()
		cancel()
		all.Wait()
		got.heartbeat, err = stopPulse()
		for u := range users {
			got.begin = max(got.begin, float64(begins[u])/1e6)
			got.share += helds[u].Seconds() / took.Seconds()
		}
		return errors.Join(append(errs, err, stop())...)
	})
	return got, err
}

func underStepTx(ctx context.Context, n int, takes time.Duration) (worst float64, err error) {
	err = onStore(ctx, full, func(db *sqlite.DB) error {
		eng, err := weaver.New(db, weaver.Config{Concurrency: n, Logger: quiet, Handlers: []weaver.Handler{
			slowType.Handler(func(ctx context.Context, _ int) (weaver.None, error) {
				return weaver.StepTx(ctx, "slow", func(context.Context, *sql.Tx) (weaver.None, error) {
					time.Sleep(takes)
					return weaver.None{}, nil
				})
			}),
		}})
		if err != nil {
			return err
		}
		if _, err := slowType.EnqueueMany(ctx, eng, make([]int, n)); err != nil {
			return err
		}
		stopPulse, err := pulse(ctx, db)
		if err != nil {
			return err
		}
		err = eng.RunUntilIdle(ctx)
		var err2 error
		worst, err2 = stopPulse()
		return errors.Join(err, err2)
	})
	return worst, err
}

const many = 100_000

// growing lists operations whose work grows with the data.
var growing = []struct {
	name    string
	prepare func(l *largeJob, ctx context.Context) error
	act     func(l *largeJob, ctx context.Context) error
}{
	{"a need with 100,000 dependents ends", (*largeJob).submit, (*largeJob).finishRoot},
	{"a job of 100,000 is cancelled", (*largeJob).submit, (*largeJob).cancel},
	{"a root with 100,000 dependents is retried", (*largeJob).submitFailed, (*largeJob).retry},
	{"100,000 due over a key's limit are claimed", (*largeJob).keyed, (*largeJob).claimAll},
	{"a queue with 100,000 waiters of a key is paused", (*largeJob).keyedWaiting, (*largeJob).pause},
	{"a task decomposes into 10,000 children", (*largeJob).parent, (*largeJob).decompose},
	{"a parent of 10,000 children is cancelled", (*largeJob).decomposed, (*largeJob).cancelRoot},
	{"a parent of 10,000 children is retried", (*largeJob).cancelledParent, (*largeJob).retry},
	{"a task calls 10,000 children", (*largeJob).parent, (*largeJob).call},
	{"a task with a call of 10,000 is retried", (*largeJob).cancelledCaller, (*largeJob).retry},
}

// largeJob is a store with large jobs or many children.
type largeJob struct {
	db     *sqlite.DB
	client *weaver.Client
	job    weaver.JobID
	root   weaver.TaskID

	claimed store.Claimed // the root, by parent
}

func underData(ctx context.Context, prepare, act func(l *largeJob, ctx context.Context) error) (worst float64, err error) {
	err = onStore(ctx, full, func(db *sqlite.DB) error {
		client, err := weaver.NewClient(db, weaver.ClientConfig{Logger: quiet})
		if err != nil {
			return err
		}
		l := &largeJob{db: db, client: client}
		if err := prepare(l, ctx); err != nil {
			return err
		}
		eng, err := weaver.New(db, weaver.Config{Logger: quiet, Handlers: []weaver.Handler{
			noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil }),
		}})
		if err != nil {
			return err
		}
		stop := background(ctx, eng)
		stopPulse, err := pulse(ctx, db)
		if err != nil {
			return err
		}
		err = act(l, ctx)
		if err == nil {
			err = l.awaitChores(ctx)
		}
		var err2 error
		worst, err2 = stopPulse()
		return errors.Join(err, err2, stop())
	})
	return worst, err
}

func (l *largeJob) submit(ctx context.Context) error {
	j := weaver.NewJob("large")
	root := j.Add("root", rootType.With(0))
	for i := range many {
		j.Add(fmt.Sprint("n", i), heldType.With(i), weaver.Needs(root))
	}
	h, err := l.client.Submit(ctx, j)
	if err != nil {
		return err
	}
	l.job = h.ID()
	filter := weaver.Filter{Types: []string{rootType.Name()}, Limit: 1}
	for {
		list, next, err := l.client.List(ctx, filter)
		if err != nil {
			return err
		}
		if len(list) == 1 {
			l.root = list[0].ID
			return nil
		}
		if next == "" {
			return errors.New("the root is not listed")
		}
		filter.After = next
	}
}

func (l *largeJob) claim(ctx context.Context, typ string, n int) ([]store.Claimed, error) {
	got, err := l.db.Claim(ctx, weaver.DefaultNamespace, store.ClaimRequest{
		Worker: "bench", Name: "bench", LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: n, Slots: n, Types: map[string]int{typ: 1},
	})
	return got.Tasks, err
}

func (l *largeJob) finishRoot(ctx context.Context) error {
	got, err := l.claim(ctx, rootType.Name(), 1)
	if err != nil {
		return err
	}
	_, err = l.db.Finish(ctx, weaver.DefaultNamespace, store.Finish{Lease: got[0].Lease, Outcome: task.OutcomeSuccess, Output: json.RawMessage("null"), CodeVersion: 1})
	return err
}

func (l *largeJob) cancel(ctx context.Context) error {
	_, err := l.client.CancelJob(ctx, l.job)
	return err
}

func (l *largeJob) submitFailed(ctx context.Context) error {
	if err := l.submit(ctx); err != nil {
		return err
	}
	if err := l.client.Cancel(ctx, l.root); err != nil {
		return err
	}
	return l.reapAll(ctx)
}

func (l *largeJob) retry(ctx context.Context) error { return l.client.Retry(ctx, l.root) }

func (l *largeJob) keyed(ctx context.Context) error {
	for done := 0; done < many; done += 1000 {
		if _, err := heldType.EnqueueMany(ctx, l.client, make([]int, 1000), weaver.ConcurrencyKey("k")); err != nil {
			return err
		}
	}
	return nil
}

func (l *largeJob) claimAll(ctx context.Context) error {
	for found := true; found; {
		if _, err := l.claim(ctx, heldType.Name(), 100); err != nil {
			return err
		}
		var due int
		err := l.db.DB().QueryRowContext(ctx, "SELECT count(*) FROM weaver_outbox_events WHERE task_type = ?", heldType.Name()).Scan(&due)
		if err != nil {
			return err
		}
		found = due > 1
	}
	return nil
}

func (l *largeJob) keyedWaiting(ctx context.Context) error {
	if err := l.keyed(ctx); err != nil {
		return err
	}
	return l.claimAll(ctx)
}

func (l *largeJob) pause(ctx context.Context) error {
	return l.client.PauseQueue(ctx, task.DefaultQueue)
}

// awaitChores waits for the chores of reapers.
func (l *largeJob) awaitChores(ctx context.Context) error {
	for n := 1; n > 0; time.Sleep(50 * time.Millisecond) {
		if err := l.db.DB().QueryRowContext(ctx, "SELECT count(*) FROM weaver_chores").Scan(&n); err != nil {
			return err
		}
	}
	return nil
}
