package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/goweaver/weaver/store/sqlite/internal/commit"

	"github.com/ncruces/go-sqlite3"
)

// within is the context of a statement in a transaction: it ends with the
// statement's own context, or with the transaction's, which a user need not
// have given to the statement. Only Err asks SQLite to stop.
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

// bounded returns ctx, ended by the end of the connection's transaction too.
func (u *userConn) bounded(ctx context.Context) context.Context {
	if u.tx == nil || u.tx == ctx {
		return ctx
	}
	return within{ctx, u.tx}
}

// ExecContext implements driver.ExecerContext.
func (u *userConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	err = u.inTurn(ctx, query, func() error {
		if query != "" { // else it is the driver's own way to a savepoint, known by its context
			ctx = u.bounded(ctx)
		}
		res, err = u.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
		return err
	})
	return res, err
}

// inTurn runs a statement that may write. Outside a transaction that has the
// turn it waits for its own turn, not for the database's lock, and keeps it as
// long as the connection keeps the lock, as after a statement BEGIN IMMEDIATE.
// A VACUUM takes none: it is long, and with INTO, as a backup, only reads.
func (u *userConn) inTurn(ctx context.Context, query string, statement func() error) error {
	if u.Raw().GetAutocommit() {
		if err := u.db.checkPlace(); err != nil {
			return err
		}
	}
	if u.end == nil && u.step == nil && !u.readOnly && !isVacuum(query) {
		h := commit.NewHolder("a statement of DB()", false)
		giveBack, err := u.db.writer.Turn(ctx, h)
		if err != nil {
			return u.db.translate(err)
		}
		u.end = giveBack
	}
	err := u.step.watch(statement)
	if u.end != nil && u.Raw().TxnState("main") != sqlite3.TXN_WRITE { // it is over, or a full disk or its own ROLLBACK ended it
		u.end()
		u.end = nil
	}
	return err
}

func isVacuum(query string) bool {
	const verb = "VACUUM"
	query = strings.TrimSpace(query)
	return len(query) >= len(verb) && strings.EqualFold(query[:len(verb)], verb)
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

// Close implements driver.Stmt. A statement that the user did not prepare is
// closed with its rows.
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
