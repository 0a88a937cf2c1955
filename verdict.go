package weaver

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/engine"
)

// Permanent says that retrying cannot help: the task fails at once, unless a
// Decider knows better.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &engine.Verdict{Kind: engine.Permanent, Err: err}
}

// RetryAfter asks for the next attempt after d instead of the backoff. It
// counts as an attempt; a handler that only waits for its turn at something
// limited calls Sleep, or has a ConcurrencyKey, which do not.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to run again")
	}
	return &engine.Verdict{Kind: engine.RetryAfter, Delay: max(d, 0), Err: err}
}

// Blocked asks for a person: the task waits as blocked until Unblock, Cancel,
// or its deadline.
func Blocked(reason string) error {
	return &engine.Verdict{Kind: engine.Blocked, Err: errors.New(reason)}
}

// NotHere says that this worker cannot run the task, and that another one may: a tool or
// a licence is missing, a disk is full. The task has not failed: the attempt is released
// with err on record and counts for nothing, recorded steps stay, and the worker claims
// tasks of this type with backoff until one runs again. [Client.Workers] shows what is
// wrong. A task that no worker can run waits for one.
func NotHere(err error) error {
	if err == nil {
		err = errors.New("this worker cannot run the task")
	}
	return &engine.Verdict{Kind: engine.NotHere, Err: err}
}

// Suspended reports whether err says that the task waits; those of Decompose
// and AddDependency do. Deferred functions
// check it first: a suspended attempt did not fail. Handlers that undo things
// ask [Final].
func Suspended(err error) bool { return errors.Is(err, engine.ErrSuspended) }

// Final reports whether an error with which a handler is about to return ends its
// task, as far as the handler can know: the task was cancelled or its deadline
// passed, the error is [Permanent] or a [CallError], or no attempt is left. It does not when the
// task only waits ([Suspended], [Blocked]), is tried again, or goes on with
// another worker ([NotHere]). What a task undoes ([Cleanup]) it undoes then. A Decider may
// decide otherwise.
func Final(ctx context.Context, err error) bool {
	if err == nil || Suspended(err) {
		return false
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrCancelled) || errors.Is(cause, ErrDeadline) || errors.Is(cause, ErrUndoing) {
		return true
	} else if errors.Is(cause, ErrDraining) || errors.Is(cause, ErrLeaseLost) || errors.Is(cause, ErrLeaseUncertain) {
		return false
	}
	var v *engine.Verdict
	if errors.As(err, &v) && v.Kind != engine.RetryAfter {
		return v.Kind == engine.Permanent
	}
	var called *CallError
	if v == nil && errors.As(err, &called) {
		return true
	}
	return Current(ctx).LastAttempt
}

// WithCode attaches a code to an error, by which a Decider (Input.Error.Code), a
// list of failed tasks or an alarm distinguishes it from others: "card_refused".
// It is recorded with the failure, at most 255 bytes of it. Of several codes the
// outermost counts.
func WithCode(code string, err error) error {
	if err == nil {
		return nil
	}
	return &engine.Coded{Code: code, Err: err}
}

// ErrorCode returns the code that was attached to an error, "" if none was. The
// code of a task that failed is in its TaskError, or TaskInfo.Error.
func ErrorCode(err error) string { return engine.CodeOf(err) }

// IsPermanent reports whether err carries the verdict of Permanent: middleware
// and tests ask it.
func IsPermanent(err error) bool {
	var v *engine.Verdict
	return errors.As(err, &v) && v.Kind == engine.Permanent
}
