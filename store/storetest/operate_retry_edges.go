package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// retryEdgeCases test the retry of a need. Tasks that wait for its end wait again; tasks that started since its last
// end are unchanged.
var retryEdgeCases = []testCase{
	{"I7 a dependent that has not started waits again", func(e *env) {
		g := e.graph("a", "b", "any: *a", "alarm: !a", "late: *a", "both: *a b").with("late", after(time.Minute)).submit()
		wish := e.now().Add(time.Minute)
		e.fail(g.id("a"))
		e.all(task.Ready, task.WaitNone, g.all("any", "alarm")...)
		e.is(g.id("late"), task.Pending, task.WaitDelay)
		g.counts(task.JobRunning, 6, 5, 4, 1, 0)
		e.operate(retryOf(g.id("a")))
		e.all(task.Pending, task.WaitDeps, g.all("any", "alarm", "late", "both")...)
		for node, open := range map[string]int{"any": 1, "alarm": 1, "late": 1, "both": 2} {
			e.equal("RemainingDeps of "+node, e.task(g.id(node)).RemainingDeps, open)
			e.notDispatched(g.id(node))
		}
		g.counts(task.JobRunning, 6, 6, 2, 0, 0)
		e.b.getsNothing(only(g.all("any", "alarm", "late", "both")...))
		e.succeed(g.id("a"))
		e.readyOnce(g.id("any"))
		e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
		e.is(g.id("late"), task.Pending, task.WaitDelay)
		e.dueAt(g.id("late"), wish)
		e.equal("RemainingDeps of both", e.is(g.id("both"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.pass(time.Minute)
		e.succeed(g.all("b", "both", "late")...)
		g.counts(task.JobSucceeded, 6, 0, 0, 0, 5)
	}},
	{"a dependent that runs, waits to run again or has run stays", func(e *env) {
		g := e.job("a", "runs: *a", "sleeps: *a", "blocked: *a", "failed: !a", "done: *a")
		e.fail(g.id("a"))
		c := e.a.take(g.id("runs"))
		e.finish(suspend(e.a.take(g.id("sleeps")), e.now().Add(time.Minute)))
		e.blockTask(g.id("blocked"))
		e.fail(g.id("failed"))
		e.succeed(g.id("done"))
		before := e.tasks(g.all("runs", "sleeps", "blocked", "failed", "done")...)
		e.operate(retryOf(g.id("a")))
		e.equal("the dependents", e.tasks(g.all("runs", "sleeps", "blocked", "failed", "done")...), before)
		e.succeed(g.id("a"))
		e.equal("the dependents after their need ended again", e.tasks(g.all("runs", "sleeps", "blocked", "failed", "done")...), before)
		e.finish(success(c))
		g.counts(task.JobRunning, 6, 2, 1, 1, 3)
	}},
	{"a dependent that a retry revives waits for all of its needs that go on", func(e *env) {
		// The retry reopens b with a, before c, whose end b also waits for.
		g := e.job("a", "x: a", "c: x", "b: a *c", "d: *b")
		e.fail(g.id("a"))
		e.all(task.Cancelled, task.WaitNone, g.all("x", "c", "b")...)
		e.is(g.id("d"), task.Ready, task.WaitNone)
		e.operate(retryOf(g.id("a")))
		for node, open := range map[string]int{"x": 1, "c": 1, "b": 2, "d": 1} {
			e.equal("RemainingDeps of "+node, e.is(g.id(node), task.Pending, task.WaitDeps).RemainingDeps, open)
		}
		g.counts(task.JobRunning, 5, 5, 1, 0, 0)
		e.succeed(g.all("a", "x", "c", "b", "d")...)
		g.counts(task.JobSucceeded, 5, 0, 0, 0, 5)
	}},
	{"a dependent that was not needed revives with the need that ended otherwise", func(e *env) {
		g := e.job("a", "alarm: !a", "other", "both: !a !other")
		e.operate(cancelOf(g.id("a")))
		e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
		e.succeed(g.id("other"))
		e.operate(retryOf(g.id("a")))
		e.all(task.Pending, task.WaitDeps, g.all("alarm", "both")...)
		e.fail(g.id("a"))
		e.readyOnce(g.id("alarm"))
		e.readyOnce(g.id("both"))
	}},
	{"a reopened dependent leaves its key to the next waiter", func(e *env) {
		g := e.graph("a", "first: *a", "second: *a").with("first", key("k", 1)).with("second", key("k", 1)).submit()
		holder := e.one(key("k", 1))
		c := e.a.take(holder)
		e.fail(g.id("a"))
		e.pass(time.Second)
		free := e.one(key("k", 1))
		e.b.getsNothing()
		e.finish(success(c)) // the retry makes the first of them due
		e.operate(retryOf(g.id("a")))
		for _, node := range []string{"first", "second"} {
			e.is(g.id(node), task.Pending, task.WaitDeps)
			e.notDispatched(g.id(node))
			e.check(!e.waits(g.id(node)), "%s waits for its key and for its need", node)
		}
		e.is(free, task.Ready, task.WaitNone)
		e.succeed(free, g.id("a"), g.id("first"), g.id("second"))
	}},
	{"a retry judges the needs of its task by the kinds of the edges", func(e *env) {
		g := e.job("a", "any: *a", "alarm: !a", "b: a")
		e.fail(g.all("a", "any", "alarm")...)
		for _, node := range []string{"any", "alarm"} {
			e.equal("the answer for "+node, e.operate(retryOf(g.id(node))), store.CommandResult{State: task.Ready})
			e.equal("RemainingDeps of "+node, e.task(g.id(node)).RemainingDeps, 0)
		}
		e.contains("the refusal", e.commandRefused(retryOf(g.id("b")), store.ErrState), `needs task "a"`)

		g = e.job("a", "alarm: !a", "c", "b: !c")
		e.succeed(g.id("a"))
		e.operate(cancelOf(g.id("c")))
		e.contains("the refusal for a need that succeeded", e.commandRefused(retryOf(g.id("alarm")), store.ErrState), `runs only if task "a" (`+g.id("a").String()+`) fails, which is succeeded`)
		e.contains("the refusal for a need that was cancelled", e.commandRefused(retryOf(g.id("b")), store.ErrState), "retry that one first")
	}},
}
