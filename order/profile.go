package order

import (
	"encoding/json"
	"time"
)

// Profile is one kind of request body.
type Profile interface {
	// Name is stored with each request.
	Name() string
	// Parse checks a body and returns its stored form. Errors are *Invalid.
	Parse(raw []byte, now time.Time) (Parsed, error)
}

// Parsed is a request as it is stored and sent.
type Parsed struct {
	Key     string // idempotency key
	Ref     string // of the application: order_id
	TraceID string
	Body    json.RawMessage // normalised
	Digest  string
	Timeout time.Duration // of one send
	MaxAge  time.Duration // after which it is not sent any more
}

// New returns the request to accept.
func (p Parsed) New(profile Profile) New {
	return New{Profile: profile.Name(), Parsed: p}
}
