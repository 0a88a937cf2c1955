package sqlstmt

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/jsonnumber"
	"github.com/goweaver/weaver/task"
)

// Row is a whole row, read in one call into the driver, which is cheaper than a call for each
// of many columns. Its bytes belong to the driver and are valid until the statement steps on.
// An error in a value becomes the statement's error.
type Row struct {
	st   *Stmt
	vals []any
}

// Row loads the current row.
func (s *Stmt) Row() *Row {
	if s.row == nil {
		s.row = &Row{st: s, vals: make([]any, s.raw.Columns())}
	}
	if err := s.raw.Row(s.row.vals); err != nil && s.err == nil {
		s.err = err
	}
	return s.row
}

// Column is one column of a row type: its SQL expression, and a function that stores its
// value.
type Column[T any] struct {
	Name string
	Scan func(v *T, r *Row, i int)
}

// Col returns a column.
func Col[T any](name string, scan func(v *T, r *Row, i int)) Column[T] { return Column[T]{name, scan} }

// Columns are the columns of a row type, so that a statement selects exactly the columns that
// are scanned.
type Columns[T any] []Column[T]

// List returns the columns for a SELECT.
func (cs Columns[T]) List() string {
	names := make([]string, len(cs))
	for i := range cs {
		names[i] = cs[i].Name
	}
	return strings.Join(names, ", ")
}

// Scan sets v from the row's columns from first on.
func (cs Columns[T]) Scan(r *Row, first int, v *T) {
	for i := range cs {
		cs[i].Scan(v, r, first+i)
	}
}

// All reads all rows of a statement.
func (cs Columns[T]) All(st *Stmt) ([]T, error) {
	var list []T
	for st.Next() {
		list = append(list, *new(T))
		cs.Scan(st.Row(), 0, &list[len(list)-1])
	}
	return list, st.Done()
}

// One reads the only row of a statement, or returns nil.
func (cs Columns[T]) One(st *Stmt) (*T, error) {
	if !st.Next() {
		return nil, st.Done()
	}
	v := new(T)
	cs.Scan(st.Row(), 0, v)
	return v, st.Done()
}

func (r *Row) fail(err error) {
	if err != nil && r.st.err == nil {
		r.st.err = err
	}
}

// Int returns an integer; 0 for NULL.
func (r *Row) Int(i int) int64 {
	v, _ := r.vals[i].(int64)
	return v
}

// Null reports whether a column is NULL.
func (r *Row) Null(i int) bool { return r.vals[i] == nil }

// Bool returns a boolean; false for NULL.
func (r *Row) Bool(i int) bool { return r.Int(i) != 0 }

// Raw returns the bytes of a text or blob, nil for NULL. They are valid until the statement
// steps on.
func (r *Row) Raw(i int) []byte {
	v, _ := r.vals[i].([]byte)
	return v
}

// Text returns a text.
func (r *Row) Text(i int) string { return string(r.Raw(i)) }

// Name returns a text that many rows share. Equal texts are one string.
func (r *Row) Name(i int) string { return r.st.cache.intern(r.Raw(i)) }

// Time returns an instant, zero for NULL.
func (r *Row) Time(i int) time.Time { return Instant(r.Int(i)) }

// Duration returns a duration; 0 for NULL.
func (r *Row) Duration(i int) time.Duration { return time.Duration(r.Int(i)) * time.Microsecond }

// ID returns the ID of a task or job, zero for NULL.
func (r *Row) ID(i int) (id task.ID) {
	copy(id[:], r.Raw(i))
	return id
}

// IDs returns concatenated IDs.
func (r *Row) IDs(i int) []task.ID { return splitIDs(r.Raw(i)) }

// Lease returns a lease ID, zero for NULL.
func (r *Row) Lease(i int) (id task.LeaseID) {
	copy(id[:], r.Raw(i))
	return id
}

// Bytes copies a text; nil for NULL.
func (r *Row) Bytes(i int) json.RawMessage { return append(json.RawMessage(nil), r.Raw(i)...) }

// JSON decodes a text into v and reports whether there was one.
func (r *Row) JSON(i int, v any) bool {
	raw := r.Raw(i)
	if len(raw) == 0 {
		return false
	}
	r.fail(json.Unmarshal(raw, v))
	return true
}

// Reason decodes the reason of a decision. Numbers in its evidence keep their digits.
func (r *Row) Reason(i int) (why task.Reason) {
	if raw := r.Raw(i); len(raw) > 0 {
		r.fail(jsonnumber.Unmarshal(raw, &why))
		jsonnumber.PlainMap(why.Evidence)
	}
	return why
}

// Map decodes a map of strings; nil for NULL.
func (r *Row) Map(i int) (m map[string]string) {
	r.JSON(i, &m)
	return m
}

// Error decodes a recorded failure; nil for NULL.
func (r *Row) Error(i int) *task.Error {
	var e task.Error
	if !r.JSON(i, &e) {
		return nil
	}
	return &e
}

// Progress decodes a report; nil for NULL.
func (r *Row) Progress(i int) *task.Progress {
	var p task.Progress
	if !r.JSON(i, &p) {
		return nil
	}
	return &p
}

// Undo decodes the undo of a step.
func (r *Row) Undo(i int) task.UndoState {
	n := int(r.Int(i))
	if n == 0 {
		return task.UndoNone
	}
	return task.UndoStates()[n-1]
}

// Phase decodes an undo phase; nil for NULL.
func (r *Row) Phase(i int) *task.UndoPhase {
	if r.Null(i) {
		return nil
	}
	p := new(task.UndoPhase)
	r.JSON(i, p)
	return p
}

// Options sets the fields of t from packed options.
func (r *Row) Options(i int, t *task.Task) { r.fail(r.st.cache.unpackOptions(r.Raw(i), t)) }
