package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
)

// Copy runs a COPY … FROM STDIN (FORMAT binary) in the transaction, with what rows has.
// What is queued goes before it.
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
		if rows.err != nil { // which ended it
			c.err = rows.err
		}
	}
	return c.err
}

// Rows are what a COPY reads: rows that begin alike, in its binary format.
type Rows struct {
	n     int
	alike []byte                 // the number of fields, and those that all rows have
	own   func(i int, f *Fields) // appends the fields of row i
	next  int                    // row to be made
	part  Fields                 // rows that were made
	from  int                    // where in them the next Read begins
	ended bool
	err   error // of a value that cannot be sent
}

// rowsPart is about how many bytes of rows are made at once. The server works on them
// meanwhile.
const rowsPart = 32 << 10

// NewRows returns n rows of so many fields: those of alike, and then those that own appends.
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

// Fields are fields of a row. The first that cannot be sent ends the COPY.
type Fields struct {
	buf []byte
	err error
}

// Text appends a text.
func (f *Fields) Text(v string) *Fields { return addField(f, oidText, v) }

// RawText appends a text that is bytes already, or NULL for none.
func (f *Fields) RawText(v []byte) *Fields {
	if len(v) == 0 {
		return f.null()
	}
	return addField(f, oidText, v)
}

// TextOrNull appends a text, or NULL for the empty one.
func (f *Fields) TextOrNull(v string) *Fields {
	if v == "" {
		return f.null()
	}
	return f.Text(v)
}

// Bytes appends a bytea.
func (f *Fields) Bytes(v []byte) *Fields { return addField(f, oidBytea, v) }

// Int appends a bigint.
func (f *Fields) Int(v int64) *Fields { return f.number(oidInt8, 8, v) }

// Flag appends a smallint, 1 or 0.
func (f *Fields) Flag(v bool) *Fields {
	if v {
		return f.number(oidInt2, 2, 1)
	}
	return f.number(oidInt2, 2, 0)
}

func (f *Fields) null() *Fields {
	f.buf = appendNull(f.buf)
	return f
}

func (f *Fields) number(oid, size uint32, v int64) *Fields {
	f.set(appendInt(binary.BigEndian.AppendUint32(f.buf, size), oid, v))
	return f
}

func addField[B string | []byte](f *Fields, oid uint32, v B) *Fields {
	f.set(appendElement(f.buf, oid, v))
	return f
}

// set keeps what was appended; of a value that cannot be sent, the error.
func (f *Fields) set(buf []byte, err error) {
	if err == nil {
		f.buf = buf
	} else if f.err == nil {
		f.err = err
	}
}
