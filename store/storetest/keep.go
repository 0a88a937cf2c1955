package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// undoes runs an attempt that records "charge", undone by its cleanup "refund", and ends it.
func (e *env) undoes(id task.ID, end func(store.Claimed) store.Finish) {
	e.Helper()
	c := e.a.take(id)
	e.record(indexed(step(c, "charge", `1`), 0))
	e.record(indexed(refund(c), 1))
	e.finish(end(c))
}

func keepOf(id task.ID) store.RetryTask {
	return store.RetryTask{Audit: admin, Task: id, KeepSteps: true}
}

// past lists the past steps of a task, each with the attempt that recorded it.
func (e *env) past(id task.ID) (list []string) {
	e.Helper()
	for _, s := range e.steps(id) {
		if s.Past() {
			list = append(list, fmt.Sprint(s.Name, " of ", s.AttemptNo))
		}
	}
	return list
}

// lastReason is the reason of the newest entry of the audit.
func (e *env) lastReason() string {
	e.Helper()
	audit := e.snap().Audit
	e.require(len(audit) > 0, "nothing is audited")
	return audit[len(audit)-1].Reason
}

// keptSteps is the audit note for a task whose steps stay although the cleanup of undoes ran.
const keptSteps = `steps kept though the cleanup "refund"`

// keepStepsCases test tasks that run again after a cleanup undid some of their steps.
var keepStepsCases = []testCase{
	{"a retry is refused after a cleanup completed", func(e *env) {
		failed, cancelledTask := e.one(), e.one()
		e.undoes(failed, dead)
		c := e.a.take(cancelledTask)
		e.record(step(c, "charge", `1`))
		e.operate(cancelOf(cancelledTask))
		e.record(refund(c))
		e.finish(cancelled(c))
		for _, id := range []task.ID{failed, cancelledTask} {
			e.contains("the refusal", e.commandRefused(retryOf(id), store.ErrState), `its cleanup "refund" ran`, "rerun it", "--keep-steps (KeepSteps)")
		}
		g := e.job("a", "b: a")
		e.succeed(g.id("a"))
		e.undoes(g.id("b"), dead)
		e.contains("the refusal", e.commandRefused(retryOf(g.id("b")), store.ErrState), `its cleanup "refund" ran`, "submit its job again")
	}},
	{"a cleanup that failed refuses no retry", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(step(c, "charge", `1`))
		r := try(c, "refund", 1)
		r.Step.Kind = task.KindCleanup
		e.record(r)
		e.finish(dead(c))
		e.operate(retryOf(id))
		e.equal("the note", e.lastReason(), admin.Reason)
		e.succeed(id)
	}},
	{"a retry that keeps the steps runs the cleanup again when its turn comes", func(e *env) {
		id := e.one()
		e.undoes(id, dead)
		for round := 1; round <= 2; round++ {
			e.commandRefused(retryOf(id), store.ErrState)
			e.equal("the answer", e.operate(keepOf(id)), store.CommandResult{State: task.Ready})
			e.equal("the note", e.lastReason(), keptSteps+" ran: "+admin.Reason)
			e.equal("StepCount", e.task(id).StepCount, 1)
			e.equal("the past steps", len(e.past(id)), round)
			c := e.a.take(id)
			e.equal("the steps handed out", len(c.Steps), 1+round)
			got := e.record(indexed(refund(c), 1))
			e.check(got.Step.AttemptNo == c.Task.AttemptNo && !got.Step.Past(), "the cleanup is answered by %+v", got.Step)
			e.equal("StepCount", e.task(id).StepCount, 2)
			e.finish(dead(c))
		}
		e.equal("the past steps", e.past(id), []string{"refund of 1", "refund of 2"})
		e.operate(keepOf(id))
		e.succeed(id)
		e.equal("the past steps", e.past(id), []string{"refund of 1", "refund of 2", "refund of 3"})
	}},
	{"to keep the steps of a task without a cleanup is a plain retry", func(e *env) {
		id := e.one()
		e.fail(id)
		e.operate(keepOf(id))
		e.equal("the note", e.lastReason(), admin.Reason)
		e.succeed(id)
	}},
	{"a rerun from a step is refused after a cleanup completed, one from the beginning is not", func(e *env) {
		for what, end := range map[string]func(store.Claimed) store.Finish{"failed": dead, "succeeded": success, "blocked": block} {
			id := e.one()
			e.undoes(id, end)
			from := store.RerunTask{Audit: admin, Task: id, New: e.draft(), StepsBelow: 1}
			e.contains(what, e.commandRefused(from, store.ErrState), `its cleanup "refund" ran`, "from the beginning", "--keep-steps (KeepSteps)")
			for _, cmd := range []store.RerunTask{
				{Audit: admin, Task: id, New: e.draft()},
				{Audit: admin, Task: id, New: e.draft(), KeepSteps: true},
			} {
				e.operate(cmd)
				e.remember(cmd.New.ID)
				e.equal("the note", e.lastReason(), "as "+cmd.New.ID.String()+": "+admin.Reason)
				e.equal("the steps", len(e.steps(cmd.New.ID)), 0)
			}
			from.KeepSteps = true
			e.operate(from)
			e.remember(from.New.ID)
			e.equal("the note", e.lastReason(), "as "+from.New.ID.String()+": "+keptSteps+" ran: "+admin.Reason)
			steps := e.steps(from.New.ID)
			e.check(len(steps) == 1 && steps[0].Name == "charge", "taken over: %+v", steps)
			e.equal("the past steps of the old task", len(e.past(id)), 0)
		}
	}},
	{"a rerun takes over no past step", func(e *env) {
		id := e.one()
		e.undoes(id, dead)
		e.operate(keepOf(id))
		e.succeed(id)
		cmd := store.RerunTask{Audit: admin, Task: id, New: e.draft(), StepsBelow: 5}
		e.operate(cmd)
		e.remember(cmd.New.ID)
		e.equal("the steps", len(e.steps(cmd.New.ID)), 1)
	}},
	{"a retry is refused for the cleanup of a dependent that comes back with it", func(e *env) {
		g := e.job("a", "b", "c: b")
		e.undoesAndAsks(g.id("b"), g.id("a"))
		e.fail(g.id("a"))
		for _, node := range []string{"b", "c"} {
			e.ended(g.id(node), task.Cancelled, task.KindDependencyFailed)
		}
		e.contains("the refusal", e.commandRefused(retryOf(g.id("a")), store.ErrState), g.id("b").String(), `whose cleanup "refund" ran`, "--keep-steps (KeepSteps)")
		e.operate(keepOf(g.id("a")))
		e.equal("the note", e.lastReason(), keptSteps+" of task "+g.id("b").String()+" ran: "+admin.Reason)
		e.all(task.Pending, task.WaitDeps, g.all("b", "c")...)
		e.equal("the past steps", e.past(g.id("b")), []string{"refund of 1"})
		e.succeed(g.all("a", "b", "c")...)
	}},
	{"the cleanup of a task beyond a dependent counts, that of one that stays does not", func(e *env) {
		g := e.job("a", "b: a", "c", "d: *a")
		e.undoesAndAsks(g.id("c"), g.id("b"))
		e.fail(g.id("a"))
		e.undoes(g.id("d"), dead)
		e.contains("the refusal", e.commandRefused(retryOf(g.id("a")), store.ErrState), g.id("c").String())
		e.operate(keepOf(g.id("a")))
		e.all(task.Pending, task.WaitDeps, g.all("b", "c")...)
		e.equal("the past steps of a task that stays", len(e.past(g.id("d"))), 0)
	}},
	{"a retry is refused for the cleanup of a child of a call", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 3)
		inner := e.waitsForCall(kids[1], "part", 1)
		e.succeed(kids[0])
		e.undoes(inner[0], dead)
		e.undoes(kids[2], dead)
		e.fail(kids[1], p)
		for id, oldest := range map[task.ID]task.ID{kids[1]: inner[0], p: kids[2]} {
			e.contains("the refusal", e.commandRefused(retryOf(id), store.ErrState), oldest.String(), `whose cleanup "refund" ran`)
		}
		e.operate(keepOf(p))
		e.left(p, "build", 2)
		e.all(task.Ready, task.WaitNone, kids[1], kids[2], inner[0])
		for _, id := range []task.ID{inner[0], kids[2]} {
			e.equal("the past steps", e.past(id), []string{"refund of 1"})
		}
	}},
	{"a retry is refused for the cleanup of a task that waited for a child that comes back", func(e *env) {
		p, other := e.one(), e.one()
		kids := e.decomposed(p, task.JoinRerun, 1)
		e.undoesAndAsks(other, kids[0])
		e.operate(cancelOf(p))
		e.ended(other, task.Cancelled, task.KindDependencyFailed)
		e.contains("the refusal", e.commandRefused(retryOf(p), store.ErrState), other.String(), `whose cleanup "refund" ran`)
		e.operate(keepOf(p))
		e.finishChores()
		e.is(other, task.Pending, task.WaitDeps)
		e.equal("the past steps", e.past(other), []string{"refund of 1"})
	}},
	{"a child that succeeded after its cleanup refuses no retry", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 1)
		e.undoes(kids[0], success)
		e.fail(p)
		e.operate(retryOf(p))
		e.succeed(p)
	}},
	{"a retry is refused for the cleanup of a child that ended with its parent", func(e *env) {
		for _, join := range []task.Join{task.JoinRerun, task.JoinComplete} {
			p := e.one()
			kids := e.decomposed(p, join, 3)
			e.undoes(kids[0], success)
			c := e.a.take(kids[1])
			e.operate(cancelOf(p))
			e.record(refund(c))
			e.finish(cancelled(c))
			e.contains("the refusal", e.commandRefused(retryOf(p), store.ErrState), kids[1].String(), `whose cleanup "refund" ran`)
			e.operate(keepOf(p))
			e.waitsFor(p, 2)
			e.equal("the past steps", e.past(kids[1]), []string{"refund of 1"})
			e.equal("the past steps of a child that stays", len(e.past(kids[0])), 0)
		}
	}},
	{"the retry of a child is refused for the cleanup of its parent", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.record(refund(c))
		e.finish(retry(c, 0))
		kids := e.decomposed(p, task.JoinComplete, 1)
		e.fail(kids[0])
		e.ended(p, task.Failed, task.KindDependencyFailed)
		e.contains("the refusal", e.commandRefused(retryOf(kids[0]), store.ErrState), p.String(), `whose cleanup "refund" ran`)
		e.operate(keepOf(kids[0]))
		e.waitsFor(p, 1)
		e.equal("the past steps", e.past(p), []string{"refund of 1"})
	}},
	{"a deadline that parent and child missed brings both back", func(e *env) {
		p := e.one(expires(2 * ttl))
		kids := e.decomposed(p, task.JoinRerun, 1)
		c := e.a.take(kids[0])
		e.record(refund(c))
		e.finish(retry(c, ttl))
		e.pass(2*ttl + ttl/2)
		e.reap()
		e.finishChores()
		e.ended(kids[0], task.Cancelled, task.KindDeadline)
		e.contains("the refusal", e.commandRefused(retryOf(p), store.ErrState), kids[0].String())
		e.operate(keepOf(p))
		e.waitsFor(p, 1)
	}},
	{"a raised budget leaves out what cleaned up, and what would bring that back", func(e *env) {
		for _, keep := range []bool{false, true} {
			g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "spends", "plain", "saga", "parent", "splits")
			kids := append(e.waitsForCall(g.id("parent"), "build", 1), e.decomposed(g.id("splits"), task.JoinRerun, 1)...)
			cs := e.a.takeAll(append(g.all("saga", "spends"), kids...)...)
			e.record(step(cs[0], "charge", `1`))
			e.finish(retry(cs[1], 0))
			e.finish(retry(e.a.take(g.id("spends")), 0))
			e.record(refund(cs[0]))
			e.finish(cancelled(cs[0]))
			for _, c := range cs[2:] {
				e.record(refund(c))
				e.finish(cancelled(c))
			}
			e.finishChores()
			cmd := raise(g.sub.Job.ID, 10, 0)
			cmd.KeepSteps = keep
			e.operate(cmd)
			e.finishChores()
			e.due(g.id("plain"))
			e.due(g.id("spends"))
			if keep {
				e.contains("the note", e.lastReason(), "10 attempts", "steps kept though cleanups ran", admin.Reason)
				e.due(g.id("saga"))
				for _, id := range append(kids, g.id("saga")) {
					e.equal("the past steps", e.past(id), []string{"refund of 1"})
				}
				e.due(kids[0])
				e.due(kids[1])
				continue
			}
			for _, id := range append(kids, g.all("saga", "parent", "splits")...) {
				e.check(e.task(id).State.Terminal(), "%v is %s", id, e.task(id).State)
			}
			for _, id := range g.all("saga", "parent", "splits") {
				e.contains("the refusal", e.commandRefused(retryOf(id), store.ErrState), `cleanup "refund" ran`)
			}
		}
	}},
	{"many children come back with their parent, all with past steps or none", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		n := 2 * fanned
		kids := e.calls(c, "build", n)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		for at := 0; at < n-1; at += 1000 {
			e.finishOK(finishes(e.a.takeAll(kids[at:min(n-1, at+1000)]...), dead)...)
		}
		e.undoes(kids[n-1], dead)
		e.finishChores()
		e.fail(p)
		e.contains("the refusal", e.commandRefused(retryOf(p), store.ErrState), kids[n-1].String())
		e.operate(keepOf(p))
		e.finishChores()
		e.left(p, "build", n)
		e.equal("the past steps", e.past(kids[n-1]), []string{"refund of 1"})
	}},
}

// undoesAndAsks runs a first attempt that undoes its step, and a second attempt that asks for another task.
func (e *env) undoesAndAsks(id, on task.ID) {
	e.Helper()
	e.undoes(id, func(c store.Claimed) store.Finish { return retry(c, 0) })
	e.asksFor(id, on)
}
