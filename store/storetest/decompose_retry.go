package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// decomposeRetryCases test the retry of parents and children.
var decomposeRetryCases = []testCase{
	{"it waits again for the children that ended with it, and theirs", func(e *env) {
		g := e.job("all")
		kids := e.decomposed(g.id("all"), task.JoinRerun, 4)
		inner := e.decomposed(kids[3], task.JoinComplete, 1)
		e.succeed(kids[0])
		e.fail(kids[1])
		e.operate(cancelOf(g.id("all")))
		e.operate(retryOf(g.id("all")))
		e.waitsFor(g.id("all"), 2)
		e.waitsFor(kids[3], 1)
		e.is(kids[1], task.Failed, task.WaitNone)
		e.due(kids[2])
		e.due(inner[0])
		g.counts(task.JobRunning, 6, 4, 2, 1, 1)
		e.succeed(kids[2], inner[0])
		e.equal("the output", string(e.task(kids[3]).Output), `"joined"`)
		e.due(g.id("all"))
	}},
	{"it is refused while a child is still being cancelled", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 2)
		c := e.a.take(kids[0])
		e.operate(cancelOf(p))
		e.contains("the refusal", e.commandRefused(retryOf(p), store.ErrState), kids[0].String(), "still being cancelled")
		e.finish(cancelled(c))
		e.operate(retryOf(p))
		e.waitsFor(p, 2)
		e.succeed(kids...)
		e.due(p)
	}},
	{"a child that failed is waited for again while others run", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinComplete, 2)
		e.fail(kids[0])
		e.waitsFor(p, 1)
		e.operate(retryOf(kids[0]))
		e.waitsFor(p, 2)
		e.succeed(kids...)
		e.ended(p, task.Succeeded, task.KindNone)
	}},
	{"a parent that failed for its children revives with the last of them", func(e *env) {
		g := e.job("all", "after: all")
		kids := e.decomposed(g.id("all"), task.JoinComplete, 3)
		e.fail(kids[0], kids[1])
		e.succeed(kids[2])
		e.contains("the refusal", e.commandRefused(retryOf(g.id("all")), store.ErrState), kids[0].String(), "retry that one first")
		e.operate(retryOf(kids[1]))
		e.is(g.id("all"), task.Failed, task.WaitNone)
		e.succeed(kids[1])
		e.operate(retryOf(kids[0]))
		e.waitsFor(g.id("all"), 1)
		e.is(g.id("after"), task.Pending, task.WaitDeps)
		e.succeed(kids[0], g.id("after"))
		g.counts(task.JobSucceeded, 5, 0, 0, 0, 5)
	}},
	{"a child that is retried when its parent went on is not waited for", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 1)
		e.fail(kids[0])
		e.operate(retryOf(kids[0]))
		before := e.is(p, task.Ready, task.WaitNone)
		e.succeed(kids[0])
		e.equal("the parent", e.task(p), before)
		e.equal("the ends", e.childEnds(p), []task.State{task.Failed})
		e.fail(p)
		e.operate(retryOf(p))
		e.due(p)
	}},
	{"a deadline that both missed", func(e *env) {
		p := e.one(expires(time.Minute))
		kids := e.decomposed(p, task.JoinComplete, 2)
		e.succeed(kids[0])
		e.pass(2 * time.Minute)
		e.reap()
		e.ended(kids[1], task.Cancelled, task.KindDeadline)
		e.operate(retryOf(p))
		e.waitsFor(p, 1)
		e.succeed(kids[1])
		e.ended(p, task.Succeeded, task.KindNone)
	}},
	{"many children revive with it", func(e *env) {
		p := e.one()
		e.decomposed(p, task.JoinRerun, fanned)
		e.operate(cancelOf(p))
		e.finishChores()
		e.operate(retryOf(p))
		e.waitsFor(p, fanned)
		e.finishChores()
		e.equal("the dispatch rows", len(e.snap().Dispatch), fanned)
		e.operate(cancelOf(p))
		e.finishChores()
		e.equal("the dispatch rows", len(e.snap().Dispatch), 0)
	}},
}
