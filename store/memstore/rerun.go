package memstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// rerun stores a new task that repeats another task.
func (o *op) rerun(cmd store.RerunTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if n, again := o.tasks[cmd.New.ID]; again {
		return store.CommandResult{State: n.State, ID: n.ID}
	}
	if err := rules.CheckValues(&r.Task); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	needs, call, open := false, "", ""
	for _, e := range o.needs[r.ID] {
		needs = needs || e.Awaited == 0
	}
	var taken []task.Step
	for _, s := range o.steps[r.ID] {
		if !rules.TakesOver(&s, cmd.StepsBelow) {
			continue
		}
		if s.Kind == task.KindCall && call == "" {
			call = s.Name
		}
		if s.Undo == task.UndoOpen && open == "" {
			open = s.Name
		}
		s.TaskID, s.AttemptNo, s.Cost = cmd.New.ID, 0, 0 // the old task has already spent it
		s.Undo, s.UndoNo, s.Round = task.UndoNone, 0, 0  // the old task would undo it
		taken = append(taken, copyStep(s))
	}
	if err := rules.CheckRerun(r.ID, r.State, needs, call, open, len(taken)); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	ran := rules.FirstCleanup(o.steps[r.ID])
	if len(taken) == 0 {
		ran = nil // the new task takes over no undone step
	}
	if !cmd.KeepSteps {
		if err := rules.CheckRerunCleanedUp(r.ID, r.State, ran); err != nil {
			return store.CommandResult{State: r.State, Err: err}
		}
	}
	if err := o.usable(rules.TaskBlobs([]task.New{cmd.New})); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	got := o.enqueue(store.Submission{Tasks: []task.New{cmd.New}}, task.ID{})[0]
	n := o.tasks[got.ID]
	if got.Disposition == store.DispositionCreated {
		a := cmd.Audit
		a.Reason = rules.RerunReason(n.ID, rules.KeepNote(r.ID, ran, a.Reason))
		o.note(a, "rerun", r.ID.String())
		n.RerunOf, n.StepCount = r.ID, len(taken)
		if len(taken) > 0 {
			o.steps[n.ID] = taken
			o.takesRefs(n.ID, r.ID, taken)
		}
	}
	return store.CommandResult{State: n.State, ID: n.ID, Existing: got.Disposition == store.DispositionExisting}
}
