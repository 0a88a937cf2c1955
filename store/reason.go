package store

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/task"
)

// Why a task ended, in the words that every store records.

// CancelError says who asked a task to end, and why; with task.KindDeadline
// that its deadline passed.
func CancelError(kind task.ErrorKind, by, reason string, deadline time.Time) *task.Error {
	if kind == task.KindDeadline {
		return &task.Error{Kind: kind, Message: "its deadline passed at " + deadline.Format(time.RFC3339Nano)}
	}
	text := "cancelled"
	if by != "" {
		text += " by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return &task.Error{Kind: task.KindCancelled, Message: text}
}

// LeaseLostError is the error of an attempt whose lease was taken away.
func LeaseLostError(worker string, end time.Time) *task.Error {
	return &task.Error{
		Kind:    task.KindLeaseExpired,
		Message: fmt.Sprintf("the lease of worker %q ended at %s without a report", worker, end.Format(time.RFC3339Nano)),
	}
}

// PoisonError is the error of a task that lost so many leases in a row.
func PoisonError(losses int) *task.Error {
	return &task.Error{
		Kind:    task.KindPoison,
		Message: fmt.Sprintf("%d leases were lost in a row to processes that stopped: the task seems to kill its worker", losses),
	}
}

// UnmetError is the error of a task that cannot run because a need, named as
// TaskName does, ended in a state for which the edge does not hold.
func UnmetError(kind task.EdgeKind, need string, ended task.State) *task.Error {
	if kind == task.OnFailed {
		return &task.Error{Kind: task.KindNotNeeded, Message: fmt.Sprintf("not needed: it runs if task %s fails, which ended %s", need, ended)}
	}
	return &task.Error{Kind: task.KindDependencyFailed, Message: fmt.Sprintf("it needs task %s, which ended %s", need, ended)}
}

// TaskName names a task in a message, by its name in its job if it has one.
func TaskName(node string, id task.ID) string {
	if node != "" {
		return `"` + node + `" (` + id.String() + ")"
	}
	return id.String()
}
