package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var budgetCostCases = []testCase{
	{"a step's cost is kept with it, also a failed try's, and spent once", func(e *env) {
		g := e.budgeted(task.Budget{MaxCost: 100}, "a")
		c := e.a.take(g.id("a"))
		r, failed := spends(c, "s", 30), try(c, "s", 1)
		failed.Step.Cost = 12
		for range 2 { // the second time is a retry after a lost reply
			e.equal("the cost of the try", e.record(failed).Step.Cost, int64(12))
			e.equal("the cost of the step", e.record(r).Step.Cost, int64(30))
		}
		e.recordOK(spends(c, "none", 0))
		e.equal("the cost of the task", e.task(g.id("a")).Cost, int64(42))
		g.used(0, 42, false)
		e.finish(retry(c, 0))
		again := e.b.take(g.id("a"))
		e.equal("what the next attempt sees", again.Task.Cost, int64(42))
		e.finish(dead(again))
		e.operate(retryOf(g.id("a")))
		e.equal("the cost after a retry", e.task(g.id("a")).Cost, int64(42))
	}},
	{"a task that goes over the job's cost fails for it, and the job ends", func(e *env) {
		g := e.budgeted(task.Budget{MaxCost: 100}, "a", "runs", "done", "waits", "b: a")
		cs := e.a.takeAll(g.all("a", "runs", "done")...)
		e.record(spends(cs[1], "s", 60))
		e.record(spends(cs[0], "s", 40))
		g.used(0, 100, false)
		e.record(spends(cs[0], "t", 1))
		g.used(0, 101, true)
		over := []string{"101 of 100 micro-units", "max_cost"}
		e.spentEnd(over, g.all("waits", "b")...)
		beats := e.a.beat(leasesOf(cs)...)
		for i, kind := range []task.ErrorKind{task.KindBudget, task.KindJobBudget, task.KindJobBudget} {
			e.equal("the cancel kind", beats[i].Cancel, kind)
			e.contains("the reason", beats[i].Reason, over...)
		}
		e.recordRefused(spends(cs[0], "u", 5), store.ErrCancelRequested)
		f := retry(cs[0], 0)
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Failed})
		e.equal("the answer again", e.finish(f), store.FinishResult{State: task.Failed})
		e.overruled(g.id("a"), over...)
		e.finish(cancelled(cs[1]))
		e.spentEnd(over, g.id("runs"))
		e.finish(success(cs[2]))
		g.counts(task.JobFailed, 5, 0, 0, 4, 1)
		g.used(0, 101, true)
	}},
	{"a task that goes over its own cost fails alone", func(e *env) {
		for _, end := range []func(store.Claimed) store.Finish{dead, cancelled, func(c store.Claimed) store.Finish { return suspend(c, e.now().Add(time.Hour)) }} {
			g := e.graph("a", "b").with("a", func(n *task.New) { n.MaxCost = 10 })
			g.sub.Job.Budget.MaxCost = 1000
			g.submit()
			c := e.a.take(g.id("a"))
			e.equal("asked to end at the limit", e.record(spends(c, "s", 10)).Asked, "")
			e.check(!e.task(g.id("a")).CancelRequested, "it was asked to end at its limit")
			e.contains("asked to end over the limit", e.record(spends(c, "t", 1)).Asked, "11 of 10 micro-units")
			e.equal("the cancel kind", e.a.beat(c.Lease)[0].Cancel, task.KindBudget)
			e.finish(end(c))
			e.overruled(g.id("a"), "11 of 10 micro-units", "its max_cost")
			e.due(g.id("b"))
			g.used(0, 11, false)
		}
	}},
	{"what went over the cost and succeeded has succeeded", func(e *env) {
		id := e.one(func(n *task.New) { n.MaxCost = 10 })
		c := e.a.take(id)
		e.record(spends(c, "s", 11))
		e.finish(success(c))
		e.ended(id, task.Succeeded, task.KindNone)
	}},
	{"what went over the cost and lost its lease fails", func(e *env) {
		id := e.one(func(n *task.New) { n.MaxCost = 10 })
		c := e.a.take(id)
		e.record(spends(c, "s", 11))
		e.equal("the state", e.expire(c).State, task.Failed)
		e.contains("the error", e.ended(id, task.Failed, task.KindBudget).Error.Message, "11 of 10")
	}},
	{"many spend in one batch", func(e *env) {
		g := e.budgeted(task.Budget{MaxCost: 5}, "a", "b", "c", "d")
		cs := e.a.takeAll(g.all("a", "b", "c")...)
		e.recordOK(spends(cs[0], "s", 2), spends(cs[1], "s", 2), step(cs[2], "s", "1"), spends(cs[2], "t", 2))
		g.used(0, 6, true)
		e.equal("the one that went over", e.task(g.id("c")).CancelKind, task.KindBudget)
		e.equal("another", e.task(g.id("a")).CancelKind, task.KindJobBudget)
		e.ended(g.id("d"), task.Cancelled, task.KindBudget)
	}},
	{"a cost below zero is refused", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.unchanged("the record", func() {
			e.check(e.recordAll(spends(c, "s", -1))[0].Err != nil, "it was accepted")
		})
	}},
}
