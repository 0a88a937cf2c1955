package rules

import (
	"fmt"

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

// checkUndoRecord refuses a record of an [OfUndo] step that no engine sends.
func checkUndoRecord(rec *store.Record) error {
	s := rec.Step
	wrong := ""
	switch {
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

// PastKey is the key of a step that was undone or skipped in a round, in place of attempt and
// try 0. Its undo has the try -1.
func PastKey(round int) int { return -round - 1 }
