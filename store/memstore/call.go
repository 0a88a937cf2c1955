package memstore

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// parent returns the properties of a task that new children depend on.
func (o *op) parent(r *row) (p rules.Parent) {
	p.Depth = r.Depth
	for _, e := range o.children(r) {
		p.Children++
		if e.Step == "" {
			p.Decomposed++
		}
	}
	return p
}

// recordCall stores the next children of a call.
func (o *op) recordCall(r *row, stored *task.Step, step task.Step, tasks []task.New) store.RecordResult {
	first := step.ChildrenStored
	add, err := rules.ResolveCall(stored, &step, len(tasks), o.parent(r))
	switch {
	case err != nil && stored == nil:
		return store.RecordResult{Err: err}
	case err != nil || !add:
		return store.RecordResult{Step: copyStep(*stored), Err: err}
	}
	if stored == nil && step.Undo == task.UndoOpen {
		r.UndoOpen++
		r.UndoNo++
		step.UndoNo = r.UndoNo
	}
	o.putStep(stored, step)
	r.CrashCount, r.QuarantineLosses = 0, 0
	res := store.RecordResult{Step: copyStep(step)}
	for i := range tasks {
		n := rules.CallChild(tasks[i], r.Node, &step, first+i, r.AllowFailure)
		o.insertChild(&n, r)
		o.link(&store.EdgeRow{Task: r.ID, Needs: n.ID, Kind: task.OnDone, Awaited: r.AttemptNo, Step: step.Name})
		res.Enqueued = append(res.Enqueued, store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated})
	}
	return res
}

// callWaits returns a task's waiting call of the given name, or nil.
func (o *op) callWaits(id task.ID, name string) *task.Step {
	if s := o.recordedStep(id, name); name != "" && s != nil && s.State == task.StepWaiting {
		return s
	}
	return nil
}

// call identifies a step of a task.
type call struct {
	parent *row
	step   string
}

// lowerCalls subtracts ended children from the calls that wait for them.
func (o *op) lowerCalls(ended map[call]int) {
	calls := slices.SortedFunc(maps.Keys(ended), func(a, b call) int {
		return cmp.Or(a.parent.ID.Compare(b.parent.ID), strings.Compare(a.step, b.step))
	})
	for _, c := range calls {
		s := o.callWaits(c.parent.ID, c.step)
		if s == nil || !rules.CountsCalls(c.parent.State, c.parent.toEnd()) {
			continue
		}
		if s.ChildrenLeft -= ended[c]; s.ChildrenLeft == 0 {
			s.State, s.CompletedAt = task.StepCompleted, o.now
			o.waitEnded(c.parent)
		}
	}
}

// reviveCalls makes the calls of a retried task count their children again.
func (o *op) reviveCalls(r *row, needs []rules.Need) {
	for i, e := range o.needs[r.ID] {
		if e.Step != "" {
			o.setEdge(e, &needs[i])
		}
	}
	left := rules.CallsLeft(needs)
	for i := range o.steps[r.ID] {
		s := &o.steps[r.ID][i]
		if s.Kind != task.KindCall || s.Past() {
			continue
		}
		steps := rules.RecountCall(s, left[s.Name], o.now)
		r.StepCount += steps
		r.WakeSeq = max(0, r.WakeSeq+min(0, steps))
	}
}

// reopenCall makes a call wait again for a retried child.
func (o *op) reopenCall(parent *row, e *store.EdgeRow) {
	s := o.callWaits(parent.ID, e.Step)
	if !e.Done || !rules.ReopensCall(s != nil, parent.State, parent.toEnd()) {
		return
	}
	open(e)
	s.ChildrenLeft++
}
