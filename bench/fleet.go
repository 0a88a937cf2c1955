package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/delivery"
	"github.com/goweaver/weaver/delivery/redis"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/redistest"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres"
)

// A fleet: engines that have nothing to do, each with a store and a transport of its own, and a client that enqueues one task
// at a time.

const (
	fleetEngines = 20
	fleetIdle    = 10 * time.Second
	fleetTasks   = 100
)

// fleet is a server with such engines, reached through a pooler or not.
type fleet struct {
	*server
	pooler string            // host:port, or ""
	cache  *redistest.Server // of hints, or nil

	transactions, idleNotifies, notifies, p50, p99 figure
}

func (r *report) fleet(ctx context.Context) (err error) {
	admin, removeServer, err := pgtest.Serve(pgtest.Options{Fsync: true, ConfigLines: []string{
		"max_connections = 400", "shared_preload_libraries = pg_stat_statements",
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeServer()) }()
	pooled, removePooler, err := pgtest.ServeBouncer(admin, "transaction")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removePooler()) }()
	pooler, err := url.Parse(pooled)
	if err != nil {
		return err
	}
	cache, removeCache, err := redistest.Serve()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeCache()) }()

	s := &server{admin: admin}
	fleets := []*fleet{{server: s, cache: cache}, {server: s}, {server: s, pooler: pooler.Host, cache: cache}, {server: s, pooler: pooler.Host}}
	for range r.runs {
		for _, f := range fleets {
			if err := f.run(ctx); err != nil {
				return err
			}
		}
	}
	for i, where := range []string{"direct", "PgBouncer, transaction mode"} {
		with, without := fleets[2*i], fleets[2*i+1]
		where = fmt.Sprintf("Postgres (%s), %d idle engines, hints: ", where, fleetEngines)
		r.row(where+"enqueue → handler, ms p50", with.p50.String(), "no hints "+without.p50.String(), ratio(with.p50.median()/without.p50.median()))
		r.row("  ms p99", with.p99.String(), "no hints "+without.p99.String(), ratio(with.p99.median()/without.p99.median()))
		r.row("  transactions/s of each engine while idle", with.transactions.String(), "no hints "+without.transactions.String(), ratio(with.transactions.median()/without.transactions.median()))
		r.row("  NOTIFYs while idle", with.idleNotifies.String(), "no hints "+without.idleNotifies.String(), "")
		r.row(fmt.Sprintf("  NOTIFYs of %d enqueues", fleetTasks), with.notifies.String(), "no hints "+without.notifies.String(), "")
	}
	return nil
}

func (f *fleet) run(ctx context.Context) error {
	return f.opened(ctx, func(direct string, _ store.Store) (err error) {
		u, err := url.Parse(direct)
		if err != nil {
			return err
		}
		if f.pooler != "" {
			u.Host = f.pooler
		}
		begun := make(chan time.Time, 1)
		h := noopType.Handler(func(context.Context, int) (weaver.None, error) {
			begun <- time.Now()
			return weaver.None{}, nil
		})
		prefix := fmt.Sprint("fleet", prefixes.Add(1))
		var closers []func() error
		defer func() {
			for _, c := range slices.Backward(closers) {
				err = errors.Join(err, c())
			}
		}()
		open := func() (db *postgres.DB, t delivery.Transport, err error) {
			if f.cache != nil {
				if t, err = redis.Open(ctx, f.cache.URL(), redis.Options{Prefix: prefix}); err != nil {
					return nil, nil, err
				}
				closers = append(closers, t.Close)
			}
			if db, err = postgres.Open(ctx, u.String()); err == nil {
				closers = append(closers, db.Close)
			}
			return db, t, err
		}
		for range fleetEngines {
			db, t, err := open()
			if err != nil {
				return err
			}
			eng, err := weaver.New(db, weaver.Config{Handlers: []weaver.Handler{h}, Delivery: t, Logger: quiet})
			if err != nil {
				return err
			}
			closers = append(closers, background(ctx, eng))
		}
		db, t, err := open()
		if err != nil {
			return err
		}
		client, err := weaver.NewClient(db, weaver.ClientConfig{Delivery: t, Logger: quiet})
		if err != nil {
			return err
		}
		c, err := pgx.Connect(ctx, direct)
		if err != nil {
			return err
		}
		closers = append(closers, func() error { return c.Close(context.WithoutCancel(ctx)) })
		if _, err := c.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
			return err
		}
		time.Sleep(fleetIdle) // they have started
		if _, err := c.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
			return err
		}
		before, _, err := counted(ctx, c)
		if err != nil {
			return err
		}
		time.Sleep(fleetIdle)
		after, idle, err := counted(ctx, c)
		if err != nil {
			return err
		}
		f.transactions = append(f.transactions, (after-before)/fleetEngines/fleetIdle.Seconds())
		var lat []time.Duration
		for i := range fleetTasks {
			time.Sleep(20 * time.Millisecond) // idle again
			begin := time.Now()
			if _, err := noopType.Enqueue(ctx, client, i); err != nil {
				return err
			}
			lat = append(lat, (<-begun).Sub(begin))
		}
		_, all, err := counted(ctx, c)
		if err != nil {
			return err
		}
		f.idleNotifies, f.notifies = append(f.idleNotifies, idle), append(f.notifies, all-idle)
		slices.Sort(lat)
		f.p50 = append(f.p50, float64(lat[len(lat)/2])/1e6)
		f.p99 = append(f.p99, float64(lat[len(lat)*99/100])/1e6)
		return nil
	})
}

// counted returns the server's transactions in the database and its NOTIFYs so far.
func counted(ctx context.Context, c *pgx.Conn) (transactions, notifies float64, err error) {
	err = c.QueryRow(ctx, `SELECT (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()),
		(SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query ~* 'notify')`).Scan(&transactions, &notifies)
	return transactions, notifies, err
}
