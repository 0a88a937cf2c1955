package propagate

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// join ends tasks with their children, which have all ended.
func (r *run) join(parents []*Dependent) error {
	parents, err := r.notCancelling(parents)
	if err != nil || len(parents) == 0 {
		return err
	}
	ids := make([]task.ID, len(parents))
	for i, p := range parents {
		ids[i] = p.ID
	}
	edges, err := r.ops.WrongChildren(ids)
	if err != nil {
		return err
	}
	children := make([]task.ID, len(edges))
	for i := range edges {
		children[i] = edges[i].Need
	}
	nodes, err := r.ops.Nodes(children)
	if err != nil {
		return err
	}
	failures := make(map[task.ID]*task.Error, len(edges))
	for i := range edges {
		failures[edges[i].Dependent] = rules.ChildFailure(&edges[i].EndedNeed, rules.TaskName(nodes[i], children[i]))
	}
	ends := make([]Joined, 0, len(parents))
	var begins []Undoing
	for _, p := range parents {
		failure := failures[p.ID]
		if failure != nil {
			if u := r.mayUndo(p, task.Failed, failure); u != nil {
				begins = append(begins, *u)
				continue
			}
		}
		ends = append(ends, Joined{ID: p.ID, Deadline: p.Deadline, Failure: failure})
		end := task.End{State: task.Succeeded, AllowFailure: p.MayFail}
		if failure != nil {
			end.State, end.Kind = task.Failed, failure.Kind
		}
		r.Count(p.Job, p.waits(), Contribution{End: end})
		r.End(p.ID, end, p.Needed)
		r.noteEnd(p)
	}
	if err := r.beginUndo(begins); err != nil || len(ends) == 0 {
		return err
	}
	return r.ops.Complete(ends)
}
