package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Expiry sets a retention time for a field of a task's input. The store deletes the field when the task has ended and
// the time has passed since the input was stored.
type Expiry struct {
	Path  string        `json:"path"` // a pattern as in Redact, relative to the input: "card/number"
	After time.Duration `json:"after"`
}

// NextExpiry returns the shortest time of list that is longer than within, or 0 if there is no such field.
func NextExpiry(list []Expiry, within time.Duration) (next time.Duration) {
	for _, e := range list {
		if e.After > within && (next == 0 || e.After < next) {
			next = e.After
		}
	}
	return next
}

// expiredMark begins the value that replaces an expired field; see blobMark.
const expiredMark = `{"$weaver":"expired","$weaver":"`

// Expired returns the value that replaces a field that expired.
func Expired(at time.Time) json.RawMessage {
	return fmt.Appendf(nil, `%s%s"}`, expiredMark, at.UTC().Format(time.RFC3339))
}

// IsExpired reports whether a value replaces an expired field.
func IsExpired(value json.RawMessage) bool {
	rest, marked := bytes.CutPrefix(value, []byte(expiredMark))
	at, ends := bytes.CutSuffix(rest, []byte(`"}`))
	_, err := time.Parse(time.RFC3339, string(at))
	return marked && ends && err == nil
}

// HasExpired reports whether a value contains expired fields.
func HasExpired(value json.RawMessage) bool { return bytes.Contains(value, []byte(expiredMark)) }

// WithoutExpired returns the value with null for each expired field, so that it decodes.
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
