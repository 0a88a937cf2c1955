package weaver

import (
	"context"
	"errors"
	"time"

	"github.com/goweaver/weaver/internal/engine"
)

// Permanent marks an error that a retry cannot fix: the task fails at once, unless a Decider decides
// otherwise.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &engine.Verdict{Kind: engine.Permanent, Err: err}
}

// RetryAfter requests the next attempt after d instead of the backoff. It counts as an attempt; a
// handler that only waits for a limited resource uses Sleep or a ConcurrencyKey, which do not.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errors.New("asked to run again")
	}
	return &engine.Verdict{Kind: engine.RetryAfter, Delay: max(d, 0), Err: err}
}

// Blocked blocks the task for a person until Unblock, Cancel, or its deadline.
func Blocked(reason string) error {
	return &engine.Verdict{Kind: engine.Blocked, Err: errors.New(reason)}
}

// NotHere reports that this worker cannot run the task but another one may: a tool or a licence is
// missing, a disk is full. The task has not failed: the attempt is released with err on record and
// does not count, recorded steps stay, and the worker claims tasks of this type with backoff until one
// runs again. [Client.Workers] shows the reason. A task that no worker can run waits for one.
func NotHere(err error) error {
	if err == nil {
		err = errors.New("this worker cannot run the task")
	}
	return &engine.Verdict{Kind: engine.NotHere, Err: err}
}

// Suspended reports whether err means that the task waits, including Decompose and AddDependency.
// Deferred functions check it first: a suspended attempt did not fail. Handlers that undo effects use
// [Final].
func Suspended(err error) bool { return errors.Is(err, engine.ErrSuspended) }

// Final reports whether returning err ends the task, as far as the handler can know: the task was
// cancelled or its deadline passed, the error is [Permanent] or a [CallError], or no attempt is left.
// It is false if the task only waits ([Suspended], [Blocked]), is retried, or continues on another
// worker ([NotHere]). A handler runs its [Cleanup] steps if Final is true. A Decider may decide
// otherwise.
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

// WithCode attaches a code to an error: "card_refused". Deciders (Input.Error.Code), lists of failed
// tasks and alarms distinguish errors by it. The failure records at most 255 bytes of it. Of several
// codes the outermost counts.
func WithCode(code string, err error) error {
	if err == nil {
		return nil
	}
	return &engine.Coded{Code: code, Err: err}
}

// ErrorCode returns the code attached to an error, or "". The code of a failed task is in its
// TaskError or TaskInfo.Error.
func ErrorCode(err error) string { return engine.CodeOf(err) }

// IsPermanent reports whether err is marked by Permanent, for middleware and tests.
func IsPermanent(err error) bool {
	var v *engine.Verdict
	return errors.As(err, &v) && v.Kind == engine.Permanent
}
