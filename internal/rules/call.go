package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkCall refuses a record of a call that no engine sends.
func checkCall(rec *store.Record) error {
	s := rec.Step
	if len(rec.Tasks) > task.MaxCallTasks || s.ChildrenLeft < 0 || s.ChildrenStored < 0 {
		return fmt.Errorf("record for task %v: call %q with %d tasks, of %d children, behind %d", rec.Lease.Task, s.Name, len(rec.Tasks), s.ChildrenLeft, s.ChildrenStored)
	}
	if s.Round < 0 || s.Undo != task.UndoNone && s.Undo != task.UndoOpen {
		return fmt.Errorf("record for task %v: call %q in round %d is recorded with the undo %q", rec.Lease.Task, s.Name, s.Round, s.Undo)
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
func CallChild(child task.New, parent string, call *task.Step, i int, mayFail bool) task.New {
	name := call.Name
	if call.Round > 0 { // the children before have the other names
		name = fmt.Sprintf("%s#%d", name, call.Round)
	}
	return named(child, parent, fmt.Sprintf("%s[%d]", name, i), mayFail)
}

// CountsCalls reports whether the ends of children count for the calls of a task:
// not when it has ended, or was asked to. A retry counts them anew ([CallsLeft]).
func CountsCalls(s task.State, asked bool) bool { return !s.Terminal() && !asked }

// CallsLeft is how many stored children of each call of a task are left when it is
// retried: those that have not ended, and those that come back with it
// ([Need.ComesBack]). needs are all of the task's.
func CallsLeft(needs []Need) map[string]int {
	var left map[string]int
	for i := range needs {
		if n := &needs[i]; n.Step != "" && n.End.State != task.Succeeded {
			if left == nil {
				left = make(map[string]int)
			}
			left[n.Step]++
		}
	}
	return left
}

// RecountCall has a call wait for so many stored children when its task is retried,
// beside those that are not stored yet: one that is completed waits again if there
// are any, one that waits is completed if there are none. It returns the change of
// the task's step_count, and, if that is negative, of its wake_seq, which is at
// least 0.
func RecountCall(s *task.Step, left int, now time.Time) (steps int) {
	waits := s.State == task.StepWaiting
	s.ChildrenLeft = left + s.Children - s.ChildrenStored
	switch {
	case waits && s.ChildrenLeft == 0:
		s.State, s.CompletedAt = task.StepCompleted, now
		return 1
	case !waits && s.ChildrenLeft > 0:
		s.State, s.CompletedAt = task.StepWaiting, time.Time{}
		return -1
	}
	return 0
}

// CallOpen is how many children of a call that waits are left while those come back
// that a retry of its task revives, of the epoch that it began: those that are not
// stored, those whose edges are open, and those to come.
func CallOpen(call *task.Step, needs []Need, epoch int64) int {
	left := call.Children - call.ChildrenStored
	for i := range needs {
		if n := &needs[i]; n.Step == call.Name && (Unmarked(n) || n.ComesBack(epoch)) {
			left++
		}
	}
	return left
}

// ComesBack reports whether the retry of a task that began an epoch revives this
// child of a call, for which it has not been looked at yet: it did not succeed
// before. One whose edge was opened in that epoch, or later, has been revived, or
// ended by itself since.
func (n *Need) ComesBack(epoch int64) bool {
	return n.Step != "" && n.Ended() && n.End.State != task.Succeeded && n.Opened < epoch
}

// RevivesCalls reports whether children of calls come back with a retried task.
func RevivesCalls(needs []Need) bool {
	for i := range needs {
		if n := &needs[i]; n.Step != "" && n.Ended() && n.End.State != task.Succeeded {
			return true
		}
	}
	return false
}

// ReopensCall reports whether the retry of a child of a call opens its edge again:
// the call waits, for others, and its task, which is in a state and may have been
// asked to end, counts the ends of children. A call that is completed stays so.
func ReopensCall(waits bool, s task.State, asked bool) bool { return waits && CountsCalls(s, asked) }
