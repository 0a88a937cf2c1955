// Package conn wraps a raw SQLite connection with prepared statements (package
// internal/sqlstmt). It also holds the file layer, a pool of readers, and the classification
// of SQLite's error codes.
//
// It knows no tables. Invariants: one goroutine at a time uses a [Conn] and its statements,
// and a statement is prepared once per connection.
package conn

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/goweaver/weaver/internal/sqlstmt"
)

// Conn is one raw connection with its prepared statements.
type Conn struct {
	raw   *sqlite3.Conn
	stmts map[string]*stmt
	cache *sqlstmt.Cache
}

// New wraps a connection.
func New(raw *sqlite3.Conn) *Conn {
	return &Conn{raw: raw, stmts: make(map[string]*stmt), cache: sqlstmt.NewCache()}
}

// Config configures Open.
type Config struct {
	Name        string        // a file's name or a URI
	URI         bool          // Name is a URI
	Busy        time.Duration // maximum wait of a statement for a lock
	Synchronous string        // the value of the pragma
	ReadOnly    bool          // statements that write fail
}

// Open opens a connection.
func Open(cfg Config) (*Conn, error) {
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE
	if cfg.URI {
		flags |= sqlite3.OPEN_URI
	}
	raw, err := sqlite3.OpenFlags(cfg.Name, flags)
	if err != nil {
		return nil, err
	}
	c := New(raw)
	err = raw.BusyTimeout(cfg.Busy)
	if err == nil {
		// Plans do not depend on the values of parameters. Without this, SQLite prepares a
		// statement again when the parameter of its LIMIT changes.
		_, err = raw.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true)
	}
	if err == nil {
		err = c.Script("PRAGMA temp_store=MEMORY; PRAGMA synchronous=" + cfg.Synchronous)
	}
	switch {
	case err != nil:
	case cfg.ReadOnly:
		// The file handle itself is not read-only: after a crash the first reader may have to
		// recover the log.
		err = c.Script("PRAGMA query_only=ON; PRAGMA cache_size=-8000")
	default:
		err = c.Script("PRAGMA cache_size=-32000")
	}
	if err != nil {
		_ = c.Close() // the first error has the cause
		return nil, err
	}
	return c, nil
}

// Close finalizes the statements and closes the connection.
func (c *Conn) Close() error {
	c.Forget()
	return c.raw.Close()
}

// Forget finalizes the statements.
func (c *Conn) Forget() {
	for _, s := range c.stmts {
		_ = s.raw.Close() // repeats the statement's last error
	}
	clear(c.stmts)
}

// Reset ends statements that an error left in the middle of their rows.
func (c *Conn) Reset() {
	for _, s := range c.stmts {
		_ = s.raw.Reset() // repeats the statement's last error
	}
}

// Raw returns the driver's connection.
func (c *Conn) Raw() *sqlite3.Conn { return c.raw }

// Autocommit reports whether the connection has no open transaction. SQLite ends a transaction
// by itself when a statement is interrupted, the disk is full or I/O fails. Every further
// statement would then commit by itself.
func (c *Conn) Autocommit() bool { return c.raw.GetAutocommit() }

// HasMoved reports whether another file now has the name of the connection's file.
func (c *Conn) HasMoved() bool {
	file, err := c.raw.FileControl("main", sqlite3.FCNTL_FILE_POINTER)
	if f, ok := file.(vfs.FileHasMoved); ok && err == nil {
		moved, err := f.HasMoved()
		return moved && err == nil
	}
	return false
}

// Script runs SQL without parameters.
func (c *Conn) Script(sql string) error { return c.raw.Exec(sql) }

// Pragma runs a statement and returns its only value.
func (c *Conn) Pragma(sql string) (string, error) {
	st, _, err := c.raw.Prepare(sql)
	if err != nil {
		return "", err
	}
	defer st.Close()
	var v string
	if st.Step() {
		v = st.ColumnText(0)
	}
	return v, st.Err()
}

// Interruptible makes the connection's statements end with ctx, until undo is called. It is
// for readers: an interrupt inside a write rolls back the work of all callers.
func (c *Conn) Interruptible(ctx context.Context) (undo func()) {
	old := c.raw.SetInterrupt(ctx)
	return func() { c.raw.SetInterrupt(old) }
}

// Stmt returns the prepared statement for sql. The caller must not request it again while it
// reads its rows.
func (c *Conn) Stmt(sql string) *sqlstmt.Stmt {
	if s := c.stmts[sql]; s != nil {
		return s.handle.Again()
	}
	raw, _, err := c.raw.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return sqlstmt.Failed(err) // not kept: the schema may be created later
	}
	s := &stmt{conn: c.raw, raw: raw}
	s.handle = sqlstmt.New(s, c.cache)
	c.stmts[sql] = s
	return s.handle
}

// Cache returns the connection's cache of row values.
func (c *Conn) Cache() *sqlstmt.Cache { return c.cache }

// Steps returns the number of virtual machine steps of its statements since the last call: a
// measure of the work that does not depend on the machine.
func (c *Conn) Steps() (n int) {
	for _, s := range c.stmts {
		n += s.raw.Status(sqlite3.STMTSTATUS_VM_STEP, true)
	}
	return n
}
