package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var edgeCases = []testCase{
	{"I7 each kind of edge is decided by each end of its need", func(e *env) {
		for _, end := range ends {
			g := e.job("a", "needs: a", "failed: !a", "done: *a")
			end.end(e, g.id("a"))
			for node, kind := range map[string]task.EdgeKind{"needs": task.OnSuccess, "failed": task.OnFailed, "done": task.OnDone} {
				what := fmt.Sprintf("%s edge of a %s need", kind, end.state)
				id := g.id(node)
				if holds, _ := kind.Holds(end.state); holds {
					e.equal(what+": RemainingDeps", e.is(id, task.Ready, task.WaitNone).RemainingDeps, 0)
					e.dueAt(id, e.now())
					continue
				}
				want := task.KindDependencyFailed
				if kind == task.OnFailed {
					want = task.KindNotNeeded
				}
				e.contains(what+": the message", e.ended(id, task.Cancelled, want).Error.Message, g.id("a").String(), `"a"`)
				e.notDispatched(id)
			}
			for _, edge := range e.snap().Edges {
				e.check(edge.Done, "the edge to a %s need is not done", end.state)
			}
		}
	}},
	{"a blocked need decides nothing", func(e *env) {
		g := e.job("a", "needs: a", "failed: !a", "done: *a")
		e.blockTask(g.id("a"))
		e.all(task.Pending, task.WaitDeps, g.all("needs", "failed", "done")...)
		e.operate(cancelOf(g.id("a")))
		e.is(g.id("done"), task.Ready, task.WaitNone)
	}},
	{"a task that is not needed does not count against the job", func(e *env) {
		g := e.job("a", "b: a", "repair: !a")
		e.succeed(g.id("a"))
		e.ended(g.id("repair"), task.Cancelled, task.KindNotNeeded)
		g.counts(task.JobRunning, 3, 1, 1, 0, 1)
		e.succeed(g.id("b"))
		g.counts(task.JobSucceeded, 3, 0, 0, 0, 2)
	}},
	{"a task that cannot run passes that on down a chain", func(e *env) {
		const n = 100
		spec := []string{"n0"}
		for i := 1; i < n; i++ {
			spec = append(spec, fmt.Sprintf("n%d: n%d", i, i-1))
		}
		g := e.job(append(spec, fmt.Sprintf("end: *n%d", n-1))...)
		e.fail(g.id("n0"))
		for i := 1; i < n; i++ {
			e.ended(g.id(fmt.Sprintf("n%d", i)), task.Cancelled, task.KindDependencyFailed)
		}
		e.is(g.id("end"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, n+1, 1, 1, n, 0)
		e.succeed(g.id("end"))
		g.counts(task.JobFailed, n+1, 0, 0, n, 1)
	}},
	{"several edges are decided one by one", func(e *env) {
		g := e.job("ok", "bad", "any", "d: ok !bad *any")
		e.fail(g.id("bad"))
		e.operate(cancelOf(g.id("any")))
		e.equal("RemainingDeps", e.is(g.id("d"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.succeed(g.id("ok"))
		e.is(g.id("d"), task.Ready, task.WaitNone)
		e.succeed(g.id("d"))
	}},
	{"R-15 the last of two parents releases the child once", func(e *env) {
		g := e.job("a", "b", "child: a b")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finish(success(cs[1]))
		e.notDispatched(g.id("child"))
		e.finish(success(cs[0]))
		e.readyOnce(g.id("child"))
	}},
	{"a cancelled dependent is not touched again", func(e *env) {
		g := e.job("a", "b: a", "c: *b")
		e.operate(cancelOf(g.id("b")))
		e.is(g.id("c"), task.Ready, task.WaitNone)
		before := e.task(g.id("b"))
		e.pass(time.Second)
		e.succeed(g.id("a"))
		e.equal("the cancelled dependent", e.task(g.id("b")), before)
		e.dueAt(g.id("c"), e.now().Add(-time.Second))
	}},
	{"a failure of many needs cancels once", func(e *env) {
		g := e.job("a", "b", "c: a b", "d: *c")
		cs := e.a.takeAll(g.all("a", "b")...)
		for _, r := range e.finishAll(dead(cs[0]), dead(cs[1])) {
			e.equal("the answer", r, store.FinishResult{State: task.Failed})
		}
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.equal("RemainingDeps of d", e.is(g.id("d"), task.Ready, task.WaitNone).RemainingDeps, 0)
		e.dueAt(g.id("d"), e.now())
		g.counts(task.JobRunning, 4, 1, 1, 3, 0)
	}},
	{"an operator's cancel decides the edges", func(e *env) {
		g := e.job("a", "b: a", "c: b", "d: *c")
		e.operate(cancelOf(g.id("a")))
		e.ended(g.id("a"), task.Cancelled, task.KindCancelled)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("d"), task.Ready, task.WaitNone)
	}},
}

// ends are the ways in which a need ends, and what it ends as.
var ends = []struct {
	state task.State
	end   func(e *env, id task.ID)
}{
	{task.Succeeded, func(e *env, id task.ID) { e.succeed(id) }},
	{task.Failed, func(e *env, id task.ID) { e.fail(id) }},
	{task.Cancelled, func(e *env, id task.ID) { e.operate(cancelOf(id)) }},
}

// readyOnce expects a task to be ready exactly once: one dispatch row, one
// lease for all workers that ask.
func (e *env) readyOnce(id task.ID) {
	e.Helper()
	e.equal("RemainingDeps", e.is(id, task.Ready, task.WaitNone).RemainingDeps, 0)
	e.equal("the number of its dispatch rows", len(e.dispatch(id)), 1)
	c := e.a.take(id)
	e.b.getsNothing(only(id))
	e.finish(success(c))
	e.b.getsNothing(only(id))
}
