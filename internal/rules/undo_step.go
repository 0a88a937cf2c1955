package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A step with an undo has one row: it is there from before its function runs (begun), gets
// its value, and when the step is undone it leaves the key under which a step of its name
// counts as run, for one that its round gives. The undo is a row of its own (ADR 0049).

// OfUndo reports whether a step is recorded with what its undo needs: it has one, or is one,
// or ends what may be undone.
func OfUndo(s *task.Step) bool {
	return s.Undo != task.UndoNone || s.State == task.StepBegun || s.Kind == task.KindUndo || s.Kind == task.KindPoint || s.Round != 0
}

// StartsUndo reports whether a record stores the task that undoes a child.
func StartsUndo(rec *store.Record) bool {
	return rec.Step != nil && rec.Step.Kind == task.KindUndo && rec.Step.State == task.StepWaiting
}

// checkUndoRecord refuses a record of an [OfUndo] step that no engine sends.
func checkUndoRecord(rec *store.Record) error {
	s := rec.Step
	wrong := ""
	switch {
	case StartsUndo(rec):
		if len(rec.Tasks) != 1 || rec.Tasks[0].UndoOf.IsZero() || rec.Tasks[0].IdempotencyKey == "" || len(rec.Tasks[0].Needs) > 0 {
			wrong = fmt.Sprintf("starts %d tasks, and not one that undoes a child", len(rec.Tasks))
			break
		}
		return nil
	case s.Round < 0:
		wrong = fmt.Sprintf("has the round %d", s.Round)
	case s.Kind != task.KindStep && s.Kind != task.KindUndo && s.Kind != task.KindPoint:
		wrong = "of the kind " + string(s.Kind) + " cannot be undone"
	case s.Undo != task.UndoNone && (s.Undo != task.UndoOpen || s.Kind != task.KindStep || s.State == task.StepFailed):
		wrong = "is recorded with the undo " + string(s.Undo)
	case s.State == task.StepBegun && (s.Undo != task.UndoOpen || len(s.Value) > 0 || s.Error != nil || s.Cost != 0 || len(rec.Artifacts) > 0):
		wrong = "begins without an undo, or with what only its end has"
	case s.State == task.StepFailed && s.Error == nil, s.State == task.StepWaiting:
		wrong = "is " + string(s.State)
	case s.Kind != task.KindStep && s.State == task.StepCompleted && (len(s.Value) > 0 || s.Error != nil || len(rec.Artifacts) > 0):
		wrong = "of the kind " + string(s.Kind) + " has a value, an error or artifacts"
	case len(rec.Tasks) > 0:
		wrong = "starts tasks"
	default:
		return nil
	}
	return fmt.Errorf("record for task %v: step %q %s", rec.Lease.Task, s.Name, wrong)
}

// EndOfBegun is a step whose beginning is stored, with the end that a record has for it. It
// keeps its place: the number of its beginning says in which order steps are undone.
func EndOfBegun(stored, end *task.Step) task.Step {
	step := *stored
	step.State, step.Value, step.Error, step.Redact = end.State, end.Value, end.Error, end.Redact
	step.AttemptNo, step.Try, step.Cost, step.CompletedAt = end.AttemptNo, end.Try, end.Cost, end.CompletedAt
	return step
}

// AcceptUndo decides about the undo of a step that completed: stored is the step that counts
// as run under its name, undone what is stored of its undo in the same round; nil: there is
// none. It is new, or a repetition. Errors: [store.ErrStepConflict].
func AcceptUndo(stored, undone, undo *task.Step) (repeated bool, err error) {
	switch {
	case undone != nil && undone.AttemptNo == undo.AttemptNo:
		return true, nil
	case undone != nil:
		return false, fmt.Errorf("undo of step %q of task %v: %w: attempt %d recorded it", undo.Name, undo.TaskID, store.ErrStepConflict, undone.AttemptNo)
	case stored == nil || stored.Undo != task.UndoOpen || stored.Round != undo.Round:
		return false, fmt.Errorf("undo of step %q of task %v: %w: it is not to be undone in round %d", undo.Name, undo.TaskID, store.ErrStepConflict, undo.Round)
	}
	return false, nil
}

// UndoCaller is a task whose attempt has a child undone.
type UndoCaller struct {
	ID    task.ID
	Phase *task.UndoPhase
	Call  *task.Step // the call that is to be undone; nil: it made none of the name
	Step  string     // the call whose child the other task is; "": of none
}

// CheckUndoOf refuses to have a child undone that is not one of a call of the caller, or of
// the task that it undoes, or that did not succeed. Errors: [store.ErrStepConflict].
func CheckUndoOf(c *UndoCaller, child task.ID, s task.State) error {
	why := ""
	switch {
	case c.Phase == nil:
		why = "is not being undone"
	case c.Call == nil || c.Call.Kind != task.KindCall || c.Call.Undo != task.UndoOpen || c.Call.Name != c.Step:
		why = "has no such call to undo"
	case s != task.Succeeded:
		why = "called a task that is " + string(s)
	default:
		return nil
	}
	return fmt.Errorf("undo of task %v by task %v: %w: that %s", child, c.ID, store.ErrStepConflict, why)
}

// BeginUndoOf is the transition of a new task that undoes the steps of another one.
func BeginUndoOf(child task.ID, now time.Time) Transition {
	return Transition{
		State: task.Pending, Waiting: task.WaitUndo, ReadyAt: now,
		SetUndo: true, Begins: true, Undo: &task.UndoPhase{EndsAs: task.Succeeded, Began: now, Of: child},
	}
}

// WaitsForUndo reports whether a task waits between two attempts of its undo phase: it looks
// at once at an undo task that has ended.
func WaitsForUndo(s task.State, p *task.UndoPhase) bool { return s == task.Pending && p != nil }

// UndoDue is when a task in its undo phase may run that is to run at once.
func UndoDue(p *task.UndoPhase, now time.Time) time.Time { return later(now, p.NotBefore) }

// CallStands says that the children of a call have not all ended, which is why the call
// cannot count as never run. Errors: [store.ErrStepConflict].
func CallStands(call *task.Step, child task.ID) error {
	return fmt.Errorf("step %q of task %v: %w: its child %v has not ended", call.Name, call.TaskID, store.ErrStepConflict, child)
}

// RetiredCall is the state in which a call is kept that counts as never run: one that waited
// does not wait any more.
func RetiredCall(s task.StepState) task.StepState {
	if s == task.StepWaiting {
		return task.StepBegun
	}
	return s
}

// PastKey is the key of a step that was undone or skipped in a round, in place of attempt and
// try 0. Its undo has the try -1.
func PastKey(round int) int { return -round - 1 }
