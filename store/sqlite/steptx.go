package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
)

// StepTx implements store.StepTxer. The transaction is one of DB's own
// connections, outside the group commit: a user's function must not run with
// the lead, for its panic or its silence would be every caller's. It does hold
// this process's turn to write, as it holds SQLite's write lock anyway:
// waiting for the turn is fair and exact, where waiting for the lock is
// polling. When it ends, the writer is next, and heartbeats are first there.
//
// When the limit passes, the running statement is interrupted, the transaction
// is rolled back and the turn is given up, even if fn goes on.
func (db *DB) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if rec.Step == nil {
		return store.RecordResult{}, fmt.Errorf("step transaction of task %v: there is no step to record", rec.Lease.Task)
	}
	giveBack, err := db.writer.Turn(ctx)
	if err != nil {
		return store.RecordResult{}, err
	}
	cancel := context.CancelFunc(func() {})
	inner := ctx
	if limit > 0 {
		inner, cancel = context.WithTimeoutCause(ctx, limit, store.ErrStepTxTooLong)
	}
	// Exactly one of the two gives the turn back: the end of the context, for
	// an fn that goes on, or we.
	ended := context.AfterFunc(inner, giveBack)
	defer func() {
		if ended() {
			giveBack()
		}
		cancel()
	}()

	tx, err := db.DB().BeginTx(inner, nil)
	if err != nil {
		return store.RecordResult{}, db.stepTxError(ctx, inner, limit, err)
	}
	got, err := db.stepTx(inner, ns, rec, tx, fn)
	if err != nil {
		// Crash here, or anywhere before the commit: the function's writes and
		// its value are gone together, and the step runs again.
		_ = tx.Rollback() // the context's end may have done it
		return got, db.stepTxError(ctx, inner, limit, err)
	}
	return got, nil
}

// stepTx runs the function first; guard and value come last, just before the
// commit.
func (db *DB) stepTx(ctx context.Context, ns string, rec store.Record, sqlTx *sql.Tx, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (got store.RecordResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			_ = sqlTx.Rollback()
			panic(p) // the user's: the attempt reports it
		}
	}()
	value, err := fn(ctx, Tx(sqlTx))
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
	err = db.inTx(ctx, ns, Tx(sqlTx), func(t *tx) error {
		err := t.record(&rec, &got)
		repeated = t.repeated
		return err
	})
	switch {
	case err != nil:
		return got, err
	case got.Err != nil:
		return got, got.Err
	case repeated:
		// An earlier try committed and its answer was lost: what the function
		// wrote this time must not stay beside what it wrote then.
		return got, sqlTx.Rollback()
	}
	return got, sqlTx.Commit()
}

// userError keeps what the function returned as it is.
type userError struct{ error }

func (db *DB) stepTxError(ctx, inner context.Context, limit time.Duration, err error) error {
	var user userError
	switch {
	case ctx.Err() == nil && inner.Err() != nil:
		return fmt.Errorf("%w (limit %v)", store.ErrStepTxTooLong, limit)
	case errors.As(err, &user):
		return user.error
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return db.translate(err)
}
