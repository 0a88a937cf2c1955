package promise

import (
	"errors"
	"syscall/js"
)

// Error is an exception of JavaScript.
type Error struct {
	Name    string // such as "QuotaExceededError"
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Name + ": " + e.Message }

// Is reports whether err is an exception with one of the names.
func Is(err error, names ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, name := range names {
		if e.Name == name {
			return true
		}
	}
	return false
}

// Of returns the error for a thrown value, or for the reason of a rejected promise.
func Of(v js.Value) error {
	if v.Type() == js.TypeObject && v.Get("message").Type() == js.TypeString {
		return &Error{Name: v.Get("name").String(), Message: v.Get("message").String()}
	}
	return &Error{Name: "Error", Message: v.String()}
}

// Try calls fn and returns the exception that it throws as an error.
func Try(fn func() js.Value) (v js.Value, err error) {
	defer Catch(&err)
	return fn(), nil
}

// Catch is deferred by functions that call JavaScript. It stores an exception in err. Other panics go on.
func Catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case js.Error:
		*err = Of(p.Value)
	default:
		panic(p)
	}
}

// Await waits for the promise that fn returns. The goroutine is parked, so that JavaScript goes on; it must not be
// called by a function that JavaScript waits for.
func Await(fn func() js.Value) (js.Value, error) {
	p, err := Try(fn)
	if err != nil {
		return js.Value{}, err
	}
	type result struct {
		v   js.Value
		err error
	}
	done := make(chan result, 1)
	first := func(args []js.Value) js.Value {
		if len(args) == 0 {
			return js.Undefined()
		}
		return args[0]
	}
	kept := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- result{v: first(args)}
		return nil
	})
	defer kept.Release()
	broken := js.FuncOf(func(_ js.Value, args []js.Value) any {
		done <- result{err: Of(first(args))}
		return nil
	})
	defer broken.Release()
	p.Call("then", kept, broken)
	r := <-done
	return r.v, r.err
}
