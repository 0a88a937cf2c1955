package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var readGraphCases = []testCase{
	{"a graph has the tasks of a job, the oldest first, and the edges between them", func(e *env) {
		g := e.job("a", "b: a", "c: *a !b")
		e.job("other", "more: other")
		e.one()
		edge := func(from, to string, kind task.EdgeKind, decided bool) store.GraphEdge {
			return store.GraphEdge{From: g.id(from), To: g.id(to), Kind: kind, Decided: decided}
		}
		got := e.graphOf(g.sub.Job.ID)
		e.equal("the nodes", nodesOf(got), []string{"a", "b", "c"})
		want := []store.GraphEdge{edge("a", "b", task.OnSuccess, false), edge("a", "c", task.OnDone, false), edge("b", "c", task.OnFailed, false)}
		e.equal("the edges", sortedEdges(got.Edges), sortedEdges(want))
		e.check(slices.IsSortedFunc(got.Edges, byEnds), "the edges are not sorted: %+v", got.Edges)
		e.succeed(g.id("a"))
		for i := range want {
			want[i].Decided = want[i].From == g.id("a")
		}
		e.equal("the edges after the end of a", sortedEdges(e.graphOf(g.sub.Job.ID).Edges), sortedEdges(want))
	}},
	{"a node reads as its task does", func(e *env) {
		g := e.job("a", "b: a", "c")
		e.fail(g.id("a"))
		e.a.take(g.id("c"))
		e.pass(time.Second)
		nodes := e.graphOf(g.sub.Job.ID).Nodes
		for i, name := range []string{"a", "b", "c"} {
			t := e.task(g.id(name))
			want := store.GraphNode{
				ID: t.ID, Node: name, Type: t.Type, Queue: t.Queue, State: t.State, Waiting: t.Waiting, Attempts: t.AttemptNo, StartedAt: t.StartedAt, FinishedAt: t.FinishedAt,
			}
			if t.Error != nil {
				want.ErrorKind = t.Error.Kind
			}
			e.equal(name, nodes[i], want)
		}
		e.check(nodes[0].State == task.Failed && nodes[0].Attempts == 1 && !nodes[0].FinishedAt.IsZero() && nodes[2].State == task.Running && !nodes[2].StartedAt.IsZero(),
			"the nodes are %+v", nodes)
	}},
	{"a node is ready, later, paused or waits for its key as its task", func(e *env) {
		g := e.job("due", "paused", "own")
		e.operate(pauseTaskOf(g.id("own")))
		read := func() (all []task.Waiting) {
			return mapped(e.graphOf(g.sub.Job.ID).Nodes, func(n store.GraphNode) task.Waiting { return n.Waiting })
		}
		e.equal("why they wait", read(), []task.Waiting{task.WaitNone, task.WaitNone, task.WaitPaused})
		e.finish(retry(e.a.take(g.id("due")), time.Hour))
		e.operate(pauseOf(task.DefaultQueue))
		e.equal("why they wait, paused", read(), mapped(e.tasks(g.id("due"), g.id("paused"), g.id("own")), func(t task.Task) task.Waiting { return t.Waiting }))
		e.equal("the paused one", read()[1], task.WaitPaused)
	}},
	{"children are in the graph with their parent", func(e *env) {
		g := e.job("a")
		e.decomposed(g.id("a"), task.JoinRerun, 3)
		got := e.graphOf(g.sub.Job.ID)
		e.require(len(got.Nodes) == 4 && len(got.Edges) == 3, "the graph is %+v, want a and its three children", got)
		for _, n := range got.Nodes[1:] {
			e.equal("the parent", n.Parent, g.id("a"))
		}
		for _, x := range got.Edges {
			e.check(x.To == g.id("a") && x.Awaited == 1 && x.Kind == task.OnDone, "the edge is %+v", x)
		}
	}},
	{"the pages of a graph are the graph", func(e *env) {
		g := e.job("a", "b: a", "c: a b", "d: c", "e")
		whole := e.graphOf(g.sub.Job.ID)
		for limit := 1; limit <= 6; limit++ {
			var all store.Graph
			pages := 0
			for req := (store.GraphRequest{Job: g.sub.Job.ID, Limit: limit}); pages == 0 || req.After != ""; pages++ {
				page, err := e.s.Graph(e.Context(), e.ns, req)
				e.require(err == nil && len(page.Nodes) > 0 && len(page.Nodes) <= limit, "a page of %d: %+v, %v", limit, page, err)
				all.Nodes, all.Edges = append(all.Nodes, page.Nodes...), append(all.Edges, page.Edges...)
				req.After = page.Next
			}
			e.equal("all pages", all, whole)
			e.equal("how many pages there are", pages, (5+limit-1)/limit)
		}
	}},
	{"a graph that does not exist is not found, and a bad cursor is refused", func(e *env) {
		g := e.job("a")
		for _, job := range []task.ID{e.newID(), {}, g.id("a")} {
			_, err := e.s.Graph(e.Context(), e.ns, store.GraphRequest{Job: job})
			e.wantErr("Graph", err, store.ErrNotFound)
		}
		_, err := e.s.Graph(e.Context(), otherNamespace, store.GraphRequest{Job: g.sub.Job.ID})
		e.wantErr("Graph in another namespace", err, store.ErrNotFound)
		_, err = e.s.Graph(e.Context(), e.ns, store.GraphRequest{Job: g.sub.Job.ID, After: "x"})
		e.wantErr("Graph after x", err, store.ErrBadCursor)
	}},
}

func (e *env) graphOf(job task.ID) store.Graph {
	e.Helper()
	g, err := e.s.Graph(e.Context(), e.ns, store.GraphRequest{Job: job})
	e.require(err == nil && g.Next == "", "Graph: %v, next %q", err, g.Next)
	return g
}

func nodesOf(g store.Graph) []string {
	return mapped(g.Nodes, func(n store.GraphNode) string { return n.Node })
}

func byEnds(a, b store.GraphEdge) int {
	if c := a.To.Compare(b.To); c != 0 {
		return c
	}
	return a.From.Compare(b.From)
}

func sortedEdges(edges []store.GraphEdge) []store.GraphEdge {
	return slices.SortedFunc(slices.Values(edges), byEnds)
}
