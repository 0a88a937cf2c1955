package storetest

import (
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// boundedCases test operations that are too large for one transaction: they complete, and no reader sees them half
// done. A store may do them in one transaction.
var boundedCases = []testCase{
	{"many dependents of one need become ready", func(e *env) {
		g := e.job(fan("need", "d: need")...)
		e.succeed(g.id("need"))
		e.finishChores()
		g.counts(task.JobRunning, fanned+1, fanned, fanned, 0, 1)
		e.equal("the dispatch rows", len(e.snap().Dispatch), fanned)
	}},
	{"many dependents of a failed need end", func(e *env) {
		g := e.job(fan("need", "d: need")...)
		e.fail(g.id("need"))
		e.finishChores()
		g.counts(task.JobFailed, fanned+1, 0, 0, fanned+1, 0)
	}},
	{"what is not done yet is counted", func(e *env) {
		chores := func() int {
			o, err := e.s.Overview(e.Context(), e.ns, store.OverviewRequest{Parts: store.OverviewCounts})
			e.require(err == nil, "Overview: %v", err)
			return o.Counts.Chores.N
		}
		e.equal("the chores at first", chores(), 0)
		g := e.job(fan("need", "d: need")...)
		e.fail(g.id("need"))
		for n := chores(); e.reap().Chores; n = chores() {
			e.check(n > 0, "the reaper has chores, and the overview counts none")
		}
		e.equal("the chores at last", chores(), 0)
	}},
	{"a job is not blocked while its tasks are about to end", func(e *env) {
		g := e.job(fan("need", "d: need")...)
		e.fail(g.id("need"))
		list, _, err := e.s.Jobs(e.Context(), e.ns, store.JobFilter{})
		e.require(err == nil && len(list) == 1, "Jobs: %d, %v", len(list), err)
		for _, j := range []task.Job{g.read(), list[0]} {
			e.check(j.State != task.JobBlocked, "the job waits for a person")
		}
		e.finishChores()
		e.equal("its state then", g.read().State, task.JobFailed)
	}},
	{"a chain behind many dependents ends with them", func(e *env) {
		g := e.job(append(fan("need", "d: need"), fmt.Sprintf("last: d%d", fanned-1), "then: last", "after: *then")...)
		e.fail(g.id("need"))
		e.finishChores()
		e.ended(g.id("then"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("after"), task.Ready, task.WaitNone)
	}},
	{"a dependent is decided by all its needs that ended", func(e *env) {
		// Both edges are unmet. The edge that makes the job fail is the recorded reason, although the other need
		// ended last.
		g := e.job(append(fan("need", "d: need"), "other", "last: need !other")...)
		cs := e.a.takeAll(g.all("need", "other")...)
		e.finish(dead(cs[0]))
		e.finish(success(cs[1]))
		e.finishChores()
		e.ended(g.id("last"), task.Cancelled, task.KindDependencyFailed)
	}},
	{"a retry of the need before its dependents were decided", func(e *env) {
		g := e.job(fan("need", "d: need")...)
		e.fail(g.id("need"))
		e.operate(retryOf(g.id("need")))
		e.succeed(g.id("need"))
		e.finishChores()
		e.all(task.Ready, task.WaitNone, g.id("d0"), g.id(fmt.Sprint("d", fanned-1)))
		g.counts(task.JobRunning, fanned+1, fanned, fanned, 0, 1)
	}},
	{"a job of many tasks is cancelled", func(e *env) {
		// The needs are cancelled first. That must neither end the other tasks nor start them.
		g := e.job(append(fan("need", "d: need"), "any: *need", "runs", "failed: !need")...)
		c := e.a.take(g.id("runs"))
		res := e.operate(store.CancelJob{Audit: store.Audit{By: "ann", Reason: "why not"}, Job: g.sub.Job.ID})
		e.equal("the counts", res, store.CommandResult{Cancelled: fanned + 3, AskedTasks: 1})
		e.finishChores()
		for _, node := range []string{"need", "d0", fmt.Sprint("d", fanned-1), "any", "failed"} {
			t := e.ended(g.id(node), task.Cancelled, task.KindCancelled)
			e.check(t.CancelBy == "ann" && t.CancelReason == "why not", "%s was cancelled by %q, %q", node, t.CancelBy, t.CancelReason)
		}
		e.finish(cancelled(c))
		e.finishChores()
		e.equal("the job's state", g.read().State, task.JobCancelled)
	}},
	{"many dependents revive with a task", func(e *env) {
		g := e.job(append(fan("need", "d: need"), fmt.Sprintf("last: d%d", fanned-1))...)
		e.fail(g.id("need"))
		e.finishChores()
		e.operate(retryOf(g.id("need")))
		e.finishChores()
		g.counts(task.JobRunning, fanned+2, fanned+2, 1, 0, 0)
		e.equal("the dispatch rows", len(e.snap().Dispatch), 1)
		e.succeed(g.id("need"))
		e.finishChores()
		g.counts(task.JobRunning, fanned+2, fanned+1, fanned, 0, 1)
	}},
	{"many keys of a paused queue", func(e *env) { e.pauseWithManyKeys(queue("slow"), pauseOf("slow")) }},
	{"many keys of a paused type", func(e *env) { e.pauseWithManyKeys(typed(beta), pauseTypeOf(beta)) }},
}

// pauseWithManyKeys pauses a lane that has due rows of more keys than one transaction wakes. The waiters of another
// lane come after those rows.
func (e *env) pauseWithManyKeys(lane opt, pause store.Command) {
	e.Helper()
	const n = 150
	all := func(opts ...opt) {
		for i := range 2 * n {
			e.one(append(opts, key(fmt.Sprint("k", i%n), 2))...)
		}
	}
	all()
	held := e.a.claim(limit(2 * n)).Tasks
	all(lane)
	all()
	e.equal("the tasks claimed over the limits", len(e.a.claim(limit(4*n)).Tasks), 0)
	for _, c := range held {
		e.finish(success(c))
	}
	e.operate(pause)
	e.finishChores()
	e.equal("the tasks claimed", len(e.a.claim(limit(2*n)).Tasks), 2*n)
}

// fan returns the nodes of a job in which many nodes depend on one need. The names of the dependents begin with the
// part of dependent before its colon.
func fan(need, dependent string) []string {
	nodes := []string{need}
	for i := range fanned {
		nodes = append(nodes, fmt.Sprintf("%c%d%s", dependent[0], i, dependent[1:]))
	}
	return nodes
}

// finishChores runs the chores that operations left.
func (e *env) finishChores() {
	e.Helper()
	for n := 0; e.reap().Chores; n++ {
		e.require(n < 1000, "the chores do not end")
	}
}
