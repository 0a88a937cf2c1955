package store

import "errors"

// TransientErrors is implemented by stores that hand connections or
// transactions to user code, which then meets the errors of their driver.
type TransientErrors interface {
	// Transient reports whether err, or an error that it wraps, is one of the
	// store's driver that says nothing about the operation that met it: the
	// database was locked, the statement was interrupted, the disk was full or
	// failed, the connection was lost. The same operation may succeed later.
	Transient(err error) bool
}

// Transient reports whether err, or an error that it wraps, is a transient
// error of a store: one of the port, or one of the driver of s, which may be
// nil. Such an error is never recorded as the result of a step (R10).
func Transient(s Store, err error) bool {
	for _, t := range []error{ErrUnavailable, ErrBusy, ErrFull, ErrReadOnly, ErrUnknown, ErrRestartTx} {
		if errors.Is(err, t) {
			return true
		}
	}
	driver, ok := s.(TransientErrors)
	return ok && driver.Transient(err)
}
