package task

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
)

// Sealed is a value sealed by a codec, as stored in a row.
type Sealed struct {
	Key   string `json:"key"`           // the ID of the key
	Of    ID     `json:"of,omitzero"`   // the task that the value was sealed for: another task if the value was taken over
	Size  int    `json:"size"`          // of the value, in bytes
	Bytes []byte `json:"v,omitempty"`   // output of the codec; empty in a value that could not be opened
	Why   string `json:"why,omitempty"` // error text of a value that could not be opened
}

// sealedMark begins a sealed value; see blobMark.
const sealedMark = `{"$weaver":"sealed","$weaver":`

// Value returns the JSON that a row stores in place of the value.
func (s *Sealed) Value() json.RawMessage {
	b := make([]byte, 0, len(sealedMark)+128+base64.StdEncoding.EncodedLen(len(s.Bytes))+len(s.Why))
	b = append(append(append(b, sealedMark...), `{"key":"`...), s.Key...)
	if !s.Of.IsZero() {
		b = append(append(b, `","of":"`...), s.Of.String()...)
	}
	b = strconv.AppendInt(append(b, `","size":`...), int64(s.Size), 10)
	if len(s.Bytes) > 0 {
		b = append(base64.StdEncoding.AppendEncode(append(b, `,"v":"`...), s.Bytes), '"')
	}
	if s.Why != "" {
		why, _ := json.Marshal(s.Why) // a string is JSON
		b = append(append(b, `,"why":`...), why...)
	}
	return append(b, "}}"...)
}

// IsSealed reports whether a value is sealed.
func IsSealed(value json.RawMessage) bool { return bytes.HasPrefix(value, []byte(sealedMark)) }

// SealedOf parses a sealed value; it returns false for a value that is not sealed.
func SealedOf(value json.RawMessage) (Sealed, bool) {
	rest, found := bytes.CutPrefix(value, []byte(sealedMark))
	if !found {
		return Sealed{}, false
	}
	if s, ok := parseSealed(rest); ok {
		return s, true
	}
	var s Sealed
	err := json.Unmarshal(bytes.TrimSuffix(rest, []byte("}")), &s)
	return s, err == nil
}

// parseSealed parses the output of Value for a value that could be opened. It avoids a JSON decoder, because it runs
// for each value of each task.
func parseSealed(rest []byte) (s Sealed, ok bool) {
	field := func(begin, end string) (text []byte) {
		if ok = ok && bytes.HasPrefix(rest, []byte(begin)); ok {
			rest = rest[len(begin):]
			text, rest, ok = bytes.Cut(rest, []byte(end))
		}
		return text
	}
	ok = true
	s.Key = string(field(`{"key":"`, `"`))
	if bytes.HasPrefix(rest, []byte(`,"of"`)) {
		of := field(`,"of":"`, `"`)
		ok = ok && s.Of.UnmarshalText(of) == nil
	}
	size := field(`,"size":`, `,`)
	bytes64 := field(`"v":"`, `"`)
	if !ok || string(rest) != "}}" {
		return s, false
	}
	var err error
	if s.Size, err = strconv.Atoi(string(size)); err != nil {
		return s, false
	}
	s.Bytes, err = base64.StdEncoding.AppendDecode(nil, bytes64)
	return s, err == nil && !bytes.ContainsAny([]byte(s.Key), `\\`)
}
