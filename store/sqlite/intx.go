package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
)

// Tx wraps a transaction of DB.DB, so that an enqueue joins it: the tasks and the caller's own
// writes commit together or not at all. Begin it with BeginTx of DB.DB, which takes the write
// lock at once.
func Tx(tx *sql.Tx) store.Tx { return callerTx{tx} }

// Tx is the function Tx as a method, for programs that also run on PostgreSQL, whose DB has
// the same method.
func (db *DB) Tx(tx *sql.Tx) store.Tx { return Tx(tx) }

type callerTx struct{ tx *sql.Tx }

// Driver implements store.Tx.
func (callerTx) Driver() string { return "sqlite" }

// Handle implements store.Tx.
func (t callerTx) Handle() any { return t.tx }

// inTx runs fn in a caller's transaction, in its own savepoint. No context reaches the
// statements: an interrupt would roll back the caller's whole transaction, and its next
// statements would commit by themselves.
func (db *DB) inTx(ctx context.Context, ns string, in store.Tx, fn func(*sqlstore.Tx) error) error {
	ct, ok := in.(callerTx)
	if !ok {
		return fmt.Errorf("%w: it is of %s, this store is sqlite", store.ErrForeignTx, in.Driver())
	}
	if ct.tx == nil {
		return fmt.Errorf("sqlite.Tx(nil): %w", store.ErrNilTx)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx = context.WithoutCancel(ctx)
	if err := db.recognise(ctx, ct.tx); err != nil {
		return err
	}
	if _, err := ct.tx.ExecContext(ctx, sqlstore.BeginElement); err != nil {
		return db.translateTx(err)
	}
	err := db.call(ctx, ct.tx, func(u *userConn) error {
		if u.readOnly {
			return errReadOnlyTx
		}
		fx := sqlstore.NewEffects(ns, nil)
		err := fn(sqlstore.NewTx(database{db: db}, u.conn, &fx, db.clock.Now()))
		if err == nil && !db.memory {
			err = db.clock.keep(u.conn)
		}
		if err == nil {
			u.pending = append(u.pending, &fx) // here, under database/sql's lock
		}
		return err
	})
	if err != nil {
		// If this fails too, the transaction is lost, and its commit will fail.
		_, _ = ct.tx.ExecContext(ctx, sqlstore.UndoElement)
		_, _ = ct.tx.ExecContext(ctx, sqlstore.ReleaseElement)
		return db.translateTx(err)
	}
	_, err = ct.tx.ExecContext(ctx, sqlstore.ReleaseElement)
	return db.translateTx(err)
}

// errReadOnlyTx is the error of an enqueue in a transaction that cannot write.
var errReadOnlyTx = errors.New("the transaction is read-only: begin it without ReadOnly in its sql.TxOptions")

// recognise checks that a transaction belongs to this database.
func (db *DB) recognise(ctx context.Context, tx *sql.Tx) error {
	var token string
	err := tx.QueryRowContext(ctx, "SELECT "+fnToken+"()").Scan(&token)
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("the transaction has ended already: %w", err)
	case err != nil:
		return fmt.Errorf("%w: it does not know this store's connections (begin it with the store's DB()): %w", store.ErrForeignTx, err)
	case token == db.token+noTransaction:
		// A savepoint would begin another transaction, and its release would commit it.
		return fmt.Errorf("%w: the database rolled it back (a full disk, or its own ROLLBACK)", store.ErrRestartTx)
	case token != db.token:
		return fmt.Errorf("%w: it is of another database opened by this program, not of %s", store.ErrForeignTx, db.path)
	}
	return nil
}

// call runs fn on the connection of a transaction.
func (db *DB) call(ctx context.Context, tx *sql.Tx, fn func(*userConn) error) error {
	var failed error
	id := db.calls.add(func(u *userConn) error {
		failed = u.guarded(fn)
		return failed
	})
	defer db.calls.remove(id)
	err := tx.QueryRowContext(ctx, "SELECT "+fnCall+"(?)", id).Scan(new(any))
	if failed != nil {
		return failed // the function's text went through SQL; this is the error itself
	}
	return err
}

// guarded runs fn without the caller's context and catches its panic, which must not cross the
// database's frames.
func (u *userConn) guarded(fn func(*userConn) error) (err error) {
	defer u.conn.Interruptible(context.Background())()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a store operation: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			u.conn.Reset()
		}
	}()
	return fn(u)
}

// translateTx is translate for a caller's transaction. SQLite cannot wait for a lock in a
// transaction that has read before, so the caller must begin it again.
func (db *DB) translateTx(err error) error {
	if err != nil && errors.Is(err, sqlite3.BUSY) {
		return fmt.Errorf("%s: %w (begin it immediate, as DB() does, so that it need not wait in its middle): %w", db.path, store.ErrRestartTx, err)
	}
	return db.translate(err)
}
