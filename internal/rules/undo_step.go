package rules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A step with an undo has one row. The row exists before its function runs (begun), then takes
// its value. When the step is undone, the row moves from the key that counts as run to a key
// of its round. The undo has its own row (ADR 0049).

// OfUndo reports whether a step takes part in undo: it has an undo, is an undo, or ends the
// range of steps that may be undone.
func OfUndo(s *task.Step) bool {
	return s.Undo != task.UndoNone || s.State == task.StepBegun || s.Kind == task.KindUndo || s.Kind == task.KindPoint || s.Round != 0
}

// StartsUndo reports whether a record stores the task that undoes a child.
func StartsUndo(rec *store.Record) bool {
	return rec.Step != nil && rec.Step.Kind == task.KindUndo && rec.Step.State == task.StepWaiting
}

// checkUndoRecord refuses a malformed record of an [OfUndo] step. No engine sends one.
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

// EndOfBegun returns a stored step that began, with the end from a record. It keeps its
// number, because the numbers of the beginnings decide the order of the undos.
func EndOfBegun(stored, end *task.Step) task.Step {
	step := *stored
	step.State, step.Value, step.Error, step.Redact = end.State, end.Value, end.Error, end.Redact
	step.AttemptNo, step.Try, step.Cost, step.CompletedAt = end.AttemptNo, end.Try, end.Cost, end.CompletedAt
	return step
}

// AcceptUndo decides about a completed undo of a step. stored is the step that counts as run
// under its name, undone the recorded undo of the same round. Either may be nil. The undo is
// new or a repetition. Errors: [store.ErrStepConflict].
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

// UndoCaller holds the fields of a task whose attempt has a child undone.
type UndoCaller struct {
	ID    task.ID
	Phase *task.UndoPhase
	Call  *task.Step // the call to undo, or nil
	Step  string     // the call whose child the other task is, or ""
}

// CheckUndoOf refuses ([store.ErrStepConflict]) to undo a child that did not succeed. It also
// refuses a child that does not belong to a call of the caller, or of the task that the caller
// undoes.
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

// BeginUndoOf returns the transition of a new task that undoes the steps of another task.
func BeginUndoOf(child task.ID, now time.Time) Transition {
	return Transition{
		State: task.Pending, Waiting: task.WaitUndo, ReadyAt: now,
		SetUndo: true, Begins: true, Undo: &task.UndoPhase{EndsAs: task.Succeeded, Began: now, Of: child},
	}
}

// WaitsForUndo reports whether a task waits between two attempts of its undo phase. The end of
// an undo task then wakes it at once.
func WaitsForUndo(s task.State, p *task.UndoPhase) bool { return s == task.Pending && p != nil }

// UndoDue returns the earliest instant for an attempt of an undo phase.
func UndoDue(p *task.UndoPhase, now time.Time) time.Time { return later(now, p.NotBefore) }

// CallStands returns [store.ErrStepConflict] for a call that cannot count as never run,
// because a child of it has not ended.
func CallStands(call *task.Step, child task.ID) error {
	return fmt.Errorf("step %q of task %v: %w: its child %v has not ended", call.Name, call.TaskID, store.ErrStepConflict, child)
}

// RetiredCall returns the state of a call that counts as never run. A waiting call does not
// wait any more.
func RetiredCall(s task.StepState) task.StepState {
	if s == task.StepWaiting {
		return task.StepBegun
	}
	return s
}

// PastKey returns the key of a step that was undone or skipped in a round. It replaces attempt
// and try 0. The undo of the step has the try -1.
func PastKey(round int) int { return -round - 1 }
