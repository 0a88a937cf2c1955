package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

// quotedPostgres are figures of peers on PostgreSQL that this program does not measure, unless -durably is given:
// sequential steps of one run per second.
var quotedPostgres = struct{ durably, dbos float64 }{durably: 1035, dbos: 2271}

// server is a PostgreSQL server with a user's settings: fsync, synchronous_commit and full_page_writes. It is started
// on first use.
type server struct {
	admin  string // the URL of its first database
	remove func() error
	made   atomic.Int64
}

// postgres starts the server.
func (r *report) postgres() (*server, error) {
	if r.pg != nil {
		return r.pg, nil
	}
	admin, remove, err := pgtest.Serve(pgtest.Options{Fsync: true, ConfigLines: []string{
		"shared_buffers = 1GB", "max_wal_size = 8GB", "synchronous_commit = on", "full_page_writes = on",
	}})
	if err != nil {
		return nil, err
	}
	r.pg = &server{admin: admin, remove: remove}
	return r.pg, nil
}

// database creates a database and runs f with its URL. It first lets the server flush the writes of earlier runs.
func (s *server) database(ctx context.Context, f func(url string) error) (err error) {
	c, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	name := fmt.Sprintf("bench%d", s.made.Add(1))
	for _, sql := range []string{"CREATE DATABASE " + name, "CHECKPOINT"} {
		if _, err := c.Exec(ctx, sql); err != nil {
			return err
		}
	}
	defer func() {
		_, derr := c.Exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)")
		err = errors.Join(err, derr)
	}()
	u, err := url.Parse(s.admin)
	if err != nil {
		return err
	}
	u.Path = "/" + name
	return f(u.String())
}

// weaver opens a new store in its own database.
func (s *server) weaver(ctx context.Context, f func(db store.Store) error) error {
	return s.opened(ctx, func(_ string, db store.Store) error { return f(db) })
}

// opened is weaver for functions that also need the database's URL.
func (s *server) opened(ctx context.Context, f func(url string, db store.Store) error) error {
	return s.database(ctx, func(url string) (err error) {
		db, err := postgres.Open(ctx, url)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		if err := db.Migrate(ctx); err != nil {
			return err
		}
		return f(url, db)
	})
}

func (r *report) pgNoop(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	n, workers := 2*r.n, []int{500, 1000, 2000}
	each := []func() (float64, error){func() (float64, error) { return noop(ctx, n, s.weaver) }}
	for _, w := range workers {
		each = append(each, func() (float64, error) { return s.riverNoop(ctx, n, w) })
	}
	f, err := r.measure(each...)
	if err != nil {
		return err
	}
	best := slices.MaxFunc(f[1:], func(a, b figure) int { return int(a.median() - b.median()) })
	for i, w := range workers {
		if &f[1+i][0] == &best[0] {
			r.row("Postgres: no-op tasks/s", f[0].String(), fmt.Sprintf("River, %d workers %s", w, best), ratio(f[0].median()/best.median()))
		}
	}
	return nil
}

func (r *report) pgEnqueue(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	const batch = 10_000
	many, one := max(2*r.n/batch, 1)*batch, max(r.n/10, 100)
	f, err := r.measure(
		func() (float64, error) { return enqueueBatch(ctx, many, batch, s.weaver) },
		func() (float64, error) { return s.riverMany(ctx, many, batch) },
		func() (float64, error) { return enqueueSingle(ctx, one, 1, s.weaver) },
		func() (float64, error) { return s.riverSingle(ctx, one, 1) },
		func() (float64, error) { return enqueueSingle(ctx, one*2, 50, s.weaver) },
		func() (float64, error) { return s.riverSingle(ctx, one*2, 50) },
	)
	if err != nil {
		return err
	}
	for i, what := range []string{"enqueues/s in batches of 10,000", "single enqueues/s, 1 goroutine", "single enqueues/s, 50 goroutines"} {
		ours, theirs := f[2*i], f[2*i+1]
		r.row("Postgres: "+what, ours.String(), "River "+theirs.String(), ratio(ours.median()/theirs.median()))
	}
	return nil
}

func (r *report) pgIdle(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	var p50, p99, theirs50, theirs99 figure
	at := func(lat []time.Duration, percent int) float64 { return float64(lat[len(lat)*percent/100]) / 1e6 }
	for range r.runs {
		ours, err := idle(ctx, 300, s.weaver)
		if err != nil {
			return err
		}
		theirs, err := s.riverIdle(ctx, 300)
		if err != nil {
			return err
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		p50, p99 = append(p50, at(ours, 50)), append(p99, at(ours, 99))
		theirs50, theirs99 = append(theirs50, at(theirs, 50)), append(theirs99, at(theirs, 99))
	}
	r.row("Postgres: idle enqueue → handler, ms p50", p50.String(), "River, tuned "+theirs50.String(), ratio(p50.median()/theirs50.median()))
	r.row("Postgres: idle enqueue → handler, ms p99", p99.String(), "River, tuned "+theirs99.String(), ratio(p99.median()/theirs99.median()))
	return nil
}

func (r *report) pgSteps(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	ours, peer, name, err := r.besides(ctx, "seq", 1000, quotedPostgres.durably, s.database,
		func() (float64, error) { return sequential(ctx, 1000, s.weaver) })
	if err != nil {
		return err
	}
	bare, err := r.measure(func() (float64, error) { return s.commits(ctx, 1000) })
	if err != nil {
		return err
	}
	r.row("Postgres: sequential steps/s of one task", ours.String(), name, ratio(ours.median()/peer))
	r.row("", "", fmt.Sprintf("DBOS %.0f (quoted)", quotedPostgres.dbos), ratio(ours.median()/quotedPostgres.dbos))
	r.row("", "", "one-row commits of SQL alone "+bare[0].String(), ratio(ours.median()/bare[0].median()))
	return nil
}

// commits measures transactions of one connection that insert one row each. The quoted figures were measured at 5,100
// commits per second.
func (s *server) commits(ctx context.Context, n int) (perSecond float64, err error) {
	err = s.database(ctx, func(url string) (err error) {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
		if _, err := c.Exec(ctx, "CREATE TABLE t (n bigint PRIMARY KEY, v text)"); err != nil {
			return err
		}
		begin := time.Now()
		for i := range n {
			if _, err := c.Exec(ctx, "INSERT INTO t (n, v) VALUES ($1, $2)", i, "a value"); err != nil {
				return err
			}
		}
		perSecond = float64(n) / time.Since(begin).Seconds()
		return nil
	})
	return perSecond, err
}

// pgClaim compares claims on a store with many future tasks and as many finished ones with claims on an empty store.
// It measures just after they were stored, and again after the server has vacuumed and flushed them.
func (r *report) pgClaim(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	n := 20 * r.n
	var after, empty figure
	f, err := r.measure(
		func() (float64, error) { return s.claims(ctx, n, &after) },
		func() (float64, error) { return s.claims(ctx, 0, &empty) },
	)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("Postgres: µs p99 to claim %d, beside %d of the future and %d finished", claimSize, n, n)
	r.row(what, f[0].String(), "empty "+f[1].String(), ratio(f[0].median()/f[1].median()))
	r.row("  the same right after they were made", after.String(), "empty "+empty.String(), ratio(after.median()/empty.median()))
	return nil
}

// claims returns the 99th percentile of the duration of claims in µs, after the server has vacuumed and flushed the
// tasks; after receives the value before that.
func (s *server) claims(ctx context.Context, beside int, after *figure) (micros float64, err error) {
	err = s.opened(ctx, func(url string, db store.Store) error {
		h := noopType.Handler(func(context.Context, int) (weaver.None, error) { return weaver.None{}, nil })
		eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Concurrency: 1000, Logger: quiet})
		if err != nil {
			return err
		}
		for done := 0; done < beside; done += 10_000 {
			if _, err := noopType.EnqueueMany(ctx, eng, make([]int, min(10_000, beside-done))); err != nil {
				return err
			}
		}
		if err := eng.RunUntilIdle(ctx); err != nil {
			return err
		}
		for done := 0; done < beside; done += 10_000 {
			if _, err := noopType.EnqueueMany(ctx, eng, make([]int, min(10_000, beside-done)), weaver.Delay(24*time.Hour)); err != nil {
				return err
			}
		}
		p99 := func() (float64, error) {
			took, err := claimTimes(ctx, db, eng)
			if err != nil {
				return 0, err
			}
			return float64(took[len(took)*99/100].Nanoseconds()) / 1000, nil
		}
		first, err := p99()
		if err != nil {
			return err
		}
		*after = append(*after, first)
		if err := execute(ctx, url, "VACUUM (ANALYZE)", "CHECKPOINT"); err != nil {
			return err
		}
		micros, err = p99()
		return err
	})
	return micros, err
}

// execute runs statements in their own connection.
func execute(ctx context.Context, url string, statements ...string) (err error) {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	for _, sql := range statements {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// claimTimes returns the sorted durations of claims of claimSize tasks.
func claimTimes(ctx context.Context, db store.Store, eng *weaver.Engine) (took []time.Duration, err error) {
	const ns, worker, rounds = "default", "bench", 400
	if err := db.Join(ctx, ns, store.WorkerInfo{ID: worker, Name: worker, TTL: time.Minute}); err != nil {
		return nil, err
	}
	if _, err := noopType.EnqueueMany(ctx, eng, make([]int, rounds*claimSize)); err != nil {
		return nil, err
	}
	for range rounds {
		req := store.ClaimRequest{
			Worker: worker, Name: worker, LeaseID: task.NewLeaseID(), TTL: time.Minute, Limit: claimSize, Slots: claimSize,
			Types: map[string]int{noopType.Name(): 1},
		}
		begin := time.Now()
		got, err := db.Claim(ctx, ns, req)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		if len(got.Tasks) != claimSize {
			return nil, fmt.Errorf("a claim took %d tasks, want %d", len(got.Tasks), claimSize)
		}
	}
	slices.Sort(took)
	return took, nil
}
