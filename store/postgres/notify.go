package postgres

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/store/postgres/internal/notices"
	"github.com/goweaver/weaver/task"
)

// NotifyInTx sets whether callers' transactions with enqueues notify other processes at commit. One
// transaction in 50 ms sends a NOTIFY, which serializes it with the other commits of the database
// that send one. The default is true. Without it idle workers find such tasks at their next poll,
// or when Client.Wake notifies them.
func NotifyInTx(on bool) Option { return func(o *options) { o.silentTx = !on } }

// Notify implements store.Observe. Notices of this process's own commits arrive at once. Those of
// other processes and of callers' transactions arrive within about 50 ms if the server is reached
// directly. Once a second the store polls for missed changes. complete is true for the ends of
// awaited tasks, and otherwise false.
func (db *DB) Notify(ns string, awaited func() []task.ID, fn func(store.Notice)) (stop func(), complete bool) {
	if awaited != nil {
		return db.notices.Await(ns, awaited, fn), true
	}
	return db.notices.Listen(ns, fn), false
}

// Wake implements store.Observe.
func (db *DB) Wake(ns string) {
	due := store.Notice{Due: true}
	db.listeners.Notify(ns, due)
	db.notices.Committed(ns, &due)
}

// openNotices creates the notices of a store during Open.
func (db *DB) openNotices() {
	cfg := notices.Config{Schema: db.src.schema, Look: db.look, Listeners: &db.listeners}
	// Time stands still in a synctest bubble while a connection listens in it.
	if db.Direct() && db.opts.clock == nil {
		cfg.Dial = db.src.dialDirect
	}
	db.notices = notices.New(cfg)
}

// dialDirect opens a connection outside of the pool to a server that accepts writes.
func (src *source) dialDirect(ctx context.Context) (*pgx.Conn, error) {
	c, s, err := src.connectChecked(ctx, true)
	if err == nil && !s.direct() {
		_ = closeConn(ctx, c)
		return nil, notices.ErrNotDirect
	}
	return c, err
}

// Claim implements store.Core.
func (db *DB) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	res, err := db.relied(ctx, ns, req)
	if err == nil {
		db.notices.Claimed(ns, &req, &res)
	}
	return res, err
}

// Finish implements store.Core.
func (db *DB) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	res, err := db.verbs.Finish(ctx, ns, fins...)
	if err == nil {
		db.notices.Finished(ns, fins)
	}
	return res, err
}

// Leave implements store.Core.
func (db *DB) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	db.notices.Left(ns, id)
	return db.verbs.Leave(ctx, ns, id)
}

const sqlLook = `
SELECT 0, task_id, 0::bigint FROM weaver_tasks WHERE namespace = ?1 AND task_id = ANY(?2) AND state <> 'running'
UNION ALL
SELECT 1, task_id, 0 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ANY(?2) AND state = 'running' AND cancel_requested <> 0
UNION ALL
SELECT 2, task_id, 0 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ANY(?3) AND state NOT IN ('succeeded', 'failed', 'cancelled', 'blocked')
UNION ALL
SELECT 2, job_id, 0 FROM weaver_jobs WHERE namespace = ?1 AND job_id = ANY(?3) AND state NOT IN ('succeeded', 'failed', 'cancelled', 'blocked')
UNION ALL
(SELECT 3, NULL, due_at FROM weaver_timers WHERE namespace = ?1 ORDER BY due_at LIMIT 1)
UNION ALL
(SELECT 4, NULL, 0 FROM weaver_chores WHERE namespace = ?1 LIMIT 1)`

// look reads the changes that the callers in this process wait for.
func (db *DB) look(ctx context.Context, ns string, w notices.Wanted) (found notices.Found, err error) {
	err = db.pool.Tx(ctx, true, func(c *conn.Conn) error {
		found = notices.Found{}
		open := make(map[task.ID]bool, len(w.Awaited))
		now, err := c.Now()
		if err != nil {
			return err
		}
		d := db.database(c)
		st, err := d.bindIDs(sqlLook, ns, w.Running)
		if err != nil {
			return err
		}
		awaited := st.Array(3)
		for i := range w.Awaited {
			awaited.Bytes(w.Awaited[i][:])
		}
		for st.Step() {
			id := task.ID(pad(st.Raw(1)))
			switch st.Int(0) {
			case 0:
				found.Stopped = append(found.Stopped, id)
			case 1:
				found.Cancels = append(found.Cancels, id)
			case 2:
				open[id] = true
			case 3:
				found.Due = time.UnixMicro(st.Int(2))
				found.In = found.Due.Sub(now)
			case 4:
				found.Chores = true
			}
		}
		found.Over = slices.DeleteFunc(slices.Clone(w.Awaited), func(id task.ID) bool { return open[id] })
		return finish(st)
	})
	return found, db.translate(err)
}

const sqlNotify = `SELECT pg_notify($1, '')`

// notifyInTx makes a caller's transaction notify other processes of the tasks that it made due.
func (db *DB) notifyInTx(ns string, tell func(sql, channel string) error) error {
	if db.opts.silentTx || !db.notices.InTx(ns) {
		return nil
	}
	return tell(sqlNotify, notices.Channel(db.src.schema, ns))
}

// notifyIn is notifyInTx for a transaction of pgx.
func (db *DB) notifyIn(ctx context.Context, ns string, tx pgx.Tx) error {
	return db.notifyInTx(ns, func(sql, channel string) error {
		_, err := tx.Exec(ctx, sql, pgx.QueryExecModeExec, channel)
		return err
	})
}

// notifyInSQL is notifyInTx for a transaction of database/sql. Without arguments no driver prepares
// the statement.
func (db *DB) notifyInSQL(ctx context.Context, ns string, tx *sql.Tx) error {
	return db.notifyInTx(ns, func(sql, channel string) error {
		_, err := tx.ExecContext(ctx, strings.Replace(sql, "$1", "'"+channel+"'", 1))
		return err
	})
}

// announcing runs fn and reports whether it made a task due.
func announcing(due *bool, fn func(*sqlstore.Tx) error) func(*sqlstore.Tx) error {
	return func(t *sqlstore.Tx) error {
		err := fn(t)
		*due = err == nil && t.Effects().Notice.Due
		return err
	}
}
