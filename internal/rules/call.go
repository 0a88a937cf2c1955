package rules

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// MaxCallTasks is how many children of a call one record stores at most.
const MaxCallTasks = 1000

// checkCall refuses a record of a call that no engine sends.
func checkCall(rec *store.Record) error {
	s := rec.Step
	if len(rec.Tasks) > MaxCallTasks || s.ChildrenLeft < 0 || s.ChildrenStored < 0 {
		return fmt.Errorf("record for task %v: call %q with %d tasks, of %d children, behind %d", rec.Lease.Task, s.Name, len(rec.Tasks), s.ChildrenLeft, s.ChildrenStored)
	}
	for i := range rec.Tasks {
		if c := &rec.Tasks[i]; len(c.Needs) > 0 || c.IdempotencyKey != "" || c.Coalesce || c.ID == rec.Lease.Task {
			return fmt.Errorf("record for task %v: child %v of call %q has needs, an idempotency key or the id of its parent, or coalesces", rec.Lease.Task, c.ID, s.Name)
		}
	}
	return nil
}

// ResolveCall decides about a call that [AcceptWait] did not answer: whether the
// children of the record are stored. stored is the step that waits, nil before the
// first record; step is that of the record, of so many tasks, and becomes the row
// to be stored. A record that does not go on where the stored one stands is
// answered by that. Errors: [store.ErrLimit], [store.ErrStepConflict].
func ResolveCall(stored, step *task.Step, tasks int, p Parent) (add bool, err error) {
	if stored != nil && (tasks == 0 || step.ChildrenStored != stored.ChildrenStored) {
		*step = *stored
		return false, nil
	}
	total, have := step.ChildrenLeft, 0
	if stored != nil {
		total, have = stored.Children, stored.ChildrenStored
	}
	switch {
	case stored == nil && step.ChildrenStored > 0, have+tasks > total:
		return false, fmt.Errorf("step %q of task %v: %w: %d children behind %d of a call with %d", step.Name, step.TaskID, store.ErrStepConflict, tasks, step.ChildrenStored, total)
	case stored != nil:
		err = task.CheckCall(p.Depth, p.Children, tasks)
	default:
		err = task.CheckCall(p.Depth, p.Children, total)
	}
	if err != nil {
		return false, fmt.Errorf("step %q of task %v: %w: %w", step.Name, step.TaskID, store.ErrLimit, err)
	}
	if stored != nil {
		*step = *stored
	}
	step.Children, step.ChildrenStored = total, have+tasks
	return true, nil
}

// CallChild returns the i-th child of a call with what it has of its parent.
func CallChild(child task.New, parent, step string, i int, mayFail bool) task.New {
	return named(child, parent, fmt.Sprintf("%s[%d]", step, i), mayFail)
}

// CountsCalls reports whether the ends of children count for the calls of a task:
// not when it has ended, or was asked to. A retry counts them anew ([CallLeft]).
func CountsCalls(s task.State, asked bool) bool { return !s.Terminal() && !asked }

// CallLeft is how many children of a call that waits are left when its task is
// retried: those that are not stored, those that have not ended, and those that
// come back with it ([Need.RevivesChild]). needs are all of the task's, end is the
// kind of the error with which it had ended.
func CallLeft(call *task.Step, needs []Need, end task.ErrorKind) int {
	left := call.Children - call.ChildrenStored
	for i := range needs {
		if n := &needs[i]; n.Step == call.Name && (!n.Ended() || n.RevivesChild(task.JoinNone, end)) {
			left++
		}
	}
	return left
}

// CallOpen is how many children of a call that waits are left while those come back
// that ended with its task: those that are not stored, those whose edges are open,
// and those to come ([Need.RevivesChild]).
func CallOpen(call *task.Step, needs []Need, end task.ErrorKind) int {
	left := call.Children - call.ChildrenStored
	for i := range needs {
		if n := &needs[i]; n.Step == call.Name && (!n.Marked || n.RevivesChild(task.JoinNone, end)) {
			left++
		}
	}
	return left
}

// RevivesCalls reports whether children of calls come back with a retried task.
func RevivesCalls(needs []Need, end task.ErrorKind) bool {
	for i := range needs {
		if needs[i].RevivesChild(task.JoinNone, end) {
			return true
		}
	}
	return false
}

// ReopensCall reports whether the retry of a child of a call opens its edge again:
// the call waits, for others, and its task, which is in a state and may have been
// asked to end, counts the ends of children. A call that is completed stays so.
func ReopensCall(waits bool, s task.State, asked bool) bool { return waits && CountsCalls(s, asked) }
