package storetest

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var readGraphCases = []testCase{
	{"the edges of a job are read at once, by task and need", func(e *env) {
		g := e.job("a", "b: a", "c: *a !b")
		e.job("other", "more: other")
		e.one()
		edge := func(from, to string, kind task.EdgeKind) store.EdgeRow {
			return store.EdgeRow{Task: g.id(from), Needs: g.id(to), Kind: kind}
		}
		want := e.edges(g.sub.Job.ID)
		e.check(len(want) == 3, "the edges are %+v, want three", want)
		e.equal("the first edge", want[0], edge("b", "a", task.OnSuccess))
		e.succeed(g.id("a"))
		got := e.edges(g.sub.Job.ID)
		e.check(len(got) == 3 && got[0].Done && got[1].Done && !got[2].Done, "the edges are %+v, want those to what ended to be done", got)
		e.equal("the number of edges in another namespace", len(e.in(otherNamespace).edges(g.sub.Job.ID)), 0)
		e.equal("the number of edges of no job", len(e.edges(e.newID())), 0)
		e.equal("the number of edges of the zero job", len(e.edges(task.ID{})), 0)
	}},
}

func (e *env) edges(job task.ID) []store.EdgeRow {
	e.Helper()
	edges, err := e.s.(store.EdgeReader).Edges(e.Context(), e.ns, job)
	e.require(err == nil, "Edges: %v", err)
	return edges
}
