package weaver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/task"
)

// settings are a task's options with the type's and the enqueue's applied.
type settings struct {
	task task.New // without what the enqueue itself gives it: ID, type, input, needs
	errs []error

	description string // of the type
}

func defaults() settings {
	return settings{task: task.New{
		Queue:         task.DefaultQueue,
		SchemaVersion: 1,
		Priority:      task.DefaultPriority,
		MaxAttempts:   task.DefaultMaxAttempts,
		MaxRepairs:    task.DefaultMaxRepairs,
		Backoff:       task.DefaultBackoff,
		BackoffMax:    task.DefaultBackoffMax,
	}}
}

// clone returns settings whose maps may be changed.
func (s settings) clone() settings {
	s.task.Labels = maps.Clone(s.task.Labels)
	s.task.Metadata = maps.Clone(s.task.Metadata)
	s.errs = slices.Clone(s.errs)
	return s
}

func (s *settings) problem(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

// TypeOption is an option of Define.
type TypeOption interface{ applyType(*settings) }

// EnqueueOption is an option of Enqueue, With and the like.
type EnqueueOption interface{ applyEnqueue(*settings) }

// Option is an option of both: given to Define it is the default of the type,
// given to an enqueue it holds for that task.
type Option interface {
	TypeOption
	EnqueueOption
}

type option func(*settings)

func (o option) applyType(s *settings)    { o(s) }
func (o option) applyEnqueue(s *settings) { o(s) }

type enqueueOption func(*settings)

func (o enqueueOption) applyEnqueue(s *settings) { o(s) }

// MaxAttempts limits how often a task may fail before it is given up;
// default 5. Suspensions, drains, lost leases and errors of the engine itself
// do not count.
func MaxAttempts(n int) Option {
	return option(func(s *settings) {
		if n < 1 {
			s.problem("MaxAttempts(%d): want at least 1", n)
			return
		}
		s.task.MaxAttempts = n
	})
}

// NoRetry lets the first failure end the task: MaxAttempts(1).
func NoRetry() Option { return MaxAttempts(1) }

// Backoff is the pause before the second attempt; it doubles for each further
// one, ± 10 %. Default 2 s.
func Backoff(d time.Duration) Option {
	return option(func(s *settings) {
		if d < time.Microsecond {
			s.problem("Backoff(%s): want at least a microsecond", d)
			return
		}
		s.task.Backoff = d
	})
}

// BackoffMax caps the pause between attempts; default 1 h.
func BackoffMax(d time.Duration) Option {
	return option(func(s *settings) {
		if d < time.Microsecond {
			s.problem("BackoffMax(%s): want at least a microsecond", d)
			return
		}
		s.task.BackoffMax = d
	})
}

// Timeout bounds one attempt: its context ends with cause ErrTimeout. A handler that
// returns success all the same has succeeded. Default none.
func Timeout(d time.Duration) Option {
	return option(func(s *settings) {
		if d < 0 || d > 0 && d < time.Microsecond {
			s.problem("Timeout(%s): want at least a microsecond, or 0 for none", d)
			return
		}
		s.task.Timeout = d
	})
}

// CleanupWhenCancelled has a task undone before it ends when it is cancelled, or its
// deadline passes, while it does not run: while it sleeps, waits for its retry, is
// blocked or is due again, and when its handler panics in its last attempt. Without it
// such a task ends at once. The handler runs with a
// context that has ended, with cause ErrCancelled, ErrDeadline or [ErrUndoing]. Completed
// steps return what they recorded, others do not run, and the Sleep or Ask in which the
// task waited returns the cause; so the handler comes to its error path, whose
// steps of Cleanup run and are recorded, for CleanupLimit. Then the task ends
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
func CleanupWhenCancelled() Option {
	return option(func(s *settings) { s.task.CleanupWhenCancelled = true })
}

// Queue names the line that the task waits in; default "default".
func Queue(name string) Option {
	return option(func(s *settings) {
		if err := checkKey("Queue", name); err != nil {
			s.errs = append(s.errs, err)
			return
		}
		s.task.Queue = name
	})
}

// Priority orders due tasks of a worker: 1 first, 9 last, default 5; equal
// priorities run oldest due first.
func Priority(p int) Option {
	return option(func(s *settings) {
		if p < task.MinPriority || p > task.MaxPriority {
			s.problem("Priority(%d): want %d (first) to %d (last)", p, task.MinPriority, task.MaxPriority)
			return
		}
		s.task.Priority = p
	})
}

// SchemaVersion numbers the shape of the input inside one major version of
// the task type; default 1. It is stored with each task. A worker starts no task
// whose schema version is newer than that of its handler's type, so producers
// may be deployed first; Upcast lets a handler read older ones.
func SchemaVersion(v int) Option {
	return option(func(s *settings) {
		if v < 1 {
			s.problem("SchemaVersion(%d): want at least 1", v)
			return
		}
		s.task.SchemaVersion = v
	})
}

// ExpireAfter sets the deadline of the task, counted from its enqueue. A task
// that has not ended by then is cancelled with error kind deadline.
func ExpireAfter(d time.Duration) Option {
	return option(func(s *settings) {
		if d <= 0 {
			s.problem("ExpireAfter(%s): want a positive duration", d)
			return
		}
		s.task.ExpireAfter = d
	})
}

// Label attaches a value that lists can filter by. Key and value have at most 255 bytes
// each; longer texts go into Metadata.
func Label(key, value string) Option {
	return option(func(s *settings) { s.attach(&s.task.Labels, "Label", key, value, checkLabel) })
}

// Metadata attaches a value that the handler can read (Current).
func Metadata(key, value string) Option {
	return option(func(s *settings) { s.attach(&s.task.Metadata, "Metadata", key, value, task.CheckText) })
}

// checkLabel refuses the value of a label that some store could not index.
func checkLabel(what, value string) error {
	err := task.CheckKey(what, value)
	if err != nil && len(value) > task.MaxKey {
		err = fmt.Errorf("%w: labels are indexed: put longer texts into Metadata", err)
	}
	return err
}

// attach adds a value that check accepts to a map of labels or metadata.
func (s *settings) attach(m *map[string]string, option, key, value string, check func(what, text string) error) {
	err := checkKey(option, key)
	if err == nil {
		err = check(option+" "+key, value)
	}
	if err != nil {
		s.errs = append(s.errs, err)
		return
	}
	if *m == nil {
		*m = make(map[string]string)
	}
	(*m)[key] = value
}

// ConcurrencyKey lets at most limit (default 1) tasks with this key run at
// once, whatever their types; the others wait, oldest first. A task holds its
// key only while it runs. The limit of the task claimed last holds.
func ConcurrencyKey(key string, limit ...int) EnqueueOption {
	return enqueueOption(func(s *settings) {
		n := 1
		if len(limit) > 0 {
			n = limit[0]
		}
		if n < 1 || len(limit) > 1 {
			s.problem("ConcurrencyKey(%q, %v): want one limit of at least 1", key, limit)
			return
		}
		if err := checkKey("ConcurrencyKey", key); err != nil {
			s.errs = append(s.errs, err)
			return
		}
		s.task.ConcurrencyKey, s.task.ConcurrencyLimit = key, n
	})
}

// Coalesce has a task that waits take the input, instead of a second one being
// stored: one of the type that has not started, with the same IdempotencyKey or, if
// that is not given, with the same ConcurrencyKey in the same queue. It keeps its
// place and all its other options, and the answer names it
// (DispositionCoalesced). One that runs, waits to run again or has ended is left
// alone; so is one that an operator paused (PauseTask), and one of a job.
//
// What happens then depends on the key. By a ConcurrencyKey a new task is stored
// (DispositionCreated), so that the latest input always runs. An IdempotencyKey names
// one task for as long as that exists: DispositionExisting says that it was not given
// this input, which is lost. Look at the Disposition, or coalesce by ConcurrencyKey.
//
// It needs one of the keys, and a transaction of its own: in InTx it is ErrState. Tasks
// of jobs, children and tasks that a step starts refuse it.
func Coalesce() EnqueueOption {
	return enqueueOption(func(s *settings) { s.task.Coalesce = true })
}

// RequireSameInput makes an enqueue fail with ErrConflict when a task with its
// IdempotencyKey exists and has another input; nothing is stored then. Without it the
// existing task is the answer, whatever its input. Inputs are compared as JSON, in the form in
// which they are stored. One that was erased, dropped or has expired cannot be compared, and is
// a conflict, too.
//
// It needs an IdempotencyKey, and a call of its own for one task: in a batch, in InTx, in a step
// and for a rerun it is ErrInvalidOption.
func RequireSameInput() EnqueueOption {
	return enqueueOption(func(s *settings) { s.task.SameInput = true })
}

// Delay makes the task due this long after its enqueue. Of Delay and At the last
// one counts.
func Delay(d time.Duration) EnqueueOption {
	return enqueueOption(func(s *settings) {
		if d < 0 {
			s.problem("Delay(%s): want 0 or more", d)
			return
		}
		s.task.Delay, s.task.At = d, time.Time{}
	})
}

// At makes the task due at an instant; one that has passed means now.
func At(t time.Time) EnqueueOption {
	return enqueueOption(func(s *settings) {
		if !validTime(t) {
			s.problem("At(%s): want an instant before the year 10000", t)
			return
		}
		s.task.At, s.task.Delay = t, 0
	})
}

// validTime reports whether stores and JSON can represent an instant.
func validTime(t time.Time) bool { return t.UTC().Year() <= 9999 }

// checkKey returns an error unless a text is a name or key that every store can index.
func checkKey(option, key string) error {
	if key == "" {
		return fmt.Errorf("%s: the name is empty", option)
	}
	return task.CheckKey(option, key)
}
