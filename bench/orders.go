package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// Orders with a null adapter, compared with a loop of the outbox protocol's own statements: a claim of 32 rows, then
// for each row the ledger in one transaction and the row in another.

// orderSlots are the sends at once.
var orderSlots = []int{4, 64}

func (r *report) orders(ctx context.Context) error {
	return r.ordersIn(ctx, "", inFile(full), func(ctx context.Context, slots int, f func(*bareOutbox) error) (err error) {
		dir, err := os.MkdirTemp("", "outbox-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		db, err := sql.Open("sqlite3", filepath.Join(dir, "bench.db")+"?_journal=WAL&_timeout=5000&_synchronous=FULL&_txlock=immediate")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		db.SetMaxOpenConns(1) // without waiting for SQLite's lock
		return f(&bareOutbox{db: db, slots: slots})
	})
}

func (r *report) pgOrders(ctx context.Context) error {
	s, err := r.postgres()
	if err != nil {
		return err
	}
	return r.ordersIn(ctx, "Postgres: ", s.weaver, func(ctx context.Context, slots int, f func(*bareOutbox) error) error {
		return s.database(ctx, func(url string) (err error) {
			db, err := sql.Open("pgx", url)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			db.SetMaxOpenConns(slots)
			db.SetMaxIdleConns(slots)
			return f(&bareOutbox{db: db, slots: slots, postgres: true})
		})
	})
}

func (r *report) ordersIn(ctx context.Context, where string, in place, bare func(context.Context, int, func(*bareOutbox) error) error) error {
	n := max(r.n/10, 200)
	var accepts, bareAccepts figure
	for _, slots := range orderSlots {
		var sends, bareSends figure
		for range r.runs {
			accepted, sent, err := weaverOrders(ctx, n, slots, in)
			if err != nil {
				return err
			}
			accepts, sends = append(accepts, accepted), append(sends, sent)
			err = bare(ctx, slots, func(b *bareOutbox) (err error) {
				if accepted, err = b.accepts(ctx, n); err == nil {
					sent, err = b.sends(ctx, n)
				}
				return err
			})
			if err != nil {
				return err
			}
			bareAccepts, bareSends = append(bareAccepts, accepted), append(bareSends, sent)
		}
		r.row(where+fmt.Sprintf("orders sent/s, %d at once", slots), sends.String(), "bare outbox "+bareSends.String(), ratio(sends.median()/bareSends.median()))
	}
	r.row(where+"orders accepted/s, 64 goroutines", accepts.String(), "bare outbox "+bareAccepts.String(), ratio(accepts.median()/bareAccepts.median()))
	return nil
}

// nullAdapter fills each order without a partner.
type nullAdapter struct{}

func (nullAdapter) Name() string { return "null" }

func (nullAdapter) Send(context.Context, order.Outgoing) (order.ExecResult, error) {
	return order.ExecResult{Status: order.OK, ExecutedQty: "0.5", Fills: []order.Fill{{Px: "100", Qty: "0.5", TS: time.Now()}}}, nil
}

func orderBody(i int) ([]byte, error) {
	return json.Marshal(map[string]any{
		"order_id": fmt.Sprint("o-", i), "instrument": "BTC-JPY", "side": "BUY", "qty": "0.5", "price": nil, "time_in_force": "GTC",
		"idempotency_key": fmt.Sprint("key-", i), "requested_at": time.Now().UTC(),
	})
}

// parallel calls f for 0 to n-1 in a number of goroutines and returns calls per second.
func parallel(n, goroutines int, f func(i int) error) (perSecond float64, err error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, goroutines)
	begin := time.Now()
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := f(int(i - 1)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	perSecond = float64(n) / time.Since(begin).Seconds()
	close(errs)
	return perSecond, <-errs
}

// weaverOrders accepts n orders, one by one, and then sends them.
func weaverOrders(ctx context.Context, n, slots int, in place) (accepts, sends float64, err error) {
	err = in(ctx, func(db store.Store) (err error) {
		s, ok := order.Of(db)
		if !ok {
			return errors.New("the store keeps no orders")
		}
		profile := order.Orders{}
		accepts, err = parallel(n, 64, func(i int) error {
			body, err := orderBody(i)
			if err != nil {
				return err
			}
			parsed, err := profile.Parse(body, time.Now())
			if err != nil {
				return err
			}
			_, err = s.AcceptOrders(ctx, "default", nil, parsed.New(profile))
			return err
		})
		if err != nil {
			return err
		}
		w, err := order.NewWorker(order.WorkerConfig{Store: s, Adapter: nullAdapter{}, Config: order.Config{Concurrency: slots}})
		if err != nil {
			return err
		}
		begin := time.Now()
		if err := w.RunUntilIdle(ctx); err != nil {
			return err
		}
		sends = float64(n) / time.Since(begin).Seconds()
		got, err := s.OrderStats(ctx, "default")
		if err != nil {
			return err
		}
		for _, state := range []order.State{order.Pending, order.Sending, order.Retrying, order.Aborted} {
			if n := got.Counts[state]; n > 0 {
				return fmt.Errorf("%d orders are %s", n, state)
			}
		}
		if done := got.Counts[order.Succeeded]; done != n && !got.More { // a count stops at its limit
			return fmt.Errorf("%d of %d orders succeeded", done, n)
		}
		return nil
	})
	return accepts, sends, err
}

// bareOutbox is the protocol in plain SQL.
type bareOutbox struct {
	db       *sql.DB
	slots    int
	postgres bool
}

const (
	bareLedger = `CREATE TABLE idempo_ledger (idempotency_key TEXT PRIMARY KEY, request_digest TEXT, status TEXT, http_status BIGINT, response_payload_json TEXT, last_seen_at BIGINT)`
	bareRows   = `CREATE TABLE outbox_orders (id BIGINT PRIMARY KEY, idempotency_key TEXT UNIQUE, order_request_json TEXT, request_digest TEXT, status TEXT, attempts BIGINT,
locked_by TEXT, locked_at BIGINT, next_run_at BIGINT, created_at BIGINT, updated_at BIGINT)`
	bareIndex = `CREATE INDEX idx_outbox_status_next_run ON outbox_orders (status, next_run_at)`

	bareAccept  = `INSERT INTO idempo_ledger (idempotency_key, request_digest, status, last_seen_at) VALUES (?1, ?2, 'accepted', ?3) ON CONFLICT DO NOTHING`
	bareEnqueue = `INSERT INTO outbox_orders VALUES (?1, ?2, ?3, ?4, 'pending', 0, NULL, NULL, NULL, ?5, ?6)`
	bareClaim   = `WITH cte AS (SELECT id FROM outbox_orders WHERE status = 'pending' AND (next_run_at IS NULL OR next_run_at <= ?1) ORDER BY created_at LIMIT 32 /*lock*/)
UPDATE outbox_orders SET status = 'sending', locked_by = ?2, locked_at = ?3, updated_at = ?4 WHERE id IN (SELECT id FROM cte)
RETURNING id, idempotency_key, request_digest, order_request_json`
	bareSettle = `INSERT INTO idempo_ledger VALUES (?1, ?2, 'succeeded', 200, ?3, ?4)
ON CONFLICT (idempotency_key) DO UPDATE SET status = 'succeeded', http_status = 200, response_payload_json = excluded.response_payload_json, last_seen_at = excluded.last_seen_at`
	bareSucceed = `UPDATE outbox_orders SET status = 'succeeded', updated_at = ?1 WHERE id = ?2`
)

// sql returns a statement in the form of the database.
func (b *bareOutbox) sql(text string) string {
	if b.postgres {
		return strings.NewReplacer("?", "$", "/*lock*/", "FOR UPDATE SKIP LOCKED").Replace(text)
	}
	return text
}

func (b *bareOutbox) accepts(ctx context.Context, n int) (perSecond float64, err error) {
	for _, stmt := range []string{bareLedger, bareRows, bareIndex} {
		if _, err := b.db.ExecContext(ctx, stmt); err != nil {
			return 0, err
		}
	}
	return parallel(n, 64, func(i int) error {
		body, err := orderBody(i)
		if err != nil {
			return err
		}
		digest, err := order.Digest(body)
		if err != nil {
			return err
		}
		tx, err := b.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		key, now := fmt.Sprint("key-", i), time.Now().UnixMicro()
		_, err = tx.ExecContext(ctx, b.sql(bareAccept), key, digest, now)
		if err == nil {
			_, err = tx.ExecContext(ctx, b.sql(bareEnqueue), i, key, string(body), digest, now, now)
		}
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

type bareRow struct {
	id                int64
	key, digest, body string
}

func (b *bareOutbox) sends(ctx context.Context, n int) (perSecond float64, err error) {
	begin := time.Now()
	for sent := 0; ; {
		rows, err := b.claim(ctx)
		if err != nil {
			return 0, err
		}
		if sent += len(rows); len(rows) == 0 {
			if sent != n {
				return 0, fmt.Errorf("%d of %d orders were sent", sent, n)
			}
			return float64(n) / time.Since(begin).Seconds(), nil
		}
		if _, err := parallel(len(rows), b.slots, func(i int) error { return b.process(ctx, &rows[i]) }); err != nil {
			return 0, err
		}
	}
}

func (b *bareOutbox) claim(ctx context.Context) (list []bareRow, err error) {
	now := time.Now().UnixMicro()
	rows, err := b.db.QueryContext(ctx, b.sql(bareClaim), now, "host:1", now, now)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r bareRow
		if err := rows.Scan(&r.id, &r.key, &r.digest, &r.body); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

func (b *bareOutbox) process(ctx context.Context, r *bareRow) error {
	res, err := nullAdapter{}.Send(ctx, order.Outgoing{Key: r.key, Body: json.RawMessage(r.body)})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(res)
	if err != nil {
		return err
	}
	if _, err := b.db.ExecContext(ctx, b.sql(bareSettle), r.key, r.digest, string(raw), time.Now().UnixMicro()); err != nil {
		return err
	}
	_, err = b.db.ExecContext(ctx, b.sql(bareSucceed), time.Now().UnixMicro(), r.id)
	return err
}
