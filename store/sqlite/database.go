package sqlite

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// verbs are the verbs of the port, shared by the SQL stores.
type verbs = sqlstore.Store

// maxReaders is the maximum number of concurrent reads.
const maxReaders = 4

// database is a DB as the verbs use it.
type database struct {
	sqlstore.NoLocks // one transaction writes at a time

	db *DB
}

var _ sqlstore.Database = database{}

// Write implements sqlstore.Database. fn is committed together with concurrent writes of other
// callers.
func (d database) Write(ctx context.Context, ns string, op sqlstore.Op) error {
	return d.db.commit(ctx, &commit.Op{NS: ns, Weight: op.Weight, Urgent: op.Urgent, Run: func(c *commit.Tx) error { return op.Run(d.tx(c)) }})
}

func (d database) tx(c *commit.Tx) *sqlstore.Tx { return sqlstore.NewTx(d, c.Conn, c.Effects, c.Now) }

// commit runs and commits an operation.
func (db *DB) commit(ctx context.Context, op *commit.Op) error {
	return db.translate(db.writer.Do(ctx, op))
}

// Read implements sqlstore.Database.
func (d database) Read(ctx context.Context, ns string, fn func(*sqlstore.View) error) error {
	return d.db.read(ctx, func(c *conn.Conn) error { return fn(sqlstore.NewView(c, ns, d.db.clock.Now)) })
}

// read runs fn in its own read transaction.
func (db *DB) read(ctx context.Context, fn func(*conn.Conn) error) error {
	if err := db.checkPlace(); err != nil {
		return err
	}
	err := db.readers.Read(ctx, func(c *conn.Conn) error {
		h := commit.NewHolder("a read", true)
		db.reads.add(h, false)
		defer db.reads.remove(h)
		return fn(c)
	})
	return db.translate(err)
}

// InTx implements sqlstore.Database.
func (d database) InTx(ctx context.Context, ns string, in store.Tx, fn func(*sqlstore.Tx) error) error {
	return d.db.inTx(ctx, ns, in, fn)
}

// Lanes implements sqlstore.Database.
func (d database) Lanes() *lane.Cache { return &d.db.lanes }

// ReadLanes implements sqlstore.Database.
func (d database) ReadLanes(t *sqlstore.Tx) (map[lane.Key]int64, lane.Reading, error) {
	return t.ReadLanes()
}

// Stalled implements sqlstore.Database.
func (d database) Stalled() (until time.Time, waited time.Duration) { return d.db.writer.Stalled() }

// Dead implements sqlstore.Database. A worker's free lock proves that its process is dead.
func (d database) Dead(ctx context.Context, ns string) (sqlstore.Dead, error) {
	if d.db.alone != nil {
		return d.db.deadAlone(ctx, ns)
	}
	return d.db.deadWorkers(ctx, ns)
}

// Joining implements sqlstore.Database. In a file it takes the operating system's lock that
// shows other processes that this process lives. Crash after it: a lock file without a row,
// which a later Join removes.
func (d database) Joining(ctx context.Context, ns string, w *store.WorkerInfo) (written func(*sqlstore.Tx) error, err error) {
	d.db.alone.join(d.db, ns, w.ID)
	return nil, d.db.locks.Hold(ctx, ns, w.ID)
}

// Joined implements sqlstore.Database.
func (d database) Joined(ctx context.Context) { d.db.sweepLocks(ctx) }

// Left implements sqlstore.Database. Without its row no process asks whether the worker lives.
func (d database) Left(ns string, id store.WorkerID) {
	d.db.locks.Release(ns, id)
	d.db.alone.leave(ns, id)
}

// Claim implements store.Core.
func (db *DB) Claim(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if req.Wait <= 0 || req.Again || req.IDs != nil {
		return db.verbs.Claim(ctx, ns, req)
	}
	return db.claimOrWait(ctx, ns, req)
}

// claimOrWait is a claim that may wait.
func (db *DB) claimOrWait(ctx context.Context, ns string, req store.ClaimRequest) (store.ClaimResult, error) {
	if err := sqlstore.CheckClaim(&req); err != nil {
		return store.ClaimResult{}, err
	}
	began := time.Now()
	claimInto := func(got *store.ClaimResult, req store.ClaimRequest) func(*commit.Tx) error {
		return func(c *commit.Tx) (err error) {
			*got, err = database{db: db}.tx(c).Claim(&req)
			return err
		}
	}
	var got, later store.ClaimResult
	all := req
	all.Behind = store.ClaimPlace{} // rows that become due may sort before it
	waiting := commit.NewWaitingClaim(ns, claimInto(&later, all))
	run := func(c *commit.Tx) error {
		err := claimInto(&got, req)(c)
		if mayWait(&got) {
			c.Wait(waiting)
		}
		return err
	}
	err := db.commit(ctx, &commit.Op{NS: ns, Weight: max(1, req.Limit), Run: run})
	switch {
	case err != nil:
		return store.ClaimResult{}, err
	case !mayWait(&got):
		return got, nil
	}
	limit := req.Wait
	if got.Next > 0 {
		limit = min(limit, got.Next)
	}
	answered, err := db.writer.Wait(ctx, waiting, limit, req.Wake)
	switch {
	case err != nil:
		return store.ClaimResult{}, db.translate(err)
	case !answered:
		return store.ClaimResult{Now: db.clock.Now(), Next: -1, Waited: max(1, time.Since(began))}, nil
	}
	later.Waited = waiting.TakenAt().Sub(began)
	return later, nil
}

// mayWait reports whether a claim with this result may wait. It may not if rows are due that
// this worker cannot take now, because every group would run it in vain.
func mayWait(got *store.ClaimResult) bool {
	return len(got.Tasks) == 0 && got.Next != 0 && !got.AloneDue
}

const (
	vacuumPages = 128 // maximum returned by one bite: 1 MiB
	leastPages  = 32  // minimum for a bite
	sparePages  = 256 // kept for later writes, in addition to a sixteenth of the file
)

// GiveBack implements sqlstore.Database. It returns free pages of the file to the file system,
// if the file was created with auto_vacuum.
func (d database) GiveBack(ctx context.Context) (freed int64, more bool, err error) {
	if d.db.memory {
		return 0, false, nil
	}
	give := 0
	err = d.db.read(ctx, func(c *conn.Conn) (err error) {
		give, err = freePages(c)
		return err
	})
	if err != nil || give == 0 {
		return 0, false, err
	}
	err = d.db.commit(ctx, &commit.Op{Weight: sqlstore.Heavy, Run: func(t *commit.Tx) error {
		freed, more = 0, false
		free, err := freePages(t.Conn)
		if err != nil || free == 0 {
			return err
		}
		give := min(free, vacuumPages)
		if err := t.Conn.Script("PRAGMA incremental_vacuum(" + strconv.Itoa(give) + ")"); err != nil {
			return err
		}
		size, err := number(t.Conn, "PRAGMA page_size")
		freed, more = int64(give)*int64(size), free > give
		return err
	}})
	return freed, more, err
}

// incremental is the auto_vacuum value of a file that can return its free pages.
const incremental = 2

// freePages returns the number of pages of the file that may be returned.
func freePages(c *conn.Conn) (int, error) {
	var n [3]int
	for i, sql := range []string{"PRAGMA auto_vacuum", "PRAGMA freelist_count", "PRAGMA page_count"} {
		var err error
		if n[i], err = number(c, sql); err != nil {
			return 0, err
		}
	}
	if n[0] != incremental {
		return 0, nil
	}
	if give := n[1] - sparePages - n[2]/16; give >= leastPages {
		return give, nil
	}
	return 0, nil
}

func number(c *conn.Conn, pragma string) (int, error) {
	s, err := c.Pragma(pragma)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(s)
}

// Erase implements sqlstore.Database. SQLite overwrites deleted values with zeros, and the
// file is marked for a scrub.
func (d database) Erase(t *sqlstore.Tx) (undo func(), err error) {
	c, ok := t.Conn().(*conn.Conn)
	if !ok {
		return nil, errors.New("not a connection of this store")
	}
	if err := c.Script("PRAGMA secure_delete=ON"); err != nil {
		return nil, err
	}
	return func() { _ = c.Script("PRAGMA secure_delete=OFF") }, needScrub(c, t.Now()) // if it stays on, deletes are only slower
}
