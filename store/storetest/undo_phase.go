package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// unclean ends an attempt permanently with a failed cleanup.
func unclean(c store.Claimed) store.Finish {
	f := dead(c)
	f.Unclean = true
	return f
}

// isUndoing expects a task to be due for its undo, with the final state and error kind.
func (e *env) isUndoing(what string, id task.ID, ends task.State, kind task.ErrorKind) task.Task {
	e.Helper()
	t := e.is(id, task.Pending, task.WaitUndo)
	e.require(t.Undo != nil && t.Undo.EndsAs == ends && t.Undo.Error != nil && t.Undo.Error.Kind == kind, "%s: %s, %+v", what, show(t), t.Undo)
	e.equal(what+": its failure", t.Error, t.Undo.Error)
	e.equal(what+": its dispatch rows", len(e.dispatch(id)), 1)
	return t
}

// undoing begins the undo phase of a new task, which fails.
func (e *env) undoing(opts ...opt) task.ID {
	e.Helper()
	id := e.one(opts...)
	e.finish(unclean(e.a.take(id)))
	e.isUndoing("a failure", id, task.Failed, task.KindHandler)
	return id
}

// expireAll loses n leases of a task to processes that stop.
func (e *env) expireAll(id task.ID, n int) (last store.Reaped) {
	e.Helper()
	for range n {
		last = e.expire(e.worker("doomed").take(id))
	}
	return last
}

var undoPhaseCases = []testCase{
	{"a failure that left something to undo is undone first, and its dependents and its job wait for that", func(e *env) {
		g := e.graph("saga", "next: saga", "alarm: !saga", "last: *saga").submit()
		id := g.id("saga")
		e.equal("the answer", e.finish(unclean(e.a.take(id))), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		t := e.isUndoing("a failure", id, task.Failed, task.KindHandler)
		e.equal("the attempts that count", t.AttemptCount, 1)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeFailure)
		e.all(task.Pending, task.WaitDeps, g.all("next", "alarm", "last")...)
		g.counts(task.JobRunning, 4, 4, 1, 0, 0)
		c := e.a.take(id)
		e.check(c.Task.Undo != nil && !c.Task.CancelRequested, "it is claimed as %s", show(c.Task))
		e.equal("the answer", e.finish(undone(c)).State, task.Failed)
		t = e.ended(id, task.Failed, task.KindHandler)
		e.check(t.Undo == nil && t.AttemptCount == 1 && t.AttemptNo == 2, "it ended as %s", show(t))
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeUndone)
		e.ended(g.id("next"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("alarm"), task.Ready, task.WaitNone)
		e.is(g.id("last"), task.Ready, task.WaitNone)
	}},
	{"a task that begins it has no time of its own any more", func(e *env) {
		id := e.one(after(time.Second))
		e.pass(time.Second)
		e.finish(unclean(e.a.take(id)))
		stored := of(e.snap().Tasks, func(t task.Task) bool { return t.ID == id })
		e.check(len(stored) == 1 && stored[0].ReadyAt.IsZero(), "it is stored as %+v", stored)
	}},
	{"only an end without success begins it", func(e *env) {
		for what, end := range map[string]func(store.Claimed) store.Finish{
			"success": success, "retry": func(c store.Claimed) store.Finish { return retry(c, 0) }, "block": block, "released": released,
		} {
			id := e.one()
			f := end(e.a.take(id))
			f.Unclean, f.Panicked = true, true
			e.finish(f)
			e.check(e.task(id).Undo == nil, "%s began the undo of %s", what, show(e.task(id)))
		}
	}},
	{"a handler that panics is followed by a cleanup, if its task cleans up", func(e *env) {
		for _, of := range []struct {
			cleans, panicked bool
		}{{true, true}, {true, false}, {false, true}} {
			id := e.one(func(n *task.New) { n.CleanupWhenCancelled = of.cleans })
			f := dead(e.a.take(id))
			f.Panicked = of.panicked
			e.finish(f)
			if of.cleans && of.panicked {
				e.isUndoing("a panic", id, task.Failed, task.KindHandler)
				e.finish(undone(e.a.take(id)))
			}
			e.ended(id, task.Failed, task.KindHandler)
		}
	}},
	{"a poisoned task that cleans up does so, in quarantine", func(e *env) {
		id := e.one(cleansUp())
		e.equal("the reaped", e.expireAll(id, 3), store.Reaped{Task: id, State: task.Pending, Crash: true})
		t := e.isUndoing("poison", id, task.Failed, task.KindPoison)
		e.equal("the crashes", t.CrashCount, 3)
		c := e.a.take(id)
		e.check(c.Quarantined, "it is not claimed in quarantine")
		e.finish(undone(c))
		e.ended(id, task.Failed, task.KindPoison)
	}},
	{"a task whose retry its job's budget overrules is undone first", func(e *env) {
		g := e.graph("a", "b")
		g.sub.Job.Budget.MaxTotalAttempts = 1
		g.submit()
		f := retry(e.a.take(g.id("a")), time.Hour)
		f.Unclean = true
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		e.isUndoing("the budget", g.id("a"), task.Failed, task.KindBudget)
		e.ended(g.id("b"), task.Cancelled, task.KindBudget)
		e.finish(undone(e.a.take(g.id("a"))))
		e.ended(g.id("a"), task.Failed, task.KindBudget)
		e.check(g.read().State.Terminal(), "the job is %s", g.read().State)
	}},
	{"an undo that failed is tried again after its delay, and its attempt has its own error", func(e *env) {
		id := e.undoing(attempts(1))
		before := e.task(id)
		f := undoFails(e.a.take(id), time.Minute)
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		e.equal("reported again", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		t := e.isUndoing("failed once", id, task.Failed, task.KindHandler)
		e.equal("its failure", t.Error, before.Error)
		e.equal("the attempts that count", t.AttemptCount, 1)
		last := e.lastAttempt(id)
		e.check(last.Outcome == task.OutcomeUndoFailed && last.Error.Message == "psp 503", "the attempt ended %s: %v", last.Outcome, last.Error)
		e.dueAt(id, e.now().Add(time.Minute))
		e.a.getsNothing(only(id))
		e.pass(time.Minute)
		c := e.a.take(id)
		e.check(len(c.Steps) == 0, "it has the steps %+v", c.Steps)
		f = undone(c)
		e.equal("the answer", e.finish(f).State, task.Failed)
		e.equal("reported again", e.finish(f).State, task.Failed)
		e.ended(id, task.Failed, task.KindHandler)
	}},
	{"an undo that is given up fails its task with the kind undo_failed", func(e *env) {
		g := e.graph("saga", "alarm: !saga").with("saga", key("k", 1)).submit()
		id := g.id("saga")
		e.finish(unclean(e.a.take(id)))
		f := undoFails(e.a.take(id), -1)
		f.Error = &task.Error{Kind: task.KindUndoFailed, Message: "undo given up"}
		e.equal("the answer", e.finish(f).State, task.Failed)
		e.equal("reported again", e.finish(f).State, task.Failed)
		t := e.ended(id, task.Failed, task.KindUndoFailed)
		e.check(t.Undo != nil && t.Undo.GaveUp && t.Undo.Error.Kind == task.KindHandler, "%s, %+v", show(t), t.Undo)
		e.equal("the keys", len(e.snap().Keys), 0)
		e.is(g.id("alarm"), task.Ready, task.WaitNone)
		e.lists(store.Filter{ErrorKinds: []task.ErrorKind{task.KindUndoFailed}}, id)
	}},
	{"an undo that needs a person is blocked, and takes no input", func(e *env) {
		g := e.graph("saga").with("saga", key("k", 1)).submit()
		id := g.id("saga")
		e.finish(unclean(e.a.take(id)))
		f := inPhase(e.a.take(id), store.Finish{Outcome: task.OutcomeBlocked, Waiting: task.WaitUndo, Error: &task.Error{Kind: task.KindDecode, Message: "deploy"}})
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Blocked, Waiting: task.WaitUndo, Job: task.JobBlocked})
		t := e.is(id, task.Blocked, task.WaitUndo)
		e.check(t.Error.Message == "deploy" && t.Undo.Error.Message == "no luck" && !t.Undo.HoldsKey, "%s, %+v", show(t), t.Undo)
		e.equal("the keys", len(e.snap().Keys), 0)
		g.counts(task.JobBlocked, 1, 1, 0, 0, 0)
		replace := store.ReplaceInput{Audit: admin, Task: id, Input: []byte(`7`), SchemaVersion: 1}
		for _, cmd := range []store.Command{unblockOf(id, `1`), replace, runNowOf(id), retryOf(id), deleteOf(id)} {
			e.commandRefused(cmd, store.ErrState)
		}
		e.contains("the refusal", e.commandRefused(unblockOf(id, `1`), store.ErrState), "unblock it without one")
		e.equal("an unblock", e.operate(unblockOf(id, "")), store.CommandResult{State: task.Pending})
		t = e.isUndoing("unblocked", id, task.Failed, task.KindHandler)
		e.check(t.Undo.Since == t.AttemptNo && t.Undo.Crashes == 0, "%s, %+v", show(t), t.Undo)
		g.counts(task.JobRunning, 1, 1, 1, 0, 0)
		c := e.a.take(id)
		e.equal("the keys", len(e.snap().Keys), 1)
		f.Lease = c.Lease
		e.finish(f)
		e.is(id, task.Blocked, task.WaitUndo)
		e.equal("a cancel", e.operate(cancelOf(id)), store.CommandResult{State: task.Blocked, Asked: true})
	}},
	{"an attempt that does not know the end of the phase leaves it as it is", func(e *env) {
		id := e.undoing()
		f := undone(e.a.take(id))
		f.EndsAs = task.Cancelled
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		e.equal("the kind", e.lastAttempt(id).Error.Kind, task.KindInternal)
		e.isUndoing("to another end", id, task.Failed, task.KindHandler)
		id = e.undoing()
		e.equal("success", e.finish(inPhase(e.a.take(id), store.Finish{Outcome: task.OutcomeSuccess, Output: []byte(`1`)})).State, task.Failed)
		e.check(e.ended(id, task.Failed, task.KindHandler).Output == nil, "it has the output")
	}},
	{"an attempt of a program that knows no phase does not count", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 5}, "saga", "other")
		id := g.id("saga")
		e.finish(unclean(e.a.take(id)))
		f := dead(e.a.take(id))
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		e.unchanged("the report once more", func() {
			e.equal("the answer", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		})
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeUndoFailed)
		e.equal("the attempts used", g.read().AttemptsUsed, 1)
		e.pass(time.Second)
		e.finish(undone(e.a.take(id)))
		e.ended(id, task.Failed, task.KindHandler)
	}},
	{"a phase has no time from before", func(e *env) {
		id := e.one(func(n *task.New) { n.At = e.now().Add(time.Second) })
		e.pass(time.Second)
		e.finish(unclean(e.a.take(id)))
		for _, t := range e.snap().Tasks {
			e.check(t.ID != id || t.ReadyAt.IsZero(), "its time is %v", t.ReadyAt)
		}
	}},
	{"a task keeps its key from its first attempt to the end of its undo", func(e *env) {
		id := e.undoing(key("k", 1))
		other := e.one(key("k", 1))
		e.b.getsNothing(only(other))
		e.finish(undoFails(e.a.take(id), time.Minute))
		e.b.getsNothing(only(other))
		e.is(other, task.Pending, task.WaitConcurrency)
		e.operate(pauseTaskOf(id))
		e.operate(resumeTaskOf(id))
		e.pass(time.Minute)
		e.expire(e.worker("doomed").take(id))
		e.b.getsNothing(only(other))
		e.finish(undone(e.a.take(id)))
		e.succeed(other)
		e.equal("the keys", len(e.snap().Keys), 0)
	}},
	{"the parts of a store show the key that a task holds while it is undone", func(e *env) {
		e.undoing(key("k", 1))
		e.equal("the keys", len(e.snap().Keys), 1)
	}},
	{"an undo that keeps a key leaves the limit that the task claimed last asked for", func(e *env) {
		id, other := e.one(key("k", 2)), e.one(key("k", 1))
		c := e.a.take(id)
		e.a.take(other)
		e.finish(unclean(c))
		e.equal("the keys", e.snap().Keys, []store.KeyRow{{Key: "k", Held: 2, Cap: 1}})
		e.finish(undoFails(e.a.take(id), 0))
		e.equal("the keys", e.snap().Keys, []store.KeyRow{{Key: "k", Held: 2, Cap: 1}})
	}},
	{"a phase that began without a worker takes the key with its first attempt", func(e *env) {
		id := e.one(cleansUp(), key("k", 1))
		e.paid(id, block)
		e.operate(cancelOf(id))
		other := e.one(key("k", 1))
		c := e.a.take(other)
		e.a.getsNothing(only(id))
		e.finish(success(c))
		e.finish(undoFails(e.a.take(id), 0))
		later := e.one(key("k", 1))
		e.b.getsNothing(only(later))
		e.finish(undone(e.a.take(id)))
		e.succeed(later)
	}},
	{"no cancel and no deadline ends an undo", func(e *env) {
		id := e.undoing(expires(time.Minute))
		e.equal("a cancel", e.operate(cancelOf(id)), store.CommandResult{State: task.Pending, Asked: true})
		e.pass(2 * time.Minute)
		e.reapsNothing()
		c := e.a.take(id)
		e.equal("a cancel", e.operate(cancelOf(id)), store.CommandResult{State: task.Running, Asked: true})
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{}})
		e.finish(undone(c))
		e.ended(id, task.Failed, task.KindHandler)
	}},
	{"a job that is cancelled leaves what is being undone to its undo", func(e *env) {
		g := e.job("saga", "other")
		e.finish(unclean(e.a.take(g.id("saga"))))
		e.equal("the answer", g.cancelsJob(), [3]int{1, 1, 0})
		g.counts(task.JobRunning, 2, 1, 1, 1, 0)
		e.finish(undone(e.a.take(g.id("saga"))))
		g.counts(task.JobCancelled, 2, 0, 0, 2, 0)
	}},
	{"an attempt of the phase records cleanups, and no other step", func(e *env) {
		id := e.undoing()
		e.expireAll(id, 2)
		e.equal("the crashes", e.task(id).Undo.Crashes, 2)
		c := e.a.take(id)
		e.recordRefused(step(c, "more", `2`), store.ErrCancelRequested)
		e.recordRefused(wait(c, "w", "s", time.Hour), store.ErrCancelRequested)
		e.record(refund(c))
		t := e.task(id)
		e.check(t.Undo.Crashes == 0 && t.StepCount == 1, "%s, %+v", show(t), t.Undo)
		e.finish(undone(c))
	}},
	{"two tasks that are undone in one batch are both counted", func(e *env) {
		g := e.graph("a", "b", "both: *a *b", "alarm: !a !b").submit()
		e.finishOK(finishes(e.a.takeAll(g.all("a", "b")...), unclean)...)
		e.all(task.Pending, task.WaitUndo, g.all("a", "b")...)
		more := e.one()
		e.finishOK(append(finishes(e.a.takeAll(g.all("a", "b")...), undone), success(e.a.take(more)))...)
		e.is(g.id("both"), task.Ready, task.WaitNone)
		e.is(g.id("alarm"), task.Ready, task.WaitNone)
		e.ended(more, task.Succeeded, task.KindNone)
	}},
	{"one that succeeds in its phase and others in one batch", func(e *env) {
		saga, other := e.one(cleansUp()), e.one()
		e.paid(saga, block)
		e.operate(cancelOf(saga))
		first := inPhase(e.a.take(saga), store.Finish{Outcome: task.OutcomeSuccess, Output: []byte(`"done"`)})
		failed := e.undoing()
		second := inPhase(e.a.take(failed), store.Finish{Outcome: task.OutcomeSuccess, Output: []byte(`"done"`)})
		e.finishOK(first, second, success(e.a.take(other)))
		t := e.ended(saga, task.Succeeded, task.KindNone)
		e.check(t.Undo == nil && t.AttemptCount == 1, "it succeeded as %s", show(t))
		e.ended(failed, task.Failed, task.KindHandler)
		e.ended(other, task.Succeeded, task.KindNone)
	}},
	{"no undo begins while the lease of a store that was restored may be used", func(e *env) {
		id := e.one(cleansUp())
		c := e.a.take(id)
		e.operate(cancelOf(id))
		end := e.task(id).LeaseExpiresAt
		e.operate(store.Restored{Audit: admin, EndLeases: true})
		t := e.isUndoing("restored", id, task.Cancelled, task.KindCancelled)
		e.check(t.Undo.Hold == c.Lease.ID && t.Undo.NotBefore.Equal(end), "the phase is %+v, the lease ends at %v", t.Undo, end)
		e.dueAt(id, end)
	}},
}
