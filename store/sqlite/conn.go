package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/goweaver/weaver/task"
)

// conn is one raw connection with its prepared statements. Like the
// connection it is used by one goroutine at a time. database/sql is not in
// between: its interface values and locks cost more than the statements.
type conn struct {
	raw   *sqlite3.Conn
	stmts map[string]*stmt
	names map[string]string // types, queues, workers: few, in every row

	packed   map[commonOptions]string
	unpacked map[string]taskOptions
}

func newConn(raw *sqlite3.Conn) *conn {
	return &conn{
		raw: raw, stmts: make(map[string]*stmt), names: make(map[string]string),
		packed: make(map[commonOptions]string), unpacked: make(map[string]taskOptions),
	}
}

// close finalizes the statements and closes the connection.
func (c *conn) close() error {
	c.forget()
	return c.raw.Close()
}

// forget finalizes the statements.
func (c *conn) forget() {
	for _, s := range c.stmts {
		_ = s.raw.Close() // reports the statement's last error once more
	}
	clear(c.stmts)
}

// script runs SQL without parameters.
func (c *conn) script(sql string) error { return c.raw.Exec(sql) }

// stmt returns the prepared statement for sql. It must not be asked for again
// while its rows are being read.
func (c *conn) stmt(sql string) *stmt {
	if s := c.stmts[sql]; s != nil {
		s.err = nil
		return s
	}
	raw, _, err := c.raw.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return &stmt{c: c, err: err} // not kept: the schema may come later
	}
	s := &stmt{c: c, raw: raw, bound: make([]boundValue, raw.BindCount()+1)}
	c.stmts[sql] = s
	return s
}

// intern returns b as a string, the same one for equal bytes.
func (c *conn) intern(b []byte) string {
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

// stmt is a prepared statement. Parameters count from 1, columns from 0. The
// first error sticks until the statement is asked for again, so that only
// exec, next and done need to be checked.
type stmt struct {
	c     *conn
	raw   *sqlite3.Stmt
	bound []boundValue
	err   error

	values *rowValues // of the last row, for statements of many columns
}

// boundValue remembers what a parameter holds: most values of a batch are the
// same from row to row, and SQLite keeps bindings.
type boundValue struct {
	kind uint8
	i    int64
	s    string
	id   [16]byte
}

const (
	boundUnknown uint8 = iota
	boundNull
	boundInt
	boundText
	boundID
)

func (s *stmt) int(i int, v int64) *stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundInt || b.i != v {
		b.kind, b.i, b.s = boundInt, v, ""
		s.err = s.raw.BindInt64(i, v)
	}
	return s
}

func (s *stmt) null(i int) *stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundNull {
		b.kind, b.s = boundNull, ""
		s.err = s.raw.BindNull(i)
	}
	return s
}

func (s *stmt) text(i int, v string) *stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundText || b.s != v {
		b.kind, b.s = boundText, v
		s.err = s.raw.BindText(i, v)
	}
	return s
}

// orNull binds NULL for the empty string.
func (s *stmt) orNull(i int, v string) *stmt {
	if v == "" {
		return s.null(i)
	}
	return s.text(i, v)
}

// bytes binds text that need not be remembered; NULL when v is empty.
func (s *stmt) bytes(i int, v []byte) *stmt {
	if len(v) == 0 {
		return s.null(i)
	}
	if s.err != nil {
		return s
	}
	s.bound[i].kind = boundUnknown
	s.err = s.raw.BindRawText(i, v)
	return s
}

func (s *stmt) blob(i int, v []byte) *stmt {
	if s.err != nil {
		return s
	}
	s.bound[i].kind = boundUnknown
	s.err = s.raw.BindBlob(i, v)
	return s
}

func (s *stmt) id(i int, v *task.ID) *stmt { return s.blob(i, v[:]) }

// idOrNull binds NULL for the zero ID.
func (s *stmt) idOrNull(i int, v *task.ID) *stmt {
	if v.IsZero() {
		return s.null(i)
	}
	return s.blob(i, v[:])
}

// lease binds a lease id, which is the same for all tasks of a claim.
func (s *stmt) lease(i int, v *task.LeaseID) *stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundID || b.id != *v {
		b.kind, b.s, b.id = boundID, "", *v
		s.err = s.raw.BindBlob(i, v[:])
	}
	return s
}

// time binds an instant; NULL for the zero one.
func (s *stmt) time(i int, v time.Time) *stmt {
	if v.IsZero() {
		return s.null(i)
	}
	return s.int(i, v.UnixMicro())
}

func (s *stmt) duration(i int, v time.Duration) *stmt { return s.int(i, v.Microseconds()) }

func (s *stmt) bool(i int, v bool) *stmt {
	if v {
		return s.int(i, 1)
	}
	return s.int(i, 0)
}

// strings binds a map as JSON; NULL for an empty one.
func (s *stmt) strings(i int, v map[string]string) *stmt {
	if len(v) == 0 {
		return s.null(i)
	}
	return s.json(i, v)
}

// error binds a recorded failure as JSON; NULL for none.
func (s *stmt) error(i int, v *task.Error) *stmt {
	if v == nil {
		return s.null(i)
	}
	return s.json(i, v)
}

// progress binds a report as JSON; NULL for none.
func (s *stmt) progress(i int, v *task.Progress) *stmt {
	if v == nil {
		return s.null(i)
	}
	return s.json(i, v)
}

// json binds a value as JSON.
func (s *stmt) json(i int, v any) *stmt {
	if s.err != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return s
	}
	return s.bytes(i, b)
}

// exec runs the statement to its end and returns how many rows it changed.
func (s *stmt) exec() (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.raw.Exec(); err != nil {
		return 0, err
	}
	return int(s.c.raw.Changes()), nil
}

// run is exec for those who do not count.
func (s *stmt) run() error {
	if s.err != nil {
		return s.err
	}
	return s.raw.Exec()
}

// next steps to the next row.
func (s *stmt) next() bool { return s.err == nil && s.raw.Step() }

// done ends the reading of rows and returns its error. A data-modifying
// statement has done all its work before its first row.
func (s *stmt) done() error {
	if s.raw == nil {
		return s.err
	}
	err := s.raw.Err()
	if rerr := s.raw.Reset(); err == nil {
		err = rerr
	}
	if s.err != nil {
		return s.err
	}
	return err
}

// one steps to the only row and reports whether there is one; done must
// follow.
func (s *stmt) one() bool { return s.next() }

func (s *stmt) colInt(i int) int64      { return s.raw.ColumnInt64(i) }
func (s *stmt) colBool(i int) bool      { return s.raw.ColumnInt64(i) != 0 }
func (s *stmt) colText(i int) string    { return string(s.raw.ColumnRawText(i)) }
func (s *stmt) colName(i int) string    { return s.c.intern(s.raw.ColumnRawText(i)) }
func (s *stmt) colBytes(i int) []byte   { return append([]byte(nil), s.raw.ColumnRawText(i)...) }
func (s *stmt) isNull(i int) bool       { return s.raw.ColumnType(i) == sqlite3.NULL }
func (s *stmt) colMicros(i int) timeCol { return timeCol(s.raw.ColumnInt64(i)) }

// timeCol is an instant as stored; 0 and NULL are none.
type timeCol int64

func (t timeCol) time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

func (s *stmt) colTime(i int) time.Time { return s.colMicros(i).time() }

func (s *stmt) colID(i int) (id task.ID) {
	copy(id[:], s.raw.ColumnRawBlob(i))
	return id
}

func (s *stmt) colLease(i int) (id task.LeaseID) {
	copy(id[:], s.raw.ColumnRawBlob(i))
	return id
}

// colJSON decodes a column into v and reports whether it held anything.
func (s *stmt) colJSON(i int, v any) bool {
	raw := s.raw.ColumnRawText(i)
	if len(raw) == 0 {
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil && s.err == nil {
		s.err = err
	}
	return true
}

func (s *stmt) colError(i int) *task.Error {
	var e task.Error
	if !s.colJSON(i, &e) {
		return nil
	}
	return &e
}

func (s *stmt) colMap(i int) (m map[string]string) {
	s.colJSON(i, &m)
	return m
}

// interruptible makes the connection's statements end with ctx, until the
// returned function is called. For readers only: an interrupt inside a write
// rolls back everybody's work.
func (c *conn) interruptible(ctx context.Context) (undo func()) {
	old := c.raw.SetInterrupt(ctx)
	return func() { c.raw.SetInterrupt(old) }
}
