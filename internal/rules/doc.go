// Package rules says what each move of a task means: values in, a verdict out,
// no I/O. Every store calls it, so that a rule is changed in one place and
// means the same on SQLite, on PostgreSQL and in package memstore. What a store
// adds is where the values come from and how the verdict is written.
//
//   - submit.go: the state in which a task is stored, its deadline.
//   - finish.go: what the end of an attempt makes of its task (the finish table).
//   - step.go: whether a recorded step is new, a repetition or a conflict.
//   - children.go: what a decompose makes of its task, and what follows for its children.
//   - edge.go: whether a dependent starts, waits, or cannot run any more.
//   - claim.go: how many due rows a claim looks at.
//   - key.go: whether a concurrency key has room, and which waiters wake.
//   - quarantine.go: which tasks may run beside each other after crashes.
//   - end.go: what a cancel or a deadline does to a task.
//   - undo.go: whether the end of a task waits for its undo, and how that goes on.
//   - reap.go: which worker may take expired leases, what a lost lease means.
//   - operate.go: which state an operator's command needs, what a retry revives.
//   - message.go: the failure messages that stores record.
//
// How a task counts for its job, and the state of a job, are part of the
// vocabulary: [task.Count] and [task.JobStateOf]. How a stored task reads at an
// instant is part of the port: [store.Derive].
//
// docs/architecture.md has a table of the rules with their tests.
package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// KindOf returns the kind of an error that may be nil.
func KindOf(e *task.Error) task.ErrorKind {
	if e == nil {
		return task.KindNone
	}
	return e.Kind
}

// Instant brings an instant to the form that stores keep: UTC, microseconds, no
// monotonic reading. The zero time stays zero.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond).Round(0)
}
