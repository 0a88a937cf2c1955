package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// edgesOf returns the awaited edges of a task.
func (e *env) edgesOf(id task.ID) []store.Need {
	e.Helper()
	needs, err := e.s.Needs(e.Context(), e.ns, id)
	e.require(err == nil, "Needs: %v", err)
	return of(needs, func(n store.Need) bool { return n.Awaited > 0 })
}

// callRetryCases test the retry of a task whose calls have children that did not succeed.
var callRetryCases = []testCase{
	{"a completed call waits again for the children that did not succeed", func(e *env) {
		g := e.job("all", "after: all")
		p := g.id("all")
		kids := e.waitsForCall(p, "build", 3)
		e.succeed(kids[0])
		e.fail(kids[1])
		e.operate(cancelOf(kids[2]))
		e.over(p, "build", 3)
		e.fail(p)
		e.operate(retryOf(p))
		t := e.due(p)
		e.check(t.StepCount == 0 && t.WakeSeq == 0, "%d steps, wake_seq %d", t.StepCount, t.WakeSeq)
		e.left(p, "build", 2)
		e.all(task.Ready, task.WaitNone, kids[1], kids[2])
		e.equal("the ends", e.childEnds(p), []task.State{task.Succeeded, "", ""})
		g.counts(task.JobRunning, 5, 4, 3, 0, 1)
		c := e.a.take(p)
		e.equal("the steps handed out", c.Steps, []task.Step{e.stepOf(p, "build")})
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		e.called(p, "build", 2)
		e.succeed(kids[1], kids[2])
		e.equal("wake_seq", e.due(p).WakeSeq, 1)
		e.over(p, "build", 3)
		e.succeed(p, g.id("after"))
		g.counts(task.JobSucceeded, 5, 0, 0, 0, 5)
	}},
	{"a child that was retried before its parent is not retried twice", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		x, y := e.calls(c, "x", 1), e.calls(c, "y", 1)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		e.fail(x[0], y[0])
		e.fail(p)
		e.operate(retryOf(x[0]))
		e.operate(retryOf(y[0]))
		e.succeed(y[0])
		e.over(p, "x", 1)
		e.operate(retryOf(p))
		e.left(p, "x", 1)
		e.over(p, "y", 1)
		e.equal("StepCount", e.due(p).StepCount, 1)
		e.equal("the ends", e.childEnds(p), []task.State{"", task.Succeeded})
		e.succeed(x[0])
		e.over(p, "x", 1)
	}},
	{"the calls of its children wait again, too", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 1)
		inner := e.waitsForCall(kids[0], "part", 1)
		e.fail(inner[0], kids[0], p)
		e.operate(retryOf(p))
		e.left(p, "build", 1)
		e.left(kids[0], "part", 1)
		e.all(task.Ready, task.WaitNone, p, kids[0], inner[0])
	}},
	{"what ends while others come back is not brought back again", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		n := 2 * fanned
		kids := e.calls(c, "build", n)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		for at := 0; at < n; at += 1000 {
			e.finishOK(finishes(e.a.takeAll(kids[at:min(n, at+1000)]...), dead)...)
		}
		e.finishChores()
		e.fail(p)
		e.operate(retryOf(kids[n-1])) // the retry of its parent opens its edge
		e.operate(retryOf(p))
		e.left(p, "build", n)
		e.fail(kids[0], kids[n-1])
		e.left(p, "build", n-2)
		e.finishChores()
		e.left(p, "build", n-2)
		e.all(task.Failed, task.WaitNone, kids[0], kids[n-1])
		e.equal("the dispatch rows", len(e.snap().Dispatch), n-2+1)
		e.commandRefused(retryOf(p), store.ErrState)
	}},
	{"an edge keeps why an awaited task did not succeed, whatever becomes of that", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		long := strings.Repeat("é", 1000)
		f := dead(e.a.take(kids[0]))
		f.Error = &task.Error{Kind: task.KindHandler, Code: "E42", Message: "x" + long, Step: "s", Stack: "a.go:1"}
		e.finish(f)
		e.operate(cancelOf(kids[1]))
		kept := &task.Error{Kind: task.KindHandler, Code: "E42", Message: "x" + long[:1022]}
		e.equal("why", e.edgesOf(p)[0].EndedError, kept)
		e.equal("the kind", e.edgesOf(p)[1].EndedError.Kind, task.KindCancelled)
		e.equal("the row", e.snap().Edges[0].EndedError, kept)
		e.operate(retryOf(kids[0]))
		e.succeed(kids[0])
		e.equal("why", e.edgesOf(p)[0].EndedError, kept)
		h, err := e.s.History(e.Context(), e.ns, p)
		e.require(err == nil, "History: %v", err)
		e.equal("why", h.Needs[0].EndedError, kept)
		e.fail(p)
		e.operate(retryOf(p))
		for _, n := range e.edgesOf(p) {
			e.check(n.EndedError == nil, "%v keeps %v", n.ID, n.EndedError)
		}
	}},
	{"it is kept for children of a decomposition and dependencies, and of no other need", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 2)
		e.fail(kids[0])
		e.succeed(kids[1])
		e.equal("why", e.edgesOf(p)[0].EndedError, &task.Error{Kind: task.KindHandler, Message: "no luck"})
		e.check(e.edgesOf(p)[1].EndedError == nil, "a child that succeeded has an error")
		a, b := e.one(), e.one()
		e.asksFor(a, b)
		e.fail(b)
		e.equal("why", e.edgesOf(a)[0].EndedError.Kind, task.KindHandler)
		g := e.job("a", "b: a")
		e.fail(g.id("a"))
		for _, row := range e.snap().Edges {
			e.check(row.Awaited > 0 || row.EndedError == nil, "the edge of a need keeps %v", row.EndedError)
		}
	}},
}
