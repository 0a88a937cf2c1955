package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// countJobCases test the task counts of a job.
var countJobCases = []testCase{
	{"the tasks of a job are counted as they read", func(e *env) {
		g := e.graph("a", "b", "c: a b", "d", "e", "f", "h", "i", "j: d").
			with("e", after(time.Hour)).with("f", key("k", 1)).with("h", key("k", 1)).with("i", queue("slow")).with("d", typed(beta)).submit()
		e.one()
		e.operate(store.PauseQueue{Queue: "slow"})
		e.a.claim(only(g.all("f", "h")...)) // one of them waits for the key
		e.succeed(g.id("a"))
		e.finish(retry(e.a.take(g.id("b")), time.Minute))
		got := e.countJob(g)
		e.equal("ready", got.States[task.Ready], 1)
		e.equal("running", got.States[task.Running], 1)
		e.equal("pending", got.States[task.Pending], 6)
		e.equal("succeeded", got.States[task.Succeeded], 1)
		e.equal("the reasons", got.Waiting, map[task.Waiting]int{task.WaitDeps: 2, task.WaitRetry: 1, task.WaitDelay: 1, task.WaitConcurrency: 1, task.WaitPaused: 1})
		e.near("the next due", got.NextDue, e.now().Add(time.Minute))
		e.equal("the lanes", got.Lanes, []store.LaneCount{{Queue: e.task(g.id("d")).Queue, Type: beta, Ready: 1}})

		e.blockTask(g.id("d"))
		e.operate(cancelOf(g.id("e")))
		e.pass(2 * time.Minute)
		got = e.countJob(g)
		e.equal("blocked", got.States[task.Blocked], 1)
		e.equal("for a person", got.Waiting[task.WaitManual], 1)
		e.equal("cancelled", got.States[task.Cancelled], 1)
		e.equal("ready since", got.States[task.Ready], 1)
		e.check(got.NextDue.IsZero(), "the next due is at %v", got.NextDue)
	}},
	{"children count as tasks of the job, and no job has no tasks", func(e *env) {
		g := e.job("a")
		e.decomposed(g.id("a"), task.JoinRerun, 3)
		got := e.countJob(g)
		e.equal("ready", got.States[task.Ready], 3)
		e.equal("waiting", got.Waiting, map[task.Waiting]int{task.WaitChildren: 1})
		for _, id := range []task.ID{e.newID(), {}} {
			none, err := e.overviewJob(e.ns, id)
			e.check(err == nil && len(none.States) == 0, "no job: %+v, %v", none, err)
		}
		none, err := e.overviewJob(otherNamespace, g.sub.Job.ID)
		e.check(err == nil && len(none.States) == 0, "in another namespace: %+v, %v", none, err)
	}},
}

// countJob returns the counts of a job's tasks, compared with the tasks one by one.
func (e *env) countJob(g *graph) store.JobCounts {
	e.Helper()
	got, err := e.overviewJob(e.ns, g.sub.Job.ID)
	e.require(err == nil, "Overview of a job: %v", err)
	var want store.JobCounts
	list, _, err := e.s.List(e.Context(), e.ns, store.Filter{Job: g.sub.Job.ID, Limit: store.MaxLimit})
	e.require(err == nil, "List: %v", err)
	for i := range list {
		want.Add(&list[i], 1)
	}
	want.Sort()
	e.equal("the counts", got, want)
	return got
}

func (e *env) overviewJob(ns string, id task.ID) (store.JobCounts, error) {
	o, err := e.s.Overview(e.Context(), ns, store.OverviewRequest{Parts: store.OverviewJob, Job: id})
	return o.Job, err
}
