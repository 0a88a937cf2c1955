package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/task"
)

const (
	sqlSetPath = `SELECT current_setting('search_path'), set_config('search_path', ?1, true), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, current_database()::text`
	sqlOldPath = `SELECT set_config('search_path', ?1, true)`
)

// inSQLTx runs fn in a caller's transaction of database/sql, which does not expose the driver's
// connection: each statement is a round trip.
func (db *DB) inSQLTx(ctx context.Context, ns string, tx *sql.Tx, fn func(*sqlstore.Tx) error) error {
	if db.closed.Load() {
		return store.ErrClosed
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT "+element); err != nil {
		return fmt.Errorf("join the transaction: %w", err)
	}
	c := &sqlConn{ctx: ctx, tx: tx, cache: sqlstmt.NewCache()}
	var path, database string
	var now int64
	begin := func() error {
		return tx.QueryRowContext(ctx, conn.Translate(sqlSetPath), c.with(searchPath(db.src.schema))...).Scan(&path, new(any), &now, &database)
	}
	if !db.server.direct() {
		c.options = unnamedOptions
	}
	err := begin()
	if err != nil && c.options != nil { // drivers other than pgx accept no options
		c.options = nil
		if _, e := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT "+element); e == nil {
			err = begin()
		}
	}
	if err == nil && database != db.src.config.Database {
		err = fmt.Errorf("%w: it is of the database %s, not of %s", store.ErrForeignTx, database, db.src.shown)
	}
	if err == nil {
		at := time.UnixMicro(now).UTC()
		if db.opts.clock != nil {
			at = db.opts.clock()
		}
		fx := sqlstore.NewEffects(ns, nil)
		err = fn(sqlstore.NewTx(callers{db.database(nil)}, c, &fx, at))
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, conn.Translate(sqlOldPath), c.with(path)...)
	}
	end := "RELEASE SAVEPOINT " + element
	if err != nil {
		end = "ROLLBACK TO SAVEPOINT " + element // also restores search_path
	}
	if _, e := tx.ExecContext(ctx, end); e != nil {
		return errors.Join(err, fmt.Errorf("leave the transaction, which can only be rolled back now: %w", e))
	}
	return err
}

// callers is the sqlstore.Database of a database/sql transaction, which only inserts new rows, one
// by one.
type callers struct{ sqlstore.Database }

// Tasks implements sqlstore.Locks.
func (callers) Tasks(*sqlstore.Tx, ...task.ID) (fresh bool, err error) { return false, nil }

// Job implements sqlstore.Locks.
func (callers) Job(*sqlstore.Tx, *task.ID) error { return nil }

// Key implements sqlstore.Locks.
func (callers) Key(*sqlstore.Tx, string) error { return nil }

// Name implements sqlstore.Locks.
func (callers) Name(*sqlstore.Tx, string) error { return nil }

// Graph implements sqlstore.Locks.
func (callers) Graph(*sqlstore.Tx) error { return nil }

// Passes implements sqlstore.Locks.
func (callers) Passes() bool { return true }

// sqlConn implements sqlstore.Conn on a caller's transaction.
type sqlConn struct {
	ctx     context.Context
	tx      *sql.Tx
	cache   *sqlstmt.Cache
	options []any // of pgx; they precede the arguments of each statement
}

// unnamedOptions make pgx prepare without names: behind a pooler another session may have the name.
var unnamedOptions = []any{pgx.QueryExecModeCacheDescribe}

// with returns a statement's arguments, preceded by the options.
func (c *sqlConn) with(args ...any) []any {
	if len(args) == 0 {
		return nil // a statement without arguments is never prepared
	}
	return append(slices.Clip(c.options), args...)
}

// Stmt implements sqlstore.Conn.
func (c *sqlConn) Stmt(sql string) *sqlstmt.Stmt {
	text := conn.Translate(sql)
	return sqlstmt.New(&sqlStmt{c: c, text: text, args: make([]any, conn.ParamCount(text))}, c.cache)
}

// StmtIDs implements sqlstore.ListConn. The list is in text form, which every driver passes
// through.
func (c *sqlConn) StmtIDs(sql string, i int, ids []task.ID) *sqlstmt.Stmt {
	var list strings.Builder
	for j := range ids {
		if j > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `"\\x%x"`, ids[j][:])
	}
	return c.Stmt(sql).Text(i, "{"+list.String()+"}")
}

// Cache implements sqlstore.Conn.
func (c *sqlConn) Cache() *sqlstmt.Cache { return c.cache }

// sqlStmt is a statement for one use.
type sqlStmt struct {
	c       *sqlConn
	text    string
	args    []any
	changed int64
	rows    *sql.Rows
	row     []any
	err     error
}

var _ sqlstmt.Driver = (*sqlStmt)(nil)

func (s *sqlStmt) bind(i int, v any) error {
	if i < 1 || i > len(s.args) {
		return fmt.Errorf("parameter %d: there are %d, in the statement %s", i, len(s.args), s.text)
	}
	s.args[i-1] = v
	return nil
}

func (s *sqlStmt) BindInt(i int, v int64) error      { return s.bind(i, v) }
func (s *sqlStmt) BindNull(i int) error              { return s.bind(i, nil) }
func (s *sqlStmt) BindText(i int, v string) error    { return s.bind(i, v) }
func (s *sqlStmt) BindRawText(i int, v []byte) error { return s.bind(i, string(v)) }
func (s *sqlStmt) BindBlob(i int, v []byte) error    { return s.bind(i, append([]byte{}, v...)) }
func (s *sqlStmt) Params() int                       { return len(s.args) }

// Columns implements sqlstmt.Driver. It is valid once there are rows.
func (s *sqlStmt) Columns() int { return len(s.row) }

// Exec implements sqlstmt.Driver.
func (s *sqlStmt) Exec() error {
	res, err := s.c.tx.ExecContext(s.c.ctx, s.text, s.c.with(s.args...)...)
	if err == nil {
		s.changed, err = res.RowsAffected()
	}
	return err
}

// Changes implements sqlstmt.Driver.
func (s *sqlStmt) Changes() (int, error) { return int(s.changed), nil }

// Step implements sqlstmt.Driver.
func (s *sqlStmt) Step() bool {
	if s.rows == nil && s.err == nil {
		if s.rows, s.err = s.c.tx.QueryContext(s.c.ctx, s.text, s.c.with(s.args...)...); s.err != nil {
			return false
		}
		names, err := s.rows.Columns()
		if s.err = err; err != nil {
			return false
		}
		s.row = make([]any, len(names))
	}
	if s.err != nil || !s.rows.Next() {
		return false
	}
	to := make([]any, len(s.row))
	for i := range to {
		s.row[i] = nil
		to[i] = &s.row[i]
	}
	s.err = s.rows.Scan(to...)
	return s.err == nil
}

// Err implements sqlstmt.Driver.
func (s *sqlStmt) Err() error {
	if s.err == nil && s.rows != nil {
		return s.rows.Err()
	}
	return s.err
}

// Reset implements sqlstmt.Driver.
func (s *sqlStmt) Reset() error {
	if s.rows == nil {
		return nil
	}
	err := s.rows.Close()
	s.rows = nil
	return err
}

// Int implements sqlstmt.Driver.
func (s *sqlStmt) Int(i int) int64 {
	switch v := s.row[i].(type) {
	case int64:
		return v
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// Raw implements sqlstmt.Driver.
func (s *sqlStmt) Raw(i int) []byte {
	switch v := s.row[i].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

// Row implements sqlstmt.Driver.
func (s *sqlStmt) Row(vals []any) error {
	for i := range vals {
		switch v := s.row[i].(type) {
		case string:
			vals[i] = []byte(v)
		case bool:
			vals[i] = s.Int(i)
		default:
			vals[i] = v
		}
	}
	return nil
}
