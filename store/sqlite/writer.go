package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/store"
)

const (
	// maxGroup is how much one transaction may hold, in rows to be moved. A
	// claim or a finish of 1,000 tasks takes some 10 ms; heartbeats wait for
	// one group at most.
	maxGroup = 2000
	// checkpointPages is the length of the write-ahead log, in pages of 8 KiB,
	// from which on the writer copies it into the database.
	checkpointPages = 2000
	// walLimit is what the log's file is cut down to once it was copied.
	walLimit = 64 << 20
)

// op is one operation of one caller: a pure closure over the transaction. It
// may run more than once, so it must set all its results each time, and it
// must not touch anything else: what follows from its commit stands in fx.
type op struct {
	ns  string
	run func(*tx) error
	fx  effects // of the last run
}

// tx is what an operation sees of its transaction.
type tx struct {
	view
	db  *DB
	now time.Time // the store's clock, taken once per operation
	mic int64     // now, as stored
	gen string    // the store's generation, once it was read
	fx  *effects

	caller   bool // the transaction is a caller's: nothing is known before its commit
	repeated bool // a step stood already with the value that was to be recorded
}

// writer is the connection that writes, and what its leader knows about it.
type writer struct {
	conn        *conn.Conn
	lanes       *lanes
	dataVersion int64 // as last seen: it changes when another connection commits
	seenVersion bool
	external    bool              // somebody else committed since the last notice
	generations map[string]string // by namespace, as of dataVersion
	restoring   bool              // an operation of this transaction changes one
	stalled     time.Time         // when the write lock was last waited for long …
	stalledFor  time.Duration
	walPages    int // length of the log after the last commit
	checkpoint  int // the length that asks for the next checkpoint
}

// watch has the log's length reported. The hook also switches off SQLite's own
// checkpoints, which would run inside COMMIT, before anybody got an answer.
func (w *writer) watch() {
	w.checkpoint = checkpointPages
	w.conn.Raw().WALHook(func(_ *sqlite3.Conn, _ string, pages int) error {
		if pages < w.walPages {
			w.checkpoint = checkpointPages // it started over
		}
		w.walPages = pages
		return nil
	})
}

const (
	sqlBegin       = "BEGIN IMMEDIATE"
	sqlCommit      = "COMMIT"
	sqlRollback    = "ROLLBACK"
	sqlSavepoint   = "SAVEPOINT op"
	sqlRelease     = "RELEASE op"
	sqlUndo        = "ROLLBACK TO op"
	sqlDataVersion = "PRAGMA data_version"
)

// write has fn committed together with what others write meanwhile.
func (db *DB) write(ctx context.Context, doing, ns string, weight int, fn func(*tx) error) error {
	return db.submit(ctx, doing, &batch.Op[*op]{Do: &op{ns: ns, run: fn}, Weight: weight})
}

func (db *DB) submit(ctx context.Context, doing string, o *batch.Op[*op]) error {
	return db.translate(doing, db.queue.Do(ctx, o))
}

// commit is the queue's commit function: it runs with the lead.
func (db *DB) commit(g *batch.Group[*op]) {
	w := &db.w
	ops, riders := db.commitGroup(g)
	db.noteRefusal(ops)
	db.publish(ops, riders)
	g.Deliver()
	db.parking.answer(riders)
	w.checkpointIfLong()
}

// noteRefusal remembers for Ready whether the disk takes what is written: not,
// when it refused every operation of the last group.
func (db *DB) noteRefusal(ops []*batch.Op[*op]) {
	refused := len(ops) > 0
	for _, o := range ops {
		refused = refused && diskRefused(o.Err)
	}
	if len(ops) > 0 {
		db.refused.Store(refused)
	}
}

func diskRefused(err error) bool {
	if err == nil {
		return false
	}
	_, kind := classify(err)
	return errors.Is(kind, store.ErrFull) || errors.Is(kind, store.ErrReadOnly) || errors.Is(kind, store.ErrUnavailable)
}

// commitGroup is commit as far as the database is concerned. Whatever happens
// in it, the turn is given back and no transaction stays open: a panic must
// not keep everybody else from writing.
func (db *DB) commitGroup(g *batch.Group[*op]) (ops []*batch.Op[*op], riders []*parked) {
	// Step transactions of this process write through other connections. The
	// turn keeps us from polling SQLite's lock against them, and is fair.
	db.turn <- struct{}{}
	ended := false
	defer func() {
		if !ended { // a panic
			db.parking.lose()
		}
		if !db.w.conn.Autocommit() {
			db.w.rollback() // after a panic
		}
		<-db.turn
	}()
	err := db.w.begin()
	ops = g.Take() // only now: a heartbeat that came while we waited is first
	switch {
	case err != nil:
		for _, o := range ops {
			o.Err = err
		}
	case len(ops) == 1:
		riders, ops[0].Err = db.finishAlone(ops[0].Do)
	default:
		var ok bool
		if riders, ok = db.together(ops); ok {
			break
		}
		// Nothing of the group is in the database. Each operation again, with
		// a transaction of its own: the one at fault gets the error.
		for _, o := range ops {
			if o.Err = db.w.begin(); o.Err == nil {
				var more []*parked
				more, o.Err = db.finishAlone(o.Do)
				riders = append(riders, more...)
			}
		}
	}
	ended = true
	return ops, riders
}

// begin starts the transaction and looks whether others wrote.
func (w *writer) begin() error {
	start := time.Now()
	if err := w.conn.Stmt(sqlBegin).Run(); err != nil {
		return err
	}
	if waited := time.Since(start); waited > minStall {
		w.stalled, w.stalledFor = start.Add(waited), waited
	}
	if err := w.look(); err != nil {
		w.rollback()
		return err
	}
	return nil
}

// minStall is TTL/3 of the shortest lease.
const minStall = time.Second / 3

// look compares the data version, which other connections' commits change.
func (w *writer) look() error {
	st := w.conn.Stmt(sqlDataVersion)
	var v int64
	if st.One() {
		v = st.ColInt(0)
	}
	if err := st.Done(); err != nil {
		return err
	}
	if w.seenVersion && v != w.dataVersion {
		w.external = true
		clear(w.generations)
		w.lanes.invalidate()
	}
	if w.restoring { // in the transaction before, whatever became of it
		clear(w.generations)
		w.restoring = false
	}
	w.dataVersion, w.seenVersion = v, true
	return nil
}

// finishAlone runs one operation in the open transaction and ends that. What
// only its riders lose is not its error: it is done once more, without them.
func (db *DB) finishAlone(o *op) (riders []*parked, err error) {
	for _, take := range []bool{true, false} {
		var again bool
		if riders, again, err = db.tryAlone(o, take); !again {
			return riders, err
		}
		if err = db.w.begin(); err != nil {
			return nil, err
		}
	}
	return nil, err
}

func (db *DB) tryAlone(o *op, take bool) (riders []*parked, again bool, err error) {
	w := &db.w
	err = db.runOp(o)
	if err == nil && w.conn.Autocommit() {
		err = errFlipped
	}
	if err == nil && take {
		var ok bool
		if riders, ok = db.ride(o); !ok {
			w.rollback()
			return nil, true, errFlipped
		}
	}
	if err == nil {
		// Crash here: nothing was acknowledged; the log's next reader drops
		// what has no commit mark.
		err = db.fault.commit(func() error { return w.conn.Stmt(sqlCommit).Run() })
	}
	if err != nil {
		w.rollback()
		db.parking.back(riders...)
		return nil, false, err
	}
	return riders, false, nil
}

// together runs a group in the open transaction, each operation in its own
// savepoint, and commits. It reports false when the whole transaction is lost
// and has to be done again; otherwise the errors of the operations stand.
func (db *DB) together(ops []*batch.Op[*op]) (riders []*parked, ok bool) {
	w := &db.w
	done := make([]*op, 0, len(ops))
	for _, o := range ops {
		if w.conn.Stmt(sqlSavepoint).Run() != nil {
			w.rollback()
			return nil, false
		}
		o.Err = db.runOp(o.Do)
		// An interrupt, a full disk or an I/O error inside a statement rolls
		// back everything, and the next statement would commit by itself.
		if w.conn.Autocommit() {
			w.conn.Reset()
			return nil, false
		}
		if o.Err != nil && w.conn.Stmt(sqlUndo).Run() != nil {
			w.rollback()
			return nil, false
		}
		if w.conn.Stmt(sqlRelease).Run() != nil {
			w.rollback()
			return nil, false
		}
		if o.Err == nil {
			done = append(done, o.Do)
		}
	}
	if riders, ok = db.ride(done...); !ok {
		w.rollback()
		return nil, false
	}
	// Crash here: nothing was acknowledged, nothing is there after recovery.
	err := db.fault.commit(func() error { return w.conn.Stmt(sqlCommit).Run() })
	if err != nil {
		w.rollback()
		db.parking.back(riders...)
		return nil, false
	}
	return riders, true
}

var errFlipped = errors.New("the database rolled the transaction back")

// runOp runs one operation; a panic becomes its error.
func (db *DB) runOp(o *op) (err error) {
	w := &db.w
	now := store.Now()
	o.fx = effects{ns: o.ns}
	t := tx{view: view{w.conn, o.ns}, db: db, now: now, mic: now.UnixMicro(), fx: &o.fx}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a store operation: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			w.conn.Reset()
		}
	}()
	if err := db.fault.op(w.conn); err != nil {
		return err
	}
	return o.run(&t)
}

// rollback ends the transaction if there still is one.
func (w *writer) rollback() {
	w.conn.Reset()
	if !w.conn.Autocommit() {
		_ = w.conn.Stmt(sqlRollback).Run() // the caller has the error that counts
	}
}

// checkpointIfLong copies the log into the database. The leader does it after
// its group has its answers and before it hands over the lead: only then is
// the log quiet, so that it can be copied to its end and start over; beside a
// busy writer it would grow without end. 2,000 pages take some 10 ms, which
// no heartbeat notices. A reader that holds an old snapshot ends the copying
// early: then the next try comes after another 2,000 pages, and the file is
// cut down to walLimit when it starts over (PRAGMA journal_size_limit).
func (w *writer) checkpointIfLong() {
	if w.walPages < w.checkpoint {
		return
	}
	w.checkpoint = w.walPages + checkpointPages
	// Its failure harms nobody: the log stays, and the next one tries again.
	_, _, _ = w.conn.Raw().WALCheckpoint("main", sqlite3.CHECKPOINT_PASSIVE)
}

// peek looks for others' commits if nobody is writing; a writer looks itself.
func (db *DB) peek() {
	db.queue.TryExclusive(func() {
		if db.w.look() == nil {
			db.publish(nil, nil)
		}
	})
}
