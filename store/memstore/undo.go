package memstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// recordUndo keeps that a step was undone: it counts as never run.
func (o *op) recordUndo(r *row, undo task.Step) store.RecordResult {
	stored := o.recordedStep(r.ID, undo.Name)
	var known *task.Step
	for i, s := range o.steps[r.ID] {
		if s.Kind == task.KindUndo && s.State == task.StepCompleted && s.Name == undo.Name && s.Round == undo.Round {
			known = &o.steps[r.ID][i]
		}
	}
	repeated, err := rules.AcceptUndo(stored, known, &undo)
	switch {
	case err != nil:
		return store.RecordResult{Err: err}
	case repeated:
		return store.RecordResult{Step: copyStep(*known)}
	}
	o.retire(r, stored, task.UndoUndone)
	undo.Index, undo.UndoNo = stored.Index, stored.UndoNo
	o.addStep(undo)
	r.progresses()
	return store.RecordResult{Step: copyStep(undo)}
}

// retire has a step that is to be undone count as never run.
func (o *op) retire(r *row, stored *task.Step, how task.UndoState) {
	r.UndoOpen--
	if stored.State == task.StepCompleted {
		r.StepCount--
	}
	stored.Undo = how
}

// keepUndos has no step that began undone any more: a point of no return.
func (o *op) keepUndos(r *row) {
	for i := range o.steps[r.ID] {
		if s := &o.steps[r.ID][i]; s.Undo == task.UndoOpen {
			s.Undo = task.UndoKept
		}
	}
	r.UndoOpen = 0
}
