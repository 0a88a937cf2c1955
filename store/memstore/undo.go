package memstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undoes returns the row of the task whose steps a task undoes: its own row, or for an
// undo task the row of the other task. If the other task was deleted there is nothing to
// undo.
func (sp *space) undoes(r *row) *row {
	of := r.Undo.Undoes()
	if of.IsZero() {
		return r
	}
	if child := sp.tasks[of]; child != nil {
		return child
	}
	return &row{Task: task.Task{ID: of}}
}

// recordUndo records the undo of a step, of the task itself or of the task that it
// undoes: the step counts as never run.
func (o *op) recordUndo(r *row, of task.ID, undo task.Step) store.RecordResult {
	owner := o.undoes(r)
	var stored *task.Step
	if of == r.Undo.Undoes() {
		stored = o.recordedStep(owner.ID, undo.Name)
	}
	var known *task.Step
	for i, s := range o.steps[r.ID] {
		if s.Kind == task.KindUndo && s.State == task.StepCompleted && s.Name == undo.Name && s.Round == undo.Round {
			known = &o.steps[r.ID][i]
		}
	}
	repeated, err := rules.AcceptUndo(stored, known, &undo)
	if err == nil && !repeated {
		err = o.callsEnded(stored)
	}
	switch {
	case err != nil:
		return store.RecordResult{Err: err}
	case repeated:
		return store.RecordResult{Step: copyStep(*known)}
	}
	o.retire(owner, stored, task.UndoUndone)
	undo.Index, undo.UndoNo = stored.Index, stored.UndoNo
	if owner != r {
		undo.UndoNo = 0 // it orders the steps of the other task
	}
	o.addStep(undo)
	r.progresses()
	return store.RecordResult{Step: copyStep(undo)}
}

// callsEnded rejects the undo of a call while one of its children has not ended.
func (o *op) callsEnded(s *task.Step) error {
	for _, e := range o.needs[s.TaskID] {
		if s.Kind == task.KindCall && e.Step == s.Name && !o.tasks[e.Needs].State.Terminal() {
			return rules.CallStands(s, e.Needs)
		}
	}
	return nil
}

// retire makes an undone step count as never run. The children of a call stay, without an
// edge from the task.
func (o *op) retire(r *row, stored *task.Step, how task.UndoState) {
	r.UndoOpen--
	if stored.State == task.StepCompleted {
		r.StepCount--
	}
	stored.Undo = how
	if stored.Kind != task.KindCall {
		return
	}
	stored.State = rules.RetiredCall(stored.State)
	for _, e := range slices.Clone(o.needs[r.ID]) {
		if e.Step == stored.Name {
			o.removeEdge(e)
		}
	}
}

func (sp *space) removeEdge(e *store.EdgeRow) {
	same := func(other *store.EdgeRow) bool { return other == e }
	sp.needs[e.Task] = slices.DeleteFunc(sp.needs[e.Task], same)
	sp.dependents[e.Needs] = slices.DeleteFunc(sp.dependents[e.Needs], same)
}

// wakeUndo makes the task that stored an undo task due, because the undo task has ended.
func (o *op) wakeUndo(r *row) {
	parent := o.tasks[r.ParentID]
	if parent == nil || !rules.WaitsForUndo(parent.State, parent.Undo) {
		return
	}
	if _, due := o.dispatch[parent.ID]; due {
		delete(o.dispatch, parent.ID)
		o.ready = append(o.ready, parent.dispatchRow(rules.UndoDue(parent.Undo, o.now)))
	}
}

// startUndo stores the task that undoes a child, once.
func (o *op) startUndo(r *row, rec *store.Record) store.RecordResult {
	n := rec.Tasks[0]
	known, ok := o.known(&n)
	if ok {
		return store.RecordResult{Enqueued: []store.Enqueued{known}}
	}
	owner := o.undoes(r)
	c := rules.UndoCaller{ID: r.ID, Phase: r.Undo, Call: o.recordedStep(owner.ID, rec.Step.Name)}
	for _, e := range o.needs[owner.ID] {
		if e.Needs == n.UndoOf {
			c.Step = e.Step
		}
	}
	var state task.State
	if child := o.tasks[n.UndoOf]; child != nil {
		state = child.State
	}
	if err := rules.CheckUndoOf(&c, n.UndoOf, state); err != nil {
		return store.RecordResult{Err: err}
	}
	undo := &row{Task: newTask(&n, o.now)}
	undo.ParentID, undo.Depth, undo.JobID = r.ID, r.Depth+1, r.JobID
	o.place(undo, &n)
	to := rules.BeginUndoOf(n.UndoOf, o.now)
	o.leave(undo, &to)
	return store.RecordResult{Enqueued: []store.Enqueued{{ID: n.ID, Disposition: store.DispositionCreated}}}
}

// keepUndos is a point of no return: no step that has begun is undone any more.
func (o *op) keepUndos(r *row) {
	for i := range o.steps[r.ID] {
		if s := &o.steps[r.ID][i]; s.Undo == task.UndoOpen {
			s.Undo = task.UndoKept
		}
	}
	r.UndoOpen = 0
}
