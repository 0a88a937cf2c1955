package memstore

import (
	"context"
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Graph implements store.Flow.
func (s *Store) Graph(ctx context.Context, ns string, req store.GraphRequest) (store.Graph, error) {
	after, err := parseCursor(req.After)
	if err != nil {
		return store.Graph{}, err
	}
	var g store.Graph
	found := false
	err = s.do(ctx, ns, func(o *op) {
		if _, found = o.jobs[req.Job]; found {
			g = o.graph(&req, after)
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: job %s", store.ErrNotFound, req.Job)
	}
	return g, err
}

func (o *op) graph(req *store.GraphRequest, after task.ID) (g store.Graph) {
	for _, r := range o.sorted(func(r *row) bool { return r.JobID == req.Job && r.ID.Compare(after) > 0 }) {
		if len(g.Nodes) == req.Nodes() {
			g.Next = g.Nodes[len(g.Nodes)-1].ID.String()
			return g
		}
		t := o.derived(r, o.now)
		n := store.GraphNode{
			ID: t.ID, Node: t.Node, Type: t.Type, Queue: t.Queue, State: t.State, Waiting: t.Waiting, AllowFailure: t.AllowFailure,
			Parent: t.ParentID, Attempts: t.AttemptNo, StartedAt: t.StartedAt, FinishedAt: t.FinishedAt,
		}
		if t.Error != nil {
			n.ErrorKind = t.Error.Kind
		}
		g.Nodes = append(g.Nodes, n)
		for _, e := range o.needs[r.ID] {
			g.Edges = append(g.Edges, store.GraphEdge{From: e.Needs, To: e.Task, Kind: e.Kind, Decided: e.Done, Step: e.Step, Awaited: e.Awaited})
		}
	}
	return g
}

// Audit implements store.Observe.
func (s *Store) Audit(ctx context.Context, ns string, f store.AuditFilter) (list []store.AuditEntry, next string, err error) {
	before, err := f.Before()
	if err != nil {
		return nil, "", err
	}
	limit := store.PageLimit(f.Limit)
	err = s.do(ctx, ns, func(o *op) {
		for i := len(o.audit) - 1; i >= 0; i-- {
			e := o.audit[i]
			switch {
			case e.ID >= before || !f.Selects(&e):
			case len(list) == limit:
				next = list[limit-1].Cursor()
				return
			default:
				list = append(list, e)
			}
		}
	})
	return list, next, err
}
