package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
)

// stepSQLTx is the transaction of a StepTx whose function takes a *sql.Tx. The store writes on the
// connection below it.
type stepSQLTx struct {
	tx   *sql.Tx
	conn *sql.Conn
}

// Driver implements store.Tx.
func (stepSQLTx) Driver() string { return "postgres" }

// Handle implements store.Tx.
func (t stepSQLTx) Handle() any { return t.tx }

// beginSQL begins the transaction of a StepTx on a connection of the database/sql pool.
func (db *DB) beginSQL(ctx context.Context, guard *stepGuard) (*stepEnd, error) {
	c, err := db.steps.of(db.pool.Raw()).Conn(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := c.BeginTx(context.WithValue(ctx, guarded{}, guard), nil)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	handle := stepSQLTx{tx, c}
	return &stepEnd{
		handle:   handle,
		run:      handle.run,
		commit:   func(context.Context) error { return tx.Commit() },
		rollback: func() { _ = tx.Rollback() }, // the end of the context may already have rolled it back
		release:  func() { _ = c.Close() },     // returns it to the pool
	}, nil
}

// run calls fn with the connection while no statement of the function uses it.
func (t stepSQLTx) run(fn func(*stepConn) error) error {
	return t.conn.Raw(func(c any) error { return fn(c.(*stepConn)) })
}

// inStepSQL runs fn in the transaction of a StepTx.
func (db *DB) inStepSQL(ctx context.Context, ns string, tx stepSQLTx, due *bool, fn func(*sqlstore.Tx) error) error {
	return tx.run(func(c *stepConn) error {
		if c.open() {
			return errors.New("rows of a query are open, and a connection of PostgreSQL does one thing at a time: read them to the end, or close them, and enqueue then")
		}
		err := db.inStep(ctx, ns, c, fn)
		if err == nil && *due {
			err = db.notifyIn(ctx, ns, c.tx)
		}
		return err
	})
}

// stepPool is the database/sql pool for StepTx.
type stepPool struct {
	once sync.Once
	db   *sql.DB
}

func (p *stepPool) of(pool *pgxpool.Pool) *sql.DB {
	p.once.Do(func() {
		p.db = sql.OpenDB(stepConnector{stdlib.GetPoolConnector(pool)})
		p.db.SetMaxIdleConns(0)
	})
	return p.db
}

type stepConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c stepConnector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's connection is a %T", opened), opened.Close())
	}
	return &stepConn{Conn: inner}, nil
}

// guarded is the context key of the transaction's *stepGuard in BeginTx.
type guarded struct{}

// stepConn is a connection with the transaction of a StepTx.
type stepConn struct {
	*stdlib.Conn
	tx    pgx.Tx          // nil once it has ended
	ctx   context.Context // the transaction's context
	guard *stepGuard
	rows  *stepRows // of the last query
}

// BeginTx implements driver.ConnBeginTx.
func (c *stepConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.Conn().BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	c.tx, c.ctx, c.guard = tx, ctx, ctx.Value(guarded{}).(*stepGuard)
	return stepDriverTx{c}, nil
}

// open reports whether a query has unread rows.
func (c *stepConn) open() bool { return c.rows != nil && !c.rows.closed }

// closeRows closes the rows that the function left open.
func (c *stepConn) closeRows() {
	if c.open() {
		_ = c.rows.Close() // the next statement reports a broken connection
	}
}

// ExecContext implements driver.ExecerContext.
func (c *stepConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.may(query); err != nil {
		return nil, err
	}
	ctx, done := c.within(ctx)
	defer done()
	return c.Conn.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *stepConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.may(query); err != nil {
		return nil, err
	}
	ctx, done := c.within(ctx)
	rows, err := c.Conn.QueryContext(ctx, query, args)
	inner, ok := rows.(*stdlib.Rows)
	if err != nil || !ok {
		done()
		return rows, err
	}
	c.rows = &stepRows{Rows: inner, done: done}
	return c.rows, nil
}

// within returns a context for a statement that also ends with the transaction.
func (c *stepConn) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// may rejects a statement that ends the transaction or runs while rows are open.
func (c *stepConn) may(query string) error {
	if err := c.guard.statement(query); err != nil {
		return err
	}
	if c.open() {
		return errors.New("rows of another query are open, and a connection of PostgreSQL does one thing at a time: read them to the end, or close them, first")
	}
	return nil
}

// PrepareContext implements driver.ConnPrepareContext. The pool's exec mode decides how statements
// run: it prepares them, and names them if names are safe on the connection.
func (c *stepConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return stepStmt{c, query}, c.guard.statement(query)
}

type stepStmt struct {
	c     *stepConn
	query string
}

// Close implements driver.Stmt.
func (stepStmt) Close() error { return nil }

// NumInput implements driver.Stmt: the server checks the count.
func (stepStmt) NumInput() int { return -1 }

// Exec implements driver.Stmt.
func (stepStmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query implements driver.Stmt.
func (stepStmt) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }

// ExecContext implements driver.StmtExecContext.
func (s stepStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.c.ExecContext(ctx, s.query, args)
}

// QueryContext implements driver.StmtQueryContext.
func (s stepStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.c.QueryContext(ctx, s.query, args)
}

// CheckNamedValue implements driver.NamedValueChecker.
func (s stepStmt) CheckNamedValue(v *driver.NamedValue) error { return s.c.CheckNamedValue(v) }

// stepRows records whether it is closed.
type stepRows struct {
	*stdlib.Rows
	closed bool
	done   func()
}

// Close implements driver.Rows.
func (r *stepRows) Close() error {
	r.closed = true
	defer r.done()
	return r.Rows.Close()
}

// stepDriverTx is the driver's transaction, which database/sql ends.
type stepDriverTx struct{ c *stepConn }

// Commit implements driver.Tx. It rejects a commit by the function and rolls back.
func (t stepDriverTx) Commit() error {
	t.c.closeRows()
	tx := t.c.tx
	t.c.tx = nil
	if err := t.c.guard.commit(); err != nil {
		return errors.Join(err, rollbackStep(t.c.ctx, tx))
	}
	return tx.Commit(t.c.ctx)
}

// Rollback implements driver.Tx.
func (t stepDriverTx) Rollback() error {
	t.c.closeRows()
	t.c.guard.rollback()
	tx := t.c.tx
	t.c.tx = nil
	return rollbackStep(t.c.ctx, tx)
}

// rollbackStep rolls back even if the context has ended.
func rollbackStep(ctx context.Context, tx pgx.Tx) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	return tx.Rollback(end)
}

var (
	_ store.Tx                  = stepSQLTx{}
	_ driver.ExecerContext      = (*stepConn)(nil)
	_ driver.QueryerContext     = (*stepConn)(nil)
	_ driver.ConnPrepareContext = (*stepConn)(nil)
	_ driver.ConnBeginTx        = (*stepConn)(nil)
	_ driver.SessionResetter    = (*stepConn)(nil)
	_ driver.NamedValueChecker  = (*stepConn)(nil)
)
