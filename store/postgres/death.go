package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/store/postgres/internal/session"
	"github.com/goweaver/weaver/task"
)

// LockFolder sets the folder of this machine for the worker locks of this process. Other processes
// of the machine detect the death of this one at once by these locks. A missing folder is created;
// only this user may have write access to it. The default is $XDG_RUNTIME_DIR/weaver, /run/weaver
// for root, or else a folder of this user below the temporary folder.
func LockFolder(dir string) Option { return func(o *options) { o.lockFolder = dir } }

// DirectURL sets a URL of the same database that bypasses the pooler, for the one session that
// proves that this process is alive. Use it if the store's own URL leads to a pooler. The store
// assumes that the server itself answers at this URL.
func DirectURL(url string) Option { return func(o *options) { o.directURL = url } }

// Logger receives a message when the session of this process is lost and when it is restored. The
// default is slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.log = l } }

// proofs holds the evidence of dead workers.
type proofs struct {
	server *session.Server // nil if sessions are not possible

	mu      sync.Mutex // guards opening and closing
	closed  bool
	workers atomic.Pointer[session.Workers] // nil until the first worker joins or the first caller asks
}

func (p *proofs) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if w := p.workers.Load(); w != nil {
		return w.Close()
	}
	return nil
}

func (db *DB) logger() *slog.Logger {
	return cmp.Or(db.opts.log, slog.Default()).With("store", db.src.shown)
}

// sessions determines how to open sessions of the server, and checks the lock folder that the
// program configured.
func (db *DB) sessions(ctx context.Context) error {
	if db.opts.lockFolder != "" {
		if err := workerlock.MakePrivate(db.opts.lockFolder); err != nil {
			return err
		}
	}
	s := &session.Server{Config: &db.src.config.Config, Schema: db.src.schema}
	switch {
	case db.opts.directURL != "":
		direct, err := parseURL(db.opts.directURL)
		if err != nil {
			return fmt.Errorf("DirectURL: %w", err)
		}
		if err := db.sameServer(ctx, direct); err != nil {
			return fmt.Errorf("DirectURL: %w", err)
		}
		s.Config, s.Named = &direct.config.Config, true
	case !db.server.direct() || db.opts.clock != nil:
		return nil
	}
	db.proofs.server = s
	return nil
}

// sqlWhich identifies a database among the databases of all servers.
const sqlWhich = `
SELECT oid::text || ' ' || (SELECT system_identifier FROM pg_control_system())::text FROM pg_database WHERE datname = current_database()`

// sameServer rejects a URL that leads to another database. An unreachable URL is logged only: the
// store works without it.
func (db *DB) sameServer(ctx context.Context, direct *source) error {
	var which [2]string
	for i, src := range []*source{db.src, direct} {
		cfg := src.config.Config.Copy()
		c, err := pgconn.ConnectConfig(ctx, cfg)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			db.logger().Warn("cannot connect to the server at DirectURL", "error", src.connectError(err))
			return nil
		}
		r := c.ExecParams(ctx, sqlWhich, nil, nil, nil, nil).Read()
		_ = c.Close(ctx) // the connection is not used again
		if r.Err != nil || len(r.Rows) != 1 {
			return src.explain(r.Err)
		}
		which[i] = string(r.Rows[0][0])
	}
	if which[0] != which[1] {
		return fmt.Errorf("%s leads to another database than %s: set DirectURL to a direct URL of the same database", direct.shown, db.src.shown)
	}
	return nil
}

// lives returns the sessions that prove which workers are alive. The first use opens them, because
// the lock folder's name contains the store's generation.
func (db *DB) lives(ctx context.Context, ns string) (*session.Workers, error) {
	if w := db.proofs.workers.Load(); w != nil {
		return w, nil
	}
	var generation string
	err := db.pool.Tx(ctx, true, func(c *conn.Conn) error {
		st := c.Stmt(sqlstore.SQLGeneration).Text(1, ns)
		if st.One() {
			generation = st.ColText(0)
		}
		return st.Done()
	})
	if err != nil {
		return nil, db.translate(err)
	}
	p := &db.proofs
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers.Load(); w != nil {
		return w, nil
	}
	if p.closed {
		return nil, db.translate(conn.ErrClosed)
	}
	var folder *workerlock.Folder
	if !db.opts.elsewhere {
		if folder, err = session.OpenFolder(db.opts.lockFolder, generation); err != nil {
			db.logger().Warn("no locks on this machine: other processes detect the death of this one later", "error", err)
		}
	}
	w := session.Open(session.Options{
		Server: p.server, Rows: db.rows, Announce: db.announce, Withdraw: db.withdraw, Folder: folder, Asked: db.opts.clock != nil, Log: db.logger(),
		Found: func(ns string) { db.listeners.Notify(ns, store.Notice{Dead: true}) },
	})
	p.workers.Store(w)
	return w, nil
}

// rows runs a query on a connection of the pool.
func (db *DB) rows(ctx context.Context, sql string, params ...string) (rows [][][]byte, err error) {
	values := make([][]byte, len(params))
	for i, p := range params {
		values[i] = []byte(p)
	}
	err = db.pool.Tx(ctx, true, func(c *conn.Conn) error {
		if err := c.Flush(); err != nil {
			return err
		}
		r := c.PgConn().ExecParams(ctx, sql, values, nil, nil, nil).Read()
		rows = r.Rows
		return r.Err
	})
	return rows, err
}

// announce writes a worker's promise on the connection of its session.
func (db *DB) announce(ctx context.Context, c session.Conn, ns string, id store.WorkerID, p session.Promise) error {
	return db.seen(ctx, c.Raw(), ns, id, func(t *sqlstore.Tx) error { return p.Write(t, ns, id) })
}

// withdraw withdraws a worker's promise on a connection of the pool.
func (db *DB) withdraw(ctx context.Context, ns string, id store.WorkerID, withdrawals int) error {
	return db.seen(ctx, nil, ns, id, func(t *sqlstore.Tx) error { return session.WriteWithdrawal(t, ns, id, withdrawals) })
}

// seen records a worker as seen, together with the writes of write.
func (db *DB) seen(ctx context.Context, on *pgconn.PgConn, ns string, id store.WorkerID, write func(t *sqlstore.Tx) error) error {
	return database{db: db, on: on}.Write(ctx, ns, sqlstore.Op{Weight: 1, Urgent: true, Run: func(t *sqlstore.Tx) error {
		if err := t.Announce(id); err != nil {
			return err
		}
		return write(t)
	}})
}

// Joining implements sqlstore.Database.
// Crash after it: locks without a row remain, which no process checks.
func (d database) Joining(ctx context.Context, ns string, info *store.WorkerInfo) (written func(*sqlstore.Tx) error, err error) {
	w, err := d.db.lives(ctx, ns)
	if err != nil {
		return nil, err
	}
	proof, err := w.Join(ctx, ns, info)
	if err != nil {
		return nil, d.db.sessionError(err)
	}
	info.Connection = store.ConnectionPooled
	if d.db.server.direct() || d.db.opts.directURL != "" {
		info.Connection = store.ConnectionDirect
	}
	return func(t *sqlstore.Tx) error { return proof.Write(t, ns, info.ID) }, nil
}

// Joined implements sqlstore.Database.
func (d database) Joined(ctx context.Context) {
	if w := d.db.proofs.workers.Load(); w != nil {
		w.Joined(ctx)
	}
}

// leaveLimit bounds the release of the lock of a worker that left.
const leaveLimit = 2 * time.Second

// Left implements sqlstore.Database.
func (d database) Left(ns string, id store.WorkerID) {
	if w := d.db.proofs.workers.Load(); w != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
		defer cancel()
		w.Left(ctx, ns, id)
	}
}

// Dead implements sqlstore.Database.
func (d database) Dead(ctx context.Context, ns string) (sqlstore.Dead, error) {
	w, err := d.db.lives(ctx, ns)
	if err != nil {
		return nil, err
	}
	return w.Dead(ctx, ns), nil
}

// Orphans implements store.Observe. A free lock of a worker on this machine proves that its
// process is dead. Only reapers find the dead workers of other machines.
func (db *DB) Orphans(ctx context.Context, ns string, asked ...task.ID) ([]task.ID, error) {
	if db.opts.elsewhere && db.proofs.workers.Load() == nil {
		return nil, nil
	}
	return sqlstore.Orphans(ctx, database{db: db}, ns, asked)
}

// LooksDead implements sqlstore.Database.
func (d database) LooksDead(ctx context.Context, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error) {
	looks := session.Visitor{Rows: d.db.rows}.LooksDead
	if w := d.db.proofs.workers.Load(); w != nil {
		looks = w.LooksDead
	} else if d.db.opts.elsewhere {
		return nil, nil
	}
	dead, err := looks(ctx, ns, workers)
	return dead, d.db.translate(err)
}

const sqlIdle = `SELECT worker_id, idle_since FROM weaver_workers WHERE namespace = ?1 AND idle_since IS NOT NULL`

// Idle implements sqlstore.Idler.
func (database) Idle(v *sqlstore.View) (map[store.WorkerID]time.Time, error) {
	idle := make(map[store.WorkerID]time.Time)
	st := v.Conn().Stmt(sqlIdle).Text(1, v.Namespace())
	for st.Next() {
		idle[store.WorkerID(st.ColText(0))] = st.ColTime(1)
	}
	return idle, st.Done()
}

// Session implements store.Ops.
func (db *DB) Session(ns string, id store.WorkerID) (store.Session, bool) {
	if w := db.proofs.workers.Load(); w != nil {
		return w.Session(ns, id)
	}
	return store.Session{}, false
}

// relied claims tasks only while the leases are reliable: a process with a session claims nothing
// while the session does not answer.
func (db *DB) relied(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	w := db.proofs.workers.Load()
	if w == nil {
		return db.claim(ctx, ns, req)
	}
	if err := w.BeforeClaim(ctx); err != nil {
		return store.ClaimResult{}, db.sessionError(err)
	}
	got, err := db.claim(ctx, ns, req)
	if err != nil || len(got.Tasks) > 0 { // the outcome of a failed claim is unknown
		w.Leased(req.TTL)
	}
	return got, err
}

// Heartbeat implements store.Core. It uses the worker's session, so it does not wait for a
// connection of the pool. Without a session it uses the pool.
func (db *DB) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) (beats []store.Beat, err error) {
	w := db.proofs.workers.Load()
	if w == nil {
		return db.verbs.Heartbeat(ctx, ns, req)
	}
	if len(req.Leases) > 0 {
		w.Leased(req.TTL)
	}
	lost := false
	err = w.Heartbeat(ctx, ns, req.Worker, func(ctx context.Context, c session.Conn) (err error) {
		own := sqlstore.New(database{db: db, on: c.Raw()})
		beats, err = own.Heartbeat(ctx, ns, req)
		lost = c.Broken()
		return err
	})
	if err == nil || ctx.Err() != nil || !lost && !errors.Is(err, session.ErrDown) {
		return beats, db.sessionError(err)
	}
	return db.verbs.Heartbeat(ctx, ns, req)
}

// sessionError translates an error of a session.
func (db *DB) sessionError(err error) error {
	switch {
	case errors.Is(err, session.ErrDown):
		return fmt.Errorf("%s: %w: %w", db.src.shown, store.ErrUnavailable, err)
	case errors.Is(err, store.ErrClosed):
		return db.translate(conn.ErrClosed)
	}
	return err
}
