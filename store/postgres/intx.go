package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
)

// Tx wraps a transaction of pgx, so that an enqueue joins it: the tasks and the caller's own writes
// commit together or not at all. The transaction may belong to any pool or connection of the
// store's database.
func Tx(tx pgx.Tx) store.Tx { return callerTx{tx} }

// SQLTx wraps a transaction of database/sql. Its driver must be one for PostgreSQL that accepts $1
// as a parameter (pgx's stdlib, lib/pq).
func SQLTx(tx *sql.Tx) store.Tx { return callerSQLTx{tx} }

// Tx is SQLTx, for programs that also run on SQLite: its DB has the same method.
func (db *DB) Tx(tx *sql.Tx) store.Tx { return SQLTx(tx) }

type callerTx struct{ tx pgx.Tx }

// Driver implements store.Tx.
func (callerTx) Driver() string { return "postgres" }

// Handle implements store.Tx.
func (t callerTx) Handle() any { return t.tx }

type callerSQLTx struct{ tx *sql.Tx }

// Driver implements store.Tx.
func (callerSQLTx) Driver() string { return "postgres" }

// Handle implements store.Tx.
func (t callerSQLTx) Handle() any { return t.tx }

// InTx implements sqlstore.Database.
func (d database) InTx(ctx context.Context, ns string, in store.Tx, fn func(*sqlstore.Tx) error) error {
	due := false
	fn = announcing(&due, fn)
	switch in := in.(type) {
	case callerTx:
		if v := reflect.ValueOf(in.tx); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("postgres.Tx(nil): %w", store.ErrNilTx)
		}
		err := d.db.inTx(ctx, ns, in.tx, fn)
		if err == nil && due {
			err = d.db.notifyIn(ctx, ns, in.tx)
		}
		return d.db.translate(err)
	case stepSQLTx:
		return d.db.translate(d.db.inStepSQL(ctx, ns, in, &due, fn))
	case callerSQLTx:
		if in.tx == nil {
			return fmt.Errorf("postgres.SQLTx(nil): %w", store.ErrNilTx)
		}
		err := d.db.inSQLTx(ctx, ns, in.tx, fn)
		if err == nil && due {
			err = d.db.notifyInSQL(ctx, ns, in.tx)
		}
		return d.db.translate(err)
	}
	return fmt.Errorf("%w: it is of %s, this store is postgres", store.ErrForeignTx, in.Driver())
}

// element is the name of the savepoint around an operation in a caller's transaction.
const element = "weaver"

// inTx runs fn in a caller's transaction, in a savepoint of its own: an error leaves the caller's
// transaction unchanged.
func (db *DB) inTx(ctx context.Context, ns string, tx pgx.Tx, fn func(*sqlstore.Tx) error) (err error) {
	if db.closed.Load() {
		return store.ErrClosed
	}
	raw := tx.Conn()
	if raw == nil || raw.IsClosed() {
		return errors.New("the transaction has ended: begin one and use it before it is committed or rolled back")
	}
	if err := db.sameDatabase(raw); err != nil {
		return err
	}
	c := db.pool.Of(raw.PgConn())
	if err := c.Join(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Leave()) }()
	if err := c.Savepoint(element); err != nil {
		return err
	}
	fx := sqlstore.NewEffects(ns, nil)
	now, err := c.Now()
	if err == nil {
		err = fn(sqlstore.NewTx(db.database(c), c, &fx, now))
	}
	if err == nil {
		err = c.Flush()
	}
	if err != nil {
		return errors.Join(err, c.RollbackTo(element))
	}
	return c.Release(element)
}

// sameDatabase rejects a connection to another database.
func (db *DB) sameDatabase(c *pgx.Conn) error {
	got, want := c.Config(), db.src.config
	if got.Database != want.Database {
		return fmt.Errorf("%w: it is of the database %s, not of %s", store.ErrForeignTx, got.Database, db.src.shown)
	}
	return nil
}
