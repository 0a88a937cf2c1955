package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Outgoing is a request as an adapter gets it.
type Outgoing struct {
	Key       string // idempotency key: the same in every send
	Profile   string
	Body      json.RawMessage
	Ref       string // order_id
	TraceID   string
	SendNo    int // 1 is the first send
	CreatedAt time.Time
}

// Adapter sends requests to a partner. It never sends one again by itself, passes the key on,
// and returns before the context ends. It is used by many goroutines at once.
type Adapter interface {
	// Name is shown in results, logs and metrics.
	Name() string
	// Send returns the partner's result. The error is a *SendError, or
	// any other one, which counts as INTERNAL_ERROR with an unknown outcome.
	Send(ctx context.Context, out Outgoing) (ExecResult, error)
}

// Found is the state of a key at the partner.
type Found string

const (
	FoundResult  Found = "result"  // it executed the request; the result is the answer
	FoundNothing Found = "nothing" // it has never seen the key
	FoundOpen    Found = "open"    // it is not finished with it, or does not say
)

// Reconciler is an Adapter that can ask the partner for the state of a key.
type Reconciler interface {
	Reconcile(ctx context.Context, out Outgoing) (ExecResult, Found, error)
}

// Failure is the kind of a SendError.
type Failure string

const (
	FailTimeout   Failure = "timeout"   // no answer in time: the outcome is unknown
	FailDown      Failure = "down"      // the partner could not be reached: nothing was sent
	FailBroken    Failure = "broken"    // the connection broke, or the partner answered 5xx: the outcome is unknown
	FailRejected  Failure = "rejected"  // the partner refused it for good
	FailProcessed Failure = "processed" // the partner has executed the key already, and does not say how
	FailThrottled Failure = "throttled" // the partner asks to slow down: it executed nothing
	FailUnread    Failure = "unread"    // the partner's answer could not be read: the outcome is unknown
)

// SendError says why a send has no result.
type SendError struct {
	Kind       Failure
	Message    string        // holds no secret and no body
	RetryAfter time.Duration // of throttled; 0: the worker chooses
	Err        error
}

// Error returns the message, or that of the cause.
func (e *SendError) Error() string {
	if e.Message != "" {
		return e.Message
	}
	if e.Err != nil {
		return e.Err.Error()
	}
	return string(e.Kind)
}

// bare returns the error without its cause, whose text may hold content.
func (e *SendError) bare() error {
	if e.Message != "" {
		return errors.New(e.Message)
	}
	return errors.New(string(e.Kind))
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// classify returns an error of Send as a SendError.
func classify(err error) *SendError {
	var se *SendError
	switch {
	case errors.As(err, &se):
		return se
	case errors.Is(err, context.DeadlineExceeded):
		return &SendError{Kind: FailTimeout, Message: "the partner did not answer in time", Err: err}
	}
	return &SendError{Kind: FailUnread, Err: err}
}

// Reason returns the reason code of a failure.
func (f Failure) Reason() ReasonCode {
	switch f {
	case FailTimeout:
		return ReasonTimeout
	case FailDown, FailBroken, FailThrottled:
		return ReasonDown
	case FailRejected:
		return ReasonRejected
	}
	return ReasonInternal
}

// Unknown reports whether the partner may have executed the request.
func (f Failure) Unknown() bool {
	return f == FailTimeout || f == FailBroken || f == FailProcessed || f == FailUnread
}

// trips reports whether a failure counts for the circuit breaker.
func (f Failure) trips() bool { return f == FailTimeout || f == FailDown || f == FailBroken }

// safely calls an adapter and turns a panic into an error.
func safely[T any](what string, call func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %s: %v", what, p)
		}
	}()
	return call()
}
