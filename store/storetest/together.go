package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// togetherCases combine several features: budgets, waits, children, pauses, reruns.
var togetherCases = []testCase{
	{"a rerun has not spent what the steps that it takes over cost", func(e *env) {
		old := e.one()
		c := e.a.take(old)
		r := spends(c, "a", 7)
		e.record(indexed(r, 0))
		e.finish(dead(c))
		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: old, New: n, StepsBelow: 4})
		e.remember(n.ID)
		e.equal("steps cost", e.steps(n.ID)[0].Cost, int64(0))
		e.equal("cost", e.task(n.ID).Cost, int64(0))
	}},
	{"a raised budget brings back a task that asked for a child of another", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "t2", "p", "w")
		kids := e.decomposed(g.id("p"), task.JoinComplete, 1)
		e.asksFor(g.id("t2"), kids[0])
		e.succeed(g.id("w"))
		e.spentEnd(nil, g.id("p"), g.id("t2"), kids[0])
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.finishChores()
		e.waitsFor(g.id("p"), 1)
		e.is(g.id("t2"), task.Pending, task.WaitDeps)
	}},
	{"so it does when the child comes back by a chore", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "p", "t2", "w")
		kids := e.decomposed(g.id("p"), task.JoinComplete, 1)
		e.asksFor(g.id("t2"), kids[0])
		e.succeed(g.id("w"))
		e.finishChores()
		e.spentEnd(nil, g.id("p"), g.id("t2"), kids[0])
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.finishChores()
		e.waitsFor(g.id("p"), 1)
		e.is(g.id("t2"), task.Pending, task.WaitDeps)
	}},
	{"a call waits once for a child that two ways bring back", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "p", "t", "w")
		kids := e.waitsForCall(g.id("p"), "call", 3)
		e.asksFor(kids[2], g.id("t"))
		e.succeed(g.id("w"))
		e.finishChores()
		e.spentEnd(nil, g.id("p"), g.id("t"), kids[0], kids[1], kids[2])
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.finishChores()
		e.left(g.id("p"), "call", 3)
	}},
	{"and so does a decomposition", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "p", "t", "w")
		kids := e.decomposed(g.id("p"), task.JoinComplete, 3)
		e.asksFor(kids[2], g.id("t"))
		e.succeed(g.id("w"))
		e.finishChores()
		e.spentEnd(nil, g.id("p"), g.id("t"), kids[0], kids[1], kids[2])
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.finishChores()
		e.waitsFor(g.id("p"), 3)
	}},
	{"a caller and a child that are paused come back with a retry", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 50}, "p", "t", "w")
		kids := e.waitsForCall(g.id("p"), "call", 2)
		e.operate(pauseTaskOf(g.id("p")))
		e.operate(pauseTaskOf(kids[0]))
		e.operate(cancelOf(g.id("p")))
		e.finishChores()
		e.operate(retryOf(g.id("p")))
		e.finishChores()
		e.left(g.id("p"), "call", 2)
		e.operate(resumeTaskOf(kids[0]))
		e.succeed(kids...)
		e.operate(resumeTaskOf(g.id("p")))
		e.due(g.id("p"))
	}},
	{"a rerun keeps its input", func(e *env) {
		old := e.one()
		c := e.a.take(old)
		e.record(indexed(step(c, "a", `"one"`), 0))
		e.finish(dead(c))
		n := e.draft(key("k", 1), input(`{"n":1}`))
		e.operate(store.RerunTask{Audit: admin, Task: old, New: n, StepsBelow: 4})
		e.remember(n.ID)
		m := e.draft(key("k", 1), coalesces, input(`{"n":2}`))
		got := e.submit(store.Submission{Tasks: []task.New{m}})
		e.check(got[0].ID == m.ID, "coalesced into the rerun: %+v, %s", got[0], e.task(n.ID).Input)
	}},
	{"a raised budget leaves a cancelled job cancelled", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b", "c")
		c := e.a.take(g.id("a"))
		d := e.a.take(g.id("b"))
		e.operate(cancelJobOf(g.sub.Job.ID))
		e.finish(success(c))
		e.finish(cancelled(d))
		e.equal("state", g.read().State, task.JobCancelled)
		e.operate(raise(g.sub.Job.ID, 5, 0))
		e.finishChores()
		e.equal("state", g.read().State, task.JobCancelled)
	}},
	{"an attempt that only waits for its other calls makes no progress, and is not idle", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		a, b := e.calls(c, "a", 1), e.calls(c, "b", 1)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		e.succeed(a[0])
		c = e.a.take(id)
		f := suspended(c, task.WaitChildren, time.Time{})
		f.WakeSeq, f.Idle = c.Task.WakeSeq, true
		e.finish(f)
		e.equal("idle", e.task(id).IdleAttempts, 0)
		e.succeed(b[0])
	}},
	{"a child is retried while a raised budget brings it back", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "p", "w")
		kids := e.waitsForCall(g.id("p"), "call", 3)
		e.succeed(g.id("w"))
		e.finishChores()
		e.operate(raise(g.sub.Job.ID, 9, 0))
		if e.task(kids[2]).State == task.Cancelled {
			e.command(retryOf(kids[2]))
		}
		e.finishChores()
		e.left(g.id("p"), "call", 3)
	}},
	{"also one of a decomposition", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "p", "w")
		kids := e.decomposed(g.id("p"), task.JoinComplete, 3)
		e.succeed(g.id("w"))
		e.finishChores()
		e.operate(raise(g.sub.Job.ID, 9, 0))
		if e.task(kids[2]).State == task.Cancelled {
			e.command(retryOf(kids[2]))
		}
		e.finishChores()
		e.waitsFor(g.id("p"), 3)
	}},
}
