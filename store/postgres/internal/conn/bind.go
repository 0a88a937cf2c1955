package conn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/goweaver/weaver/store"
)

// Maximum sizes in bytes of buffers that are kept for the next binding of a parameter.
const (
	maxKept      = 64 << 10
	maxKeptArray = 1 << 20
)

// BindInt binds a number to a parameter of a numeric type, or of a flag (0 is false).
func (s *Stmt) BindInt(i int, v int64) error {
	buf, err := s.buffer(i, 8, maxKept)
	if err == nil {
		buf, err = appendInt(buf, s.desc.ParamOIDs[i-1], v)
	}
	if err != nil {
		return s.refuse(i, err)
	}
	s.set(i, buf)
	return nil
}

// BindNull binds NULL.
func (s *Stmt) BindNull(i int) error {
	if _, err := s.buffer(i, 0, maxKept); err != nil {
		return s.refuse(i, err)
	}
	s.params[i-1], s.arrays[i-1] = nil, nil
	delete(s.refused, i)
	return nil
}

// BindText binds a text.
func (s *Stmt) BindText(i int, v string) error { return bindBytes(s, i, v) }

// BindRawText binds text or JSON from bytes, which are copied.
func (s *Stmt) BindRawText(i int, v []byte) error { return bindBytes(s, i, v) }

// BindBlob binds bytes, which are copied.
func (s *Stmt) BindBlob(i int, v []byte) error { return bindBytes(s, i, v) }

func bindBytes[B string | []byte](s *Stmt, i int, v B) error {
	buf, err := s.buffer(i, len(v)+1, maxKept)
	if err == nil {
		buf, err = appendBytes(buf, s.desc.ParamOIDs[i-1], v)
	}
	if err != nil {
		return s.refuse(i, err)
	}
	s.set(i, buf)
	return nil
}

// buffer returns the parameter's empty buffer with room for n bytes.
func (s *Stmt) buffer(i, n, limit int) ([]byte, error) {
	if i < 1 || i > len(s.params) {
		return nil, fmt.Errorf("there are %d", len(s.params))
	}
	if buf := s.kept[i-1]; cap(buf) >= n && (cap(buf) <= limit || n > limit) {
		return buf[:0], nil
	}
	return make([]byte, 0, n), nil
}

func (s *Stmt) set(i int, buf []byte) {
	s.params[i-1], s.kept[i-1], s.arrays[i-1] = buf, buf, nil
	delete(s.refused, i)
}

// refuse records that a value was not bound, so that the statement does not run with the
// previous value.
func (s *Stmt) refuse(i int, err error) error {
	err = fmt.Errorf("parameter %d: %w, in the statement %s", i, err, s.text)
	if s.refused == nil {
		s.refused = make(map[int]error)
	}
	s.refused[i] = err
	return err
}

// appendInt appends a number in the binary form of a type.
func appendInt(buf []byte, oid uint32, v int64) ([]byte, error) {
	var fits bool
	switch oid {
	case oidInt8, oidXID8:
		return binary.BigEndian.AppendUint64(buf, uint64(v)), nil
	case oidInt4:
		buf, fits = binary.BigEndian.AppendUint32(buf, uint32(v)), v == int64(int32(v))
	case oidInt2:
		buf, fits = binary.BigEndian.AppendUint16(buf, uint16(v)), v == int64(int16(v))
	case oidOID, oidXID:
		buf, fits = binary.BigEndian.AppendUint32(buf, uint32(v)), v == int64(uint32(v))
	case oidBool:
		b := byte(0)
		if v != 0 {
			b = 1
		}
		return append(buf, b), nil
	case oidFloat8:
		return binary.BigEndian.AppendUint64(buf, math.Float64bits(float64(v))), nil
	default:
		return nil, fmt.Errorf("a number was given for %s: CAST it", typeName(oid))
	}
	if !fits {
		return nil, fmt.Errorf("%d is too large for %s: CAST it AS BIGINT", v, typeName(oid))
	}
	return buf, nil
}

// appendBytes appends a text or blob in the binary form of a type.
func appendBytes[B string | []byte](buf []byte, oid uint32, v B) ([]byte, error) {
	switch {
	case oid == oidJSONB:
		buf = append(buf, 1) // its version
	case oid == oidUUID && len(v) != 16:
		return nil, fmt.Errorf("%d bytes were given for uuid, which has 16", len(v))
	case !isBytesType(oid):
		return nil, fmt.Errorf("a text or bytes were given for %s: CAST it", typeName(oid))
	}
	at := len(buf)
	buf = append(buf, v...)
	if oid == oidBytea || oid == oidUUID {
		return buf, nil
	}
	// The server's error would end the transaction.
	if text := buf[at:]; bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return nil, fmt.Errorf("%w: PostgreSQL stores only UTF-8 text without NUL bytes: remove the other bytes, or encode them", store.ErrRefused)
	}
	return buf, nil
}

// elements maps array types to the types of their elements.
var elements = map[uint32]uint32{
	1000: oidBool, 1001: oidBytea, 1005: oidInt2, 1007: oidInt4, 1016: oidInt8, 1009: oidText, 1015: oidVarchar,
	199: oidJSON, 3807: oidJSONB, 2951: oidUUID, 1022: oidFloat8,
}

// Array is the value of an array parameter, from which a statement makes rows with unnest.
// Running the statement returns its first error.
type Array struct {
	buf   []byte // with room for the header
	elem  uint32
	n     int
	nulls bool
	err   error
}

const arrayHeader = 20 // dimensions, has NULLs, type of elements, length, first index

// Array sets parameter i to a new empty array and returns it.
func (s *Stmt) Array(i int) *Array {
	a := &Array{}
	buf, err := s.buffer(i, arrayHeader, maxKeptArray)
	if err != nil {
		return &Array{err: s.refuse(i, err)}
	}
	delete(s.refused, i)
	elem, ok := elements[s.desc.ParamOIDs[i-1]]
	if !ok {
		a.err = s.refuse(i, fmt.Errorf("an array was given for %s: CAST it AS BIGINT[], TEXT[] or BYTEA[]", typeName(s.desc.ParamOIDs[i-1])))
	}
	a.elem, a.buf = elem, append(buf, make([]byte, arrayHeader)...)
	s.arrays[i-1] = a
	return a
}

// Len returns the number of elements.
func (a *Array) Len() int { return a.n }

// Null appends NULL.
func (a *Array) Null() { a.add(nil, true, nil) }

// Int appends a number.
func (a *Array) Int(v int64) {
	var room [8]byte
	b, err := appendInt(room[:0], a.elem, v)
	a.add(b, false, err)
}

// Text appends a text.
func (a *Array) Text(v string) { addBytes(a, v) }

// Bytes appends a text, JSON or blob, which is copied.
func (a *Array) Bytes(v []byte) { addBytes(a, v) }

// RawText is Bytes for a text.
func (a *Array) RawText(v []byte) { addBytes(a, v) }

// Blob is Bytes for a blob.
func (a *Array) Blob(v []byte) { addBytes(a, v) }

// Fail refuses a value that cannot be encoded.
func (a *Array) Fail(err error) { a.add(nil, false, err) }

// Texts appends the texts of a list.
func (a *Array) Texts(v []string) {
	for _, t := range v {
		a.Text(t)
	}
}

func addBytes[B string | []byte](a *Array, v B) {
	if a.err != nil {
		return
	}
	buf, err := appendElement(a.buf, a.elem, v)
	if err != nil {
		a.add(nil, false, err)
		return
	}
	a.buf = buf
	a.n++
}

// appendElement appends a text or blob with its length, as in arrays and rows.
func appendElement[B string | []byte](buf []byte, oid uint32, v B) ([]byte, error) {
	at := len(buf)
	buf, err := appendBytes(append(buf, 0, 0, 0, 0), oid, v)
	if err == nil {
		binary.BigEndian.PutUint32(buf[at:], uint32(len(buf)-at-4))
	}
	return buf, err
}

// appendNull appends NULL, as in arrays and rows.
func appendNull(buf []byte) []byte { return append(buf, 0xff, 0xff, 0xff, 0xff) }

func (a *Array) add(b []byte, null bool, err error) {
	switch {
	case a.err != nil:
	case err != nil:
		a.err = fmt.Errorf("element %d of an array: %w", a.n+1, err)
	case null:
		a.buf = appendNull(a.buf)
		a.nulls, a.n = true, a.n+1
	default:
		a.buf = append(binary.BigEndian.AppendUint32(a.buf, uint32(len(b))), b...)
		a.n++
	}
}

// finish returns the array's binary form.
func (a *Array) finish() []byte {
	head := a.buf[:0]
	if a.n == 0 {
		head = binary.BigEndian.AppendUint32(head, 0) // no dimension
		head = binary.BigEndian.AppendUint32(head, 0)
		head = binary.BigEndian.AppendUint32(head, a.elem)
		return head
	}
	nulls := uint32(0)
	if a.nulls {
		nulls = 1
	}
	for _, v := range []uint32{1, nulls, a.elem, uint32(a.n), 1} {
		head = binary.BigEndian.AppendUint32(head, v)
	}
	return a.buf
}
