package store

import (
	"encoding/json"
	"errors"
)

// Transient reports whether err, or an error that it wraps, is a transient error of a store: of the
// port, or of the driver of s, which may be nil. Such an error is never recorded as the result of a
// step (R10).
func Transient(s Store, err error) bool {
	for _, t := range []error{ErrUnavailable, ErrBusy, ErrFull, ErrReadOnly, ErrUnknown, ErrRestartTx} {
		if errors.Is(err, t) {
			return true
		}
	}
	if lostStatement(err) {
		return true
	}
	return s != nil && s.Transient(err)
}

// Refused reports whether repeating the write that returned err, or an error that it wraps, fails
// again: ErrRefused, or a value that cannot be encoded.
func Refused(err error) bool {
	var value *json.UnsupportedValueError
	var typ *json.UnsupportedTypeError
	var of *json.MarshalerError
	return errors.Is(err, ErrRefused) || errors.As(err, &value) || errors.As(err, &typ) || errors.As(err, &of)
}

// lostStatement reports whether err says that a PostgreSQL session does not know a prepared statement,
// or knows a different one by its name: a pooler switched the connection to another session. The
// statement was not executed.
func lostStatement(err error) bool {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return false
	}
	code := pg.SQLState()
	return code == "26000" || code == "42P05"
}
