package memstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// resolve returns the transition that a finish causes.
func (o *op) resolve(r *row, f *store.Finish) rules.Transition {
	if r.Undo != nil {
		return rules.ResolveUndo(f, r.Undo, o.undoes(r).UndoOpen, r.ConcurrencyKey != "", o.now)
	}
	if f.Outcome == task.OutcomeSuspended {
		return rules.ResolveSuspend(f, r.WakeSeq, r.cancelRequest(), r.DeadlineAt, o.now)
	}
	switch rules.Asks(f) {
	case task.OutcomeDecompose:
		return rules.ResolveDecompose(f, o.parent(r), r.cancelRequest(), r.DeadlineAt, o.now)
	case task.OutcomeAddDependency:
		return rules.ResolveDependency(f, o.dependency(r, f.DependsOn), r.cancelRequest(), r.DeadlineAt, o.now)
	}
	return rules.ResolveFinish(f, r.cancelRequest(), r.DeadlineAt, o.now)
}

// dependency returns the task that another task asks to wait for.
func (o *op) dependency(r *row, id task.ID) *rules.Dependency {
	d := &rules.Dependency{}
	need, ok := o.tasks[id]
	if !ok {
		return d
	}
	d.Found, d.Name, d.End, d.Outside = true, need.name(), need.End(), need.JobID != r.JobID
	for _, e := range o.needs[r.ID] {
		if e.Needs == id {
			d.Known, d.Child = true, e.Awaited > 0 && e.Kind == task.OnDone
		}
	}
	seen := map[task.ID]bool{id: true}
	for next := []*row{need}; len(next) > 0; next = next[1:] {
		at := next[0]
		for _, e := range o.needs[at.ID] {
			if e.Done || seen[e.Needs] || !rules.LeadsOn(at.State, at.Waiting, at.Join, e.Awaited > 0, e.Step != "") {
				continue
			}
			seen[e.Needs] = true
			next = append(next, o.tasks[e.Needs])
		}
	}
	d.Cycle = seen[r.ID] && id != r.ID
	return d
}

// depend writes the edge to a task that another task asked to wait for.
func (o *op) depend(r *row, id task.ID) {
	var edge *store.EdgeRow
	for _, e := range o.needs[r.ID] {
		if e.Needs == id {
			edge = e
		}
	}
	if edge == nil {
		edge = &store.EdgeRow{Task: r.ID, Needs: id}
		o.link(edge)
	}
	edge.Kind, edge.Awaited = task.OnSuccess, r.AttemptNo
	open(edge)
	if need := o.tasks[id]; need.State.Terminal() {
		mark(edge, need)
	} else {
		r.RemainingDeps = 1
	}
}

// open makes an edge wait for the end of its dependency.
func open(e *store.EdgeRow) { e.Done, e.EndedState, e.EndedError = false, "", nil }

// mark marks the dependency of an edge as ended. An awaited edge also keeps the end state
// and the error for its task.
func mark(e *store.EdgeRow, need *row) {
	if e.Done = true; e.Awaited > 0 {
		e.EndedState, e.EndedError = need.State, rules.EndedError(need.State, need.Error)
	}
}

// setEdge updates an awaited edge from the state of its dependency. An end that it
// already has in the same state stays.
func (o *op) setEdge(e *store.EdgeRow, n *rules.Need) {
	switch {
	case !n.Ended():
		open(e)
	case !e.Done || e.EndedState != n.End.State:
		mark(e, o.tasks[e.Needs])
	}
}

// children returns the edges from a task to its children, oldest first.
func (sp *space) children(r *row) []*store.EdgeRow {
	return slices.DeleteFunc(slices.Clone(sp.needs[r.ID]), func(e *store.EdgeRow) bool { return e.Awaited == 0 || e.Kind != task.OnDone })
}

// decompose stores the children of a task, which then waits for them.
func (o *op) decompose(r *row, f *store.Finish, t *rules.Transition) {
	first := o.parent(r).Decomposed
	r.Join, r.joinOutput, r.RemainingDeps = t.Join, copyRaw(t.JoinOutput), len(f.Children)
	o.refer(r.ID, refOutput, "", r.joinOutput)
	for i := range f.Children {
		n := rules.ChildOf(f.Children[i], r.Node, first+i, r.AllowFailure)
		o.insertChild(&n, r)
		o.link(&store.EdgeRow{Task: r.ID, Needs: n.ID, Kind: task.OnDone, Awaited: r.AttemptNo})
	}
}

// insertChild stores one child.
func (o *op) insertChild(n *task.New, parent *row) {
	if j, ok := o.jobs[parent.JobID]; ok {
		j.Budget.Tighten(n)
	}
	r := &row{Task: newTask(n, o.now)}
	r.ParentID, r.Depth, r.JobID = parent.ID, parent.Depth+1, parent.JobID
	r.DeadlineAt = rules.Deadline(n, parent.DeadlineAt, o.now)
	o.place(r, n)
}

// cancelChildren cancels the unfinished children of all tasks that have ended or begun
// their undo, and their descendants.
func (o *op) cancelChildren() {
	for i := 0; i < len(o.ended) || len(o.undone) > 0; {
		var parent *row
		if len(o.undone) > 0 {
			parent, o.undone = o.undone[0], o.undone[1:]
		} else {
			parent = o.ended[i]
			i++
		}
		for _, e := range o.children(parent) {
			if child := o.tasks[e.Needs]; !e.Done && !child.State.Terminal() {
				o.endBy(child, task.KindParentEnded, store.Audit{Reason: rules.ParentEnded}, false)
			}
		}
	}
}

// join ends a task that waits for its children, once all of them have ended.
func (o *op) join(r *row) {
	needs := o.needsOf(r)
	for i, e := range o.needs[r.ID] {
		needs[i].End.State = e.EndedState // a child may have been retried since
	}
	if wrong := rules.WrongChild(needs); wrong != nil {
		o.fail(r, task.Failed, rules.ChildFailure(&wrong.EndedNeed, wrong.Name))
		return
	}
	r.Output = r.joinOutput
	o.end(r, task.Succeeded, nil)
}

// reviveChildren revives the children of a revived task that were cancelled with it, and
// their descendants. join and end, the kind of its error, are its values from before;
// needs are its dependencies at that time.
func (o *op) reviveChildren(r *row, needs []rules.Need, join task.Join, end task.ErrorKind) (back []*row) {
	for i, e := range o.needs[r.ID] {
		if needs[i].RevivesChild(join, end) {
			child := o.tasks[e.Needs]
			back = append(append(back, child), o.revive(child)...)
			open(e)
		}
	}
	return back
}
