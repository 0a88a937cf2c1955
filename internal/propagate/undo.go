package propagate

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// decideUndos begins or ends undo tasks if all of their needs have ended, or an undo that they
// wait for was given up. The chore that cancels a job leaves them alone.
func (r *run) decideUndos(list []*Dependent, ended map[task.ID][]rules.EndedNeed) error {
	var unmet []*Dependent
	var ends []Unmet
	var begins []Undoing
	for _, d := range list {
		switch {
		case rules.Blame(ended[d.ID]) != nil:
			unmet = append(unmet, d)
			continue
		case d.Waits.Open > 0:
			continue
		}
		needs, cancelled, err := r.ops.UndoNeeds(d.ID, d.Job)
		if err != nil {
			return err
		}
		to := rules.DecideUndo(needs, cancelled, r.now)
		if to.State.Terminal() {
			ends = append(ends, r.endOne(d, to.Failure))
			continue
		}
		row := d.Dispatch
		row.AvailableAt = to.ReadyAt
		r.Dispatch(row)
		r.Count(d.Job, d.waits(), Unfinished(to.State, to.Waiting))
		begins = append(begins, Undoing{ID: d.ID, Deadline: d.Deadline, To: to})
	}
	if err := r.beginUndo(begins); err != nil {
		return err
	}
	if len(ends) > 0 {
		if err := r.ops.CancelDependents(ends); err != nil {
			return err
		}
	}
	if len(unmet) == 0 {
		return nil
	}
	return r.endUnmet(unmet, ended)
}
