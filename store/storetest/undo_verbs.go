package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func cleanupsOf(id task.ID) store.RetryTask {
	return store.RetryTask{Audit: admin, Task: id, Cleanup: true}
}

func abandonOf(id task.ID) store.CancelTask {
	return store.CancelTask{Audit: admin, Task: id, Abandon: true}
}

// givesUp ends an attempt whose undo is given up.
func givesUp(c store.Claimed) store.Finish {
	f := undoFails(c, -1)
	f.Error = &task.Error{Kind: task.KindUndoFailed, Message: "undo given up: " + secret}
	return f
}

// blocksUndo ends an attempt whose undo needs a person.
func blocksUndo(c store.Claimed) store.Finish {
	return inPhase(c, store.Finish{Outcome: task.OutcomeBlocked, Waiting: task.WaitUndo, Error: &task.Error{Kind: task.KindHandler, Message: "deploy"}})
}

// givenUp returns a new task whose undo was given up.
func (e *env) givenUp(opts ...opt) task.ID {
	e.Helper()
	id := e.undoing(opts...)
	e.giveUp(id)
	return id
}

// giveUp makes the next attempt of a task give up its undo.
func (e *env) giveUp(id task.ID) {
	e.Helper()
	e.finish(givesUp(e.a.take(id)))
	t := e.ended(id, task.Failed, task.KindUndoFailed)
	e.check(t.Undo.Stands(), "%s, %+v", show(t), t.Undo)
}

// isAbandoned expects the undo of a task to have been given up by an operator.
func (e *env) isAbandoned(what string, id task.ID) task.Task {
	e.Helper()
	t := e.ended(id, task.Failed, task.KindUndoFailed)
	e.require(t.Undo != nil && t.Undo.GaveUp && t.Undo.Abandoned, "%s: %s, %+v", what, show(t), t.Undo)
	e.notDispatched(id)
	return t
}

// lastVerb returns the verb of the newest audit entry.
func (e *env) lastVerb() string {
	e.Helper()
	audit := e.snap().Audit
	e.require(len(audit) > 0, "nothing is audited")
	return audit[len(audit)-1].Verb
}

var undoVerbsCases = []testCase{
	{"no plain retry while a task is being undone, or after its undo was given up", func(e *env) {
		due, running, blocked, given := e.undoing(), e.undoing(), e.undoing(), e.givenUp()
		e.a.take(running)
		e.finish(blocksUndo(e.a.take(blocked)))
		for _, id := range []task.ID{due, running, blocked} {
			for _, cmd := range []store.Command{retryOf(id), keepOf(id)} {
				e.contains("the refusal", e.commandRefused(cmd, store.ErrState), "is being undone before it ends failed", "--cleanup")
			}
		}
		e.contains("the refusal", e.commandRefused(retryOf(given), store.ErrState), "its undo was given up", "weaver task retry "+given.String()+" --cleanup")
		e.commandRefused(keepOf(given), store.ErrState)
	}},
	{"an undo that was given up is tried again, with its job and what has not started", func(e *env) {
		g := e.graph("saga", "slow", "next: saga", "alarm: !saga", "last: *saga *slow", "ran: *saga").with("saga", key("k", 1)).submit()
		id := g.id("saga")
		e.finish(unclean(e.a.take(id)))
		verdict := e.task(id).Error
		e.expireAll(id, 2)
		e.giveUp(id)
		e.succeed(g.all("slow", "ran")...)
		e.is(g.id("last"), task.Ready, task.WaitNone)
		before := e.task(id)
		e.equal("the answer", e.operate(cleanupsOf(id)), store.CommandResult{State: task.Pending})
		e.equal("the verb", e.lastVerb(), "retry_cleanup")
		t := e.isUndoing("tried again", id, task.Failed, task.KindHandler)
		p := t.Undo
		e.check(!p.GaveUp && p.Since == t.AttemptNo && p.Crashes == 0 && t.FinishedAt.IsZero() && t.Epoch == before.Epoch+1, "%s, %+v", show(t), p)
		e.check(t.AttemptNo == before.AttemptNo && t.AttemptCount == before.AttemptCount, "its attempts: %s", show(t))
		e.equal("its failure", t.Error, verdict)
		e.dueAt(id, e.now())
		e.all(task.Pending, task.WaitDeps, g.all("alarm", "last")...)
		e.ended(g.id("next"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobRunning, 6, 3, 1, 1, 2)
		e.finish(undone(e.a.take(id)))
		e.ended(id, task.Failed, task.KindHandler)
		e.succeed(g.all("alarm", "last")...)
		e.ended(g.id("next"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobFailed, 6, 0, 0, 2, 4)
		e.contains("the refusal", e.commandRefused(cleanupsOf(id), store.ErrState), "nothing is to be undone")
	}},
	{"a job that was cancelled stays so when an undo is tried again", func(e *env) {
		g := e.job("saga", "other")
		e.finish(unclean(e.a.take(g.id("saga"))))
		g.cancelsJob()
		e.giveUp(g.id("saga"))
		e.operate(cleanupsOf(g.id("saga")))
		e.check(g.read().CancelRequested, "the job is no longer cancelled")
		e.finish(undone(e.a.take(g.id("saga"))))
		g.counts(task.JobCancelled, 2, 0, 0, 2, 0)
	}},
	{"an undo that is blocked, or waits for its next try, is tried at once", func(e *env) {
		blocked, waits := e.undoing(), e.undoing(key("k", 1))
		e.finish(blocksUndo(e.a.take(blocked)))
		e.finish(undoFails(e.a.take(waits), time.Hour))
		for _, id := range []task.ID{blocked, waits} {
			e.equal("the answer", e.operate(cleanupsOf(id)), store.CommandResult{State: task.Pending})
			t := e.isUndoing("tried at once", id, task.Failed, task.KindHandler)
			e.equal("since", t.Undo.Since, t.AttemptNo)
			e.dueAt(id, e.now())
			c := e.a.take(id)
			e.contains("the refusal", e.commandRefused(cleanupsOf(id), store.ErrState), "is being tried now")
			e.finish(undone(c))
		}
		e.equal("the keys", len(e.snap().Keys), 0)
	}},
	{"a retry of the undo alone is refused where nothing is to be undone, and takes nothing else", func(e *env) {
		ready, failed, done := e.one(), e.one(), e.one()
		running := e.a.take(e.one())
		e.fail(failed)
		e.succeed(done)
		for _, id := range []task.ID{ready, failed, done, running.Task.ID} {
			e.contains("the refusal", e.commandRefused(cleanupsOf(id), store.ErrState), "nothing is to be undone")
		}
		id := e.givenUp()
		for _, cmd := range []store.RetryTask{{KeepSteps: true}, {AddAttempts: 1}, {AddCost: 1}} {
			cmd.Audit, cmd.Task, cmd.Cleanup = admin, id, true
			e.commandRefused(cmd, store.ErrState)
		}
		seen := cleanupsOf(id)
		seen.Seen = store.Seen{Epoch: e.task(id).Epoch + 1}
		e.commandRefused(seen, store.ErrChanged)
	}},
	{"many tasks that have not started wait for an undo that is tried again", func(e *env) {
		g := e.job(fan("saga", "d: *saga")...)
		id := g.id("saga")
		e.finish(unclean(e.a.take(id)))
		e.giveUp(id)
		e.finishChores()
		e.operate(cleanupsOf(id))
		e.finishChores()
		g.counts(task.JobRunning, fanned+1, fanned+1, 1, 0, 0)
		e.equal("the dispatch rows", len(e.snap().Dispatch), 1)
		e.finish(undone(e.a.take(id)))
		e.finishChores()
		g.counts(task.JobRunning, fanned+1, fanned, fanned, 1, 0)
	}},
	{"no retry brings back a child whose undo was given up", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		e.finish(unclean(e.a.take(kids[0])))
		e.giveUp(kids[0])
		e.operate(cleanupsOf(kids[0]))
		e.left(p, "build", 2)
		e.giveUp(kids[0])
		e.left(p, "build", 1)
		e.fail(kids[1], p)
		for _, cmd := range []store.Command{retryOf(p), keepOf(p)} {
			e.contains("the refusal", e.commandRefused(cmd, store.ErrState), "would bring back task "+kids[0].String(), "weaver task retry "+kids[0].String()+" --cleanup")
		}
		e.operate(cleanupsOf(kids[0]))
		e.finish(undone(e.a.take(kids[0])))
		e.operate(retryOf(p))
		e.left(p, "build", 2)
	}},
	{"a raised budget does not bring back a child whose undo was given up", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "spends", "parent")
		kids := e.waitsForCall(g.id("parent"), "build", 1)
		cs := e.a.takeAll(kids[0], g.id("spends"))
		e.finish(retry(cs[1], 0))
		e.finish(retry(e.a.take(g.id("spends")), 0))
		f := cancelled(cs[0])
		f.Unclean = true
		e.finish(f)
		e.finishChores()
		e.giveUp(kids[0])
		e.operate(raise(g.sub.Job.ID, 10, 0))
		e.finishChores()
		e.due(g.id("spends"))
		e.check(e.task(g.id("parent")).State.Terminal(), "the parent is back")
		e.ended(kids[0], task.Failed, task.KindUndoFailed)
	}},
	{"a dependent whose undo was given up stays when its need is retried", func(e *env) {
		g := e.job("a", "b")
		e.paid(g.id("b"), func(c store.Claimed) store.Finish { return retry(c, 0) })
		c := e.a.take(g.id("b"))
		f := unclean(c)
		e.finish(f)
		e.giveUp(g.id("b"))
		e.fail(g.id("a"))
		e.operate(retryOf(g.id("a")))
		e.succeed(g.id("a"))
		e.check(e.ended(g.id("b"), task.Failed, task.KindUndoFailed).Undo.Stands(), "the phase is gone")
	}},
	{"the undo of a running task that is cancelled by force begins with the end of its lease", func(e *env) {
		id := e.one(cleansUp(), key("k", 1))
		c := e.a.take(id)
		end := e.task(id).LeaseExpiresAt
		e.equal("the answer", e.operate(forceOf(id)), store.CommandResult{State: task.Pending, Asked: true})
		e.equal("the verb", e.lastVerb(), "force_cancel")
		t := e.isUndoing("forced", id, task.Cancelled, task.KindCancelled)
		p := t.Undo
		e.check(p.Forced && p.HoldsKey && p.Hold == c.Lease.ID && p.NotBefore.Equal(end) && t.CancelRequested, "%s, %+v", show(t), p)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeCancelled)
		e.dueAt(id, end)
		e.powerless("the revoked lease", c)
		e.operate(cleanupsOf(id))
		e.dueAt(id, end)
		e.a.getsNothing(only(id))
		other := e.one(key("k", 1))
		e.b.getsNothing(only(other))
		e.pass(end.Sub(e.now()))
		e.cleanUp(id, task.KindCancelled)
		e.succeed(other)
	}},
	{"the undo of a task that is cancelled by force begins with the proven death of its process", func(e *env) {
		doomed := e.worker("doomed")
		ids := e.many(2, cleansUp())
		cs := doomed.takeAll(ids...)
		e.pass(ttl / 2)
		doomed.beat(cs[0].Lease, cs[1].Lease)
		e.operate(forceOf(ids[0]))
		end := e.isUndoing("forced", ids[0], task.Cancelled, task.KindCancelled).Undo.NotBefore
		e.pass(ttl * 3 / 4) // the claim becomes eligible for reaping, as its leases were to end first
		e.reap()
		e.dueAt(ids[0], end)
		e.finish(success(cs[1]))
		if !doomed.die() {
			e.pass(end.Sub(e.now()))
			e.cleanUp(ids[0], task.KindCancelled)
			return
		}
		e.equal("the number reaped", len(e.reap().Reaped), 0)
		e.dueAt(ids[0], e.now())
		p := e.isUndoing("its process died", ids[0], task.Cancelled, task.KindCancelled).Undo
		e.check(p.Hold.IsZero() && p.NotBefore.IsZero() && p.Forced, "%+v", p)
		e.cleanUp(ids[0], task.KindCancelled)
		e.powerless("the revoked lease", cs[0])
	}},
	{"a forced cancel of a task with nothing to undo ends it", func(e *env) {
		fresh, plain := e.one(cleansUp()), e.one()
		c := e.a.take(plain)
		for _, id := range []task.ID{fresh, plain} {
			e.equal("the answer", e.operate(forceOf(id)), store.CommandResult{State: task.Cancelled})
			e.check(e.ended(id, task.Cancelled, task.KindCancelled).Undo == nil, "it has a phase")
		}
		e.powerless("the revoked lease", c)
	}},
	{"a task that was asked to cancel says so after a forced cancel", func(e *env) {
		id := e.one()
		e.a.take(id)
		e.operate(cancelOf(id))
		e.operate(forceOf(id))
		e.check(e.ended(id, task.Cancelled, task.KindCancelled).CancelRequested, "it was not asked")
	}},
	{"a forced cancel revokes an undo that runs, the second one abandons it", func(e *env) {
		g := e.graph("saga", "alarm: !saga", "next: saga").with("saga", key("k", 1)).submit()
		id := g.id("saga")
		e.finish(unclean(e.a.take(id)))
		c := e.a.take(id)
		verdict, end := e.task(id).Error, e.task(id).LeaseExpiresAt
		e.equal("the answer", e.operate(forceOf(id)), store.CommandResult{State: task.Pending, Asked: true})
		t := e.isUndoing("forced", id, task.Failed, task.KindHandler)
		e.check(t.Undo.Forced && t.Undo.HoldsKey && t.Undo.Hold == c.Lease.ID && t.Undo.NotBefore.Equal(end), "%+v", t.Undo)
		e.equal("its failure", t.Error, verdict)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeCancelled)
		e.dueAt(id, end)
		e.powerless("the revoked undo", c)
		e.pass(end.Sub(e.now()))
		c = e.a.take(id)
		e.equal("a plain cancel", e.operate(cancelOf(id)), store.CommandResult{State: task.Running, Asked: true})
		e.equal("the answer", e.operate(forceOf(id)), store.CommandResult{State: task.Failed})
		e.equal("the verb", e.lastVerb(), "abandon_undo")
		t = e.isAbandoned("forced twice", id)
		e.contains("the failure", t.Error.Message, "undo given up: abandoned by "+admin.By+": "+admin.Reason, "the task had ended failed: no luck")
		e.powerless("the revoked undo", c)
		e.equal("the keys", len(e.snap().Keys), 0)
		e.is(g.id("alarm"), task.Ready, task.WaitNone)
		e.ended(g.id("next"), task.Cancelled, task.KindDependencyFailed)
		e.contains("the refusal", e.commandRefused(forceOf(id), store.ErrState), "its undo was abandoned")
	}},
	{"a forced cancel of an undo that does not run leaves it to its next try", func(e *env) {
		due, blocked := e.undoing(key("k", 1)), e.undoing()
		e.finish(undoFails(e.a.take(due), time.Minute))
		e.finish(blocksUndo(e.a.take(blocked)))
		for id, state := range map[task.ID]task.State{due: task.Pending, blocked: task.Blocked} {
			before := e.task(id)
			e.equal("the answer", e.operate(forceOf(id)), store.CommandResult{State: state, Asked: true})
			t := e.is(id, state, task.WaitUndo)
			e.check(t.Undo.Forced && t.Undo.HoldsKey == before.Undo.HoldsKey && t.Undo.NotBefore.IsZero(), "%+v", t.Undo)
			e.equal("its failure", t.Error, before.Error)
		}
		e.dueAt(due, e.now().Add(time.Minute))
		other := e.one(key("k", 1))
		e.b.getsNothing(only(other))
		for _, id := range []task.ID{due, blocked} {
			e.operate(forceOf(id))
			e.isAbandoned("forced twice", id)
		}
		e.succeed(other)
	}},
	{"a forced cancel of many spares what is being undone", func(e *env) {
		spare := func(id task.ID) store.CancelTask {
			return store.CancelTask{Audit: admin, Task: id, Force: true, Spare: true}
		}
		id := e.undoing()
		e.contains("the refusal", e.commandRefused(spare(id), store.ErrState), "weaver task cancel "+id.String()+" --abandon-undo")
		e.isUndoing("spared", id, task.Failed, task.KindHandler)
		saga := e.one(cleansUp())
		e.a.take(saga)
		e.equal("one that is not", e.operate(spare(saga)), store.CommandResult{State: task.Pending, Asked: true})
	}},
	{"an undo is abandoned in every stage, and where there is none it is refused", func(e *env) {
		due, running, blocked := e.undoing(key("a", 1)), e.undoing(key("b", 1)), e.undoing(key("c", 1))
		c := e.a.take(running)
		end := e.task(running).LeaseExpiresAt
		e.finish(blocksUndo(e.a.take(blocked)))
		for _, id := range []task.ID{due, running, blocked} {
			e.equal("the answer", e.operate(abandonOf(id)), store.CommandResult{State: task.Failed})
			e.equal("the verb", e.lastVerb(), "abandon_undo")
			t := e.isAbandoned("abandoned", id)
			e.contains("the failure", t.Error.Message, "undo given up: abandoned by "+admin.By)
			e.contains("the refusal", e.commandRefused(retryOf(id), store.ErrState), "its undo was abandoned", "--cleanup")
			e.contains("the refusal", e.commandRefused(abandonOf(id), store.ErrState), "already")
		}
		e.powerless("the revoked undo", c)
		e.equal("the keys", len(e.snap().Keys), 0)
		e.operate(cleanupsOf(running))
		e.dueAt(running, end)
		e.pass(end.Sub(e.now()))
		e.finish(undone(e.a.take(running)))
		e.ended(running, task.Failed, task.KindHandler)
		ready, failed := e.one(), e.one()
		c = e.a.take(e.one(cleansUp()))
		e.fail(failed)
		for _, id := range []task.ID{ready, failed, c.Task.ID} {
			e.contains("the refusal", e.commandRefused(abandonOf(id), store.ErrState), "it has no undo to abandon")
		}
	}},
	{"a task whose undo was given up stays until an operator accepts that", func(e *env) {
		g := e.job("saga", "other")
		job := store.DeleteJob{Audit: admin, Job: g.sub.Job.ID}
		inJob := g.id("saga")
		e.succeed(g.id("other"))
		e.finish(unclean(e.a.take(inJob)))
		e.giveUp(inJob)
		given, forgets := e.givenUp(), e.givenUp()
		parent := e.one()
		child := e.waitsForCall(parent, "build", 1)[0]
		e.finish(unclean(e.a.take(child)))
		e.giveUp(child)
		e.succeed(parent)
		for _, cmd := range []store.Command{deleteOf(given), forgetOf(forgets), forgetOf(inJob)} {
			e.contains("the refusal", e.commandRefused(cmd, store.ErrState), "its undo was given up", "--cleanup", "--abandon-undo")
		}
		e.contains("the refusal", e.commandRefused(job, store.ErrState), "the undo of its task "+inJob.String()+" was given up", "--abandon-undo")
		e.pass(2 * time.Second)
		got := e.collect(afterDays(0))
		e.check(got.Jobs == 0 && got.Tasks == 1, "a collector removed %d jobs and %d tasks, want the parent", got.Jobs, got.Tasks)
		e.collected(parent)
		e.kept(given, forgets, inJob, child)
		for _, id := range []task.ID{given, forgets, inJob, child} {
			before := e.task(id)
			e.equal("the answer", e.operate(abandonOf(id)), store.CommandResult{State: task.Failed})
			e.equal("the verb", e.lastVerb(), "abandon_undo")
			t := e.isAbandoned("accepted", id)
			e.equal("its failure", t.Error, before.Error)
			e.equal("its end", t.FinishedAt, before.FinishedAt)
		}
		e.operate(forgetOf(forgets))
		t := e.task(forgets)
		e.check(t.Undo.Error.Kind == task.KindHandler && t.Undo.Error.Message != "no luck", "the phase keeps %+v", t.Undo.Error)
		e.operate(deleteOf(given))
		e.forget(given)
		e.equal("the tasks deleted", e.operate(job).Deleted, 2)
		e.finishChores()
		e.collect(afterDays(0))
		e.collected(forgets, child)
		for _, id := range []task.ID{inJob, g.id("other")} {
			e.forget(id)
		}
	}},
	{"a collector removes a job once its undo is accepted", func(e *env) {
		g := e.job("saga")
		e.finish(unclean(e.a.take(g.id("saga"))))
		e.giveUp(g.id("saga"))
		e.pass(2 * time.Second)
		e.equal("the jobs that go", e.collect(afterDays(0)).Jobs, 0)
		e.operate(abandonOf(g.id("saga")))
		e.equal("the jobs that go", e.collect(afterDays(0)).Jobs, 1)
		e.collected(g.id("saga"))
	}},
	{"no wait takes a signal while its task is being undone", func(e *env) {
		id := e.one(cleansUp())
		c := e.a.take(id)
		e.record(wait(c, "w", "s", 0))
		e.finish(suspended(c, task.WaitSignal, time.Time{}))
		e.operate(cancelOf(id))
		e.operate(signalOf(id, "s", "k", `1`))
		e.equal("the wait", e.stepOf(id, "w").State, task.StepWaiting)
		c = e.a.take(id)
		e.finish(undone(c))
		e.operate(retryOf(id))
		c = e.a.take(id)
		got := e.record(wait(c, "w", "s", 0))
		e.check(got.Step.State == task.StepCompleted && string(got.Step.Value) == `1`, "the wait is %+v", got.Step)
	}},
	{"an undo is abandoned and tried again at once", func(e *env) {
		for n := range e.batches(5) {
			id := e.givenUp(key(fmt.Sprint(n), 1))
			var cmds [2]store.CommandResult
			e.race(2, func(i int) {
				s := e.stores()[i]
				got, err := s.Operate(e.Context(), e.ns, []store.Command{cleanupsOf(id), abandonOf(id)}[i])
				e.check(err == nil, "Operate: %v", err)
				if err == nil {
					cmds[i] = got[0]
				}
			})
			e.check(cmds[0].Err == nil && cmds[1].Err == nil, "refused: %v, %v", cmds[0].Err, cmds[1].Err)
			if t := e.task(id); t.State == task.Failed {
				e.isAbandoned("in the end", id)
			} else {
				e.isUndoing("in the end", id, task.Failed, task.KindHandler)
				e.finish(undone(e.a.take(id)))
			}
		}
	}},
}
