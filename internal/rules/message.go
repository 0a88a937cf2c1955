package rules

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CancelRequest is the cancel request on the row of a running task. An empty Kind means that
// there is no request.
type CancelRequest struct {
	Kind   task.ErrorKind // cancelled, deadline, parent_ended, budget, job_budget or ""
	By     string         // empty for deadline
	Reason string         // empty for deadline
}

// CancelFailure returns the failure of a cancelled task: the requester and the reason. For
// [task.KindDeadline] it names the deadline, for a budget the used-up totals.
func CancelFailure(c CancelRequest, deadline time.Time) *task.Error {
	if c.Kind == task.KindDeadline {
		return &task.Error{Kind: c.Kind, Message: "its deadline passed at " + deadline.Format(time.RFC3339Nano)}
	}
	if c.Kind == task.KindJobBudget || c.Kind == task.KindBudget {
		return BudgetFailure(c.Reason, nil)
	}
	return &task.Error{Kind: task.KindCancelled, Message: "cancelled" + byWhom(store.Audit{By: c.By, Reason: c.Reason})}
}

// DeadlineFailure is [CancelFailure] for a deadline that passed.
func DeadlineFailure(deadline time.Time) *task.Error {
	return CancelFailure(CancelRequest{Kind: task.KindDeadline}, deadline)
}

// LeaseLostFailure returns the failure of an attempt whose lease was taken because it expired,
// or earlier because its process was found dead.
func LeaseLostFailure(worker string, expires, now time.Time) *task.Error {
	text := fmt.Sprintf("the lease of worker %q ended at %s without a report", worker, expires.Format(time.RFC3339Nano))
	if expires.After(now) {
		text = fmt.Sprintf("the process of worker %q ended without a report", worker)
	}
	return &task.Error{Kind: task.KindLeaseExpired, Message: text}
}

// RestoredFailure returns the failure of an attempt whose lease ended because the store was
// restored.
func RestoredFailure(worker string) *task.Error {
	return &task.Error{Kind: task.KindLeaseExpired, Message: fmt.Sprintf("the store was restored from a backup, which ended the lease of worker %q", worker)}
}

// PoisonFailure returns the failure of a task that lost this number of consecutive leases to
// crashes.
func PoisonFailure(losses int) *task.Error {
	return &task.Error{
		Kind:    task.KindPoison,
		Message: fmt.Sprintf("%d leases were lost in a row to processes that stopped: the task seems to kill its worker", losses),
	}
}

// UnmetFailure returns the failure of a task that cannot run because an edge does not hold.
// name is the name of the edge's need ([TaskName]).
func UnmetFailure(e *EndedNeed, name string) *task.Error {
	text := fmt.Sprintf("it needs task %s, which ended %s", name, e.End.State)
	if e.End.Kind == task.KindNotNeeded {
		text = fmt.Sprintf("not needed: it needs task %s, which was not needed", name)
	}
	if e.UnmetKind() == task.KindUndoFailed {
		text = fmt.Sprintf("not run: the undo was given up in task %s, which ended %s, so what came before it stays", name, e.End.State)
	}
	return &task.Error{Kind: e.UnmetKind(), Message: text}
}

// NotNeededFailure returns the failure of a task whose edges of the kind failed all ended
// without holding. need is the oldest of their needs, and name its name.
func NotNeededFailure(need *EndedNeed, others bool, name string) *task.Error {
	text := fmt.Sprintf("not needed: it runs if task %s fails, which ended %s", name, need.End.State)
	if others {
		text = fmt.Sprintf("not needed: it runs if task %s or another of its needs fails, and none of them did", name)
	}
	return &task.Error{Kind: task.KindNotNeeded, Message: text}
}

// MaxEndedMessage is the maximum size in bytes of the message that an edge keeps
// ([EndedError]).
const MaxEndedMessage = 1024

// EndedError returns the part of a need's error that an awaited edge keeps: kind, code and the
// beginning of the message. It returns nil if the need succeeded.
func EndedError(s task.State, err *task.Error) *task.Error {
	if err == nil || s == task.Succeeded {
		return nil
	}
	kept := &task.Error{Kind: err.Kind, Code: err.Code, Message: err.Message}
	if len(kept.Message) > MaxEndedMessage {
		end := MaxEndedMessage
		for end > 0 && !utf8.RuneStart(kept.Message[end]) {
			end--
		}
		kept.Message = kept.Message[:end]
	}
	return kept
}

// TaskName formats a task for a message, with its name in its job if it has one.
func TaskName(node string, id task.ID) string {
	if node != "" {
		return `"` + node + `" (` + id.String() + ")"
	}
	return id.String()
}

// Reasons for a lost lease.
const (
	LostToAnother = "another attempt has begun, or the task has ended"
	LostToRestore = "the store was restored since"
)

// LeaseLost returns [store.ErrLeaseLost] for a write without a valid lease.
func LeaseLost(l *task.Lease, why string) error {
	return fmt.Errorf("task %v, epoch %d: %w (%s)", l.Task, l.Epoch, store.ErrLeaseLost, why)
}
