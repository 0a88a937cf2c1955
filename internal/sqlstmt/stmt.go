package sqlstmt

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// Stmt is a prepared statement. Parameters count from 1, columns from 0. The first error
// sticks until the statement is requested again.
type Stmt struct {
	raw   Driver
	cache *Cache
	bound []boundValue
	err   error

	row  *Row // last returned by Row
	sink parameter
}

// New returns a handle of a prepared statement. Handles of one connection share a cache.
func New(raw Driver, cache *Cache) *Stmt {
	s := &Stmt{raw: raw, cache: cache, bound: make([]boundValue, raw.Params()+1)}
	s.sink.st = s
	return s
}

// Failed returns a handle whose every use returns err.
func Failed(err error) *Stmt {
	s := &Stmt{err: err}
	s.sink.st = s
	return s
}

// Again resets a statement for its next use, and returns it.
func (s *Stmt) Again() *Stmt {
	s.err = nil
	return s
}

// boundValue is the current value of a parameter. Most values of a batch repeat from row to
// row, and SQLite keeps bindings.
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

// Int binds an integer.
func (s *Stmt) Int(i int, v int64) *Stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundInt || b.i != v {
		b.kind, b.i, b.s = boundInt, v, ""
		s.err = s.raw.BindInt(i, v)
	}
	return s
}

// Null binds NULL.
func (s *Stmt) Null(i int) *Stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundNull {
		b.kind, b.s = boundNull, ""
		s.err = s.raw.BindNull(i)
	}
	return s
}

// Text binds a text that is likely to repeat.
func (s *Stmt) Text(i int, v string) *Stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundText || b.s != v {
		b.kind, b.s = boundText, v
		s.err = s.raw.BindText(i, v)
	}
	return s
}

// Undo binds the undo of a step: its number in task.UndoStates, or 0.
func (s *Stmt) Undo(i int, u task.UndoState) *Stmt {
	return s.Int(i, int64(slices.Index(task.UndoStates(), u)+1))
}

// OrNull binds NULL for the empty string.
func (s *Stmt) OrNull(i int, v string) *Stmt {
	if v == "" {
		return s.Null(i)
	}
	return s.Text(i, v)
}

// Bytes binds a text that is not likely to repeat; NULL when v is empty.
func (s *Stmt) Bytes(i int, v []byte) *Stmt {
	if len(v) == 0 {
		return s.Null(i)
	}
	if s.err != nil {
		return s
	}
	s.bound[i].kind = boundUnknown
	s.err = s.raw.BindRawText(i, v)
	return s
}

// Blob binds bytes.
func (s *Stmt) Blob(i int, v []byte) *Stmt {
	if s.err != nil {
		return s
	}
	s.bound[i].kind = boundUnknown
	s.err = s.raw.BindBlob(i, v)
	return s
}

// ID binds the ID of a task or job.
func (s *Stmt) ID(i int, v *task.ID) *Stmt { return s.Blob(i, v[:]) }

// IDOrNull binds NULL for the zero ID.
func (s *Stmt) IDOrNull(i int, v *task.ID) *Stmt {
	if v.IsZero() {
		return s.Null(i)
	}
	return s.Blob(i, v[:])
}

// Lease binds a lease ID, which is the same for all tasks of a claim.
func (s *Stmt) Lease(i int, v *task.LeaseID) *Stmt {
	if s.err != nil {
		return s
	}
	if b := &s.bound[i]; b.kind != boundID || b.id != *v {
		b.kind, b.s, b.id = boundID, "", *v
		s.err = s.raw.BindBlob(i, v[:])
	}
	return s
}

// Time binds an instant; NULL for the zero time.
func (s *Stmt) Time(i int, v time.Time) *Stmt {
	if v.IsZero() {
		return s.Null(i)
	}
	return s.Int(i, v.UnixMicro())
}

// Duration binds a duration, in microseconds.
func (s *Stmt) Duration(i int, v time.Duration) *Stmt { return s.Int(i, v.Microseconds()) }

// Bool binds 0 or 1.
func (s *Stmt) Bool(i int, v bool) *Stmt {
	if v {
		return s.Int(i, 1)
	}
	return s.Int(i, 0)
}

// Strings binds a map as JSON; NULL if it is empty.
func (s *Stmt) Strings(i int, v map[string]string) *Stmt {
	if len(v) == 0 {
		return s.Null(i)
	}
	return s.JSON(i, v)
}

// Error binds a recorded failure as JSON; NULL for nil.
func (s *Stmt) Error(i int, v *task.Error) *Stmt {
	if v == nil {
		return s.Null(i)
	}
	return s.JSON(i, v)
}

// Progress binds a report as JSON; NULL for nil.
func (s *Stmt) Progress(i int, v *task.Progress) *Stmt {
	if v == nil {
		return s.Null(i)
	}
	return s.JSON(i, v)
}

// JSON binds a value as JSON.
func (s *Stmt) JSON(i int, v any) *Stmt {
	if s.err != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return s
	}
	return s.Bytes(i, b)
}

// Exec runs the statement to its end and returns the number of changed rows.
func (s *Stmt) Exec() (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if err := s.raw.Exec(); err != nil {
		return 0, err
	}
	return s.raw.Changes()
}

// Run is Exec without the count.
func (s *Stmt) Run() error {
	if s.err != nil {
		return s.err
	}
	return s.raw.Exec()
}

// Send lets a driver that supports several statements in one round trip run this statement
// with the next one. The caller reads its rows before it binds anything again.
func (s *Stmt) Send() *Stmt {
	if d, ok := s.raw.(interface{ Send() error }); ok && s.err == nil {
		s.err = d.Send()
	}
	return s
}

// Next steps to the next row.
func (s *Stmt) Next() bool { return s.err == nil && s.raw.Step() }

// Done ends the reading of rows and returns its error. A data-modifying
// statement has done all its work before its first row.
func (s *Stmt) Done() error {
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

// Columns returns the number of columns of its rows.
func (s *Stmt) Columns() int { return s.raw.Columns() }

// One steps to the only row and reports whether there is one. A call of Done must follow.
func (s *Stmt) One() bool { return s.Next() }

// ColInt returns an integer column; 0 for NULL.
func (s *Stmt) ColInt(i int) int64 { return s.raw.Int(i) }

// ColBool returns a boolean column; false for NULL.
func (s *Stmt) ColBool(i int) bool { return s.raw.Int(i) != 0 }

// ColText returns a text column.
func (s *Stmt) ColText(i int) string { return string(s.raw.Raw(i)) }

// ColName returns a text column that many rows share. Equal texts are one string.
func (s *Stmt) ColName(i int) string { return s.cache.intern(s.raw.Raw(i)) }

// ColBytes returns a copy of a text column; nil for NULL.
func (s *Stmt) ColBytes(i int) []byte { return append([]byte(nil), s.raw.Raw(i)...) }

// ColTime returns an instant, zero for NULL.
func (s *Stmt) ColTime(i int) time.Time { return Instant(s.raw.Int(i)) }

// ColID returns an ID, zero for NULL.
func (s *Stmt) ColID(i int) (id task.ID) {
	copy(id[:], s.raw.Raw(i))
	return id
}

// ColIDs returns concatenated IDs.
func (s *Stmt) ColIDs(i int) []task.ID {
	return splitIDs(s.raw.Raw(i))
}

func splitIDs(b []byte) []task.ID {
	ids := make([]task.ID, len(b)/16)
	_, _ = binary.Decode(b[:len(ids)*16], binary.BigEndian, ids) // arrays of bytes: only the length could be wrong
	return ids
}

// ColOptions sets the fields of t from a column of packed options.
func (s *Stmt) ColOptions(i int, t *task.Task) {
	if err := s.cache.unpackOptions(s.raw.Raw(i), t); err != nil && s.err == nil {
		s.err = err
	}
}

// Instant converts stored microseconds to an instant; 0 is the zero time.
func Instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
