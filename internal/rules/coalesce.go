package rules

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CoalesceLooks is the maximum number of dispatch rows, and of waiters, of a lane and key that
// an enqueue reads to find a task to coalesce into.
const CoalesceLooks = 100

// TakesInput reports whether a task with the key takes the input of a newly enqueued task
// ([task.New.Coalesce]). It must not have started, and only its enqueue may have set its
// input.
func TakesInput(t *task.Task) bool {
	return (t.State == task.Pending || t.State == task.Ready) && t.AttemptNo == 0 &&
		t.JobID.IsZero() && t.Depth == 0 && t.RerunOf.IsZero() && !t.CancelRequested
}

// CheckCoalesce refuses ([store.ErrState]) to coalesce in the caller's own transaction,
// because that transaction would keep a contended row locked.
func CheckCoalesce(sub *store.Submission) error {
	for i := range sub.Tasks {
		if n := &sub.Tasks[i]; n.Coalesce {
			return fmt.Errorf("a task of type %s with Coalesce is enqueued in a transaction of the program, which may only insert: "+
				"enqueue it without InTx, or leave Coalesce out: %w", n.Type, store.ErrState)
		}
	}
	return nil
}
