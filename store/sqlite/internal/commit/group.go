package commit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/goweaver/weaver/internal/batch"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

const (
	sqlBegin     = "BEGIN IMMEDIATE"
	sqlCommit    = "COMMIT"
	sqlRollback  = "ROLLBACK"
	sqlSavepoint = "SAVEPOINT op"
	sqlRelease   = "RELEASE op"
	sqlUndo      = "ROLLBACK TO op"
)

// errRolledBack is the error of an operation during which the transaction ended.
var errRolledBack = errors.New("the database rolled the transaction back")

// commit is the queue's commit function. It runs with the lead.
func (w *Writer) commit(g *batch.Group[*Op]) {
	ops, claims := w.commitGroup(g)
	w.noteRefusal(ops)
	w.publish(ops, claims)
	g.Deliver()
	w.waiting.answer(claims)
	w.checkpointIfLong()
}

// commitGroup takes a group and commits it. It returns the operations, with their errors, and
// the waiting claims that were committed with them. It always releases the turn and leaves no
// transaction open: even a panic must not keep other callers from writing.
func (w *Writer) commitGroup(g *batch.Group[*Op]) (ops []*batch.Op[*Op], claims []*WaitingClaim) {
	start := time.Now()
	ctx, between := g.Context(), func() {}
	err := w.turns.lead(ctx, w.cfg.Busy)
	hasTurn, ended := err == nil, false
	defer func() {
		if !ended { // a panic
			w.waiting.fail()
		}
		if !w.conn.Autocommit() {
			w.rollback() // after a panic
		}
		between()
		if hasTurn {
			w.turns.release()
		}
	}()
	if hasTurn {
		var turn func()
		if turn, err = w.processes.take(ctx, w.queue.Urgent()); err == nil {
			between = turn
			err = w.begin(ctx, start)
		}
	}
	if err != nil && ctx.Err() != nil {
		ended = true
		return nil, nil // the leader gives up, and the next caller leads
	}
	ops = g.Take() // only now: a heartbeat that came during the wait is first
	switch {
	case err != nil:
		for _, o := range ops {
			o.Err = err
		}
	case len(ops) == 1:
		claims, ops[0].Err = w.single(ops[0].Do)
	default:
		var ok bool
		if claims, ok = w.together(ops); ok {
			break
		}
		// Nothing of the group is stored. Each operation runs again in its own transaction, so
		// that only the failing one gets the error.
		for _, o := range ops {
			if o.Err = w.begin(context.Background(), time.Now()); o.Err == nil {
				var more []*WaitingClaim
				more, o.Err = w.single(o.Do)
				claims = append(claims, more...)
			}
		}
	}
	ended = true
	return ops, claims
}

// begin starts the transaction and checks for external writes. start is the begin of the
// leader's wait. The end of ctx ends the wait for the database's lock.
func (w *Writer) begin(ctx context.Context, start time.Time) error {
	wait := w.conn.Interruptible(ctx)
	err := w.conn.Stmt(sqlBegin).Run()
	wait()
	if err != nil {
		return err
	}
	if waited := time.Since(start); waited > minStall {
		w.stalled, w.stalledFor = start.Add(waited), waited
	}
	err = w.compareVersion()
	if err == nil && w.cfg.Begun != nil {
		err = w.cfg.Begun(w.conn, w.external)
	}
	if err != nil {
		w.rollback()
	}
	return err
}

// together runs a group in the open transaction, each operation in its own savepoint, and
// commits. It returns false if the whole transaction is lost and the group must run again.
// Otherwise the operations' errors are final.
func (w *Writer) together(ops []*batch.Op[*Op]) (claims []*WaitingClaim, ok bool) {
	done := make([]*Op, 0, len(ops))
	for _, o := range ops {
		ok := w.inSavepoint(func() error {
			o.Err = w.run(o.Do)
			return o.Err
		})
		if !ok {
			w.rollback()
			return nil, false
		}
		if o.Err == nil {
			done = append(done, o.Do)
		}
	}
	if claims, ok = w.piggyback(done...); !ok {
		w.rollback()
		return nil, false
	}
	// Crash here: nothing was acknowledged, and nothing is stored after recovery.
	if err := w.commitTx(); err != nil {
		w.rollback()
		w.waiting.putBack(claims...)
		return nil, false
	}
	return claims, true
}

// inSavepoint runs fn in a savepoint, and rolls the savepoint back if fn fails. It returns
// false if the transaction is lost.
func (w *Writer) inSavepoint(fn func() error) bool {
	if w.conn.Stmt(sqlSavepoint).Run() != nil {
		return false
	}
	err := fn()
	// An interrupt, a full disk or an I/O error inside a statement rolls back everything, and
	// the next statement would commit by itself.
	if w.conn.Autocommit() {
		return false
	}
	if err != nil && w.conn.Stmt(sqlUndo).Run() != nil {
		return false
	}
	return w.conn.Stmt(sqlRelease).Run() == nil
}

// single runs one operation in the open transaction and ends the transaction. If only the
// waiting claims lose the transaction, the operation runs once more without them.
func (w *Writer) single(o *Op) (claims []*WaitingClaim, err error) {
	claims, lost, err := w.trySingle(o, true)
	if !lost {
		return claims, err
	}
	if err := w.begin(context.Background(), time.Now()); err != nil {
		return nil, err
	}
	claims, _, err = w.trySingle(o, false)
	return claims, err
}

// trySingle returns lost if waiting claims lost the transaction.
func (w *Writer) trySingle(o *Op, withClaims bool) (claims []*WaitingClaim, lost bool, err error) {
	err = w.run(o)
	if err == nil && w.conn.Autocommit() {
		err = errRolledBack
	}
	if err == nil && withClaims {
		var ok bool
		if claims, ok = w.piggyback(o); !ok {
			w.rollback()
			return nil, true, errRolledBack
		}
	}
	if err == nil {
		// Crash here: nothing was acknowledged; the log's next reader drops everything without
		// a commit mark.
		err = w.commitTx()
	}
	if err != nil {
		w.rollback()
		w.waiting.putBack(claims...)
		return nil, false, err
	}
	return claims, false, nil
}

func (w *Writer) commitTx() error {
	if f := w.cfg.Ending; f != nil {
		if err := f(w.conn); err != nil {
			return err
		}
	}
	commit := func() error { return w.conn.Stmt(sqlCommit).Run() }
	if f := w.cfg.Faults; f != nil && f.OnCommit != nil {
		plain := commit
		commit = func() error { return f.OnCommit(plain) }
	}
	err := commit()
	w.cfg.Lanes.Ended(err == nil)
	return err
}

// run runs one operation; a panic becomes its error.
func (w *Writer) run(o *Op) (err error) {
	o.fx, o.waiting = sqlstore.NewEffects(o.NS, &w.memory), nil
	tx := Tx{Conn: w.conn, Now: w.cfg.Now(), Effects: &o.fx, op: o}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a store operation: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			w.conn.Reset()
		}
	}()
	if f := w.cfg.Faults; f != nil && f.OnOp != nil {
		if err := f.OnOp(w.conn); err != nil {
			return err
		}
	}
	return o.Run(&tx)
}

// rollback ends the transaction if it is open.
func (w *Writer) rollback() {
	w.cfg.Lanes.Ended(false)
	w.conn.Reset()
	if !w.conn.Autocommit() {
		_ = w.conn.Stmt(sqlRollback).Run() // the caller has the error that counts
	}
}

// noteRefusal records whether the disk refused every operation of the group.
func (w *Writer) noteRefusal(ops []*batch.Op[*Op]) {
	if len(ops) == 0 {
		return
	}
	refused := true
	for _, o := range ops {
		refused = refused && diskRefused(o.Err)
	}
	w.refused.Store(refused)
}

func diskRefused(err error) bool {
	if err == nil {
		return false
	}
	_, kind := conn.Classify(err)
	return errors.Is(kind, store.ErrFull) || errors.Is(kind, store.ErrReadOnly) || errors.Is(kind, store.ErrUnavailable)
}
