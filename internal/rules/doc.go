// Package rules decides every transition of a task: values in, a verdict out, no I/O. Every
// store calls it, so that a rule is changed in one place and means the same on SQLite, on
// PostgreSQL and in package memstore. A store adds only the reading of the values and the
// writing of the verdict.
//
//   - submit.go: the state in which a task is stored, its deadline.
//   - finish.go: the transition at the end of an attempt (the finish table).
//   - step.go: whether a recorded step is new, a repetition or a conflict.
//   - children.go: a decompose, and its effect on the children.
//   - edge.go: whether a dependent starts, waits, or cannot run any more.
//   - claim.go: the number of due rows that a claim reads.
//   - key.go: whether a concurrency key has room, and which waiters wake.
//   - quarantine.go: which tasks may run at the same time after crashes.
//   - end.go: the effect of a cancel or a deadline on a task.
//   - undo.go: whether the end of a task waits for its undo, and how that continues.
//   - reap.go: which worker may take expired leases, the effect of a lost lease.
//   - operate.go: the states that operators' commands need, the tasks that a retry revives.
//   - message.go: the failure messages that stores record.
//
// The counters of a job and its state are part of the vocabulary: [task.Count] and
// [task.JobStateOf]. The fields of a stored task that depend on the time are derived by the
// port: [store.Derive].
//
// docs/architecture-core.md and its neighbours list the rules with their tests.
package rules

import (
	"time"

	"github.com/goweaver/weaver/task"
)

// KindOf returns the kind of an error, or [task.KindNone] for nil.
func KindOf(e *task.Error) task.ErrorKind {
	if e == nil {
		return task.KindNone
	}
	return e.Kind
}

// Instant converts an instant to the form that stores keep: UTC, microseconds, no monotonic
// reading. The zero time stays zero.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond).Round(0)
}
