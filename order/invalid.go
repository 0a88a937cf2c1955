package order

import (
	"errors"
	"strings"
)

// FieldError is a mistake in a field of a request, which is named by its path ("qty", "tags[2]",
// "" for the body).
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Invalid is a request that no adapter would take. Over HTTP it is 422 VALIDATION_ERROR.
type Invalid struct{ Fields []FieldError }

// Error lists the fields.
func (e *Invalid) Error() string {
	var b strings.Builder
	b.WriteString("invalid request")
	for i, f := range e.Fields {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		if f.Field != "" {
			b.WriteString(f.Field + ": ")
		}
		b.WriteString(f.Message)
	}
	return b.String()
}

func (e *Invalid) add(field, message string) {
	e.Fields = append(e.Fields, FieldError{field, message})
}

// err returns e if it has fields.
func (e *Invalid) err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

func invalid(field, message string) error { return &Invalid{[]FieldError{{field, message}}} }

// Errors of the port.
var (
	ErrNotFound = errors.New("no such order")
	// ErrConflict: the key has another request.
	ErrConflict = errors.New("IDEMPOTENCY_CONFLICT")
	// ErrState: the order is in a state that the command does not apply to.
	ErrState = errors.New("the order is in another state")
	// ErrLeaseLost: another worker holds the order, or it is settled. Nothing was written.
	ErrLeaseLost = errors.New("the order's lease is lost")
	// ErrInDoubt: the order may have been sent and has no answer yet.
	ErrInDoubt = errors.New("the order may have reached the partner")
)
