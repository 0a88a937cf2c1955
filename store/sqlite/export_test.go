package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// SchemaHeader is the first line of schema.sql.
const SchemaHeader = schemaHeader

// SyncOff never waits for the disk. It is for tests that do not crash machines.
const SyncOff = off

// VersionColumns is a generated list in statements.
var VersionColumns = versionColumns.List()

// Kill drops the lock of a worker, as the end of its process would.
func (db *DB) Kill(ns string, id store.WorkerID) {
	db.locks.Drop(ns, id)
	db.alone.leave(ns, id)
}

// BeforeLock calls fn between the opening of a lock file and its locking; nil removes it.
func (db *DB) BeforeLock(fn func()) { db.locks.BeforeLock(fn) }

// LockPath returns the name of a worker's lock file.
func (db *DB) LockPath(ns string, id store.WorkerID) string { return db.locks.Path(ns, id) }

// ShiftClock makes the machine's clock, as this store reads it, jump by d.
func (db *DB) ShiftClock(d time.Duration) { db.clock.Shift(d) }

// ClockShifted opens a store for which the machine's clock is off by d.
func ClockShifted(d time.Duration) Option { return func(o *options) { o.shift = d } }

// LogLimit sets the size from which on a log is truncated.
func LogLimit(bytes int) Option { return func(o *options) { o.logLimit = bytes } }

// ListLooks sets the row limit of one page of a list.
func ListLooks(n int) Option { return func(o *options) { o.looks = n } }

// CountTo sets the limit of each count of an overview.
func CountTo(n int) Option { return func(o *options) { o.counted = n } }

// GraphEdges sets the edge limit of a page of a graph.
func GraphEdges(n int) Option { return func(o *options) { o.graphEdges = n } }

// OldFile creates new files like earlier versions: they keep free pages.
func OldFile() Option { return func(o *options) { o.old = true } }

// ScanPage sets the number of tasks, jobs or keys in one part of a scan.
func ScanPage(n int) Option { return func(o *options) { o.scan = n } }

// OpenReads returns the number of running reads.
func (db *DB) OpenReads() int {
	db.reads.mu.Lock()
	defer db.reads.mu.Unlock()
	return len(db.reads.open)
}

// OnCommit wraps every COMMIT of the writer in fn; nil removes it.
func (db *DB) OnCommit(fn func(commit func() error) error) { db.faults.OnCommit = fn }

// Exec runs SQL on the writer, outside any group.
func (db *DB) Exec(ctx context.Context, sql string) (err error) {
	if qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) { err = c.Script(sql) }); qerr != nil {
		return qerr
	}
	return err
}

// Write runs fn as an operation of the group commit.
func (db *DB) Write(ctx context.Context, fn func(exec func(sql string) error) error) error {
	return db.commit(ctx, &commit.Op{NS: "test", Weight: 1, Run: func(t *commit.Tx) error { return fn(t.Conn.Script) }})
}

// ReadSteps returns the number of virtual machine steps of the readers' statements since the
// last call.
func (db *DB) ReadSteps() (n int) {
	db.readers.Idle(func(c *conn.Conn) { n += c.Steps() })
	return n
}

// WriteSteps returns the number of virtual machine steps of the writer's statements since the
// last call.
func (db *DB) WriteSteps(ctx context.Context) (n int, err error) {
	err = db.writer.Exclusive(ctx, func(c *conn.Conn) { n = c.Steps() })
	return n, err
}

// Plan returns the writer's plan for a statement, one line per step.
func (db *DB) Plan(ctx context.Context, sql string) (plan []string, err error) {
	qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) {
		st, _, perr := c.Raw().Prepare("EXPLAIN QUERY PLAN " + sql)
		if err = perr; err != nil {
			return
		}
		for st.Step() {
			plan = append(plan, st.ColumnText(3))
		}
		err = st.Close()
	})
	if qerr != nil {
		return nil, qerr
	}
	return plan, err
}

// Ephemeral reports whether a statement opens a temporary table when it runs.
func (db *DB) Ephemeral(ctx context.Context, sql string) (found bool, err error) {
	qerr := db.writer.Exclusive(ctx, func(c *conn.Conn) {
		st, _, perr := c.Raw().Prepare("EXPLAIN " + sql)
		if err = perr; err != nil {
			return
		}
		for st.Step() {
			found = found || strings.Contains(st.ColumnText(1), "Ephemeral") || strings.Contains(st.ColumnText(1), "Autoindex")
		}
		err = st.Close()
	})
	if qerr != nil {
		return false, qerr
	}
	return found, err
}
