package rules

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// CoalesceLooks is how many dispatch rows of a lane and key, and how many waiters, an
// enqueue looks at for a task that takes its input.
const CoalesceLooks = 100

// TakesInput reports whether a task, which has the key, takes the input of another
// one that is enqueued ([task.New.Coalesce]): it has not started, and nothing but
// its enqueue decided what its input is.
func TakesInput(t *task.Task) bool {
	return (t.State == task.Pending || t.State == task.Ready) && t.AttemptNo == 0 &&
		t.JobID.IsZero() && t.Depth == 0 && t.RerunOf.IsZero() && !t.CancelRequested
}

// CheckCoalesce refuses to coalesce in the caller's own transaction, which would
// keep a row locked that others wait for: [store.ErrState].
func CheckCoalesce(sub *store.Submission) error {
	for i := range sub.Tasks {
		if n := &sub.Tasks[i]; n.Coalesce {
			return fmt.Errorf("a task of type %s with Coalesce is enqueued in a transaction of the program, which may only insert: "+
				"enqueue it without InTx, or leave Coalesce out: %w", n.Type, store.ErrState)
		}
	}
	return nil
}
