package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var readCountCases = []testCase{
	{"tasks are counted in the state in which they read", func(e *env) {
		e.countsAs(map[task.State]int{})
		for _, st := range situations {
			s := &subject{queue: "count/" + st.name}
			st.reach(e, s)
		}
		e.many(2, after(time.Hour))
		e.many(3)
		want := map[task.State]int{}
		for _, t := range e.tasks(mapped(e.snap().Tasks, idOf)...) {
			want[t.State]++
		}
		e.check(len(want) == len(task.States()), "the tasks are %v, and not in every state", want)
		e.countsAs(want)
		e.in(otherNamespace).countsAs(map[task.State]int{})
	}},
	{"a cancelled task with open needs is not counted as pending", func(e *env) {
		g := e.job("a", "b: a", "c: a b")
		e.countsAs(map[task.State]int{task.Ready: 1, task.Pending: 2})
		e.operate(cancelOf(g.id("b")))
		e.countsAs(map[task.State]int{task.Ready: 1, task.Cancelled: 2})
	}},
	{"a task that waits for a time is counted once, whatever open edges it has", func(e *env) {
		g := e.job("a", "b", "alarm: !a !b")
		e.fail(g.id("a"))
		e.finish(retry(e.a.take(g.id("alarm")), time.Hour))
		e.countsAs(map[task.State]int{task.Ready: 1, task.Failed: 1, task.Pending: 1})
	}},
	{"a task that waits for its children is pending", func(e *env) {
		e.decomposed(e.one(), task.JoinRerun, 2)
		e.countsAs(map[task.State]int{task.Ready: 2, task.Pending: 1})
	}},
	{"what succeeded is counted, and tasks of types and queues in every state", func(e *env) {
		e.succeed(e.many(3)...)
		e.fail(e.one(typed(beta)))
		e.many(2, typed(beta), queue("x"), after(time.Hour))
		e.a.take(e.one(queue("x")))
		e.countsAs(map[task.State]int{task.Succeeded: 3, task.Failed: 1, task.Pending: 2, task.Running: 1})
		c := e.overview(store.OverviewCounts).Counts
		e.equal("the types", c.Types, map[string]store.Count{alpha: n(4), beta: n(3)})
		e.equal("the queues", c.Queues, map[string]store.Count{task.DefaultQueue: n(4), "x": n(3)})
		other := e.in(otherNamespace).overview(store.OverviewCounts).Counts
		e.check(len(other.Types)+len(other.Queues) == 0, "another namespace counts %+v", other)
	}},
	{"due tasks of a paused queue or type are counted as pending", func(e *env) {
		e.many(2, queue("x"))
		e.one(typed(beta))
		e.one(typed(beta), after(time.Hour))
		e.operate(pauseOf("x"))
		e.operate(pauseTypeOf(beta))
		e.countsAs(map[task.State]int{task.Pending: 4})
		e.operate(resumeTypeOf(beta))
		e.countsAs(map[task.State]int{task.Ready: 1, task.Pending: 3})
	}},
	{"an overview has the parts that were asked for", func(e *env) {
		e.one()
		for _, parts := range []store.OverviewParts{0, store.OverviewCounts, store.OverviewQueues, store.OverviewWorkers, everyPart} {
			o := e.overview(parts)
			e.near("At", o.At, e.now())
			for part, there := range map[store.OverviewParts]bool{store.OverviewCounts: o.Counts.States != nil, store.OverviewQueues: o.Queues != nil, store.OverviewWorkers: o.Workers != nil} {
				e.check(there == (parts&part != 0), "of the parts %b, part %b is there: %t", parts, part, there)
			}
		}
	}},
}

const everyPart = store.OverviewCounts | store.OverviewQueues | store.OverviewWorkers

// n returns an exact count.
func n(n int) store.Count { return store.CountOf(n) }

// overview reads parts of an overview.
func (e *env) overview(parts store.OverviewParts) store.Overview {
	e.Helper()
	o, err := e.s.Overview(e.Context(), e.ns, store.OverviewRequest{Parts: parts})
	e.require(err == nil, "Overview: %v", err)
	return o
}

// countsAs compares the counts per state.
func (e *env) countsAs(want map[task.State]int) {
	e.Helper()
	got := e.overview(store.OverviewCounts).Counts.States
	e.equal("the number of states", len(got), len(task.States()))
	for _, s := range task.States() {
		e.check(got[s] == n(want[s]), "%v tasks are counted as %s, want %d", got[s], s, want[s])
	}
}
