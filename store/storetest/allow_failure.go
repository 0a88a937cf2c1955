package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// mayFail makes a task whose failure its job allows.
func mayFail() opt { return func(n *task.New) { n.AllowFailure = true } }

// countsAllowed is counts for a job with allowed failures.
func (g *graph) countsAllowed(state task.JobState, want task.JobCounters) {
	g.e.Helper()
	j := g.read()
	g.e.require(j.Counters == want && j.State == state, "the job is %s with %+v, want %s with %+v", j.State, j.Counters, state, want)
}

// allowFailureCases test tasks whose failure is allowed.
var allowFailureCases = []testCase{
	{"a failure that is allowed meets needs and does not count against the job", func(e *env) {
		g := e.graph("a", "b: a", "alarm: !a", "any: *a").with("a", mayFail()).submit()
		e.check(e.task(g.id("a")).AllowFailure && !e.task(g.id("b")).AllowFailure, "AllowFailure does not read back")
		e.fail(g.id("a"))
		e.is(g.id("a"), task.Failed, task.WaitNone)
		g.countsAllowed(task.JobRunning, task.JobCounters{Total: 4, Unfinished: 3, Movable: 3, Allowed: 1})
		for _, n := range e.needs(g.id("b")) {
			e.equal("the need", n, store.Need{
				ID: g.id("a"), Node: "a", Kind: task.OnSuccess, State: task.Failed, Done: true, ErrorKind: task.KindHandler, AllowFailure: true,
			})
		}
		e.succeed(g.all("b", "alarm", "any")...)
		g.countsAllowed(task.JobSucceeded, task.JobCounters{Total: 4, Allowed: 1, Succeeded: 3})
	}},
	{"one that succeeds counts as any other", func(e *env) {
		g := e.graph("a", "b: a").with("a", mayFail()).submit()
		e.succeed(g.all("a", "b")...)
		g.counts(task.JobSucceeded, 2, 0, 0, 0, 2)
	}},
	{"a deadline is a failure that is allowed", func(e *env) {
		g := e.graph("a", "b: a").with("a", mayFail(), expires(time.Second)).submit()
		e.pass(2 * time.Second)
		e.reap()
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.succeed(g.id("b"))
		g.countsAllowed(task.JobSucceeded, task.JobCounters{Total: 2, Allowed: 1, Succeeded: 1})
	}},
	{"a cancel by a person is no failure", func(e *env) {
		g := e.graph("a", "b: a").with("a", mayFail()).submit()
		e.operate(cancelOf(g.id("a")))
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobFailed, 2, 0, 0, 2, 0)
	}},
	{"one that cannot run passes that on", func(e *env) {
		g := e.graph("a", "b: a", "c: b").with("b", mayFail()).submit()
		e.fail(g.id("a"))
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobFailed, 3, 0, 0, 3, 0)
	}},
	{"a retry takes the failure back", func(e *env) {
		g := e.graph("a", "b: a", "c: a").with("a", mayFail()).submit()
		e.fail(g.id("a"))
		e.succeed(g.id("b"))
		e.operate(retryOf(g.id("a")))
		e.is(g.id("c"), task.Pending, task.WaitDeps)
		g.countsAllowed(task.JobRunning, task.JobCounters{Total: 3, Unfinished: 2, Movable: 1, Succeeded: 1})
		e.fail(g.id("a"))
		e.fail(g.id("c"))
		g.countsAllowed(task.JobFailed, task.JobCounters{Total: 3, Failed: 1, Allowed: 1, Succeeded: 1})
		e.equal("the answer", e.operate(retryOf(g.id("c"))), store.CommandResult{State: task.Ready})
		e.succeed(g.id("c"))
		g.countsAllowed(task.JobSucceeded, task.JobCounters{Total: 3, Allowed: 1, Succeeded: 2})
	}},
	{"many dependents of a failure that is allowed become ready", func(e *env) {
		g := e.graph(append(fan("need", "d: need"), "last: need d0")...).with("need", mayFail()).submit()
		e.fail(g.id("need"))
		e.finishChores()
		g.countsAllowed(task.JobRunning, task.JobCounters{Total: fanned + 2, Unfinished: fanned + 1, Movable: fanned, Allowed: 1})
		e.succeed(g.id("d0"))
		e.is(g.id("last"), task.Ready, task.WaitNone)
	}},
	{"the cancel of a job with one that failed", func(e *env) {
		g := e.graph("a", "b: a").with("a", mayFail()).submit()
		e.fail(g.id("a"))
		e.equal("the answer", e.operate(store.CancelJob{Job: g.sub.Job.ID}), store.CommandResult{Cancelled: 1, AlreadyDone: 1})
		g.countsAllowed(task.JobCancelled, task.JobCounters{Total: 2, Failed: 1, Allowed: 1})
	}},
}
