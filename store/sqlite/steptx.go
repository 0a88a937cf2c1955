package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/commit"
)

// StepTx implements store.Flow. The transaction is on one of DB's own connections, outside
// the group commit: a user's function must not run with the lead, because its panic or its
// hang would affect every caller. It waits for its turn to write like every transaction of DB.
// When it ends, the writer is next, and heartbeats are first there.
//
// The lease is checked again after that wait, and after the wait for transactions of other
// processes, before fn runs. Then the limit begins. When it passes, the running statement is
// interrupted, the transaction is rolled back and the turn is released, even if fn continues.
func (db *DB) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (store.RecordResult, error) {
	if rec.Step == nil {
		return store.RecordResult{}, fmt.Errorf("step transaction of task %v: there is no step to record", rec.Lease.Task)
	}
	// The connection first: waiters for the turn have theirs, and the pool may have no other.
	c, err := db.DB().Conn(ctx)
	if err != nil {
		return store.RecordResult{}, db.stepTxError(ctx, ctx, limit, err)
	}
	defer func() { _ = c.Close() }() // it goes back to the pool
	giveBack, err := db.writer.Turn(ctx, commit.NewHolder("a StepTx", limit > 0))
	if err != nil {
		return store.RecordResult{}, err
	}
	defer giveBack()
	guard := new(stepGuard)
	inner, cancel := context.WithCancelCause(context.WithValue(ctx, withTurn{}, guard))
	defer cancel(nil)
	defer context.AfterFunc(inner, giveBack)() // for an fn that continues

	tx, err := beginStepTx(inner, cancel, c, limit)
	if err != nil {
		return store.RecordResult{}, db.stepTxError(ctx, inner, limit, err)
	}
	limited := inner
	if limit > 0 {
		var done context.CancelFunc
		limited, done = context.WithTimeoutCause(inner, limit, store.ErrStepTxTooLong)
		defer done()
		defer context.AfterFunc(limited, func() { cancel(context.Cause(limited)) })()
	}
	got, err := db.stepTx(limited, ns, rec, tx, guard, fn)
	if err != nil {
		// Crash here, or anywhere before the commit: the function's writes and its value are
		// lost together, and the step runs again.
		_ = tx.Rollback() // the context's end may have done it
		return got, db.stepTxError(ctx, limited, limit, err)
	}
	return got, nil
}

// errOthersWrite ends the wait for the database's lock, which another process holds.
var errOthersWrite = errors.New("another process writes")

// leastBegin is the minimum timeout of a BEGIN.
const leastBegin = time.Second

// beginStepTx begins the transaction. It waits for other processes for at most about the
// limit, because heartbeats wait for it meanwhile. That wait does not count against fn.
func beginStepTx(ctx context.Context, cancel context.CancelCauseFunc, c *sql.Conn, limit time.Duration) (*sql.Tx, error) {
	if limit > 0 {
		defer time.AfterFunc(max(limit, leastBegin), func() { cancel(errOthersWrite) }).Stop()
	}
	return c.BeginTx(ctx, nil)
}

// stepTx runs the function first. The guard and the value come last, just before the commit.
func (db *DB) stepTx(ctx context.Context, ns string, rec store.Record, sqlTx *sql.Tx, guard *stepGuard, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (got store.RecordResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			_ = sqlTx.Rollback()
			panic(p) // the user's panic: the attempt reports it
		}
	}()
	err = db.inTx(ctx, ns, Tx(sqlTx), func(t *sqlstore.Tx) (err error) {
		got.Err, err = t.Lost(&rec.Lease)
		return err
	})
	if err = cmp.Or(err, got.Err); err != nil {
		return got, err
	}
	value, err := fn(ctx, Tx(sqlTx))
	if ended := guard.end(err); ended != nil {
		return got, ended
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
	err = db.inTx(ctx, ns, Tx(sqlTx), func(t *sqlstore.Tx) (err error) {
		repeated, err = t.Record(&rec, &got)
		return err
	})
	switch {
	case err != nil:
		return got, err
	case got.Err != nil:
		return got, got.Err
	case repeated:
		// An earlier try committed and its answer was lost: the function's new writes must not
		// be added to those of the earlier try.
		return got, sqlTx.Rollback()
	}
	if err = sqlTx.Commit(); err != nil {
		if _, kind := classify(err); errors.Is(kind, store.ErrRefused) {
			err = userError{fmt.Errorf("%w: %w", store.ErrStepTxRefused, err)}
		}
	}
	return got, err
}

// userError marks an error of the user's function, which is returned unchanged.
type userError struct{ error }

func (db *DB) stepTxError(ctx, inner context.Context, limit time.Duration, err error) error {
	var user userError
	switch {
	case ctx.Err() == nil && errors.Is(context.Cause(inner), errOthersWrite):
		return fmt.Errorf("%s: %w (%w)", db.path, store.ErrBusy, errOthersWrite)
	case ctx.Err() == nil && inner.Err() != nil:
		return fmt.Errorf("%w (limit %v): inside of it use its transaction and InStepTx; DB() and clients wait for it to end", store.ErrStepTxTooLong, limit)
	case errors.As(err, &user):
		return user.error
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return db.translate(err)
}
