package memstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// givenUpWith returns the first task that a retry would revive although its undo was
// given up, or zero.
func (o *op) givenUpWith(r *row) (first task.ID) {
	for _, back := range o.backWith(r) {
		if back.Undo != nil && (first.IsZero() || back.ID.Compare(first) < 0) {
			first = back.ID
		}
	}
	return first
}

// cleanedUpWith returns the first completed cleanup of a task, or else of the tasks that
// its retry may revive, oldest first.
func (o *op) cleanedUpWith(r *row) *rules.CleanedUp {
	if ran := rules.FirstCleanup(o.steps[r.ID]); ran != nil {
		return ran
	}
	var first *rules.CleanedUp
	for _, back := range o.backWith(r) {
		if ran := rules.FirstCleanup(o.steps[back.ID]); ran != nil && (first == nil || back.ID.Compare(first.Task) < 0) {
			first = ran
		}
	}
	if first != nil {
		return first
	}
	return o.undoOfJob(r)
}

// undoOfJob returns the first undo that has begun in the task's job.
func (o *op) undoOfJob(r *row) *rules.CleanedUp {
	for _, e := range o.dependents[r.ID] {
		d := o.tasks[e.Task]
		undoes := slices.ContainsFunc(o.needs[d.ID], func(e *store.EdgeRow) bool { return e.Kind == task.OnUndo })
		if undoes && d.AttemptNo > 0 {
			return &rules.CleanedUp{Task: d.ID, Undo: d.Node}
		}
	}
	return nil
}

// backWith returns the tasks that the retry of another task may revive.
func (o *op) backWith(r *row) (list []*row) {
	seen := map[task.ID]bool{r.ID: true}
	for back := []*row{r}; len(back) > 0; back = back[1:] {
		at := back[0]
		reach := func(id task.ID) {
			if seen[id] {
				return
			}
			seen[id] = true
			back, list = append(back, o.tasks[id]), append(list, o.tasks[id])
		}
		needs := o.needsOf(at)
		for i := range needs {
			if needs[i].RevivesChild(at.Join, rules.KindOf(at.Error)) {
				reach(needs[i].Need)
			}
		}
		for _, e := range o.dependents[at.ID] {
			if d := o.tasks[e.Task]; e.Step == "" && rules.EndedByNeeds(d.State, rules.KindOf(d.Error), d.Join) {
				reach(d.ID)
			}
		}
	}
	return list
}

// putAside keeps the completed cleanups of a revived task as past steps, so that they run
// again.
func (o *op) putAside(r *row) {
	for i := range o.steps[r.ID] {
		if s := &o.steps[r.ID][i]; s.RanCleanup() {
			s.Undo = task.UndoSkipped
			r.StepCount--
		}
	}
}
