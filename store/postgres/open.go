package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/migrate"
	"github.com/goweaver/weaver/internal/notify"
	"github.com/goweaver/weaver/internal/pgharness"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/store/postgres/internal/notices"
)

// verbs are the verbs of the port, which all SQL stores share.
type verbs = sqlstore.Store

// DB is an open database. It implements store.Store, and is safe for concurrent use.
type DB struct {
	verbs

	src    *source
	opts   options
	server server
	pool   *conn.Pool

	memory    sqlstore.Memory
	lanes     lane.Cache
	listeners notify.Listeners
	notices   *notices.Notices
	enqueues  *enqueuer
	large     *enqueuer // submissions that exceed the weight of a group
	proofs    proofs
	feed      feedHorizon
	closed    atomic.Bool

	userOnce sync.Once
	user     *sql.DB
	steps    stepPool
}

var _ store.Store = (*DB)(nil)

// Capabilities implements store.Core.
func (db *DB) Capabilities() store.Capabilities {
	return store.AllCapabilities &^ (store.CanWait | store.CanScrub)
}

// Option changes how Open and New open a store.
type Option func(*options)

type options struct {
	schema     string
	conns      int32
	silentTx   bool // callers' transactions send no notices
	lockFolder string
	directURL  string
	log        *slog.Logger

	// Only tests set the following fields.
	unsafe      bool             // fsync = off is permitted
	clock       func() time.Time // replaces the server's clock
	redone      func(err error)  // called before a transaction is retried
	scan, looks int
	plansLast   time.Duration // lifetime of the cached plans of a connection
	elsewhere   bool          // ignores the worker locks of this machine
	later       []string      // texts of additional migrations that this program knows
	bounds      bounds        // thresholds of alarms
}

// Schema sets the schema of the tables; the default is "weaver". It overrides the parameter schema
// of the URL.
func Schema(name string) Option { return func(o *options) { o.schema = name } }

// MaxConns bounds the connections of a store that Open opens; the default is 10. The parameter
// pool_max_conns of the URL overrides it.
func MaxConns(n int) Option { return func(o *options) { o.conns = int32(min(max(n, 1), 10_000)) } }

// defaultConns is the default maximum number of connections of a store.
const defaultConns = 10

// Open opens a store in a database of PostgreSQL 13 or later. The URL has the form
// postgres://user:password@host:5432/database. In addition to libpq's parameters it may have
// schema=NAME and pool_max_conns=N. Open does not migrate: call Migrate, or run `weaver migrate
// up`.
//
// Open refuses a server with fsync = off, which may lose acknowledged commits after a power
// failure. Warnings lists other settings that endanger acknowledged commits.
//
// Errors: store.ErrUnavailable (no such host, no answer, a wrong password, no such database),
// store.ErrNotDatabase (too old, not UTF8), store.ErrForeignDatabase, store.ErrReadOnly (a
// standby). No error contains a password.
func Open(ctx context.Context, url string, opts ...Option) (*DB, error) {
	db := configured(ctx, opts)
	src, err := parseURL(url)
	if err == nil && db.opts.schema != "" {
		src.schema = db.opts.schema
		err = checkSchemaName(src.schema)
	}
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	db.src = src
	first, server, err := src.connectChecked(ctx, db.opts.unsafe)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	db.server = server
	if !server.direct() {
		unname(src.config)
	}
	if err := db.sessions(ctx); err != nil {
		return nil, fmt.Errorf("open postgres: %w", errors.Join(err, closeConn(ctx, first)))
	}
	if err := closeConn(ctx, first); err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("open postgres: %w", context.Cause(ctx))
	}
	cfg := src.pooled.Copy()
	if cfg.ConnConfig = src.config.Copy(); !src.sized {
		cfg.MaxConns = cmp.Or(db.opts.conns, defaultConns)
	}
	// Without the caller's context, which the pool outlives.
	db.pool, err = conn.Open(context.WithoutCancel(ctx), cfg, db.settings())
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", src.connectError(err))
	}
	db.begin()
	return db, nil
}

// New opens a store on the caller's pool. It does not change the pool's settings, and Close does
// not close the pool. New refuses a pool that names its statements, as pgx does by default, behind
// a pooler that gives each transaction another session. Set DefaultQueryExecMode to
// pgx.QueryExecModeCacheDescribe there.
func New(ctx context.Context, pool *pgxpool.Pool, opts ...Option) (*DB, error) {
	if pool == nil {
		return nil, errors.New("open postgres: the pool is nil: give one of pgxpool.New, or use Open")
	}
	db := configured(ctx, opts)
	var err error
	if db.src, err = sourceOf(pool.Config().ConnConfig, db.opts.schema); err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	var named error
	err = pool.AcquireFunc(ctx, func(c *pgxpool.Conn) (err error) {
		if db.server, err = inspect(ctx, c.Conn(), db.src.schema); err != nil {
			return db.src.explain(err)
		}
		if err = db.server.check(db.src, db.opts.unsafe); err == nil && !db.server.direct() {
			named = checkNames(ctx, c.Conn())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", db.src.connectError(err))
	}
	if named != nil {
		return nil, fmt.Errorf("open postgres: %s: %w", db.src.shown, named)
	}
	if err := db.sessions(ctx); err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	db.pool = conn.Share(pool, db.settings())
	db.begin()
	return db, nil
}

// configured returns a store with its options applied, before it connects.
func configured(ctx context.Context, opts []Option) *DB {
	db := new(DB)
	for _, o := range opts {
		o(&db.opts)
	}
	if h := pgharness.Of(ctx); h.FsyncOff {
		db.opts.unsafe, db.opts.clock, db.opts.scan, db.opts.redone = true, h.Clock, h.ScanPage, h.Redone
	}
	return db
}

func (db *DB) settings() conn.Settings {
	return conn.Settings{Schema: db.src.schema, Clock: db.opts.clock, Redone: db.opts.redone, PlansLast: db.opts.plansLast}
}

func (db *DB) begin() {
	db.lanes.Unnoticed = true
	db.feed.turn = make(chan struct{}, 1)
	db.verbs = sqlstore.New(database{db: db})
	if db.opts.scan > 0 {
		db.Page, db.StatsLooks = db.opts.scan, db.opts.scan
	}
	if db.opts.looks > 0 {
		db.Looks = db.opts.looks
	}
	db.memory.Forgetful = true
	db.openNotices()
	db.enqueues, db.large = newEnqueuer(db), newEnqueuer(db)
}

// URL returns the store's URL without its password.
func (db *DB) URL() string { return db.src.shown }

// Direct reports whether the server is reached directly. Through a pooler, a proxy or a Unix socket
// the server session of a transaction is unknown. The store then gets no notices from other
// processes, and detects a dead worker only when its leases expire.
func (db *DB) Direct() bool { return db.server.direct() }

// Pool returns the connection pool, for the program's own tables.
func (db *DB) Pool() *pgxpool.Pool { return db.pool.Raw() }

// DB returns a database/sql handle of the same database, for the program's own tables. Close closes
// it.
func (db *DB) DB() *sql.DB {
	db.userOnce.Do(func() { db.user = stdlib.OpenDBFromPool(db.pool.Raw()) })
	return db.user
}

// Close waits for writes in progress and closes the connections. Workers that did not leave look
// dead afterwards.
func (db *DB) Close() error {
	db.listeners.Close()
	var err error
	db.large.queue.Close(func() {})
	db.enqueues.queue.Close(func() {
		if db.closed.Swap(true) {
			return
		}
		err = db.proofs.close()
		db.notices.Close()
		err = errors.Join(err, db.DB().Close(), db.steps.of(db.pool.Raw()).Close()) // opened here if they were not open, so that all later callers get closed ones
		db.pool.Close()
	})
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Warnings implements store.Ops: it lists settings that endanger acknowledged commits.
func (db *DB) Warnings(context.Context) []store.Warning { return db.server.warnings(db.src) }

// Migrate implements store.Ops: it applies the missing migrations. Any number of processes may
// call it at once.
func (db *DB) Migrate(ctx context.Context) error {
	return db.migrating(ctx, func(m migrator, known []migrate.Migration) error { return m.up(ctx, known) })
}

// MigrationStatus implements store.Ops.
func (db *DB) MigrationStatus(ctx context.Context) (list []store.MigrationStatus, err error) {
	err = db.migrating(ctx, func(m migrator, known []migrate.Migration) error {
		list, err = m.status(ctx, known)
		return err
	})
	return list, err
}

// Ready implements store.Core.
func (db *DB) Ready(ctx context.Context) error {
	return db.migrating(ctx, func(m migrator, known []migrate.Migration) error { return m.ready(ctx, known) })
}

// MigrationSQL returns the whole schema as a script, for review. It needs no open store.
func (db *DB) MigrationSQL() string { return migrationSQL(db.src.schema) }

// migrating runs a function with a migrator on a connection of the pool.
func (db *DB) migrating(ctx context.Context, fn func(m migrator, known []migrate.Migration) error) error {
	known, err := migrations()
	if err != nil {
		return err
	}
	if db.closed.Load() {
		return fmt.Errorf("%s: %w", db.src.shown, store.ErrClosed)
	}
	c, err := db.pool.Raw().Acquire(ctx)
	if err != nil {
		return db.src.connectError(err)
	}
	defer c.Release()
	known = slices.Clone(known)
	for _, text := range db.opts.later {
		known = append(known, migrate.Parse(len(known)+1, "later", []byte(text)))
	}
	return fn(migrator{conn: c.Conn(), src: db.src}, known)
}

// sourceOf returns the source of a pool's configuration.
func sourceOf(cfg *pgx.ConnConfig, schema string) (*source, error) {
	if schema == "" {
		schema = defaultSchema
	}
	shown := fmt.Sprintf("postgres://%s@%s:%d/%s", cfg.User, cfg.Host, cfg.Port, cfg.Database)
	return &source{config: cfg, schema: schema, shown: shown}, checkSchemaName(schema)
}
