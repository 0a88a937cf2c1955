package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ifFailedCases test tasks that run if one of several others fails.
var ifFailedCases = []testCase{
	{"it starts at the first need that fails", func(e *env) {
		for _, node := range []string{"x", "y"} {
			g := e.job("x", "y", "alarm: !x !y")
			e.fail(g.id(node))
			e.readyOnce(g.id("alarm"))
		}
	}},
	{"it waits while none failed, and starts for the last one", func(e *env) {
		g := e.job("x", "y", "z", "alarm: !x !y !z")
		e.succeed(g.id("x"))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 2)
		e.operate(cancelOf(g.id("y")))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.fail(g.id("z"))
		e.readyOnce(g.id("alarm"))
	}},
	{"needs that end after it started change nothing", func(e *env) {
		g := e.job("x", "y", "z", "alarm: !x !y !z")
		e.fail(g.id("x"))
		c := e.a.take(g.id("alarm"))
		before := e.task(g.id("alarm"))
		e.succeed(g.id("y"))
		e.fail(g.id("z"))
		e.equal("the alarm", e.task(g.id("alarm")), before)
		e.finish(success(c))
		for _, edge := range e.snap().Edges {
			e.check(edge.Done, "the edge to a need that has ended is not done")
		}
	}},
	{"a need went wrong that could not run or missed its deadline", func(e *env) {
		g := e.graph("bad", "lost: bad", "late", "ifLost: !lost", "ifLate: !late").with("late", expires(time.Second)).submit()
		e.fail(g.id("bad"))
		e.readyOnce(g.id("ifLost"))
		e.pass(2 * time.Second)
		e.reap()
		e.ended(g.id("late"), task.Cancelled, task.KindDeadline)
		e.readyOnce(g.id("ifLate"))
	}},
	{"a need that a person cancelled did not go wrong", func(e *env) {
		g := e.job("x", "alarm: !x")
		e.operate(cancelOf(g.id("x")))
		t := e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
		e.equal("the text", t.Error.Message, `not needed: it runs if task "x" (`+g.id("x").String()+`) fails, which ended cancelled`)
	}},
	{"it is not needed once all have ended and none failed", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y")
		e.succeed(g.id("y"))
		e.is(g.id("alarm"), task.Pending, task.WaitDeps)
		e.succeed(g.id("x"))
		t := e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
		e.equal("the text", t.Error.Message, `not needed: it runs if task "x" (`+g.id("x").String()+`) or another of its needs fails, and none of them did`)
		g.counts(task.JobSucceeded, 3, 0, 0, 0, 2)
	}},
	{"what needs a task that was not needed is not needed", func(e *env) {
		g := e.job("x", "alarm: !x", "page: alarm", "clear: page", "any: *page")
		e.succeed(g.id("x"))
		for _, node := range []string{"alarm", "page", "clear"} {
			e.ended(g.id(node), task.Cancelled, task.KindNotNeeded)
		}
		e.succeed(g.id("any"))
		g.counts(task.JobSucceeded, 5, 0, 0, 0, 2)
	}},
	{"all the other needs have to hold as well", func(e *env) {
		g := e.job("x", "y", "tool", "any", "alarm: !x !y tool *any")
		e.fail(g.id("x"))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 2)
		e.succeed(g.id("tool"))
		e.succeed(g.id("y"))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.fail(g.id("any"))
		e.readyOnce(g.id("alarm"))

		g = e.job("x", "tool", "alarm: !x tool")
		e.fail(g.id("x"))
		e.fail(g.id("tool"))
		e.ended(g.id("alarm"), task.Cancelled, task.KindDependencyFailed)
		g = e.job("x", "tool", "alarm: !x tool")
		e.succeed(g.id("x")) // and tool is open
		e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
	}},
	{"one batch of ends decides as one", func(e *env) {
		bothOrders(func(turn func(...store.Finish) []store.Finish) {
			g := e.job("x", "y", "alarm: !x !y", "both: !x y")
			cs := e.a.takeAll(g.all("x", "y")...)
			e.finishAll(turn(success(cs[0]), dead(cs[1]))...)
			e.readyOnce(g.id("alarm"))
			e.ended(g.id("both"), task.Cancelled, task.KindDependencyFailed)
		})
	}},
	{"an alarm that succeeded does not make its job succeed", func(e *env) {
		g := e.job("x", "alarm: !x", "clean: *x")
		e.fail(g.id("x"))
		e.succeed(g.all("alarm", "clean")...)
		g.counts(task.JobFailed, 3, 0, 0, 1, 2)
	}},
	{"in the middle of bounded work the first failure starts it", func(e *env) {
		nodes := append(fan("need", "d: need"), "other", "alarm: !need !other", "late: !need d0")
		g := e.job(nodes...)
		cs := e.a.takeAll(g.all("need", "other")...)
		e.finish(dead(cs[0]))
		e.finish(success(cs[1]))
		e.finishChores()
		e.readyOnce(g.id("alarm"))
		e.ended(g.id("late"), task.Cancelled, task.KindDependencyFailed)

		g = e.job(nodes...)
		cs = e.a.takeAll(g.all("need", "other")...)
		e.finish(success(cs[0]))
		e.finish(dead(cs[1]))
		e.finishChores()
		e.readyOnce(g.id("alarm"))
	}},
	{"needs that ended in one batch decide together, also those whose edges are left for later", func(e *env) {
		g := e.job(append(append([]string{"other"}, fan("need", "d: need")...), "last: need !other")...)
		cs := e.a.takeAll(g.all("other", "need")...)
		e.finishAll(success(cs[0]), dead(cs[1]))
		e.finishChores()
		e.ended(g.id("last"), task.Cancelled, task.KindDependencyFailed)
	}},
	{"in the middle of bounded work it is not needed, and says so as in one piece", func(e *env) {
		g := e.job(append(fan("need", "d: need"), "other", "alarm: !need !other")...)
		e.finishAll(finishes(e.a.takeAll(g.all("need", "other")...), success)...)
		e.finishChores()
		t := e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
		e.contains("the text", t.Error.Message, g.id("need").String(), "or another of its needs")
		g.counts(task.JobRunning, fanned+3, fanned, fanned, 0, 2)
	}},
	{"one task may run if any of many fails", func(e *env) {
		var nodes []string
		last := "alarm:"
		for i := range fanned {
			nodes = append(nodes, fmt.Sprint("x", i))
			last += fmt.Sprint(" !x", i)
		}
		g := e.job(append(nodes, last)...)
		e.equal("RemainingDeps", e.task(g.id("alarm")).RemainingDeps, fanned)
		e.succeed(g.id("x0"))
		e.equal("RemainingDeps", e.task(g.id("alarm")).RemainingDeps, fanned-1)
		e.fail(g.id("x7"))
		e.readyOnce(g.id("alarm"))
	}},
}

// ifFailedRetryCases test that a retry evaluates needs by their edge kinds.
var ifFailedRetryCases = []testCase{
	{"a failed need is no obstacle to the retry of an alarm", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y")
		e.fail(g.id("x"))
		e.fail(g.id("alarm"))
		e.equal("the answer", e.operate(retryOf(g.id("alarm"))), store.CommandResult{State: task.Ready})
		e.readyOnce(g.id("alarm"))
		e.succeed(g.id("y"))
	}},
	{"no alarm is retried that none of its needs asks for", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y")
		e.succeed(g.all("x", "y")...)
		e.contains("the refusal", e.commandRefused(retryOf(g.id("alarm")), store.ErrState), `runs only if task "x" (`+g.id("x").String()+`) or another of its needs fails, and none of them did`)
	}},
	{"what was not needed revives with a need, and with it what was not needed then", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y", "page: alarm")
		e.operate(cancelOf(g.id("x")))
		e.succeed(g.id("y"))
		e.ended(g.id("page"), task.Cancelled, task.KindNotNeeded)
		e.operate(retryOf(g.id("x")))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.equal("RemainingDeps", e.is(g.id("page"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		g.counts(task.JobRunning, 4, 3, 1, 0, 1)
		e.fail(g.id("x"))
		e.readyOnce(g.id("alarm"))
		e.readyOnce(g.id("page"))
		g.counts(task.JobFailed, 4, 0, 0, 1, 3)
	}},
	{"what waits to start waits again for the need that is retried, unless another one failed", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y", "tool", "both: !x tool")
		e.fail(g.id("x"))
		e.is(g.id("alarm"), task.Ready, task.WaitNone)
		e.equal("RemainingDeps of both", e.task(g.id("both")).RemainingDeps, 1)
		e.operate(retryOf(g.id("x")))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 2)
		e.equal("RemainingDeps of both", e.task(g.id("both")).RemainingDeps, 2)
		e.notDispatched(g.id("alarm"))
		e.fail(g.all("x", "y")...)
		before := e.task(g.id("alarm"))
		e.equal("RemainingDeps of both", e.task(g.id("both")).RemainingDeps, 1)
		e.operate(retryOf(g.id("y")))
		e.equal("the alarm, which x asks for", e.task(g.id("alarm")), before)
		e.readyOnce(g.id("alarm"))
		e.succeed(g.id("y"))
		e.operate(retryOf(g.id("x")))
		e.equal("RemainingDeps of both", e.task(g.id("both")).RemainingDeps, 2)
		e.succeed(g.id("x"))
		e.ended(g.id("both"), task.Cancelled, task.KindNotNeeded)
		e.succeed(g.id("tool"))
		g.counts(task.JobSucceeded, 5, 0, 0, 0, 4)
	}},
	{"what a retry makes unneeded does not count against the job any more", func(e *env) {
		g := e.job("x", "y", "d: x !y", "next: d")
		cs := e.a.takeAll(g.all("x", "y")...)
		e.finishAll(dead(cs[0]), success(cs[1]))
		e.ended(g.id("d"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobFailed, 4, 0, 0, 3, 1)
		e.operate(retryOf(g.id("x")))
		e.succeed(g.id("x"))
		e.ended(g.id("d"), task.Cancelled, task.KindNotNeeded)
		e.ended(g.id("next"), task.Cancelled, task.KindNotNeeded)
		g.counts(task.JobSucceeded, 4, 0, 0, 0, 2)
	}},
}
