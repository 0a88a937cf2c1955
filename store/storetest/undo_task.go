package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ranUndo ends an attempt of an undo task that completed the undo.
func ranUndo(c store.Claimed) store.Finish {
	return inPhase(c, store.Finish{Outcome: task.OutcomeSuccess, Output: []byte(`"undone"`)})
}

// waitsForJob expects undo tasks to wait for the other tasks of their job.
func (e *env) waitsForJob(ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		t := e.is(id, task.Pending, task.WaitDeps)
		e.check(t.Undo.Runs(), "%s has the phase %+v", show(t), t.Undo)
		e.notDispatched(id)
	}
}

// runsUndo expects undo tasks to be due, and runs them.
func (e *env) runsUndo(ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		t := e.is(id, task.Pending, task.WaitUndo)
		e.check(t.Undo.Runs() && t.RemainingDeps == 0, "%s has the phase %+v", show(t), t.Undo)
		e.equal("the number of its dispatch rows", len(e.dispatch(id)), 1)
		e.finish(ranUndo(e.a.take(id)))
		t = e.is(id, task.Succeeded, task.WaitNone)
		e.check(t.Undo == nil && t.AttemptCount == 0 && string(t.Output) == `"undone"`, "it ended as %s, %+v", show(t), t.Undo)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeUndone)
	}
}

// notNeeded expects undo tasks to have ended without running, because no undo was needed.
func (e *env) notNeeded(ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		t := e.ended(id, task.Cancelled, task.KindNotNeeded)
		e.check(t.Undo == nil, "%s, %+v", show(t), t.Undo)
		e.notDispatched(id)
	}
}

// order drafts a job of three tasks in a row and their undo tasks ua, ub and uc.
func (e *env) order() *graph {
	e.Helper()
	return e.graph("a", "b: a", "c: b", "uc: *a *b -c", "ub: *a -b +c +uc", "ua: -a +b +c +ub", "hook: *ua *ub *uc")
}

var undoTaskCases = []testCase{
	{"it runs if its need began and ended against the job", func(e *env) {
		for _, end := range ends {
			g := e.job("a", "b", "undo: -a *b", "hook: *undo")
			e.waitsForJob(g.id("undo"))
			e.succeed(g.id("b"))
			e.waitsForJob(g.id("undo"))
			end.end(e, g.id("a"))
			switch end.state {
			case task.Failed:
				e.is(g.id("hook"), task.Pending, task.WaitDeps)
				g.counts(task.JobRunning, 4, 2, 1, 1, 1)
				e.runsUndo(g.id("undo"))
			default: // it did not begin, or the job succeeded
				e.notNeeded(g.id("undo"))
			}
			e.is(g.id("hook"), task.Ready, task.WaitNone)
		}
	}},
	{"it runs if another task ended against the job", func(e *env) {
		for _, end := range ends {
			g := e.job("a", "b", "undo: -a *b")
			e.succeed(g.id("a"))
			end.end(e, g.id("b"))
			if end.state == task.Succeeded {
				e.notNeeded(g.id("undo"))
				g.counts(task.JobSucceeded, 3, 0, 0, 0, 2)
				continue
			}
			e.runsUndo(g.id("undo"))
			g.counts(task.JobFailed, 3, 0, 0, 1, 2)
		}
	}},
	{"a failure that is allowed undoes nothing", func(e *env) {
		g := e.graph("a", "b", "undo: -a *b").with("b", func(n *task.New) { n.AllowFailure = true }).submit()
		e.succeed(g.id("a"))
		e.fail(g.id("b"))
		e.notNeeded(g.id("undo"))
	}},
	{"tasks are undone in reverse", func(e *env) {
		g := e.order().submit()
		e.succeed(g.all("a", "b")...)
		e.fail(g.id("c"))
		e.waitsForJob(g.all("ub", "ua")...)
		e.runsUndo(g.id("uc"))
		e.waitsForJob(g.id("ua"))
		e.runsUndo(g.all("ub", "ua")...)
		e.succeed(g.id("hook"))
		g.counts(task.JobFailed, 7, 0, 0, 1, 6)
	}},
	{"what did not begin is not undone, and holds nothing up", func(e *env) {
		g := e.order().submit()
		e.succeed(g.id("a"))
		e.fail(g.id("b"))
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.notNeeded(g.id("uc"))
		e.runsUndo(g.all("ub", "ua")...)
	}},
	{"nothing is undone when all succeed", func(e *env) {
		g := e.order().submit()
		e.succeed(g.all("a", "b", "c")...)
		e.notNeeded(g.all("ua", "ub", "uc")...)
		g.counts(task.JobRunning, 7, 1, 1, 0, 3)
		e.succeed(g.id("hook"))
		g.counts(task.JobSucceeded, 7, 0, 0, 0, 4)
	}},
	{"the cancel of its job leaves it alone", func(e *env) {
		g := e.order().submit()
		c := e.a.take(g.id("a"))
		e.equal("the answer", e.operate(cancelJobOf(g.sub.Job.ID)), store.CommandResult{Cancelled: 3, AskedTasks: 1})
		e.waitsForJob(g.all("ua", "ub", "uc")...)
		e.finish(success(c)) // the cancel came too late for it, but the job is cancelled
		e.notNeeded(g.all("ub", "uc")...)
		e.operate(cancelJobOf(g.sub.Job.ID))
		e.runsUndo(g.id("ua"))
		g.counts(task.JobCancelled, 7, 0, 0, 3, 2)
	}},
	{"a cancel that came too late for all tasks has them undone", func(e *env) {
		g := e.job("a", "ua: -a")
		c := e.a.take(g.id("a"))
		e.operate(cancelJobOf(g.sub.Job.ID))
		e.finish(success(c))
		e.runsUndo(g.id("ua"))
		g.counts(task.JobCancelled, 2, 0, 0, 0, 2)
	}},
	{"neither the time nor a budget of its job ends it", func(e *env) {
		g := e.order()
		g.sub.Job.Budget = task.Budget{MaxDuration: time.Minute, MaxTotalAttempts: 2}
		g.submit()
		c := e.a.take(g.id("a"))
		e.finish(retry(c, 0))
		c = e.a.take(g.id("a"))
		e.finish(retry(c, 0))
		e.ended(g.id("a"), task.Failed, task.KindBudget)
		e.pass(time.Hour)
		e.reap()
		e.notNeeded(g.all("ub", "uc")...)
		e.runsUndo(g.id("ua"))
		g.used(2, 0, true)
	}},
	{"a deadline undoes what began", func(e *env) {
		g := e.order().with("b", expires(time.Minute)).submit()
		e.succeed(g.id("a"))
		e.pass(2 * time.Minute)
		e.reap()
		e.ended(g.id("b"), task.Cancelled, task.KindDeadline)
		e.notNeeded(g.all("ub", "uc")...)
		e.runsUndo(g.id("ua"))
	}},
	{"its attempts are those of an undo phase", func(e *env) {
		g := e.job("a", "ua: -a", "hook: *ua")
		e.fail(g.id("a"))
		id := g.id("ua")
		e.finish(undoFails(e.a.take(id), time.Second))
		e.is(id, task.Pending, task.WaitUndo)
		e.pass(time.Second)
		e.expire(e.worker("doomed").take(id))
		e.is(id, task.Pending, task.WaitUndo)
		e.operate(cancelOf(id))
		e.is(id, task.Pending, task.WaitUndo)
		e.finish(blocksUndo(e.a.take(id)))
		e.is(id, task.Blocked, task.WaitUndo)
		e.operate(cleanupsOf(id))
		f := ranUndo(e.a.take(id))
		first := e.finish(f)
		e.equal("the repeated report", e.finish(f), first)
		t := e.is(id, task.Succeeded, task.WaitNone)
		e.check(t.AttemptNo == 4 && t.AttemptCount == 0 && t.Undo == nil, "it ended as %s, %+v", show(t), t.Undo)
		e.is(g.id("hook"), task.Ready, task.WaitNone)
	}},
	{"processes that die with it give it up", func(e *env) {
		g := e.job("a", "ua: -a")
		e.fail(g.id("a"))
		e.expireAll(g.id("ua"), 3)
		e.ended(g.id("ua"), task.Failed, task.KindUndoFailed)
	}},
	{"one that is given up holds up those after it, until it is tried again", func(e *env) {
		g := e.order().submit()
		e.succeed(g.all("a", "b")...)
		e.fail(g.id("c"))
		e.giveUp(g.id("uc"))
		for _, node := range []string{"ub", "ua"} {
			t := e.ended(g.id(node), task.Cancelled, task.KindUndoFailed)
			e.check(t.Undo == nil, "%s, %+v", show(t), t.Undo)
		}
		e.contains("the message", e.task(g.id("ub")).Error.Message, "not run: the undo was given up", g.id("uc").String())
		g.counts(task.JobRunning, 7, 1, 1, 4, 2)
		e.contains("the refusal", e.commandRefused(retryOf(g.id("ub")), store.ErrState), "needs task", "weaver task retry "+g.id("uc").String()+" --cleanup")

		e.equal("the answer", e.operate(cleanupsOf(g.id("uc"))), store.CommandResult{State: task.Pending})
		e.waitsForJob(g.all("ub", "ua")...)
		e.is(g.id("hook"), task.Pending, task.WaitDeps)
		e.runsUndo(g.all("uc", "ub", "ua")...)
		e.succeed(g.id("hook"))
		g.counts(task.JobFailed, 7, 0, 0, 1, 6)
	}},
	{"a task whose own undo was given up is not undone", func(e *env) {
		g := e.order().submit()
		e.succeed(g.id("a"))
		e.finish(unclean(e.a.take(g.id("b"))))
		e.giveUp(g.id("b"))
		e.notNeeded(g.id("uc"))
		for _, node := range []string{"ub", "ua"} {
			e.ended(g.id(node), task.Cancelled, task.KindUndoFailed)
		}
		e.operate(cleanupsOf(g.id("b")))
		e.waitsForJob(g.all("ub", "ua")...)
		e.finish(inPhase(e.a.take(g.id("b")), store.Finish{Outcome: task.OutcomeUndone}))
		e.runsUndo(g.all("ub", "ua")...)
	}},
	{"it is given up by an operator at any time", func(e *env) {
		g := e.order().submit()
		e.contains("the refusal", e.commandRefused(cleanupsOf(g.id("ub")), store.ErrState), "waits for the other tasks of its job")
		e.operate(abandonOf(g.id("ub")))
		e.isAbandoned("before the end of the job", g.id("ub"))
		e.ended(g.id("ua"), task.Cancelled, task.KindUndoFailed)
		e.succeed(g.all("a", "b")...)
		e.fail(g.id("c"))
		force := cancelOf(g.id("uc"))
		force.Force = true
		e.operate(force)
		e.is(g.id("uc"), task.Pending, task.WaitUndo)
		e.operate(force)
		e.isAbandoned("by force", g.id("uc"))
		e.contains("the refusal", e.commandRefused(store.DeleteTask{Task: g.id("uc"), Audit: admin}, store.ErrState), "belongs to job")
	}},
	{"a retry before it begins has it wait again", func(e *env) {
		g := e.order().submit()
		e.succeed(g.all("a", "b")...)
		e.fail(g.id("c"))
		e.is(g.id("uc"), task.Pending, task.WaitUndo)
		e.operate(retryOf(g.id("c")))
		e.waitsForJob(g.all("ua", "ub", "uc")...)
		e.succeed(g.id("c"))
		e.notNeeded(g.all("ua", "ub", "uc")...)
	}},
	{"those that were not needed may be after a retry", func(e *env) {
		g := e.order().submit()
		e.fail(g.id("a"))
		e.notNeeded(g.all("ub", "uc")...)
		e.contains("the refusal", e.commandRefused(retryOf(g.id("uc")), store.ErrState), "undoes another task of its job")
		e.operate(retryOf(g.id("a")))
		e.waitsForJob(g.all("ua", "ub", "uc")...)
		e.succeed(g.all("a", "b")...)
		e.fail(g.id("c"))
		e.runsUndo(g.all("uc", "ub", "ua")...)
	}},
	{"no task of a job is retried of which one was undone, but with its steps kept", func(e *env) {
		g := e.order().submit()
		e.succeed(g.id("a"))
		e.fail(g.id("b"))
		e.a.take(g.id("ub"))
		for _, id := range g.all("b", "c") {
			e.commandRefused(retryOf(id), store.ErrState)
		}
		e.contains("the refusal", e.commandRefused(retryOf(g.id("b")), store.ErrState), `but task "ub" (`+g.id("ub").String()+"), an undo of its job, ran", "submit the job again", "--keep-steps")
		e.operate(keepOf(g.id("b")))
		e.contains("the audit", e.snap().Audit[len(e.snap().Audit)-1].Reason, `kept though task "ub"`)
		e.waitsForJob(g.id("uc"))
		e.succeed(g.all("b")...)
	}},
	{"a raised budget brings nothing back that was undone", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b: a", "ua: -a *b")
		e.finish(retry(e.a.take(g.id("a")), 0))
		e.runsUndo(g.id("ua"))
		e.operate(store.RaiseBudget{Audit: admin, Job: g.sub.Job.ID, AddAttempts: 5})
		e.ended(g.id("a"), task.Failed, task.KindBudget)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
	}},
	{"two needs that end at the same instant", func(e *env) {
		for _, second := range []func(store.Claimed) store.Finish{success, dead} {
			e.atOnce([2]string{"a", "b"}, [2]func(store.Claimed) store.Finish{dead, second}, []string{"a", "b", "ua: -a *b", "ub: *a -b"}, func(g *graph) {
				e.runsUndo(g.all("ua", "ub")...)
			})
		}
	}},
	{"many tasks", func(e *env) {
		g := e.job(append(fan("need", "d: need"), "undo: -need *d0", fmt.Sprintf("last: -d1 *d%d", fanned-1))...)
		e.succeed(g.id("need"))
		e.succeed(g.id("d1"))
		e.operate(cancelJobOf(g.sub.Job.ID))
		e.finishChores()
		e.runsUndo(g.all("undo", "last")...)
		e.equal("the job", g.read().State, task.JobCancelled)
	}},
	{"one task with many undos", func(e *env) {
		g := e.job(fan("need", "d: -need")...)
		e.fail(g.id("need"))
		e.finishChores()
		g.counts(task.JobRunning, fanned+1, fanned, fanned, 1, 0)
		g = e.job(fan("need", "d: -need")...)
		e.succeed(g.id("need"))
		e.finishChores()
		g.counts(task.JobSucceeded, fanned+1, 0, 0, 0, 1)
	}},
}
