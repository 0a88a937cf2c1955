package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
)

// Copy runs a COPY … FROM STDIN (FORMAT binary) in the transaction, with the data of rows.
// Queued statements run before it.
func (c *Conn) Copy(sql string, rows *Rows) error {
	if !c.open {
		return errors.New("no transaction is open")
	}
	if err := c.Flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.RoundTimeout)
	defer cancel()
	c.rounds++
	if _, err := c.pg.CopyFrom(ctx, rows, sql); err != nil {
		c.err = c.explain(c.ctx, err)
		if rows.err != nil { // it ended the COPY
			c.err = rows.err
		}
	}
	return c.err
}

// Rows is the input of a COPY in its binary format: rows whose first fields are equal.
type Rows struct {
	n     int
	alike []byte                 // the number of fields, and the fields shared by all rows
	own   func(i int, f *Fields) // appends the fields of row i
	next  int                    // index of the next row to encode
	part  Fields                 // encoded rows
	from  int                    // offset of the next Read in part
	ended bool
	err   error // of a value that cannot be sent
}

// rowsPart is the approximate number of bytes of rows encoded at once. The server works on
// them meanwhile.
const rowsPart = 32 << 10

// NewRows returns n rows with this number of fields: the fields of alike, then the fields that
// own appends.
func NewRows(n, fields int, alike *Fields, own func(i int, f *Fields)) *Rows {
	r := &Rows{n: n, own: own, err: alike.err}
	r.alike = append(binary.BigEndian.AppendUint16(nil, uint16(fields)), alike.buf...)
	r.part.buf = append([]byte("PGCOPY\n\xff\r\n\x00"), make([]byte, 8)...)
	return r
}

// Read implements io.Reader.
func (r *Rows) Read(p []byte) (int, error) {
	if r.err == nil && r.from == len(r.part.buf) && !r.ended {
		r.fill()
	}
	switch {
	case r.err != nil:
		return 0, r.err
	case r.from == len(r.part.buf):
		return 0, io.EOF
	}
	n := copy(p, r.part.buf[r.from:])
	r.from += n
	return n, nil
}

func (r *Rows) fill() {
	f := &r.part
	f.buf, r.from = f.buf[:0], 0
	for ; r.next < r.n && len(f.buf) < rowsPart; r.next++ {
		f.buf = append(f.buf, r.alike...)
		r.own(r.next, f)
	}
	if r.err = f.err; r.next == r.n {
		f.buf, r.ended = append(f.buf, 0xff, 0xff), true // the end of the rows
	}
}

// Fields are fields of a row. The first field that cannot be sent ends the COPY.
type Fields struct {
	buf   []byte
	small bool // the next field is a smallint
	err   error
}

// As sets the PostgreSQL type of the next field.
func (f *Fields) As(typ string) *Fields {
	f.small = typ == "smallint"
	return f
}

// Null appends NULL.
func (f *Fields) Null() { f.buf = appendNull(f.buf) }

// Int appends a bigint, or a smallint.
func (f *Fields) Int(v int64) {
	oid, size := uint32(oidInt8), uint32(8)
	if f.small {
		oid, size = oidInt2, 2
	}
	f.set(appendInt(binary.BigEndian.AppendUint32(f.buf, size), oid, v))
}

// Text appends a text.
func (f *Fields) Text(v string) { f.set(appendElement(f.buf, oidText, v)) }

// RawText appends a text given as bytes.
func (f *Fields) RawText(v []byte) { f.set(appendElement(f.buf, oidText, v)) }

// Blob appends a bytea.
func (f *Fields) Blob(v []byte) { f.set(appendElement(f.buf, oidBytea, v)) }

// Fail refuses a value that cannot be encoded.
func (f *Fields) Fail(err error) { f.set(nil, err) }

// set keeps the appended field, or the first error.
func (f *Fields) set(buf []byte, err error) {
	if err == nil {
		f.buf = buf
	} else if f.err == nil {
		f.err = err
	}
}
