package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var retryCases = []testCase{
	{"a failed task runs again and keeps its history", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(step(c, "paid", `1`))
		e.finish(retry(c, 0))
		e.finish(internalError(e.a.take(id), 0))
		e.fail(id)
		before := e.task(id)
		e.pass(time.Second)
		e.equal("the answer", e.operate(retryOf(id)), store.CommandResult{State: task.Ready})
		t := e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, e.now())
		e.check(t.AttemptCount == 0 && t.CrashCount == 0 && t.QuarantineLosses == 0 && t.InternalCount == 0 && t.RepairCount == 0, "counters are left: %s", show(t))
		e.check(t.Error == nil && t.FinishedAt.IsZero() && t.Epoch == before.Epoch+1 && t.AttemptNo == 3 && t.StepCount == 1, "the task was not revived: %s", show(t))
		c = e.a.take(id)
		e.equal("AttemptNo", c.Task.AttemptNo, 4)
		e.equal("the steps kept", len(c.Steps), 1)
		e.finish(success(c))
		h := e.history(id)
		e.equal("the attempts kept", len(h.Attempts), 4)
		e.equal("the decisions kept", len(h.Decisions), 2)
	}},
	{"a cancelled task runs again, without its cancel request", func(e *env) {
		delayed, running := e.one(after(time.Minute)), e.one()
		c := e.a.take(running)
		e.operate(cancelOf(running))
		e.finish(cancelled(c))
		e.operate(cancelOf(delayed))
		for _, id := range []task.ID{delayed, running} {
			e.operate(retryOf(id))
			t := e.is(id, task.Ready, task.WaitNone)
			e.check(!t.CancelRequested && t.CancelKind == "" && t.CancelBy == "" && t.CancelReason == "" && t.Error == nil, "the cancel is left: %s", show(t))
			e.dueAt(id, e.now())
			c := e.a.take(id)
			e.equal("the heartbeat's answer", e.a.beat(c.Lease), []store.Beat{{}})
			e.record(step(c, "s", `1`))
			e.finish(success(c))
		}
	}},
	{"a retry in every other state is refused", func(e *env) {
		for _, st := range situations {
			s := &subject{queue: "retry/" + st.name}
			st.reach(e, s)
			t := e.task(s.id)
			if t.State == task.Failed || t.State == task.Cancelled {
				continue
			}
			e.contains("the refusal", e.commandRefused(retryOf(s.id), store.ErrState), s.id.String())
		}
		e.commandRefused(retryOf(e.newID()), store.ErrNotFound)
	}},
	{"a job that ran out of time has it again from the retry on, also for what came back with the task", func(e *env) {
		g := e.graph("a", "b: a", "c: b").with("a", expires(time.Second))
		g.sub.Job.Budget.MaxDuration = 5 * time.Second
		g.submit()
		e.pass(2 * time.Second)
		e.reap()
		e.finishChores()
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.pass(4 * time.Second)
		e.operate(retryOf(g.id("a")))
		limit := e.now().Add(5 * time.Second)
		e.near("the job's deadline", g.read().DeadlineAt, limit)
		for _, node := range []string{"a", "b", "c"} {
			e.near("the deadline of "+node, e.task(g.id(node)).DeadlineAt, limit)
		}
		e.succeed(g.id("a"))
		e.pass(6 * time.Second)
		e.reap()
		e.finishChores()
		e.ended(g.id("b"), task.Cancelled, task.KindDeadline)
	}},
	{"a deadline that has passed is lifted, and one ahead stands", func(e *env) {
		passed, ahead := e.one(expires(2*time.Second)), e.one(expires(time.Minute))
		e.fail(ahead)
		e.pass(3 * time.Second)
		e.reap()
		e.ended(passed, task.Cancelled, task.KindDeadline)
		e.operate(retryOf(passed))
		e.operate(retryOf(ahead))
		e.equal("the deadline that passed", e.task(passed).DeadlineAt, time.Time{})
		e.near("the deadline ahead", e.task(ahead).DeadlineAt, e.now().Add(57*time.Second))
		e.reap()
		e.succeed(passed)
		e.is(ahead, task.Ready, task.WaitNone)
		e.pass(time.Minute)
		e.reap()
		e.ended(ahead, task.Cancelled, task.KindDeadline)
	}},
	{"dependents and the job revive with a task", func(e *env) {
		g := e.job("a", "b: a", "c: b", "d: *a", "e: !a")
		e.fail(g.id("a"))
		e.succeed(g.id("d"), g.id("e"))
		g.counts(task.JobFailed, 5, 0, 0, 3, 2)
		epoch := e.task(g.id("c")).Epoch
		e.operate(retryOf(g.id("a")))
		e.is(g.id("a"), task.Ready, task.WaitNone)
		for _, node := range []string{"b", "c"} {
			t := e.is(g.id(node), task.Pending, task.WaitDeps)
			e.check(t.RemainingDeps == 1 && t.Error == nil && t.FinishedAt.IsZero(), "%s was not revived: %s", node, show(t))
		}
		e.check(e.task(g.id("c")).Epoch > epoch, "the epoch of a revived task did not grow")
		e.all(task.Succeeded, task.WaitNone, g.all("d", "e")...)
		g.counts(task.JobRunning, 5, 3, 1, 0, 2)
		e.succeed(g.all("a", "b", "c")...)
		g.counts(task.JobSucceeded, 5, 0, 0, 0, 5)
	}},
	{"a dependent stays cancelled while another need is down", func(e *env) {
		g := e.job("a", "b", "c: a b", "d: c")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finish(dead(cs[0]))
		e.finish(dead(cs[1]))
		g.counts(task.JobFailed, 4, 0, 0, 4, 0)
		e.operate(retryOf(g.id("a")))
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobRunning, 4, 1, 1, 3, 0)
		e.succeed(g.id("a"))
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.operate(retryOf(g.id("b")))
		e.equal("RemainingDeps of c", e.is(g.id("c"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.is(g.id("d"), task.Pending, task.WaitDeps)
		g.counts(task.JobRunning, 4, 3, 1, 0, 1)
		e.succeed(g.all("b", "c", "d")...)
		g.counts(task.JobSucceeded, 4, 0, 0, 0, 4)
	}},
	{"a task whose need is down names that need", func(e *env) {
		g := e.job("a", "b: a")
		e.fail(g.id("a"))
		e.contains("the refusal, which names the need to retry first", e.commandRefused(retryOf(g.id("b")), store.ErrState), `"a"`)
	}},
	{"a task whose need is open waits for it", func(e *env) {
		g := e.job("a", "b: a")
		e.operate(cancelOf(g.id("b")))
		e.equal("the answer", e.operate(retryOf(g.id("b"))), store.CommandResult{State: task.Pending})
		e.equal("RemainingDeps", e.is(g.id("b"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.notDispatched(g.id("b"))
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		e.succeed(g.all("a", "b")...)
		g.counts(task.JobSucceeded, 2, 0, 0, 0, 2)
	}},
	{"a need that ends a second time is counted once", func(e *env) {
		g := e.job("a", "b", "c: *a *b")
		e.fail(g.id("a"))
		e.operate(retryOf(g.id("a")))
		e.is(g.id("c"), task.Pending, task.WaitDeps)
		e.succeed(g.id("a"))
		e.equal("RemainingDeps", e.is(g.id("c"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.notDispatched(g.id("c"))
		e.succeed(g.id("b"))
		e.readyOnce(g.id("c"))
	}},
	{"a delay does not survive a retry", func(e *env) {
		g := e.graph("a", "late: a").with("late", after(time.Minute)).submit()
		e.operate(cancelOf(g.id("late")))
		e.operate(retryOf(g.id("late")))
		e.is(g.id("late"), task.Pending, task.WaitDeps)
		e.succeed(g.id("a"))
		e.is(g.id("late"), task.Ready, task.WaitNone)
		e.dueAt(g.id("late"), e.now())
	}},
	{"a dependent that an operator cancelled stays cancelled", func(e *env) {
		g := e.job("a", "b: a", "c: a")
		e.operate(cancelOf(g.id("b")))
		e.fail(g.id("a"))
		e.operate(retryOf(g.id("a")))
		e.ended(g.id("b"), task.Cancelled, task.KindCancelled)
		e.is(g.id("c"), task.Pending, task.WaitDeps)
		e.succeed(g.id("a"))
		e.ended(g.id("b"), task.Cancelled, task.KindCancelled)
		e.operate(retryOf(g.id("b")))
		e.succeed(g.all("b", "c")...)
		g.counts(task.JobSucceeded, 3, 0, 0, 0, 3)
	}},
	{"a cancelled job runs again", func(e *env) {
		g := e.job("a", "b")
		g.cancelsJob()
		g.counts(task.JobCancelled, 2, 0, 0, 2, 0)
		e.operate(retryOf(g.id("a")))
		j := g.counts(task.JobRunning, 2, 1, 1, 1, 0)
		e.check(!j.CancelRequested && j.CancelBy == "" && j.CancelReason == "", "the cancel is left on the job: %+v", j)
		e.operate(retryOf(g.id("b")))
		e.succeed(g.all("a", "b")...)
		g.counts(task.JobSucceeded, 2, 0, 0, 0, 2)
	}},
}
