package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// checkCall refuses a malformed record of a call. No engine sends one.
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

// ResolveCall decides whether the children of a call's record are stored, if [AcceptWait] did
// not answer the record. stored is the waiting step, nil before the first record. step is the
// step of the record, with this number of tasks, and becomes the row to store. A record that
// does not continue from the stored step gets the stored step as its answer. Errors:
// [store.ErrLimit], [store.ErrStepConflict].
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

// CallChild returns the i-th child of a call with the fields that it takes from its parent.
func CallChild(child task.New, parent string, call *task.Step, i int, mayFail bool) task.New {
	name := call.Name
	if call.Round > 0 { // children of earlier rounds have the other names
		name = fmt.Sprintf("%s#%d", name, call.Round)
	}
	return named(child, parent, fmt.Sprintf("%s[%d]", name, i), mayFail)
}

// CountsCalls reports whether ends of children count for the calls of a task. They do not once
// the task has ended or was asked to end. A retry counts them again ([CallsLeft]).
func CountsCalls(s task.State, asked bool) bool { return !s.Terminal() && !asked }

// CallsLeft returns, for each call of a retried task, the number of stored children that are
// left: unfinished children and children that are revived with the task ([Need.ComesBack]).
// needs are all needs of the task.
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

// RecountCall makes a call wait for left stored children, plus its children that are not
// stored yet, when its task is retried. A completed call waits again if any child is left, and
// a waiting call completes if no child is left. RecountCall returns the change of the task's
// step_count. If the change is negative, the task's wake_seq changes by it too, and stays at
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

// CallOpen returns the number of children that a waiting call has left while a retry revives
// its children. epoch is the epoch that the retry began. Children that are not stored,
// children with open edges and children still to be revived count.
func CallOpen(call *task.Step, needs []Need, epoch int64) int {
	left := call.Children - call.ChildrenStored
	for i := range needs {
		if n := &needs[i]; n.Step == call.Name && (Unmarked(n) || n.ComesBack(epoch)) {
			left++
		}
	}
	return left
}

// ComesBack reports whether the retry that began an epoch still has to revive this child of a
// call. The child has ended without success, and its edge was last opened in an earlier epoch.
// A later edge means that the child was revived already, or has ended again since.
func (n *Need) ComesBack(epoch int64) bool {
	return n.Step != "" && n.Ended() && n.End.State != task.Succeeded && n.Opened < epoch
}

// RevivesCalls reports whether a retried task revives children of its calls.
func RevivesCalls(needs []Need) bool {
	for i := range needs {
		if n := &needs[i]; n.Step != "" && n.Ended() && n.End.State != task.Succeeded {
			return true
		}
	}
	return false
}

// ReopensCall reports whether the retry of a child of a call opens the child's edge again. The
// call must still wait for other children, and its task must count ends of children
// ([CountsCalls]). A completed call stays completed.
func ReopensCall(waits bool, s task.State, asked bool) bool { return waits && CountsCalls(s, asked) }
