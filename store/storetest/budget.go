package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// budgeted submits a job with a budget.
func (e *env) budgeted(b task.Budget, nodes ...string) *graph {
	e.Helper()
	g := e.graph(nodes...)
	g.sub.Job.Budget = b
	return g.submit()
}

// used compares a job's use of its budget, and whether the budget is exhausted.
func (g *graph) used(attempts int, cost int64, exhausted bool) {
	g.e.Helper()
	j := g.read()
	g.e.check(j.AttemptsUsed == attempts && j.Cost == cost && !j.ExhaustedAt.IsZero() == exhausted,
		"the job used %d attempts and a cost of %d, exhausted at %v; want %d, %d, %v", j.AttemptsUsed, j.Cost, j.ExhaustedAt, attempts, cost, exhausted)
}

// overruled expects a task to have failed because of a budget, as recorded in its last decision.
func (e *env) overruled(id task.ID, texts ...string) {
	e.Helper()
	t := e.ended(id, task.Failed, task.KindBudget)
	e.contains("the error", t.Error.Message, texts...)
	h := e.history(id)
	e.require(len(h.Decisions) > 0, "no decision is stored")
	d := h.Decisions[len(h.Decisions)-1]
	e.equal("the decision", d.Kind, task.DecideMarkDead)
	e.contains("its reason", d.Reason.Text, texts...)
	e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeFailure)
}

// spentEnd expects a task to have been cancelled because its job's budget is used up.
func (e *env) spentEnd(texts []string, ids ...task.ID) {
	e.Helper()
	for _, id := range ids {
		t := e.ended(id, task.Cancelled, task.KindBudget)
		e.equal("the kind of its cancel", t.CancelKind, task.KindJobBudget)
		e.contains("its error", t.Error.Message, texts...)
		e.notDispatched(id)
	}
}

// spends records a completed step that cost something.
func spends(c store.Claimed, name string, cost int64) store.Record {
	r := step(c, name, "1")
	r.Step.Cost = cost
	return r
}

func raise(job task.ID, attempts int, cost int64) store.RaiseBudget {
	return store.RaiseBudget{Audit: admin, Job: job, AddAttempts: attempts, AddCost: cost}
}

var twoOfTwo = []string{"2 of 2 attempts", "max_total_attempts"}

var budgetAttemptCases = []testCase{
	{"a retry without an attempt left is overruled, and the job ends", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "a", "runs", "waits", "later", "b: waits", "stuck")
		blocked := block(e.a.take(g.id("stuck")))
		blocked.Outcome = task.OutcomeBlocked // it does not count
		e.finish(blocked)
		cs := e.a.takeAll(g.all("a", "runs")...)
		g.used(0, 0, false)
		f := retry(cs[0], 0)
		e.equal("the answer", e.finish(f).State, task.Ready)
		g.used(1, 0, false)
		f = retry(e.a.take(g.id("a")), time.Hour)
		e.equal("the answer to the last", e.finish(f), store.FinishResult{State: task.Failed})
		e.equal("the same again", e.finish(f), store.FinishResult{State: task.Failed})
		e.overruled(g.id("a"), twoOfTwo...)
		e.contains("the last error", e.task(g.id("a")).Error.Message, "no luck")
		e.spentEnd(twoOfTwo, g.all("waits", "later", "b", "stuck")...)
		g.used(2, 0, true)
		e.near("exhausted_at", g.read().ExhaustedAt, e.now())

		t := e.is(g.id("runs"), task.Running, task.WaitNone)
		e.check(t.CancelRequested && t.CancelKind == task.KindJobBudget, "the one that runs was not asked: %v %q", t.CancelRequested, t.CancelKind)
		e.equal("its beat", e.a.beat(cs[1].Lease)[0], store.Beat{Cancel: task.KindJobBudget, Reason: t.CancelReason})
		e.equal("its end", e.finish(retry(cs[1], 0)), store.FinishResult{State: task.Cancelled, Job: task.JobFailed})
		e.spentEnd(twoOfTwo, g.id("runs"))
		g.used(3, 0, true)
		e.equal("the job", g.read().State, task.JobFailed)
	}},
	{"an attempt that succeeded stays a success", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "a", "b", "c", "d")
		cs := e.a.takeAll(g.all("a", "b", "c")...)
		e.finishOK(success(cs[0]), success(cs[1]))
		e.spentEnd(twoOfTwo, g.id("d"))
		e.finish(success(cs[2]))
		e.ended(g.id("c"), task.Succeeded, task.KindNone)
		g.counts(task.JobFailed, 4, 0, 0, 1, 3)
		g.used(3, 0, true)
	}},
	{"a job that needs just its total is not ended for it", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "a", "b: a", "alarm: !a !b")
		e.succeed(g.all("a", "b")...)
		g.counts(task.JobSucceeded, 3, 0, 0, 0, 2)
		g.used(2, 0, false)
		h := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b: a")
		e.fail(h.id("a"))
		e.ended(h.id("b"), task.Cancelled, task.KindDependencyFailed)
		h.used(1, 0, false)
	}},
	{"what has not begun when the total is used up ends, also what a failure would have started", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2}, "a", "b", "after: a", "alarm: !a", "then: alarm")
		e.succeed(g.id("b"))
		e.fail(g.id("a"))
		e.ended(g.id("a"), task.Failed, task.KindHandler)
		e.ended(g.id("after"), task.Cancelled, task.KindDependencyFailed)
		e.spentEnd(twoOfTwo, g.all("alarm", "then")...)
	}},
	{"attempts that do not count use nothing", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b: a")
		e.finish(released(e.a.take(g.id("a"))))
		e.finish(internalError(e.a.take(g.id("a")), 0))
		c := e.a.take(g.id("a"))
		e.record(sleep(c, "nap", 0))
		e.finish(suspend(c, e.now()))
		e.expire(e.a.take(g.id("a")))
		kids := e.decomposed(g.id("a"), task.JoinComplete, 1)
		g.used(0, 0, false)
		e.succeed(kids...)
		e.spentEnd([]string{"1 of 1 attempts"}, g.id("b"))
	}},
	{"children draw from the total, and have the limits of each task", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 2, MaxAttemptsPerTask: 2, MaxRepairs: 1, MaxNoProgress: 7}, "a")
		kids := e.decomposed(g.id("a"), task.JoinRerun, 3)
		t := e.task(kids[0])
		e.check(t.MaxAttempts == 2 && t.MaxRepairs == 1 && t.MaxNoProgress == 7, "the child's limits are %d, %d, %d", t.MaxAttempts, t.MaxRepairs, t.MaxNoProgress)
		e.succeed(kids[0])
		g.used(1, 0, false)
		e.finish(retry(e.a.take(kids[1]), 0))
		e.overruled(kids[1], twoOfTwo...)
		e.spentEnd(twoOfTwo, g.id("a"), kids[2])
		e.operate(raise(g.sub.Job.ID, 9, 0))
		e.finishChores()
		e.waitsFor(g.id("a"), 2)
		e.succeed(kids[1:]...)
		e.succeed(g.id("a"))
		g.counts(task.JobSucceeded, 4, 0, 0, 0, 4)
	}},
	{"a job without a total counts nothing", func(e *env) {
		g := e.budgeted(task.Budget{MaxAttemptsPerTask: 9}, "a")
		c := e.a.take(g.id("a"))
		e.record(spends(c, "s", 5))
		e.finish(retry(c, 0))
		g.used(0, 0, false)
		e.equal("the cost of the task", e.task(g.id("a")).Cost, int64(5))
	}},
	{"a task that was asked to end loses its lease", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, "a", "b")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finish(success(cs[0]))
		e.expire(cs[1])
		e.spentEnd([]string{"1 of 1 attempts"}, g.id("b"))
	}},
	{"many tasks of a job whose budget is used up end and come back", func(e *env) {
		g := e.budgeted(task.Budget{MaxTotalAttempts: 1}, append(fan("need", "d:"), "last: d0 *d1 !d2")...)
		e.succeed(g.id("need"))
		e.a.getsNothing()
		e.finishChores()
		g.counts(task.JobFailed, fanned+2, 0, 0, fanned+1, 1)
		e.spentEnd([]string{"1 of 1 attempts"}, g.all("d0", fmt.Sprint("d", fanned-1), "last")...)
		e.equal("the dispatch rows", len(e.snap().Dispatch), 0)
		e.operate(raise(g.sub.Job.ID, 10*fanned, 0))
		e.finishChores()
		g.counts(task.JobRunning, fanned+2, fanned+1, fanned, 0, 1)
		e.equal("RemainingDeps", e.is(g.id("last"), task.Pending, task.WaitDeps).RemainingDeps, 3)
	}},
	{"two that finish at once use no more than the total and what ran", func(e *env) {
		both := e.stores()
		for range e.batches(10) {
			g := e.budgeted(task.Budget{MaxTotalAttempts: 3}, "a", "b", "c", "d", "e")
			cs := e.a.takeAll(g.all("a", "b", "c", "d")...)
			ends := func(s store.Store, fs ...store.Finish) {
				for _, f := range fs {
					got, err := s.Finish(e.Context(), e.ns, f)
					e.check(err == nil && got[0].Err == nil, "Finish: %v, %v", got, err)
				}
			}
			e.together(
				func() { ends(both[0], retry(cs[0], time.Hour), retry(cs[1], time.Hour)) },
				func() { ends(both[1], retry(cs[2], time.Hour), success(cs[3])) },
			)
			e.finishChores()
			g.used(4, 0, true)
			e.spentEnd([]string{"3 of 3 attempts"}, g.id("e"))
			e.equal("what is left", g.read().Counters.Unfinished, 0)
		}
	}},
}

var budgetIdleCases = []testCase{
	{"attempts that record nothing new are counted", func(e *env) {
		id := e.one(attempts(100))
		ends := func(want int, end func(store.Claimed) store.Finish, idle bool) {
			e.Helper()
			f := end(e.a.take(id))
			f.Idle = idle
			e.finish(f)
			e.equal("IdleAttempts", e.task(id).IdleAttempts, want)
		}
		again := func(c store.Claimed) store.Finish { return retry(c, 0) }
		ends(1, again, true)
		ends(2, again, true)
		e.equal("what an attempt sees", e.a.take(id).Task.IdleAttempts, 2)
		e.reapExpired()
		e.equal("after a lost lease", e.task(id).IdleAttempts, 2)
		ends(2, released, true)
		ends(2, func(c store.Claimed) store.Finish { return internalError(c, 0) }, true)
		ends(3, func(c store.Claimed) store.Finish { return suspend(c, e.now()) }, true)
		ends(0, again, false)
		ends(1, again, true)
		ends(2, block, true)
		e.operate(unblockOf(id, `"go"`))
		e.equal("after an unblock", e.task(id).IdleAttempts, 0)
		ends(1, dead, true)
		e.operate(retryOf(id))
		e.equal("after a retry", e.task(id).IdleAttempts, 0)
		ends(1, again, true)
		ends(0, success, true)
	}},
	{"a task may be blocked for its budget", func(e *env) {
		id := e.one(func(n *task.New) { n.MaxNoProgress = 9 })
		c := e.a.take(id)
		e.equal("the limit", c.Task.MaxNoProgress, 9)
		f := block(c)
		f.Waiting = task.WaitRetry
		e.unchanged("blocked for something else", func() { e.check(e.finishAll(f)[0].Err != nil, "it was accepted") })
		f.Waiting = task.WaitBudget
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Blocked, Waiting: task.WaitBudget})
		e.is(id, task.Blocked, task.WaitBudget)
		e.operate(unblockOf(id, ""))
		e.succeed(id)
	}},
}
