package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Expiry says after what time a field of an input is no longer stored, once its task
// has ended. It counts from when the input was stored.
type Expiry struct {
	Path  string        `json:"path"` // a pattern as of Redact, below the input: "card/number"
	After time.Duration `json:"after"`
}

// NextExpiry is after what time the next field of an input expires, of those that do not
// within a time; 0: none does.
func NextExpiry(list []Expiry, within time.Duration) (next time.Duration) {
	for _, e := range list {
		if e.After > within && (next == 0 || e.After < next) {
			next = e.After
		}
	}
	return next
}

// expiredMark begins what stands in place of a field that expired; see blobMark.
const expiredMark = `{"$weaver":"expired","$weaver":"`

// Expired returns what stands in place of a field that expired.
func Expired(at time.Time) json.RawMessage {
	return fmt.Appendf(nil, `%s%s"}`, expiredMark, at.UTC().Format(time.RFC3339))
}

// IsExpired reports whether a value is what stands in place of a field.
func IsExpired(value json.RawMessage) bool {
	rest, marked := bytes.CutPrefix(value, []byte(expiredMark))
	at, ends := bytes.CutSuffix(rest, []byte(`"}`))
	_, err := time.Parse(time.RFC3339, string(at))
	return marked && ends && err == nil
}

// HasExpired reports whether fields of a value have expired.
func HasExpired(value json.RawMessage) bool { return bytes.Contains(value, []byte(expiredMark)) }

// WithoutExpired returns a value with null in place of what expired, which decodes.
func WithoutExpired(value json.RawMessage) json.RawMessage {
	if !HasExpired(value) {
		return value
	}
	var whole []byte
	for rest := []byte(value); ; {
		before, after, found := bytes.Cut(rest, []byte(expiredMark))
		whole = append(whole, before...)
		if !found {
			return whole
		}
		_, rest, _ = bytes.Cut(after, []byte(`"}`))
		whole = append(whole, "null"...)
	}
}
