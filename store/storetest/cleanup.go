package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func cleansUp() opt { return func(n *task.New) { n.CleanupWhenCancelled = true } }

// paid runs the first attempt of a task, records a step with a cleanup, and ends the attempt.
func (e *env) paid(id task.ID, end func(store.Claimed) store.Finish) {
	e.Helper()
	c := e.a.take(id)
	e.record(step(c, "charge", `1`))
	e.finish(end(c))
}

// aside maps names to ends of an attempt after which the task waits.
var aside = map[string]func(e *env) func(store.Claimed) store.Finish{
	"asleep": func(e *env) func(store.Claimed) store.Finish {
		return func(c store.Claimed) store.Finish { return suspend(c, e.now().Add(time.Hour)) }
	},
	"in a retry": func(*env) func(store.Claimed) store.Finish {
		return func(c store.Claimed) store.Finish { return retry(c, time.Hour) }
	},
	"blocked":  func(*env) func(store.Claimed) store.Finish { return block },
	"released": func(*env) func(store.Claimed) store.Finish { return released },
}

// undone ends an attempt whose undos are complete.
func undone(c store.Claimed) store.Finish {
	return inPhase(c, store.Finish{Outcome: task.OutcomeUndone})
}

// undoFails ends an attempt whose cleanup failed.
func undoFails(c store.Claimed, delay time.Duration) store.Finish {
	return inPhase(c, store.Finish{Outcome: task.OutcomeUndoFailed, Error: &task.Error{Kind: task.KindHandler, Message: "psp 503", Step: "refund"}, Delay: delay})
}

// inPhase makes a finish part of the undo phase of its task.
func inPhase(c store.Claimed, f store.Finish) store.Finish {
	if f.Lease = c.Lease; c.Task.Undo != nil {
		f.EndsAs = c.Task.Undo.EndsAs
	}
	return f
}

// refund records the undo step of a cleanup.
func refund(c store.Claimed) store.Record {
	r := step(c, "refund", `null`)
	r.Step.Kind = task.KindCleanup
	return r
}

// isToCleanUp expects a task to be due for its cleanup, with an error kind.
func (e *env) isToCleanUp(what string, id task.ID, kind task.ErrorKind) task.Task {
	e.Helper()
	t := e.is(id, task.Pending, task.WaitUndo)
	e.check(t.CancelRequested && t.CancelKind == kind && t.FinishedAt.IsZero(), "%s: %s", what, show(t))
	e.check(t.Undo != nil && t.Undo.EndsAs == task.Cancelled && !t.Undo.HoldsKey, "%s: the phase is %+v", what, t.Undo)
	e.equal(what+": its dispatch rows", len(e.dispatch(id)), 1)
	return t
}

// cleanUp runs the cleanup of a task until the task ends.
func (e *env) cleanUp(id task.ID, kind task.ErrorKind) {
	e.Helper()
	c := e.a.take(id)
	t := &c.Task
	e.check(t.CancelRequested && t.CancelKind == kind && t.State == task.Running, "the task is claimed without its request: %s", show(*t))
	e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Cancel: kind, By: t.CancelBy, Reason: t.CancelReason}})
	e.recordRefused(step(c, "more", `2`), store.ErrCancelRequested)
	e.record(refund(c))
	count := t.AttemptCount
	e.finish(undone(c))
	got := e.ended(id, task.Cancelled, kind)
	e.equal("the attempts that count", got.AttemptCount, count)
	e.notDispatched(id)
}

var cleanupCases = []testCase{
	{"a task that waits cleans up when it is cancelled", func(e *env) {
		for what, end := range aside {
			id := e.one(cleansUp(), expires(30*time.Second))
			e.paid(id, end(e))
			e.equal(what, e.operate(cancelOf(id)), store.CommandResult{State: task.Pending, Asked: true})
			t := e.isToCleanUp(what, id, task.KindCancelled)
			e.check(t.CancelBy == admin.By && t.CancelReason == admin.Reason, "%s: the actor and reason are lost: %s", what, show(t))
			e.equal(what+": its failure", t.Error, t.Undo.Error)
			e.contains(what, t.Error.Message, admin.By, admin.Reason)
			e.pass(time.Minute) // its deadline has passed
			e.reapsNothing()
			e.cleanUp(id, task.KindCancelled)
			e.contains(what, e.task(id).Error.Message, admin.By, admin.Reason)
		}
	}},
	{"a task that has not run ends at once", func(e *env) {
		for what, id := range map[string]task.ID{
			"ready": e.one(cleansUp()), "delayed": e.one(cleansUp(), after(time.Hour)),
			"needy": e.graph("x", "y: x").with("y", cleansUp()).submit().id("y"),
		} {
			e.equal(what, e.operate(cancelOf(id)), store.CommandResult{State: task.Cancelled})
			e.ended(id, task.Cancelled, task.KindCancelled)
		}
	}},
	{"without the option a task that waits ends at once", func(e *env) {
		for what, end := range aside {
			id := e.one()
			e.paid(id, end(e))
			e.equal(what, e.operate(cancelOf(id)), store.CommandResult{State: task.Cancelled})
		}
	}},
	{"a forced cancel does not end it without its cleanup, also while that is due or runs", func(e *env) {
		for what, end := range aside {
			ids := e.many(3, cleansUp())
			for _, id := range ids {
				e.paid(id, end(e))
			}
			e.operate(cancelOf(ids[1]))
			e.operate(cancelOf(ids[2]))
			c := e.a.take(ids[2])
			for _, id := range ids {
				e.equal(what, e.operate(forceOf(id)), store.CommandResult{State: task.Pending, Asked: true})
				e.check(e.task(id).Undo.Forced, "%s: its undo is not forced", what)
			}
			e.powerless(what, c)
			e.pass(ttl)
			for _, id := range ids {
				e.cleanUp(id, task.KindCancelled)
			}
		}
	}},
	{"the first request counts, before and during the cleanup", func(e *env) {
		id := e.one(cleansUp())
		e.paid(id, aside["asleep"](e))
		e.operate(cancelOf(id))
		again := store.CancelTask{Audit: store.Audit{By: "bob", Reason: "me too"}, Task: id}
		e.equal("the second answer", e.operate(again), store.CommandResult{State: task.Pending, Asked: true})
		e.isToCleanUp("asked twice", id, task.KindCancelled)
		c := e.a.take(id)
		e.equal("the third answer", e.operate(again), store.CommandResult{State: task.Running, Asked: true})
		e.finish(undone(c))
		e.contains("asked three times", e.ended(id, task.Cancelled, task.KindCancelled).Error.Message, admin.By, admin.Reason)
	}},
	{"a task that is to clean up is neither unblocked, rescheduled, retried nor deleted", func(e *env) {
		for what, end := range aside {
			id := e.one(cleansUp())
			e.paid(id, end(e))
			e.operate(cancelOf(id))
			for _, cmd := range []store.Command{unblockOf(id, `1`), rescheduleOf(id, e.now().Add(time.Hour)), runNowOf(id), retryOf(id), deleteOf(id)} {
				e.commandRefused(cmd, store.ErrState)
			}
			e.isToCleanUp(what, id, task.KindCancelled)
		}
	}},
	{"a report that is none of the phase leaves it as it is", func(e *env) {
		for what, end := range map[string]func(store.Claimed) store.Finish{
			"cancelled": cancelled, "retry": func(c store.Claimed) store.Finish { return retry(c, time.Minute) }, "dead": dead, "block": block,
			"asleep":   func(c store.Claimed) store.Finish { return suspend(c, e.now().Add(time.Hour)) },
			"internal": func(c store.Claimed) store.Finish { return internalError(c, time.Second) },
		} {
			id := e.one(cleansUp(), attempts(1))
			e.paid(id, block) // all its attempts are used
			e.operate(cancelOf(id))
			c := e.a.take(id)
			e.equal(what, e.finish(end(c)), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
			e.pass(2 * time.Minute)
			e.cleanUp(id, task.KindCancelled)
			e.equal(what+": the attempts that count", e.task(id).AttemptCount, 1)
		}
	}},
	{"a cleanup that succeeds all the same has succeeded", func(e *env) {
		id := e.one(cleansUp(), attempts(1))
		e.paid(id, block)
		e.operate(cancelOf(id))
		e.finish(inPhase(e.a.take(id), store.Finish{Outcome: task.OutcomeSuccess, Output: []byte(`"done"`)}))
		t := e.ended(id, task.Succeeded, task.KindNone)
		e.check(t.AttemptCount == 1 && t.Undo == nil && string(t.Output) == `"done"`, "it succeeded as %s", show(t))
	}},
	{"a cleanup that is released or lost is due again, as often as its process may crash", func(e *env) {
		id := e.one(cleansUp(), expires(time.Minute))
		e.paid(id, block)
		e.operate(cancelOf(id))
		e.equal("released", e.finish(inPhase(e.a.take(id), store.Finish{Outcome: task.OutcomeReleased})).State, task.Pending)
		e.equal("released by a worker that cannot run it", e.finish(inPhase(e.a.take(id), notRun(store.Claimed{}))).State, task.Pending)
		e.dueAt(id, e.now().Add(time.Second))
		e.pass(time.Second)
		e.isToCleanUp("released", id, task.KindCancelled)
		for range 2 {
			e.equal("the reaped", e.expire(e.worker("doomed").take(id)), store.Reaped{Task: id, State: task.Pending, Crash: true})
			e.isToCleanUp("lost", id, task.KindCancelled)
		}
		e.equal("the reaped", e.expire(e.worker("doomed").take(id)), store.Reaped{Task: id, State: task.Failed, Crash: true})
		t := e.ended(id, task.Failed, task.KindUndoFailed)
		e.check(t.CrashCount == 0 && t.Undo != nil && t.Undo.GaveUp && t.Undo.Crashes == 3, "%s, %+v", show(t), t.Undo)
		e.contains("its failure", t.Error.Message, "3 leases", admin.Reason)
	}},
	{"a running task that was asked to end cleans up after a lost lease", func(e *env) {
		id := e.one(cleansUp())
		c := e.worker("doomed").take(id)
		e.operate(cancelOf(id))
		e.record(refund(c))
		e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Pending})
		c = e.a.take(id)
		e.equal("the steps", len(c.Steps), 1)
		e.finish(undone(c))
		e.ended(id, task.Cancelled, task.KindCancelled)
	}},
	{"an attempt that ended before it knew of the request is followed by a cleanup", func(e *env) {
		for what, end := range aside {
			id := e.one(cleansUp())
			c := e.a.take(id)
			e.record(step(c, "charge", `1`))
			e.operate(cancelOf(id))
			e.equal(what, e.finish(end(e)(c)), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
			e.isToCleanUp(what, id, task.KindCancelled)
			e.cleanUp(id, task.KindCancelled)
		}
		for what, end := range map[string]func(store.Claimed) store.Finish{"cancelled": cancelled, "dead": dead} {
			id := e.one(cleansUp())
			c := e.a.take(id)
			e.operate(cancelOf(id))
			e.equal(what, e.finish(end(c)).State, task.Cancelled)
		}
	}},
	{"a deadline lets a task that waits clean up, once", func(e *env) {
		for what, end := range aside {
			id := e.one(cleansUp(), expires(2*time.Second))
			e.paid(id, end(e))
			e.pass(3 * time.Second)
			if what == "released" {
				e.a.getsNothing(only(id)) // it is due, and only the reaper may take it
			}
			e.equal(what, e.reap().Expired, []task.ID{id})
			e.isToCleanUp(what, id, task.KindDeadline)
			e.reapsNothing()
			e.cleanUp(id, task.KindDeadline)
			e.contains(what, e.task(id).Error.Message, "deadline")
		}
	}},
	{"a lease lost past the deadline is followed by a cleanup", func(e *env) {
		id := e.one(cleansUp(), expires(2*time.Second))
		e.worker("doomed").take(id)
		e.pass(2 * ttl)
		got := e.reap()
		e.equal("the reaped", got.Reaped, []store.Reaped{{Task: id, State: task.Pending}})
		e.equal("the expired", len(got.Expired), 0)
		e.isUndoing("lost", id, task.Cancelled, task.KindDeadline)
		e.reapsNothing()
		e.finish(undone(e.a.take(id)))
		e.ended(id, task.Cancelled, task.KindDeadline)
	}},
	{"a job's cancel and deadline let what waits clean up, and its dependents end as ever", func(e *env) {
		for what, kind := range map[string]task.ErrorKind{"cancel": task.KindCancelled, "deadline": task.KindDeadline} {
			g := e.graph("saga", "plain", "new", "next: saga", "alarm: !saga", "last: *saga").with("saga", cleansUp()).with("new", cleansUp())
			g.sub.Job.Budget.MaxDuration = 20 * time.Second
			g.submit()
			e.paid(g.id("saga"), block)
			e.paid(g.id("plain"), block)
			if kind == task.KindCancelled {
				e.equal(what, g.cancelsJob(), [3]int{5, 1, 0})
				e.equal(what+" again", g.cancelsJob(), [3]int{0, 1, 5})
			} else {
				e.pass(21 * time.Second)
				e.equal(what, len(e.reap().Expired), 6)
			}
			for _, node := range []string{"plain", "new", "next", "alarm", "last"} {
				e.ended(g.id(node), task.Cancelled, kind)
			}
			e.isToCleanUp(what, g.id("saga"), kind)
			g.counts(task.JobRunning, 6, 1, 1, 5, 0)
			e.cleanUp(g.id("saga"), kind)
			e.check(g.read().State.Terminal(), "the job is %s", g.read().State)
		}
	}},
	{"dependents wait for the end of a cleanup", func(e *env) {
		g := e.graph("saga", "next: saga", "alarm: !saga", "last: *saga").with("saga", cleansUp()).submit()
		e.paid(g.id("saga"), block)
		g.counts(task.JobBlocked, 4, 4, 0, 0, 0)
		e.operate(cancelOf(g.id("saga")))
		e.all(task.Pending, task.WaitDeps, g.all("next", "alarm", "last")...)
		g.counts(task.JobRunning, 4, 4, 1, 0, 0)
		e.cleanUp(g.id("saga"), task.KindCancelled)
		e.ended(g.id("next"), task.Cancelled, task.KindDependencyFailed)
		e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
		e.is(g.id("last"), task.Ready, task.WaitNone)
	}},
	{"many tasks of a job that wait clean up", func(e *env) {
		// More tasks end than fit in one transaction. Tasks with a cleanup may be claimed before the others have
		// ended.
		nodes := fan("first", "d: first")
		g := e.graph(nodes...)
		for _, n := range nodes {
			g.with(strings.SplitN(n, ":", 2)[0], cleansUp())
		}
		g.submit()
		e.succeed(g.id("first"))
		e.finishChores()
		const ran = 20
		var sagas []task.ID
		for i := range ran {
			sagas = append(sagas, g.id(fmt.Sprint("d", i*fanned/ran)))
		}
		e.finishOK(finishes(e.a.takeAll(sagas...), block)...)
		e.equal("the answer", g.cancelsJob(), [3]int{fanned - ran, ran, 1})
		e.finishChores()
		g.counts(task.JobRunning, fanned+1, ran, ran, fanned-ran, 1)
		cs := e.a.takeAll(sagas...)
		e.finishOK(finishes(cs, undone)...)
		e.finishChores()
		g.counts(task.JobCancelled, fanned+1, 0, 0, fanned, 1)
	}},
	{"a paused queue and a full key hold a cleanup back", func(e *env) {
		id := e.one(cleansUp(), queue("slow"), key("k", 1))
		e.paid(id, block)
		other := e.one(key("k", 1))
		holder := e.a.take(other)
		e.operate(pauseOf("slow"))
		e.operate(cancelOf(id))
		e.a.getsNothing(only(id))
		e.is(id, task.Pending, task.WaitPaused)
		e.operate(resumeOf("slow"))
		e.a.getsNothing(only(id))
		e.is(id, task.Pending, task.WaitConcurrency)
		e.equal("asked again", e.command(cancelOf(id)).Asked, true)
		e.finish(success(holder))
		e.cleanUp(id, task.KindCancelled)
	}},
	{"a cleaned up task that is retried begins anew", func(e *env) {
		id := e.one(cleansUp())
		e.paid(id, block)
		e.operate(cancelOf(id))
		e.cleanUp(id, task.KindCancelled)
		e.operate(keepOf(id))
		c := e.a.take(id)
		e.check(!c.Task.CancelRequested, "the request is still there: %s", show(c.Task))
		e.finish(retry(c, 0))
		e.equal("the attempts that count", e.task(id).AttemptCount, 1)
		e.succeed(id)
	}},
	{"a claim that is asked for again hands a cleanup out again", func(e *env) {
		id := e.one(cleansUp(), expires(2*time.Second))
		e.paid(id, block)
		e.operate(cancelOf(id))
		e.pass(3 * time.Second)
		lease := e.newLease()
		e.a.gets([]task.ID{id}, under(lease))
		c := e.a.gets([]task.ID{id}, lookUp(lease))[0]
		e.check(c.Task.CancelRequested && len(c.Steps) == 1, "it was handed out as %s with %d steps", show(c.Task), len(c.Steps))
		e.finish(undone(c))
	}},
}
