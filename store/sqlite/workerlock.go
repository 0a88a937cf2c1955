package sqlite

import (
	"context"

	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// Every worker of a file holds a lock in the folder <database>.workers (package workerlock). A
// database in memory has no locks, because one process uses it.

const sqlWorkerIDs = `SELECT worker_id FROM weaver_workers WHERE namespace = ?1`

// deadWorkers tries the locks of all other workers, outside of any transaction. Worker IDs are
// random and never reused.
func (db *DB) deadWorkers(ctx context.Context, ns string) (*workerlock.Dead, error) {
	var ids []store.WorkerID
	if db.locks == nil {
		return db.locks.Dead(ctx, ns, nil), nil
	}
	err := db.read(ctx, func(c *conn.Conn) error {
		ids = nil
		st := c.Stmt(sqlWorkerIDs).Text(1, ns)
		for st.Next() {
			ids = append(ids, store.WorkerID(st.ColText(0)))
		}
		return st.Done()
	})
	if err != nil {
		return nil, err
	}
	return db.locks.Dead(ctx, ns, ids), nil
}

const sqlAllWorkers = `SELECT namespace, worker_id FROM weaver_workers`

// sweepLocks removes lock files that prove nothing.
func (db *DB) sweepLocks(ctx context.Context) {
	if db.locks == nil {
		return
	}
	known := make(map[string]bool)
	err := db.read(ctx, func(c *conn.Conn) error {
		st := c.Stmt(sqlAllWorkers)
		for st.Next() {
			known[db.locks.Path(st.ColText(0), store.WorkerID(st.ColText(1)))] = true
		}
		return st.Done()
	})
	if err == nil {
		db.locks.Sweep(ctx, known)
	}
}
