package postgres

import (
	"cmp"
	"context"
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

// StepTx implements store.StepTxer: fn's writes and the value of the step commit
// together. The function runs first; the guard and the value come last, just before
// the commit. fn gets a transaction of pgx (Handle of the store.Tx is a pgx.Tx).
// Crash here, or anywhere before the commit: the function's writes and its value are
// gone together, and the step runs again.
func (db *DB) StepTx(ctx context.Context, ns string, rec store.Record, limit time.Duration, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (got store.RecordResult, err error) {
	if db.closed.Load() {
		return got, db.translate(conn.ErrClosed)
	}
	limited := ctx
	if limit > 0 {
		var done context.CancelFunc
		limited, done = context.WithTimeoutCause(ctx, limit, store.ErrStepTxTooLong)
		defer done()
	}
	c, err := db.pool.Raw().Acquire(limited)
	if err != nil {
		return got, db.stepTxError(ctx, limited, limit, err)
	}
	defer c.Release()
	tx, err := c.BeginTx(limited, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return got, db.stepTxError(ctx, limited, limit, err)
	}
	defer func() {
		if err != nil || got.Err != nil {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = tx.Rollback(end) // it may have ended already
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic") // for the rollback
			panic(p)                  // the user's: the attempt reports it
		}
	}()
	if got, err = db.stepTx(limited, ns, rec, tx, fn); err != nil {
		return got, db.stepTxError(ctx, limited, limit, err)
	}
	return got, nil
}

func (db *DB) stepTx(ctx context.Context, ns string, rec store.Record, tx pgx.Tx, fn func(ctx context.Context, tx store.Tx) (json.RawMessage, error)) (got store.RecordResult, err error) {
	err = db.inTx(ctx, ns, tx, func(t *sqlstore.Tx) (err error) {
		got.Err, err = t.Lost(&rec.Lease)
		return err
	})
	if err = cmp.Or(err, got.Err); err != nil {
		return got, err
	}
	value, err := fn(ctx, Tx(tx))
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
	err = db.inTx(ctx, ns, tx, func(t *sqlstore.Tx) (err error) {
		repeated, err = t.Record(&rec, &got)
		return err
	})
	switch {
	case err != nil:
		return got, err
	case got.Err != nil:
		return got, got.Err
	case repeated:
		// An earlier try committed and its answer was lost: what the function wrote
		// this time must not stay beside what it wrote then.
		return got, tx.Rollback(ctx)
	}
	if err = tx.Commit(ctx); err != nil {
		_, kind := conn.Classify(err)
		switch {
		case tx.Conn().IsClosed() && !pgconn.SafeToRetry(err):
			err = fmt.Errorf("%w: %w", store.ErrUnknown, err) // the engine records the step again, and is told
		case errors.Is(kind, store.ErrRefused):
			err = userError{fmt.Errorf("%w: %w", store.ErrStepTxRefused, err)}
		}
	}
	return got, err
}

// userError keeps what the function returned as it is.
type userError struct{ error }

func (db *DB) stepTxError(ctx, limited context.Context, limit time.Duration, err error) error {
	var user userError
	switch {
	case errors.Is(err, store.ErrUnknown): // it may be committed, whatever ended meanwhile
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
