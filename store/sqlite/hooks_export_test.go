package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
)

// OnSyncFolder calls fn instead of syncing a folder.
func OnSyncFolder(fn func(dir string)) Option { return func(o *options) { o.syncFolder = fn } }

// Read runs fn in a read transaction.
func (db *DB) Read(ctx context.Context, fn func(exec func(sql string) error) error) error {
	return db.read(ctx, func(c *conn.Conn) error { return fn(c.Script) })
}

// InTx runs fn as an operation in a caller's transaction.
func (db *DB) InTx(ctx context.Context, in store.Tx, fn func(exec func(sql string) error) error) error {
	return db.inTx(ctx, "test", in, func(t *sqlstore.Tx) error { return fn(t.Conn().(*conn.Conn).Script) })
}

// LanesTook simulates that reading the lanes of a namespace, which must have been read before,
// took this long.
func (db *DB) LanesTook(ns string, d time.Duration) {
	read := make(map[lane.Key]int64)
	for _, l := range db.lanes.Lanes(ns, func(lane.Key) bool { return true }) {
		read[l.Key] = l.Bound
	}
	db.lanes.Replace(ns, read, lane.Reading{At: time.Now(), Took: d})
}

// BeforeReads calls fn before each statement of the existing readers.
func (db *DB) BeforeReads(fn func(sql string)) {
	db.readers.Idle(func(c *conn.Conn) {
		err := c.Raw().Trace(sqlite3.TRACE_STMT, func(_ sqlite3.TraceEvent, _, sql any) error {
			fn(sql.(string))
			return nil
		})
		if err != nil {
			panic(err)
		}
	})
}

// OnOp calls fn before each operation of the group commit and uses its error; nil removes it.
func (db *DB) OnOp(fn func() error) {
	db.faults.OnOp = nil
	if fn != nil {
		db.faults.OnOp = func(*conn.Conn) error { return fn() }
	}
}

// ReapWith reaps with other proofs of death than locks.
func (db *DB) ReapWith(ctx context.Context, ns string, req store.ReapRequest, dead sqlstore.Dead) (store.ReapResult, error) {
	s := sqlstore.New(proven{database{db: db}, dead})
	return s.Reap(ctx, ns, req)
}

type proven struct {
	database
	dead sqlstore.Dead
}

func (p proven) Dead(context.Context, string) (sqlstore.Dead, error) { return p.dead, nil }

// CountWrites runs fn, and returns the numbers of the writer's statements and of the rows that
// they changed meanwhile.
func (db *DB) CountWrites(ctx context.Context, fn func()) (statements int, rows int64, err error) {
	count := func(on func(sqlite3.TraceEvent, any, any) error, sign int64) error {
		var terr error
		err := db.writer.Exclusive(ctx, func(c *conn.Conn) {
			terr = c.Raw().Trace(sqlite3.TRACE_STMT, on)
			rows += sign * c.Raw().TotalChanges()
		})
		return errors.Join(err, terr)
	}
	err = count(func(sqlite3.TraceEvent, any, any) error { statements++; return nil }, -1)
	if err != nil {
		return 0, 0, err
	}
	fn()
	err = count(nil, 1)
	return statements, rows, err
}
