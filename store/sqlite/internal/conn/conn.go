// Package conn is a raw SQLite connection with prepared statements, and what
// belongs to it: parameters, rows, the file layer, a pool for readers, and the
// meaning of SQLite's error codes.
//
// It knows no tables. database/sql is not in between: its interface values and
// locks cost more than the statements.
//
// What always holds:
//
//   - A [Conn] and its statements are used by one goroutine at a time.
//   - A statement is prepared once per connection. Its bindings stay from one
//     use to the next, so every parameter must be bound before each use.
//   - The first error of a statement sticks until it is asked for again, so
//     that only Exec, Run and Done need to be checked.
package conn

import (
	"context"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// Conn is one raw connection with its prepared statements.
type Conn struct {
	raw   *sqlite3.Conn
	stmts map[string]*Stmt
	names map[string]string // types, queues, workers: few, in every row

	packed   map[commonOptions]string
	unpacked map[string]taskOptions
}

// maxRemembered bounds what a connection remembers of its rows.
const maxRemembered = 4096

// New wraps a connection.
func New(raw *sqlite3.Conn) *Conn {
	return &Conn{
		raw: raw, stmts: make(map[string]*Stmt), names: make(map[string]string),
		packed: make(map[commonOptions]string), unpacked: make(map[string]taskOptions),
	}
}

// Config says how Open opens a connection.
type Config struct {
	Name        string        // a file's name or a URI
	URI         bool          // Name is a URI
	Busy        time.Duration // how long a statement waits for a lock
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
		// Plans do not depend on the values of parameters: without this, SQLite
		// prepares a statement again when the parameter of its LIMIT changes.
		_, err = raw.Config(sqlite3.DBCONFIG_ENABLE_QPSG, true)
	}
	if err == nil {
		err = c.Script("PRAGMA temp_store=MEMORY; PRAGMA synchronous=" + cfg.Synchronous)
	}
	switch {
	case err != nil:
	case cfg.ReadOnly:
		// The file handle itself is not read-only: after a crash the first
		// reader may have to recover the log.
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

// Reset ends the statements that an error left in the middle of their rows.
func (c *Conn) Reset() {
	for _, s := range c.stmts {
		_ = s.raw.Reset() // repeats the statement's last error
	}
}

// Raw returns the driver's connection.
func (c *Conn) Raw() *sqlite3.Conn { return c.raw }

// Autocommit reports whether the connection has no open transaction. SQLite
// ends one by itself when a statement is interrupted, the disk is full or I/O
// fails; every further statement would then commit by itself.
func (c *Conn) Autocommit() bool { return c.raw.GetAutocommit() }

// HasMoved reports whether the connection's file is not the one that has its name
// now.
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

// Interruptible makes the connection's statements end with ctx, until the
// returned function is called. It is for readers: an interrupt inside a write
// rolls back the work of all callers.
func (c *Conn) Interruptible(ctx context.Context) (undo func()) {
	old := c.raw.SetInterrupt(ctx)
	return func() { c.raw.SetInterrupt(old) }
}

// Stmt returns the prepared statement for sql. It must not be asked for again
// while its rows are being read.
func (c *Conn) Stmt(sql string) *Stmt {
	if s := c.stmts[sql]; s != nil {
		s.err = nil
		return s
	}
	raw, _, err := c.raw.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return &Stmt{conn: c, err: err} // not kept: the schema may come later
	}
	s := &Stmt{conn: c, raw: raw, bound: make([]boundValue, raw.BindCount()+1)}
	c.stmts[sql] = s
	return s
}

// Steps returns how many steps the programs of its statements have made since
// the last call: a measure of how much was read and written that does not depend
// on the machine.
func (c *Conn) Steps() (n int) {
	for _, s := range c.stmts {
		n += s.raw.Status(sqlite3.STMTSTATUS_VM_STEP, true)
	}
	return n
}

// intern returns b as a string, the same one for equal bytes.
func (c *Conn) intern(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := c.names[string(b)]; ok {
		return s
	}
	if len(c.names) >= maxRemembered {
		clear(c.names)
	}
	s := string(b)
	c.names[s] = s
	return s
}
