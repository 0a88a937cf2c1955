package weaver

import (
	"time"

	"github.com/goweaver/weaver/internal/option"
)

// TypeOption is an option of Define.
type TypeOption interface{ ApplyType(*option.Settings) }

// EnqueueOption is an option of Enqueue, With and the like.
type EnqueueOption interface {
	ApplyEnqueue(*option.Settings)
}

// Option is an option of both: Define takes it as the default of the type, an enqueue as the value for
// one task.
type Option interface {
	TypeOption
	EnqueueOption
}

// MaxAttempts limits the failed attempts of a task; default 5. Suspensions, drains, lost leases and
// errors of the engine itself do not count.
func MaxAttempts(n int) Option { return option.MaxAttempts.Set(n) }

// NoRetry lets the first failure end the task: MaxAttempts(1).
func NoRetry() Option { return MaxAttempts(1) }

// Backoff is the pause before the second attempt; it doubles for each further
// one, ± 10 %. Default 2 s.
func Backoff(d time.Duration) Option { return option.Backoff.Set(d) }

// BackoffMax caps the pause between attempts; default 1 h.
func BackoffMax(d time.Duration) Option { return option.BackoffMax.Set(d) }

// Timeout limits one attempt: its context ends with cause ErrTimeout. A handler that still returns
// success has succeeded. By default there is no limit.
func Timeout(d time.Duration) Option { return option.Timeout.Set(d) }

// CleanupWhenCancelled makes a task that is not running undo its effects before a cancel or deadline
// ends it: while it sleeps, waits for its retry, is blocked or is due again. It also covers a handler
// that panics in its last attempt. Without it such a task ends at once. The handler runs with an ended
// context, with cause ErrCancelled, ErrDeadline or [ErrUndoing]. Completed steps return their recorded
// results, others do not run, and the Sleep or Ask in which the task waited returns the cause. The
// handler thus reaches its error path, whose Cleanup steps run and are recorded, for 30 s. Then the
// task ends cancelled, whatever the handler returns, except success without a cleanup. A handler that
// waits by returning Blocked must check its context first.
//
// If a cleanup fails, another attempt retries it: after a second, two, and so on, at most a minute.
// After 24 hours, or at a Permanent error, the task fails with the kind
// [github.com/goweaver/weaver/task.KindUndoFailed]. These attempts do not count against MaxAttempts.
// The task is pending until it ends, with the reason [github.com/goweaver/weaver/task.WaitUndo], and
// waits like others for a worker, its queue and its concurrency key. A value that its worker cannot
// read blocks the task; Unblock without an input, or Retry with [Cleanups], resumes it. A task that
// never ran has no effects and ends at once. A task cancelled with Force is undone after the lease of
// its worker has ended, as its handler may run until then.
func CleanupWhenCancelled() Option { return option.CleanupWhenCancelled.Set(true) }

// Queue names the queue of the task; default "default".
func Queue(name string) Option { return option.Queue.Set(name) }

// Priority orders due tasks of a worker: 1 first, 9 last, default 5; equal
// priorities run oldest due first.
func Priority(p int) Option { return option.Priority.Set(p) }

// SchemaVersion is the version of the input's shape within one major version of the task type; default
// 1. It is stored with each task. A worker starts no task whose schema version is newer than that of
// its handler's type, so producers may be deployed first; Upcast lets a handler read older inputs.
func SchemaVersion(v int) Option { return option.SchemaVersion.Set(v) }

// ExpireAfter sets the deadline of the task, counted from its enqueue. A task unfinished by then is
// cancelled with error kind deadline.
func ExpireAfter(d time.Duration) Option { return option.ExpireAfter.Set(d) }

// Label attaches a value that lists can filter by. Key and value have at most 255 bytes
// each; longer texts go into Metadata.
func Label(key, value string) Option { return option.Label(key, value) }

// Metadata attaches a value that the handler can read (Current).
func Metadata(key, value string) Option { return option.Metadata(key, value) }

// ConcurrencyKey lets at most limit (default 1) tasks with this key run at
// once, whatever their types; the others wait, oldest first. A task holds its
// key only while it runs. The limit of the task claimed last holds.
func ConcurrencyKey(key string, limit ...int) EnqueueOption {
	return option.ConcurrencyKey(key, limit...)
}

// Coalesce makes a waiting task take the input instead of storing a second task. The waiting task has
// the same type, has not started, and has the same IdempotencyKey or, without one, the same
// ConcurrencyKey in the same queue. It keeps its place and all its other options, and the answer names
// it (store.DispositionCoalesced). Tasks that run, wait to run again or have ended do not take it; nor
// does a task paused by an operator (PauseTask) or one of a job.
//
// If no task takes the input, the result depends on the key. With a ConcurrencyKey a new task is
// stored (store.DispositionCreated), so the latest input always runs. An IdempotencyKey names one
// existing task: with store.DispositionExisting the input is discarded. Check the Disposition, or
// coalesce by ConcurrencyKey.
//
// Coalesce needs one of the keys, and its own transaction: in InTx it is ErrState. Tasks of jobs,
// children and tasks started by a step refuse it.
func Coalesce() EnqueueOption { return option.Coalesce.Set(true) }

// RequireSameInput makes an enqueue fail with ErrConflict if a task with its IdempotencyKey exists
// with a different input; nothing is stored. Without it the existing task is the answer, whatever its
// input. Inputs are compared as stored JSON. An erased, dropped or expired input cannot be compared
// and is a conflict, too.
//
// It needs an IdempotencyKey and a call for a single task: in a batch, in InTx, in a step and for a
// rerun it is ErrInvalidOption.
func RequireSameInput() EnqueueOption { return option.RequireSameInput.Set(true) }

// Delay makes the task due this long after its enqueue. The last of Delay and At counts.
func Delay(d time.Duration) EnqueueOption { return option.Delay.Set(d) }

// At makes the task due at an instant; a past instant means now.
func At(t time.Time) EnqueueOption { return option.At.Set(t) }
