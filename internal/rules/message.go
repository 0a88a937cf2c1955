package rules

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CancelRequest is a cancel that a running task was asked for, as its row has it.
// Without a Kind none was asked for.
type CancelRequest struct {
	Kind   task.ErrorKind // cancelled, deadline, parent_ended, budget or job_budget; "" if none
	By     string         // not with deadline
	Reason string         // not with deadline
}

// CancelFailure is the failure message of a cancelled task: who asked for it and
// why, or, with [task.KindDeadline], which deadline passed, or which budget is used
// up.
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

// LeaseLostFailure is the failure message of an attempt whose lease was taken:
// because it expired, or before that because its process was seen to be dead.
func LeaseLostFailure(worker string, expires, now time.Time) *task.Error {
	text := fmt.Sprintf("the lease of worker %q ended at %s without a report", worker, expires.Format(time.RFC3339Nano))
	if expires.After(now) {
		text = fmt.Sprintf("the process of worker %q ended without a report", worker)
	}
	return &task.Error{Kind: task.KindLeaseExpired, Message: text}
}

// RestoredFailure is the failure message of an attempt whose lease ended because the
// store was restored.
func RestoredFailure(worker string) *task.Error {
	return &task.Error{Kind: task.KindLeaseExpired, Message: fmt.Sprintf("the store was restored from a backup, which ended the lease of worker %q", worker)}
}

// PoisonFailure is the failure message of a task that lost so many leases in a
// row.
func PoisonFailure(losses int) *task.Error {
	return &task.Error{
		Kind:    task.KindPoison,
		Message: fmt.Sprintf("%d leases were lost in a row to processes that stopped: the task seems to kill its worker", losses),
	}
}

// UnmetFailure is the failure message of a task that cannot run because the
// need of an edge, called name (see [TaskName]), ended in a way for which the
// edge does not hold.
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

// NotNeededFailure is the failure message of a task whose edges of the kind
// failed all ended and do not hold; need is the oldest of these, called name.
func NotNeededFailure(need *EndedNeed, others bool, name string) *task.Error {
	text := fmt.Sprintf("not needed: it runs if task %s fails, which ended %s", name, need.End.State)
	if others {
		text = fmt.Sprintf("not needed: it runs if task %s or another of its needs fails, and none of them did", name)
	}
	return &task.Error{Kind: task.KindNotNeeded, Message: text}
}

// MaxEndedMessage is how many bytes of a message an edge keeps ([EndedError]).
const MaxEndedMessage = 1024

// EndedError is what an awaited edge keeps of the error with which its need ended in
// a state: the kind, the code and the beginning of the message. nil: it succeeded.
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

// TaskName names a task in a message, by its name in its job if it has one.
func TaskName(node string, id task.ID) string {
	if node != "" {
		return `"` + node + `" (` + id.String() + ")"
	}
	return id.String()
}

// Why a write found its lease lost.
const (
	LostToAnother = "another attempt has begun, or the task has ended"
	LostToRestore = "the store was restored since"
)

// LeaseLost is the error of a write whose lease is lost: [store.ErrLeaseLost].
func LeaseLost(l *task.Lease, why string) error {
	return fmt.Errorf("task %v, epoch %d: %w (%s)", l.Task, l.Epoch, store.ErrLeaseLost, why)
}
