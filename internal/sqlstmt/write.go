package sqlstmt

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/task"
)

// A Sink receives the value of one column: as a parameter of a statement, as an element of an
// array, or as a field of a copied row. Fail refuses a value that cannot be encoded.
type Sink interface {
	Null()
	Int(v int64)
	Text(v string)
	RawText(v []byte)
	Blob(v []byte)
	Fail(err error)
}

// A Field is a column that statements write from a T. Type is its type in PostgreSQL.
type Field[T any] struct {
	Name, Type string
	Put        func(v *T, s Sink)
}

// Fields are the columns that a statement writes, so that its column list and its parameters
// match.
type Fields[T any] []Field[T]

// Names lists the columns.
func (fs Fields[T]) Names() string {
	return fs.list(func(_ int, f *Field[T]) string { return f.Name })
}

// Params lists a parameter for each column, from ?first on.
func (fs Fields[T]) Params(first int) string {
	return fs.list(func(i int, _ *Field[T]) string { return "?" + strconv.Itoa(first+i) })
}

// Arrays lists a parameter for each column, from ?first on, cast to an array of the column's
// type.
func (fs Fields[T]) Arrays(first int) string {
	return fs.list(func(i int, f *Field[T]) string { return fmt.Sprintf("CAST(?%d AS %s[])", first+i, f.Type) })
}

// Casts lists a parameter for each column, from ?first on, cast to the column's type.
func (fs Fields[T]) Casts(first int) string {
	return fs.list(func(i int, f *Field[T]) string { return fmt.Sprintf("CAST(?%d AS %s)", first+i, f.Type) })
}

func (fs Fields[T]) list(each func(i int, f *Field[T]) string) string {
	parts := make([]string, len(fs))
	for i := range fs {
		parts[i] = each(i, &fs[i])
	}
	return strings.Join(parts, ", ")
}

// Of returns the columns with these names, in this order. It panics on an unknown name, which
// is a mistake in the program.
func (fs Fields[T]) Of(names ...string) Fields[T] {
	some := make(Fields[T], 0, len(names))
	for _, name := range names {
		i := fs.index(name)
		if i < 0 {
			panic("sqlstmt: unknown column " + name)
		}
		some = append(some, fs[i])
	}
	return some
}

func (fs Fields[T]) index(name string) int {
	for i := range fs {
		if fs[i].Name == name {
			return i
		}
	}
	return -1
}

// Bind binds the values of v to the parameters from first on.
func (fs Fields[T]) Bind(st *Stmt, first int, v *T) *Stmt {
	for i := range fs {
		st.sink.i = first + i
		fs[i].Put(v, &st.sink)
	}
	return st
}

// Put binds the value that put writes.
func (s *Stmt) Put(i int, put func(s Sink)) *Stmt {
	s.sink.i = i
	put(&s.sink)
	return s
}

// Literals returns the values of v as SQL, by column.
func (fs Fields[T]) Literals(v *T) (map[string]string, error) {
	texts := make(map[string]string, len(fs))
	for i := range fs {
		var l literal
		fs[i].Put(v, &l)
		if l.err != nil {
			return nil, fmt.Errorf("column %s: %w", fs[i].Name, l.err)
		}
		texts[fs[i].Name] = l.text
	}
	return texts, nil
}

// parameter is the Sink of a statement's parameter.
type parameter struct {
	st *Stmt
	i  int
}

func (p *parameter) Null()            { p.st.Null(p.i) }
func (p *parameter) Int(v int64)      { p.st.Int(p.i, v) }
func (p *parameter) Text(v string)    { p.st.Text(p.i, v) }
func (p *parameter) RawText(v []byte) { p.st.Bytes(p.i, v) }
func (p *parameter) Blob(v []byte)    { p.st.Blob(p.i, v) }

func (p *parameter) Fail(err error) {
	if p.st.err == nil {
		p.st.err = err
	}
}

// literal is a Sink that renders the value as SQL.
type literal struct {
	text string
	err  error
}

func (l *literal) Null()            { l.text = "NULL" }
func (l *literal) Int(v int64)      { l.text = strconv.FormatInt(v, 10) }
func (l *literal) Text(v string)    { l.text = "'" + strings.ReplaceAll(v, "'", "''") + "'" }
func (l *literal) RawText(v []byte) { l.Text(string(v)) }
func (l *literal) Blob(v []byte)    { l.text = fmt.Sprintf("x'%x'", v) }
func (l *literal) Fail(err error)   { l.err = err }

// PutText puts a text, or NULL if it is empty.
func PutText(s Sink, v string) {
	if v == "" {
		s.Null()
	} else {
		s.Text(v)
	}
}

// PutRaw puts a text that is not likely to repeat, or NULL if it is empty.
func PutRaw(s Sink, v []byte) {
	if len(v) == 0 {
		s.Null()
	} else {
		s.RawText(v)
	}
}

// PutBool puts 1 or 0.
func PutBool(s Sink, v bool) {
	if v {
		s.Int(1)
	} else {
		s.Int(0)
	}
}

// PutTime puts an instant in microseconds, or NULL for the zero time.
func PutTime(s Sink, v time.Time) {
	if v.IsZero() {
		s.Null()
	} else {
		s.Int(v.UnixMicro())
	}
}

// PutID puts an ID, or NULL for the zero ID.
func PutID(s Sink, v *task.ID) {
	if v.IsZero() {
		s.Null()
	} else {
		s.Blob(v[:])
	}
}

// PutJSON puts a value as JSON, or NULL for nil.
func PutJSON[T any](s Sink, v *T) {
	if v == nil {
		s.Null()
		return
	}
	b, err := json.Marshal(v)
	if err != nil {
		s.Fail(err)
		return
	}
	s.RawText(b)
}
