package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

// StepTx implements store.Flow: fn's writes and the value of the step commit together. fn runs
// first; the guard and the value follow, just before the commit. fn gets a transaction of pgx, or
// with rec.SQLTx one of database/sql (Handle of the store.Tx is a pgx.Tx or a *sql.Tx).
// Crash here, or anywhere before the commit: fn's writes and its value are rolled back together,
// and the step runs again.
func (db *DB) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (got store.RecordResult, err error) {
	switch {
	case rec.Step == nil:
		return got, fmt.Errorf("step transaction of task %v: there is no step to record", rec.Lease.Task)
	case db.closed.Load():
		return got, db.translate(conn.ErrClosed)
	}
	limited := ctx
	if limit > 0 {
		var done context.CancelFunc
		limited, done = context.WithTimeoutCause(ctx, limit, store.ErrStepTxTooLong)
		defer done()
	}
	guard := new(stepGuard)
	begin := db.beginPgx
	if rec.SQLTx {
		begin = db.beginSQL
	}
	tx, err := begin(limited, guard)
	if err != nil {
		return got, db.stepTxError(ctx, limited, limit, err)
	}
	defer tx.release()
	ended := false
	defer func() {
		if !ended { // also after a panic of fn, which the attempt reports
			guard.give()
			tx.rollback()
		}
	}()
	if got, err = db.stepTx(limited, ns, rec, tx, guard, fn); err != nil {
		return got, db.stepTxError(ctx, limited, limit, err)
	}
	ended = true
	return got, nil
}

// stepEnd is the transaction of a StepTx.
type stepEnd struct {
	handle   store.Tx                          // passed to the function
	run      func(func(*stepConn) error) error // uses the connection
	commit   func(context.Context) error
	rollback func()
	release  func()
}

// beginPgx begins the transaction of a StepTx whose function takes a pgx.Tx.
func (db *DB) beginPgx(ctx context.Context, guard *stepGuard) (*stepEnd, error) {
	c, err := db.pool.Raw().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		c.Release()
		return nil, err
	}
	return &stepEnd{
		handle:   Tx(stepTx{tx, guard, false}),
		run:      func(fn func(*stepConn) error) error { return fn(&stepConn{tx: tx}) },
		commit:   tx.Commit,
		rollback: func() { _ = rollbackStep(ctx, tx) }, // it may already have ended
		release:  c.Release,
	}, nil
}

func (db *DB) stepTx(ctx context.Context, ns string, rec store.Record, tx *stepEnd, guard *stepGuard, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (got store.RecordResult, err error) {
	err = tx.run(func(c *stepConn) error {
		return db.inStep(ctx, ns, c, func(t *sqlstore.Tx) (err error) {
			got.Err, err = t.Lost(&rec.Lease)
			return err
		})
	})
	if err = cmp.Or(err, got.Err); err != nil {
		return got, err
	}
	value, err := fn(ctx, tx.handle)
	if end := tx.returned(ctx, guard, err); end != nil {
		return got, userError{end}
	}
	if err != nil {
		return got, userError{err}
	}
	if ctx.Err() != nil {
		return got, context.Cause(ctx)
	}
	step := *rec.Step
	step.Value = value
	rec.Step = &step
	repeated := false
	var pg *pgx.Conn
	err = tx.run(func(c *stepConn) error {
		pg = c.pgx()
		return db.inStep(ctx, ns, c, func(t *sqlstore.Tx) (err error) {
			repeated, err = t.Record(&rec, &got)
			return err
		})
	})
	switch {
	case err != nil:
		return got, err
	case got.Err != nil:
		return got, got.Err
	case repeated:
		// An earlier try committed and its reply was lost: roll back, so that the function's writes
		// are not kept twice.
		tx.rollback()
		return got, nil
	}
	if err = tx.commit(ctx); err != nil {
		_, kind := conn.Classify(err)
		switch {
		case pg.IsClosed() && !pgconn.SafeToRetry(err):
			err = fmt.Errorf("%w: %w", store.ErrUnknown, err) // the engine records the step again and learns the outcome
		case errors.Is(kind, store.ErrRefused):
			err = userError{fmt.Errorf("%w: %w", store.ErrStepTxRefused, err)}
		}
	}
	return got, err
}

// pgx returns the connection of the transaction; nil once the transaction has ended.
func (c *stepConn) pgx() *pgx.Conn {
	if c.tx == nil {
		return nil
	}
	return c.tx.Conn()
}

// inStep runs fn in the transaction of a StepTx.
func (db *DB) inStep(ctx context.Context, ns string, c *stepConn, fn func(*sqlstore.Tx) error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.tx == nil:
		return sql.ErrTxDone
	}
	return db.inTx(ctx, ns, c.tx, fn)
}

// returned checks the transaction after its function has returned.
func (tx *stepEnd) returned(ctx context.Context, guard *stepGuard, err error) (end error) {
	status := byte('I')
	_ = tx.run(func(c *stepConn) error { // a lost connection has no transaction
		c.closeRows()
		if pg := c.pgx(); pg != nil {
			if status = pg.PgConn().TxStatus(); pg.IsClosed() {
				status = 0
			}
		}
		return nil
	})
	if end = guard.end(ctx, err, status); end == nil && err == nil && ctx.Err() == nil && status == 'E' {
		end = fmt.Errorf("%w: a statement of the function failed, after which PostgreSQL can only roll back, and the function returned no error: "+
			"return it, or expect it with ON CONFLICT or a SAVEPOINT", store.ErrStepTxRefused)
	}
	return end
}

// userError marks an error of the function, which StepTx returns unchanged.
type userError struct{ error }

func (db *DB) stepTxError(ctx, limited context.Context, limit time.Duration, err error) error {
	var user userError
	switch {
	case errors.Is(err, store.ErrUnknown): // it may be committed, even if the context or the lease ended meanwhile
		return db.translate(err)
	case ctx.Err() == nil && limited.Err() != nil:
		return fmt.Errorf("%w (limit %v): inside of it use its transaction and InStepTx", store.ErrStepTxTooLong, limit)
	case errors.As(err, &user):
		return user.error
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return db.translate(err)
}
