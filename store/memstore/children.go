package memstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// resolve says what a finish makes of its task.
func (o *op) resolve(r *row, f *store.Finish) rules.Transition {
	if f.Outcome != task.OutcomeDecompose {
		return rules.ResolveFinish(f, r.cancelRequest(), r.DeadlineAt, o.now)
	}
	p := rules.Parent{Depth: r.Depth, Children: len(o.children(r))}
	return rules.ResolveDecompose(f, p, r.cancelRequest(), r.DeadlineAt, o.now)
}

// children returns the edges from a task to its children, oldest first.
func (sp *space) children(r *row) []*store.EdgeRow {
	return slices.DeleteFunc(slices.Clone(sp.needs[r.ID]), func(e *store.EdgeRow) bool { return e.Awaited == 0 })
}

// decompose stores the children of a task, which waits for them.
func (o *op) decompose(r *row, f *store.Finish, t *rules.Transition) {
	first := len(o.children(r))
	r.Join, r.joinOutput, r.RemainingDeps = t.Join, copyRaw(t.JoinOutput), len(f.Children)
	for i := range f.Children {
		n := rules.ChildOf(f.Children[i], r.Node, first+i, r.AllowFailure)
		o.insertChild(&n, r)
		o.link(&store.EdgeRow{Task: r.ID, Needs: n.ID, Kind: task.OnDone, Awaited: r.AttemptNo})
	}
}

// insertChild stores one child.
func (o *op) insertChild(n *task.New, parent *row) {
	r := &row{Task: newTask(n, o.now)}
	r.ParentID, r.Depth, r.JobID = parent.ID, parent.Depth+1, parent.JobID
	r.DeadlineAt = rules.Deadline(n, parent.DeadlineAt, o.now)
	o.place(r, n)
}

// cancelChildren cancels the children that have not ended of all tasks that have,
// and theirs.
func (o *op) cancelChildren() {
	for i := 0; i < len(o.ended); i++ {
		parent := o.ended[i]
		if parent.Join == task.JoinNone {
			continue
		}
		for _, e := range o.children(parent) {
			if child := o.tasks[e.Needs]; !e.Done && !child.State.Terminal() {
				o.endBy(child, task.KindParentEnded, store.Audit{Reason: rules.ParentEnded}, false)
			}
		}
	}
}

// join ends a task that ends with its children, all of which have ended.
func (o *op) join(r *row) {
	needs := o.needsOf(r)
	for i, e := range o.needs[r.ID] {
		needs[i].End.State = e.EndedState // a child may have been retried since
	}
	if wrong := rules.WrongChild(needs); wrong != nil {
		o.end(r, task.Failed, rules.ChildFailure(&wrong.EndedNeed, wrong.Name))
		return
	}
	r.Output = r.joinOutput
	o.end(r, task.Succeeded, nil)
}

// reviveChildren brings back the children of a revived task that were cancelled
// with it, and theirs. end is the kind of the error with which it had ended.
func (o *op) reviveChildren(r *row, end task.ErrorKind) {
	needs := o.needsOf(r)
	for i, e := range o.needs[r.ID] {
		if needs[i].RevivesChild(end) {
			o.revive(o.tasks[e.Needs])
			e.Done, e.EndedState = false, ""
		}
	}
}
