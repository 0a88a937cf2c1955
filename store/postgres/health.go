package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/store"
)

// bounds are the thresholds of Health's alarms.
type bounds struct {
	transaction time.Duration // maximum age of a transaction
	dead        int64         // maximum number of dead rows of a table with fewer live rows
	due         time.Duration // maximum wait of a due task
}

var defaultBounds = bounds{transaction: 5 * time.Minute, dead: 50_000, due: 5 * time.Minute}

const (
	// Transactions that hold a snapshot or an ID, the oldest first. The transactions of other users
	// are visible only with pg_read_all_stats; without it their xact_start is NULL.
	sqlOldTransaction = `
SELECT what, who, age FROM (
  SELECT 'session ' || pid AS what, coalesce(usename::text, '') || coalesce(nullif(' (' || coalesce(application_name, '') || ')', ' ()'), '') AS who,
    (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint AS age
  FROM pg_stat_activity WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
  UNION ALL
  SELECT 'prepared transaction ' || gid, owner::text, (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint FROM pg_prepared_xacts
) t ORDER BY age DESC LIMIT 1`

	sqlSlots = `SELECT slot_name::text FROM pg_replication_slots WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL) ORDER BY slot_name`

	sqlDeadRows = `
SELECT relname::text, n_dead_tup, n_live_tup FROM pg_stat_all_tables
WHERE schemaname = $1 AND relname LIKE 'weaver\_%' AND n_dead_tup > $2 AND n_dead_tup > n_live_tup ORDER BY n_dead_tup DESC`

	oldestDue = `
SELECT coalesce((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - min(available_at), 0)
FROM %[1]s.weaver_outbox_events o WHERE namespace = $1
  AND NOT EXISTS (SELECT 1 FROM %[1]s.weaver_paused_queues p WHERE p.namespace = o.namespace AND p.queue = o.queue)
  AND NOT EXISTS (SELECT 1 FROM %[1]s.weaver_paused_types p WHERE p.namespace = o.namespace AND p.task_type = o.task_type)`
)

// Health returns the server's figures for a namespace, and alarms in addition to those of Warnings:
// a transaction that keeps old rows from being removed, an unused replication slot, tables of
// mostly dead rows, and due tasks that no worker starts.
func (db *DB) Health(ctx context.Context, ns string) (figures []slog.Attr, alarms []store.Warning, err error) {
	if db.closed.Load() {
		return nil, nil, fmt.Errorf("%s: %w", db.src.shown, store.ErrClosed)
	}
	figures = []slog.Attr{
		slog.String("server", db.server.product+" "+db.server.version), slog.Bool("direct", db.Direct()), slog.String("schema", db.src.schema),
	}
	c, err := db.pool.Raw().Acquire(ctx)
	if err != nil {
		return nil, nil, db.src.connectError(err)
	}
	defer c.Release()
	h := health{ctx: ctx, db: db, conn: c.Conn(), bounds: cmp.Or(db.opts.bounds, defaultBounds), figures: figures}
	for _, look := range []func() error{h.transactions, h.slots, h.deadRows, func() error { return h.due(ns) }} {
		if err := look(); err != nil {
			return nil, nil, fmt.Errorf("read the server's figures: %w", db.src.explain(err))
		}
	}
	return h.figures, h.alarms, nil
}

// health is one call of Health.
type health struct {
	ctx     context.Context
	db      *DB
	conn    *pgx.Conn
	bounds  bounds
	figures []slog.Attr
	alarms  []store.Warning
}

func (h *health) alarm(key, text string, attrs ...slog.Attr) {
	h.alarms = append(h.alarms, store.Warning{Key: key, Text: text, Attrs: append(attrs, slog.String("store", h.db.src.shown))})
}

func (h *health) transactions() error {
	var what, who string
	var micros int64
	err := h.conn.QueryRow(h.ctx, sqlOldTransaction, pgx.QueryExecModeExec).Scan(&what, &who, &micros)
	if errors.Is(err, pgx.ErrNoRows) {
		micros, err = 0, nil
	}
	age := (time.Duration(micros) * time.Microsecond).Round(time.Second)
	h.figures = append(h.figures, slog.Duration("oldest_transaction", age))
	if err == nil && age > h.bounds.transaction {
		h.alarm("transaction", fmt.Sprintf("%s of %s has been in a transaction for %s: until it ends rows that are dead cannot be removed, and claims get slower: end it, or pg_terminate_backend", what, who, age),
			slog.Duration("age", age))
	}
	return err
}

func (h *health) slots() error {
	rows, err := h.conn.Query(h.ctx, sqlSlots, pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		h.alarm("slot "+name, fmt.Sprintf("nobody reads the replication slot %s, and it keeps dead rows from being removed: let its standby come back, or pg_drop_replication_slot", name), slog.String("slot", name))
	}
	return err
}

func (h *health) deadRows() error {
	rows, err := h.conn.Query(h.ctx, sqlDeadRows, pgx.QueryExecModeExec, h.db.src.schema, h.bounds.dead)
	if err != nil {
		return err
	}
	var table string
	var dead, live int64
	_, err = pgx.ForEachRow(rows, []any{&table, &dead, &live}, func() error {
		h.alarm("dead rows "+table, fmt.Sprintf("%s has %d dead rows beside %d living ones: VACUUM %s, and look for what keeps autovacuum from it: an old transaction, or autovacuum that is off", table, dead, live, table),
			slog.Int64("dead", dead), slog.Int64("live", live))
		return nil
	})
	return err
}

func (h *health) due(ns string) error {
	var micros int64
	err := h.conn.QueryRow(h.ctx, fmt.Sprintf(oldestDue, quoted(h.db.src.schema)), pgx.QueryExecModeExec, ns).Scan(&micros)
	age := max(0, time.Duration(micros)*time.Microsecond).Round(time.Second)
	h.figures = append(h.figures, slog.Duration("oldest_due", age))
	if err == nil && age > h.bounds.due {
		h.alarm("due", fmt.Sprintf("a task has been due for %s and its queue is not paused, but no worker has started it: start workers, or more of them, that serve its queue and type", age), slog.Duration("age", age))
	}
	return err
}

const (
	sqlProbe   = `INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'probe', '') ON CONFLICT (namespace, key) DO UPDATE SET value = ''`
	sqlUnprobe = `DELETE FROM weaver_store_meta WHERE namespace = '' AND key = 'probe'`
)

// Writable returns an error if the store cannot be written: it inserts a row and rolls back.
// Errors: store.ErrReadOnly, store.ErrFull, store.ErrUnavailable, store.ErrBusy.
func (db *DB) Writable(ctx context.Context) error {
	err := db.migrating(ctx, func(m migrator, _ []migrate.Migration) error {
		return m.src.explain(m.in(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlProbe, pgx.QueryExecModeExec); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, sqlUnprobe, pgx.QueryExecModeExec)
			return err
		}))
	})
	if err != nil {
		return fmt.Errorf("check that it can be written: %w", err)
	}
	return nil
}
