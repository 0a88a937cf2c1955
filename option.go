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

// Option is an option of both: given to Define it is the default of the type,
// given to an enqueue it holds for that task.
type Option interface {
	TypeOption
	EnqueueOption
}

// MaxAttempts limits how often a task may fail before it is given up;
// default 5. Suspensions, drains, lost leases and errors of the engine itself
// do not count.
func MaxAttempts(n int) Option { return option.MaxAttempts.Set(n) }

// NoRetry lets the first failure end the task: MaxAttempts(1).
func NoRetry() Option { return MaxAttempts(1) }

// Backoff is the pause before the second attempt; it doubles for each further
// one, ± 10 %. Default 2 s.
func Backoff(d time.Duration) Option { return option.Backoff.Set(d) }

// BackoffMax caps the pause between attempts; default 1 h.
func BackoffMax(d time.Duration) Option { return option.BackoffMax.Set(d) }

// Timeout bounds one attempt: its context ends with cause ErrTimeout. A handler that
// returns success all the same has succeeded. Default none.
func Timeout(d time.Duration) Option { return option.Timeout.Set(d) }

// CleanupWhenCancelled has a task undone before it ends when it is cancelled, or its
// deadline passes, while it does not run: while it sleeps, waits for its retry, is
// blocked or is due again, and when its handler panics in its last attempt. Without it
// such a task ends at once. The handler runs with a
// context that has ended, with cause ErrCancelled, ErrDeadline or [ErrUndoing]. Completed
// steps return what they recorded, others do not run, and the Sleep or Ask in which the
// task waited returns the cause; so the handler comes to its error path, whose
// steps of Cleanup run and are recorded, for 30 s. Then the task ends
// cancelled, whatever the handler returns but success without a cleanup. A handler that waits by
// returning Blocked looks at its context before it does.
//
// If a cleanup fails, another attempt tries it again: after a second, two, and so on, at
// most a minute. After 24 hours, or at a Permanent error, the task fails with the kind
// [github.com/goweaver/weaver/task.KindUndoFailed]. These attempts do not count against MaxAttempts. The task is pending
// until it ends, with the reason [github.com/goweaver/weaver/task.WaitUndo], and waits like others for a worker, its
// queue and its concurrency key. A value that its worker cannot read blocks the task, and
// Unblock without an input, or Retry with [Cleanups], goes on. A task that never ran has
// nothing to undo and ends at once. One that is cancelled with Force is undone once the lease
// of its worker has ended, as its handler may run until then.
func CleanupWhenCancelled() Option { return option.CleanupWhenCancelled.Set(true) }

// Queue names the line that the task waits in; default "default".
func Queue(name string) Option { return option.Queue.Set(name) }

// Priority orders due tasks of a worker: 1 first, 9 last, default 5; equal
// priorities run oldest due first.
func Priority(p int) Option { return option.Priority.Set(p) }

// SchemaVersion numbers the shape of the input inside one major version of
// the task type; default 1. It is stored with each task. A worker starts no task
// whose schema version is newer than that of its handler's type, so producers
// may be deployed first; Upcast lets a handler read older ones.
func SchemaVersion(v int) Option { return option.SchemaVersion.Set(v) }

// ExpireAfter sets the deadline of the task, counted from its enqueue. A task
// that has not ended by then is cancelled with error kind deadline.
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

// Coalesce has a task that waits take the input, instead of a second one being
// stored: one of the type that has not started, with the same IdempotencyKey or, if
// that is not given, with the same ConcurrencyKey in the same queue. It keeps its
// place and all its other options, and the answer names it
// (store.DispositionCoalesced). One that runs, waits to run again or has ended is left
// alone; so is one that an operator paused (PauseTask), and one of a job.
//
// What happens then depends on the key. By a ConcurrencyKey a new task is stored
// (store.DispositionCreated), so that the latest input always runs. An IdempotencyKey names
// one task for as long as that exists: store.DispositionExisting says that it was not given
// this input, which is lost. Look at the Disposition, or coalesce by ConcurrencyKey.
//
// It needs one of the keys, and a transaction of its own: in InTx it is ErrState. Tasks
// of jobs, children and tasks that a step starts refuse it.
func Coalesce() EnqueueOption { return option.Coalesce.Set(true) }

// RequireSameInput makes an enqueue fail with ErrConflict when a task with its
// IdempotencyKey exists and has another input; nothing is stored then. Without it the
// existing task is the answer, whatever its input. Inputs are compared as JSON, in the form in
// which they are stored. One that was erased, dropped or has expired cannot be compared, and is
// a conflict, too.
//
// It needs an IdempotencyKey, and a call of its own for one task: in a batch, in InTx, in a step
// and for a rerun it is ErrInvalidOption.
func RequireSameInput() EnqueueOption { return option.RequireSameInput.Set(true) }

// Delay makes the task due this long after its enqueue. Of Delay and At the last
// one counts.
func Delay(d time.Duration) EnqueueOption { return option.Delay.Set(d) }

// At makes the task due at an instant; one that has passed means now.
func At(t time.Time) EnqueueOption { return option.At.Set(t) }
