package conn

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// Types of PostgreSQL, by their OIDs, which never change.
const (
	oidBool        = 16
	oidBytea       = 17
	oidChar        = 18
	oidName        = 19
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidOID         = 26
	oidXID         = 28
	oidJSON        = 114
	oidFloat8      = 701
	oidUnknown     = 705
	oidBPChar      = 1042
	oidVarchar     = 1043
	oidTimestamptz = 1184
	oidNumeric     = 1700
	oidVoid        = 2278
	oidUUID        = 2950
	oidJSONB       = 3802
	oidXID8        = 5069
)

var typeNames = map[uint32]string{
	oidBool: "boolean", oidBytea: "bytea", oidInt8: "bigint", oidInt2: "smallint", oidInt4: "integer", oidText: "text",
	oidJSON: "json", oidJSONB: "jsonb", oidFloat8: "double precision", oidTimestamptz: "timestamptz", oidNumeric: "numeric",
	oidUUID: "uuid", oidVarchar: "varchar",
}

func typeName(oid uint32) string {
	if name, ok := typeNames[oid]; ok {
		return name
	}
	return "a type with the OID " + strconv.FormatUint(uint64(oid), 10)
}

// columnTypes returns the types of columns, or an error if a type is not supported here.
func columnTypes(fields []pgconn.FieldDescription) ([]uint32, error) {
	types := make([]uint32, len(fields))
	for i := range fields {
		types[i] = fields[i].DataTypeOID
		if !isIntType(types[i]) && !isBytesType(types[i]) && types[i] != oidJSONB {
			return nil, fmt.Errorf("column %d (%s) has the unsupported type %s: CAST it AS BIGINT or TEXT", i+1, fields[i].Name, typeName(types[i]))
		}
	}
	return types, nil
}

func isIntType(oid uint32) bool {
	switch oid {
	case oidInt8, oidInt4, oidInt2, oidBool, oidOID, oidXID, oidXID8:
		return true
	}
	return false
}

// isBytesType reports whether a type's binary form is its bytes.
func isBytesType(oid uint32) bool {
	switch oid {
	case oidText, oidBytea, oidVarchar, oidJSON, oidUUID, oidName, oidBPChar, oidChar, oidUnknown, oidVoid:
		return true
	}
	return false
}

// rows are all rows of an answer.
type rows struct {
	cols  []uint32
	arena []byte // all values, concatenated
	ends  []int  // the end of each value; its complement for NULL
	at    int    // the current row, counted from 1
}

// types sets the types of the columns from an answer.
func (r *rows) types(fields []pgconn.FieldDescription) {
	r.cols = make([]uint32, len(fields))
	for i := range fields {
		r.cols[i] = fields[i].DataTypeOID
	}
}

// size is the memory of all rows of an answer.
type size struct{ bytes, values int }

// maxExpected bounds the memory allocated for an answer before it arrives, in bytes.
const maxExpected = 1 << 20

// expect allocates memory for an answer as large as the last one.
func (r *rows) expect(s size) {
	if s.bytes <= maxExpected {
		r.arena, r.ends = make([]byte, 0, s.bytes), make([]int, 0, s.values)
	}
}

// add copies a row.
func (r *rows) add(values [][]byte) {
	for _, v := range values {
		r.arena = append(r.arena, v...)
		end := len(r.arena)
		if v == nil {
			end = ^end
		}
		r.ends = append(r.ends, end)
	}
}

func (r *rows) next() bool {
	if len(r.cols) == 0 || r.at*len(r.cols) >= len(r.ends) {
		return false
	}
	r.at++
	return true
}

// cell returns a value of the current row in the server's encoding, nil for NULL.
func (r *rows) cell(i int) []byte {
	k := (r.at-1)*len(r.cols) + i
	if r.at == 0 || i >= len(r.cols) || k >= len(r.ends) || r.ends[k] < 0 {
		return nil
	}
	begin := 0
	if k > 0 {
		if begin = r.ends[k-1]; begin < 0 {
			begin = ^begin
		}
	}
	return r.arena[begin:r.ends[k]:r.ends[k]]
}

// int returns a number; 0 for NULL and for a text that is not a number.
func (r *rows) int(i int) int64 {
	b := r.cell(i)
	if b == nil {
		return 0
	}
	if oid := r.cols[i]; !isIntType(oid) {
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return 0
		}
		return n
	} else if oid == oidOID || oid == oidXID {
		return int64(binary.BigEndian.Uint32(b))
	}
	switch len(b) {
	case 1:
		return int64(b[0])
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// raw returns the bytes of a text or blob, the digits of a number, nil for NULL.
func (r *rows) raw(i int) []byte {
	b := r.cell(i)
	switch {
	case b == nil:
		return nil
	case isIntType(r.cols[i]):
		return strconv.AppendInt(nil, r.int(i), 10)
	case r.cols[i] == oidJSONB && len(b) > 0:
		return b[1:] // after its version
	}
	return b
}

// value returns int64, []byte or nil.
func (r *rows) value(i int) any {
	b := r.cell(i)
	switch {
	case b == nil:
		return nil
	case isIntType(r.cols[i]):
		return r.int(i)
	}
	return r.raw(i)
}
