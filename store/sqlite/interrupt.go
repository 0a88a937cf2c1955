package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/goweaver/weaver/store/sqlite/internal/commit"
)

// within is the context of a statement in a transaction. It ends with the statement's own
// context or with the transaction's, which a user may not have passed to the statement. Only
// its Err makes SQLite stop.
type within struct {
	context.Context
	tx context.Context
}

// Err implements context.Context.
func (w within) Err() error {
	if err := w.Context.Err(); err != nil {
		return err
	}
	return w.tx.Err()
}

// bounded returns ctx, which also ends with the connection's transaction.
func (u *userConn) bounded(ctx context.Context) context.Context {
	if u.tx == nil || u.tx == ctx {
		return ctx
	}
	return within{ctx, u.tx}
}

// ExecContext implements driver.ExecerContext.
func (u *userConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = u.inTurn(ctx, query, func() error {
		if query != "" { // otherwise it is the driver's own call for a savepoint, recognized by its context
			ctx = u.bounded(ctx)
		}
		res, err = u.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
	return res, err
}

// PrepareContext implements driver.ConnPrepareContext.
func (u *userConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	st, err := u.Conn.(driver.ConnPrepareContext).PrepareContext(u.bounded(ctx), query)
	if err != nil {
		return nil, err
	}
	return userStmt{st, u, query}, nil
}

// userStmt is a statement of the user's pool.
type userStmt struct {
	driver.Stmt
	u     *userConn
	query string
}

// ExecContext implements driver.StmtExecContext.
func (s userStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	err = s.u.inTurn(ctx, s.query, func() error {
		res, err = s.Stmt.(driver.StmtExecContext).ExecContext(s.u.bounded(ctx), args)
		return err
	})
	return res, err
}

// QueryContext implements driver.StmtQueryContext.
func (s userStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.u.tx == nil {
		s.u.reads(commit.NewHolder("a query of DB()", true), false)
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(s.u.bounded(ctx), args)
}

// Close implements driver.Stmt. A statement that the user did not prepare is closed with its
// rows.
func (s userStmt) Close() error {
	if s.u.tx == nil {
		s.u.reads(nil, false)
	}
	return s.Stmt.Close()
}

// CheckNamedValue implements driver.NamedValueChecker.
func (s userStmt) CheckNamedValue(arg *driver.NamedValue) error {
	return s.Stmt.(driver.NamedValueChecker).CheckNamedValue(arg)
}
