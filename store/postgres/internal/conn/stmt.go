package conn

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// Stmt is a prepared statement. Parameters count from 1, columns from 0.
//
// Exec and Send queue a run. The rows of several sent runs are read in order: Step to the end,
// Reset, Step again.
type Stmt struct {
	c        *Conn
	text     string // for PostgreSQL
	desc     *description
	prepared bool // under its name, on this connection

	params  [][]byte      // in the encoding of the protocol; nil is NULL
	kept    [][]byte      // the last buffers of params, for reuse
	arrays  []*Array      // array parameters
	refused map[int]error // parameters whose last value was refused

	answered size // of the last answer

	last *run   // of Exec
	sent []*run // of Send, not begun
	cur  *run   // the run whose rows are read
	err  error
}

// description is the server's description of a text.
type description struct {
	pgconn.StatementDescription
	columns []uint32 // the types of the columns
}

// sameTypes reports whether a statement still has the parameters and columns of d.
func (d *description) sameTypes(now *pgconn.StatementDescription) bool {
	return slices.Equal(d.ParamOIDs, now.ParamOIDs) && slices.EqualFunc(d.columns, now.Fields,
		func(oid uint32, f pgconn.FieldDescription) bool { return oid == f.DataTypeOID })
}

// asBinary is the format of all parameters and columns.
var asBinary = []int16{1}

// Statement returns the prepared statement of a text, which [Translate] translates. A text
// that is new to all connections costs a round trip. The text's handle (see Stmt) does not
// know the caller's bindings: it binds everything again.
func (c *Conn) Statement(sql string) (*Stmt, error) {
	delete(c.handles, sql)
	return c.statement(sql)
}

func (c *Conn) statement(sql string) (*Stmt, error) {
	s := c.stmts[sql]
	if s == nil {
		s = &Stmt{c: c, text: Translate(sql)}
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	c.stmts[sql] = s
	return s, nil
}

// named reports whether the statement has a name on the server.
func (s *Stmt) named() bool { return s.c.direct }

// prepare makes the statement ready to be sent.
func (s *Stmt) prepare() error {
	if s.desc != nil && (s.prepared || !s.named()) {
		return nil
	}
	var err error
	if d, ok := s.c.described.Load(s.text); ok {
		s.desc = d.(*description)
		if s.named() {
			_, err = s.sendPrepare(s.desc.Name)
		}
	} else {
		err = s.describe()
	}
	if err == nil && s.params == nil {
		n := len(s.desc.ParamOIDs)
		s.params, s.kept, s.arrays = make([][]byte, n), make([][]byte, n), make([]*Array, n)
	}
	return err
}

// describe requests the server's description of the text.
func (s *Stmt) describe() error {
	name := ""
	if s.named() {
		name = s.c.statementName(s.text)
	}
	if err := s.c.Flush(); err != nil { // an error here does not concern this statement
		return err
	}
	s.desc = nil
	r, err := s.sendPrepare(name)
	if err == nil {
		err = s.c.Flush()
	}
	if err != nil {
		return err
	}
	d := &description{StatementDescription: *r.desc}
	d.Name, d.SQL = name, s.text
	if d.columns, err = columnTypes(d.Fields); err != nil {
		return fmt.Errorf("%w, in the statement %s", err, s.text)
	}
	s.desc = d
	s.c.described.Store(s.text, d)
	return nil
}

// sendPrepare queues the preparation under a name. It frees the name first, because a shared
// connection may have prepared the statement already.
func (s *Stmt) sendPrepare(name string) (*run, error) {
	c := s.c
	if err := c.enter(); err != nil {
		return nil, err
	}
	if name != "" {
		c.pipe.SendDeallocate(name)
		c.push(&run{kind: runClose}, 0)
	}
	c.pipe.SendPrepare(name, s.text, nil)
	r := &run{kind: runPrepare, stmt: s}
	s.prepared = name != ""
	c.push(r, len(s.text))
	return r, nil
}

// queue sends the statement with its parameters into the pipeline.
func (s *Stmt) queue() (*run, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if err := s.c.enter(); err != nil {
		return nil, err
	}
	for i, err := range s.refused {
		if i < 1 || i > len(s.params) {
			delete(s.refused, i) // no other value can be bound to it
		}
		return nil, err
	}
	size := 0
	for i, a := range s.arrays {
		if a != nil {
			if a.err != nil {
				return nil, a.err
			}
			s.params[i], s.kept[i] = a.finish(), a.buf
		}
		size += len(s.params[i])
	}
	r := &run{stmt: s}
	if s.named() {
		r.cols = s.desc.columns
		s.c.pipe.SendQueryStatement(&s.desc.StatementDescription, s.params, asBinary, asBinary)
	} else {
		size += len(s.text)
		s.c.pipe.SendQueryParams(s.text, s.params, s.desc.ParamOIDs, asBinary, asBinary)
	}
	s.c.push(r, size)
	return r, nil
}

// forget drops the state of an ended transaction.
func (s *Stmt) forget() {
	if s.last != nil && s.last.tx != s.c.tx {
		s.last = nil
	}
	if s.cur != nil && s.cur.tx != s.c.tx {
		s.cur, s.err = nil, nil
	}
	if len(s.sent) > 0 && s.sent[0].tx != s.c.tx {
		s.sent = nil
	}
}

// Params returns the number of parameters.
func (s *Stmt) Params() int { return len(s.params) }

// Columns returns the number of columns of the rows.
func (s *Stmt) Columns() int { return len(s.desc.Fields) }

// Exec queues a run of the statement without reading its rows.
func (s *Stmt) Exec() error {
	r, err := s.queue()
	s.last = r
	return err
}

// Changes returns the number of rows that the last Exec changed. It waits for the answer.
func (s *Stmt) Changes() (int, error) {
	s.forget()
	if s.last == nil {
		return 0, s.c.err
	}
	if !s.last.done {
		_ = s.c.Flush() // the run has its error
	}
	return int(s.last.changed), s.last.err
}

// Send queues a run of the statement whose rows Step reads later, so that several statements
// share one round trip.
func (s *Stmt) Send() error {
	s.forget()
	r, err := s.queue()
	if err == nil {
		s.sent = append(s.sent, r)
	}
	return err
}

// Step goes to the next row and reports whether there is one. Without a sent run, the first
// call starts one.
func (s *Stmt) Step() bool {
	s.forget()
	if s.err != nil {
		return false
	}
	if s.cur == nil {
		if len(s.sent) == 0 {
			if err := s.Send(); err != nil {
				s.cur, s.err = &run{tx: s.c.tx, done: true, err: err}, err
				return false
			}
		}
		s.cur, s.sent = s.sent[0], s.sent[1:]
		if !s.cur.done {
			_ = s.c.Flush() // the run has its error
		}
		s.err = s.cur.err
	}
	return s.err == nil && s.cur.next()
}

// Err returns the reason why Step returned false; nil at the end of the rows.
func (s *Stmt) Err() error { return s.err }

// Reset ends the reading of rows. Parameters keep their values.
func (s *Stmt) Reset() error {
	s.cur, s.err = nil, nil
	return nil
}

// Close frees the statement's name on the server.
func (s *Stmt) Close() error {
	_ = s.Reset() // never fails
	s.last, s.sent = nil, nil
	if !s.prepared || s.c.pg.IsClosed() {
		return nil
	}
	if err := s.c.enter(); err != nil {
		return err
	}
	s.c.pipe.SendDeallocate(s.desc.Name)
	s.c.push(&run{kind: runClose}, 0)
	s.prepared = false
	return nil
}

// Int returns an integer or flag; 0 for NULL.
func (s *Stmt) Int(i int) int64 {
	if s.cur == nil {
		return 0
	}
	return s.cur.int(i)
}

// Raw returns the bytes of a text or blob, nil for NULL, until the next Reset.
func (s *Stmt) Raw(i int) []byte {
	if s.cur == nil {
		return nil
	}
	return s.cur.raw(i)
}

// Row sets vals to the values of the row, each an int64, []byte or nil.
func (s *Stmt) Row(vals []any) error {
	if s.cur == nil || len(vals) > len(s.cur.cols) {
		return fmt.Errorf("a row of %d columns was asked for, in the statement %s", len(vals), s.text)
	}
	for i := range vals {
		vals[i] = s.cur.value(i)
	}
	return nil
}
