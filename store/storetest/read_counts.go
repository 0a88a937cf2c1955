package storetest

import (
	"time"

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
			if t.State != task.Succeeded {
				want[t.State]++
			}
		}
		e.check(len(want) == len(task.States())-1, "the tasks are %v, and not in every state", want)
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
	{"tasks that succeeded are not counted", func(e *env) {
		e.succeed(e.many(3)...)
		e.countsAs(map[task.State]int{})
	}},
}

// countsAs compares Counts with what is to be there.
func (e *env) countsAs(want map[task.State]int) {
	e.Helper()
	got, err := e.s.Counts(e.Context(), e.ns)
	e.require(err == nil, "Counts: %v", err)
	for _, s := range task.States() {
		_, counted := got[s]
		e.check(counted == (s != task.Succeeded), "%s is counted: %t", s, counted)
		e.check(got[s] == want[s], "%d tasks are counted as %s, want %d", got[s], s, want[s])
	}
}
