package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var budgetRaiseCases = []testCase{
	{"more of a budget brings back what ended for it", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "a", "b", "c: a", "d: *c", "fails", "x: fails", "slow")
		c := e.a.take(g.id("slow"))
		e.fail(g.id("fails"))
		e.finish(retry(e.a.take(g.id("a")), 0))
		job := g.sub.Job.ID
		e.contains("the refusal while a task ends", e.commandRefused(raise(job, 5, 0), store.ErrState), "have not ended yet")
		e.finish(cancelled(c))
		for _, id := range g.all("a", "b", "fails") {
			e.contains("the refusal of a retry", e.commandRefused(retryOf(id), store.ErrState), "3 of 2 attempts", "--add-attempts 2", job.String())
		}
		e.contains("too little", e.commandRefused(raise(job, 1, 0), store.ErrState), "not enough", "--add-attempts 2")
		e.contains("nothing", e.commandRefused(raise(job, 0, 0), store.ErrState), "1 or more")
		e.contains("another limit", e.commandRefused(raise(job, 5, 1), store.ErrState), "max_cost")

		e.equal("the answer", e.operate(raise(job, 2, 0)), store.CommandResult{})
		e.finishChores()
		e.due(g.id("a"))
		e.due(g.id("b"))
		e.due(g.id("slow"))
		e.equal("its attempts", e.task(g.id("a")).AttemptCount, 0)
		e.all(task.Pending, task.WaitDeps, g.all("c", "d")...)
		e.ended(g.id("fails"), task.Failed, task.KindHandler)
		e.ended(g.id("x"), task.Cancelled, task.KindDependencyFailed)
		g.used(3, 0, false)
		e.equal("the budget", g.read().Budget.MaxTotalAttempts, 4)
		audit := e.snap().Audit
		last := audit[len(audit)-1]
		e.check(last.Verb == "raise_budget" && last.Target == job.String() && last.Actor == "ada", "the audit has %+v", last)
		e.contains("its reason", last.Reason, "2 attempts", "looks wrong")

		e.succeed(g.id("a"))
		e.spentEnd([]string{"4 of 4 attempts"}, g.all("b", "c", "d", "slow")...)
		e.operate(raise(job, 100, 0))
		e.finishChores()
		e.succeed(g.all("b", "c", "d", "slow")...)
		e.operate(retryOf(g.id("fails")))
		e.succeed(g.all("fails", "x")...)
		g.counts(task.JobSucceeded, 7, 0, 0, 0, 7)
	}},
	{"a job that succeeded is not raised", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 9}, "a")
		e.succeed(g.id("a"))
		e.contains("the refusal", e.commandRefused(raise(g.sub.Job.ID, 3, 0), store.ErrState), "it has succeeded")
		e.equal("the budget", g.read().Budget.MaxTotalAttempts, 9)
	}},
	{"a retry raises the limits of its task", func(e *env) {
		limits := func(n *task.New) {
			n.MaxAttempts, n.MaxCost, n.Labels = 2, 10, map[string]string{"team": "pay"}
		}
		id := e.one(limits)
		c := e.a.take(id)
		e.record(spends(c, "s", 15))
		e.finish(dead(c))
		more := retryOf(id)
		more.AddAttempts, more.AddCost = 3, 20
		less := more
		less.AddAttempts = -1
		e.contains("less", e.commandRefused(less, store.ErrState), "1 or more")
		e.operate(more)
		t := e.task(id)
		e.check(t.MaxAttempts == 5 && t.MaxCost == 30 && t.Labels["team"] == "pay" && t.State == task.Ready, "the task is %s", show(t))
		audit := e.snap().Audit
		e.contains("the reason", audit[len(audit)-1].Reason, "3 attempts and a cost of 20 more: looks wrong")
		c = e.a.take(id)
		e.equal("the limits of its attempt", [2]int64{int64(c.Task.MaxAttempts), c.Task.MaxCost}, [2]int64{5, 30})
		e.record(spends(c, "more", 15))
		e.finish(dead(c))

		free := e.one()
		e.fail(free)
		none := retryOf(free)
		none.AddCost = 1
		e.contains("no limit", e.commandRefused(none, store.ErrState), "MaxCost")
		none.AddCost, none.AddAttempts = 0, 1
		before := e.task(free).MaxAttempts
		e.operate(none)
		e.equal("the attempts of one with the usual options", e.task(free).MaxAttempts, before+1)
	}},
	{"more of the cost", func(e *env) {
		g := e.budgeted(task.Budget{MaxCost: 10, MaxTotalAttempts: 50}, "a", "b")
		c := e.a.take(g.id("a"))
		e.record(spends(c, "s", 15))
		e.finish(dead(c))
		e.contains("the refusal", e.commandRefused(retryOf(g.id("a")), store.ErrState), "15 of 10 micro-units", "--add-cost 5")
		e.commandRefused(raise(g.sub.Job.ID, 3, 4), store.ErrState)
		e.operate(raise(g.sub.Job.ID, 3, 5))
		e.finishChores()
		e.equal("the budget", g.read().Budget, task.Budget{MaxCost: 15, MaxTotalAttempts: 53})
		again := e.a.take(g.id("a"))
		e.equal("the steps that it keeps", len(again.Steps), 1)
		e.finish(success(again))
		e.succeed(g.id("b"))
		g.used(3, 15, false)
		e.equal("the job", g.read().State, task.JobSucceeded)
	}},
	{"a budget that is not used up is raised", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "a", "b", "c")
		e.equal("the answer", e.operate(raise(g.sub.Job.ID, 1, 0)), store.CommandResult{})
		e.succeed(g.all("a", "b", "c")...)
		g.used(3, 0, false)
		e.wantErr("an unknown job", e.command(raise(e.newID(), 1, 0)).Err, store.ErrNotFound)
	}},
	{"the last task that ended for the budget comes back with it", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a")
		e.finish(retry(e.a.take(g.id("a")), 0))
		g.used(1, 0, false) // there was no task left to end
		e.commandRefused(retryOf(g.id("a")), store.ErrState)
		e.operate(raise(g.sub.Job.ID, 1, 0))
		e.finishChores()
		e.succeed(g.id("a"))
	}},
	{"what a person cancelled does not come back, nor what needs it before it does", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "runs", "b: runs", "c: b")
		c := e.a.take(g.id("runs"))
		e.succeed(g.id("a"))
		e.operate(forceOf(g.id("runs")))
		e.finishRefused(success(c), store.ErrLeaseLost)
		e.spentEnd(nil, g.all("b", "c")...)
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.finishChores()
		e.ended(g.id("runs"), task.Cancelled, task.KindCancelled)
		e.spentEnd(nil, g.all("b", "c")...)
		e.operate(retryOf(g.id("runs")))
		e.finishChores()
		e.succeed(g.all("runs", "b", "c")...)
		e.equal("the job", g.read().State, task.JobSucceeded)
	}},
	{"a retry elsewhere brings back nothing of a job whose budget is used up", func(e *env) {
		x := e.one()
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b")
		e.finish(store.Finish{Lease: e.a.take(g.id("b")).Lease, Outcome: task.OutcomeAddDependency, DependsOn: x, CodeVersion: 1})
		e.fail(x)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		h := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b")
		e.finish(store.Finish{Lease: e.a.take(h.id("b")).Lease, Outcome: task.OutcomeAddDependency, DependsOn: g.id("a"), CodeVersion: 1})
		e.succeed(h.id("a"))
		e.spentEnd([]string{"1 of 1 attempts"}, h.id("b"))
		e.fail(g.id("a"))
		e.operate(retryOf(x))
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.operate(retryOf(g.id("a")))
		e.spentEnd([]string{"1 of 1 attempts"}, h.id("b"))
		e.operate(retryOf(g.id("b"))) // its need continues
	}},
	{"a task that cleans up does so when the budget is used up", func(e *env) {
		g := e.graph("a", "b").with("b", func(n *task.New) { n.CleanupWhenCancelled = true })
		g.sub.Job.Budget.MaxTotalAttempts = 2
		g.submit()
		e.finish(retry(e.a.take(g.id("b")), time.Hour))
		e.succeed(g.id("a"))
		c := e.a.take(g.id("b"))
		e.equal("the kind", c.Task.CancelKind, task.KindJobBudget)
		e.finish(undone(c))
		e.spentEnd(twoOfTwo, g.id("b"))
		g.used(2, 0, true)
	}},
}
