package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// depend ends an attempt that asks to wait for another task.
func depend(c store.Claimed, on task.ID) store.Finish {
	return store.Finish{Lease: c.Lease, Outcome: task.OutcomeAddDependency, DependsOn: on, CodeVersion: 1}
}

// asksFor runs a task until it asks to wait for another task.
func (e *env) asksFor(id, on task.ID) store.FinishResult {
	e.Helper()
	return e.finish(depend(e.a.take(id), on))
}

// dependencyCases test tasks whose handler asked to wait for another task.
var dependencyCases = []testCase{
	{"it runs again when the other one has succeeded", func(e *env) {
		a, b := e.one(), e.one()
		e.equal("the answer", e.asksFor(a, b), store.FinishResult{State: task.Pending, Waiting: task.WaitDeps})
		t := e.is(a, task.Pending, task.WaitDeps)
		e.check(t.RemainingDeps == 1 && t.AttemptCount == 0, "it waits for %d, after %d attempts that count", t.RemainingDeps, t.AttemptCount)
		e.notDispatched(a)
		e.succeed(b)
		e.due(a)
		e.succeed(a)
	}},
	{"it runs again at once when the other one has succeeded before", func(e *env) {
		a, b := e.one(), e.one()
		e.succeed(b)
		e.equal("the state", e.asksFor(a, b).State, task.Ready)
		e.due(a)
		f := depend(e.a.take(a), b)
		e.equal("the state when it asks again", e.finish(f).State, task.Failed)
		e.equal("the same report", e.finish(f).State, task.Failed)
		e.contains("the text", e.ended(a, task.Failed, task.KindValidation).Error.Message, "was waited for already")
	}},
	{"it cannot run when the other one ends otherwise, and revives with it", func(e *env) {
		g := e.job("a", "after: a")
		before, b := e.one(), e.one()
		e.fail(before)
		e.asksFor(g.id("a"), b)
		e.operate(cancelOf(b))
		e.contains("the text", e.ended(g.id("a"), task.Cancelled, task.KindDependencyFailed).Error.Message, b.String()+", which ended cancelled")
		e.ended(g.id("after"), task.Cancelled, task.KindDependencyFailed)
		e.contains("the refusal", e.commandRefused(retryOf(g.id("a")), store.ErrState), "retry that one first")
		e.operate(retryOf(b))
		e.equal("RemainingDeps", e.is(g.id("a"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.succeed(b, g.id("a"), g.id("after"))

		a := e.one()
		f := depend(e.a.take(a), before)
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Cancelled})
		e.equal("the answer to the same report", e.finish(f), store.FinishResult{State: task.Cancelled})
		e.ended(a, task.Cancelled, task.KindDependencyFailed)
		e.operate(retryOf(before))
		e.succeed(before, a)
	}},
	{"it has started: the retry of a need that it had leaves it as it is", func(e *env) {
		g := e.job("need", "a: *need")
		e.fail(g.id("need"))
		other := e.one()
		e.asksFor(g.id("a"), other)
		e.operate(retryOf(g.id("need")))
		e.equal("RemainingDeps", e.is(g.id("a"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.verify()
		e.succeed(other)
		e.due(g.id("a"))
		e.succeed(g.id("need"), g.id("a"))
	}},
	{"it cannot wait for itself, for what waits for it, or for what is not there", func(e *env) {
		a, b, c := e.one(), e.one(), e.one()
		e.asksFor(a, b)
		e.asksFor(b, c)
		e.equal("the state", e.asksFor(c, a).State, task.Failed)
		e.contains("the text", e.ended(c, task.Failed, task.KindValidation).Error.Message, a.String()+" waits for it")
		e.ended(a, task.Cancelled, task.KindDependencyFailed)

		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 2)
		e.asksFor(kids[0], p)
		e.contains("the text", e.ended(kids[0], task.Failed, task.KindValidation).Error.Message, "wait for itself")
		e.succeed(kids[1])
		e.asksFor(p, kids[1])
		e.contains("the text", e.ended(p, task.Failed, task.KindValidation).Error.Message, "is a child of this one")

		self, none := e.one(), e.one()
		e.asksFor(self, self)
		e.ended(self, task.Failed, task.KindValidation)
		e.asksFor(none, e.newID())
		e.contains("the text", e.ended(none, task.Failed, task.KindValidation).Error.Message, "there is no task")
		far := e.in(otherNamespace).one()
		other := e.one()
		e.asksFor(other, far)
		e.contains("the text", e.ended(other, task.Failed, task.KindValidation).Error.Message, "there is no task")
	}},
	{"a task that has started, and has open edges, does not wait for it", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y")
		e.fail(g.id("x"))
		alarm, y := e.a.take(g.id("alarm")), e.a.take(g.id("y"))
		e.finish(depend(y, g.id("alarm")))
		e.equal("RemainingDeps", e.is(g.id("y"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.finish(success(alarm))
		e.succeed(g.id("y"))
	}},
	{"what it needed before it started does not count while it waits", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y")
		b := e.one()
		e.fail(g.id("x"))
		e.asksFor(g.id("alarm"), b)
		e.operate(retryOf(g.id("x")))
		e.succeed(g.id("y"), g.id("x"))
		e.equal("RemainingDeps", e.is(g.id("alarm"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.succeed(b)
		e.due(g.id("alarm"))
	}},
	{"one that is needed already, in another way, is awaited as well", func(e *env) {
		g := e.job("x", "y", "alarm: !x !y")
		e.fail(g.id("x"))
		e.asksFor(g.id("alarm"), g.id("y"))
		e.succeed(g.id("y"))
		e.due(g.id("alarm"))
	}},
	{"in one batch with the end of the other one", func(e *env) {
		bothOrders(func(turn func(...store.Finish) []store.Finish) {
			a, b := e.one(), e.one()
			cs := e.a.takeAll(a, b)
			e.finishOK(turn(depend(cs[0], b), success(cs[1]))...)
			e.due(a)
			e.succeed(a)

			a, b = e.one(), e.one()
			cs = e.a.takeAll(a, b)
			e.finishOK(turn(depend(cs[0], b), dead(cs[1]))...)
			e.require(e.task(a).State.Terminal(), "the task that waits for one that failed is %s", e.task(a).State)
		})
	}},
	{"a job waits for a task outside of it, and is blocked by one of its own", func(e *env) {
		g := e.job("a", "after: a")
		b := e.one()
		e.asksFor(g.id("a"), b)
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		e.operate(cancelOf(b))
		g.counts(task.JobFailed, 2, 0, 0, 2, 0)
		e.operate(retryOf(b))
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		e.operate(cancelOf(g.id("a")))
		g.counts(task.JobFailed, 2, 0, 0, 2, 0)
		e.operate(retryOf(g.id("a")))
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		e.succeed(b)
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		e.succeed(g.all("a", "after")...)

		g = e.job("a", "b")
		e.blockTask(g.id("b"))
		e.asksFor(g.id("a"), g.id("b"))
		g.counts(task.JobBlocked, 2, 2, 0, 0, 0)
		e.operate(unblockOf(g.id("b"), ""))
		e.succeed(g.all("b", "a")...)
	}},
	{"R9: a lost lease adds no edge", func(e *env) {
		a, b := e.one(), e.one()
		c := e.a.take(a)
		e.expire(c)
		e.finishRefused(depend(c, b), store.ErrLeaseLost)
	}},
	{"it is cancelled while it waits, and waits again when it is retried", func(e *env) {
		a, b := e.one(), e.one()
		e.asksFor(a, b)
		e.operate(cancelOf(a))
		e.ended(a, task.Cancelled, task.KindCancelled)
		e.is(b, task.Ready, task.WaitNone)
		e.operate(retryOf(a))
		e.equal("RemainingDeps", e.is(a, task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.succeed(b)
		e.due(a)
	}},
	{"one that cleans up does so when it is cancelled while it waits", func(e *env) {
		a, b := e.one(func(n *task.New) { n.CleanupWhenCancelled = true }), e.one()
		e.asksFor(a, b)
		e.operate(cancelOf(a))
		c := e.a.take(a)
		e.succeed(b)
		e.finish(undone(c))
		e.ended(a, task.Cancelled, task.KindCancelled)
	}},
	{"one that cleans up does so when the other one failed", func(e *env) {
		a, b := e.one(cleansUp()), e.one()
		e.asksFor(a, b)
		e.fail(b)
		t := e.is(a, task.Pending, task.WaitUndo)
		e.check(t.Undo != nil && t.Undo.EndsAs == task.Cancelled, "%s, %+v", show(t), t.Undo)
		e.finish(undone(e.a.take(a)))
		e.ended(a, task.Cancelled, task.KindDependencyFailed)
	}},
	{"a deadline ends it", func(e *env) {
		a, b := e.one(expires(time.Minute)), e.one()
		e.asksFor(a, b)
		e.pass(2 * time.Minute)
		e.reap()
		e.ended(a, task.Cancelled, task.KindDeadline)
		e.succeed(b)
	}},
}
