package storetest

import (
	"fmt"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var pauseCases = []testCase{
	{"a paused queue is left alone until it resumes", func(e *env) {
		paused, other := e.one(queue("slow"), priority(1)), e.one(queue("fast"))
		e.operate(pauseOf("slow"))
		later := e.one(queue("slow"))
		e.a.gets([]task.ID{other})
		e.a.getsNothing(only(paused, later))
		e.next(-1)
		e.all(task.Pending, task.WaitPaused, paused, later)
		e.operate(resumeOf("slow"))
		e.all(task.Ready, task.WaitNone, paused, later)
		e.a.gets([]task.ID{paused, later})
	}},
	{"a pause shows its actor and reason", func(e *env) {
		id := e.one(queue("slow"))
		e.operate(pauseOf("slow"))
		e.is(id, task.Pending, task.WaitPaused)
		p := e.history(id).QueuePause
		e.require(p != nil && p.Actor == admin.By && p.Reason == admin.Reason && p.Target == "slow", "the history says %+v about the pause", p)
		e.near("the pause", p.At, e.now())
		e.equal("the paused queues", e.snap().Paused, []string{"slow"})
		e.operate(resumeOf("slow"))
		e.is(id, task.Ready, task.WaitNone)
		e.check(e.history(id).QueuePause == nil, "the history still shows a pause")
		e.equal("the paused queues", len(e.snap().Paused), 0)
	}},
	{"pause and resume are idempotent, and the first pause stays on record", func(e *env) {
		id := e.one()
		for _, by := range []string{"first", "second"} {
			e.operate(store.PauseQueue{Audit: store.Audit{By: by}, Queue: task.DefaultQueue})
			e.is(id, task.Pending, task.WaitPaused)
			e.dueAt(id, e.now())
			e.equal("the actor on record", e.history(id).QueuePause.Actor, "first")
		}
		for range 2 {
			e.operate(resumeOf(task.DefaultQueue))
			e.is(id, task.Ready, task.WaitNone)
			e.dueAt(id, e.now())
		}
		e.operate(resumeOf("never seen"))
		e.succeed(id)
	}},
	{"a resume ends the pause of its queue only", func(e *env) {
		here, there := e.one(queue("here")), e.one(queue("there"))
		e.operate(pauseOf("here"))
		e.operate(pauseOf("there"))
		e.operate(resumeOf("here"))
		e.a.gets([]task.ID{here})
		e.is(there, task.Pending, task.WaitPaused)
	}},
	{"running tasks go on in a pause; those enqueued, retried and released into it wait", func(e *env) {
		g := e.job("a", "b: a")
		again, given := e.one(), e.one()
		cs := e.a.takeAll(g.id("a"), again, given)
		e.operate(pauseOf(task.DefaultQueue))
		fresh := e.one()
		e.equal("the heartbeat of a running task", e.a.beat(cs[0].Lease), []store.Beat{{}})
		e.record(step(cs[0], "s", `1`))
		e.finishAll(success(cs[0]), retry(cs[1], 0), released(cs[2]))
		e.all(task.Pending, task.WaitPaused, fresh, g.id("b"), again, given)
		e.a.getsNothing()
		e.operate(resumeOf(task.DefaultQueue))
		e.equal("the tasks claimed after the pause", len(e.a.claim().Tasks), 4)
	}},
	{"R-17 pause, claim and resume in every order leave one row or one lease", func(e *env) {
		ops := map[string]func(q string, id task.ID){
			"pause":  func(q string, _ task.ID) { e.operate(pauseOf(q)) },
			"resume": func(q string, _ task.ID) { e.operate(resumeOf(q)) },
			"claim":  func(_ string, id task.ID) { e.a.claim(only(id)) },
			"cancel": func(_ string, id task.ID) { e.operate(cancelOf(id)) },
		}
		orders := slices.Concat(permutations("pause", "claim", "resume"), permutations("pause", "claim", "resume", "cancel"))
		for _, order := range orders {
			e.oneRowOrLease(order, ops)
		}
	}},
}

// oneRowOrLease runs operations on a new task in a queue of its own.
func (e *env) oneRowOrLease(order []string, ops map[string]func(q string, id task.ID)) {
	e.Helper()
	q := fmt.Sprint(order)
	id := e.one(queue(q))
	for _, op := range order {
		ops[op](q, id)
		t := e.task(id)
		rows, want := len(e.dispatch(id)), 1
		if t.State == task.Running || t.State.Terminal() {
			want = 0
		}
		e.check(rows == want, "%v: after %s the task is %s with %d dispatch rows, want %d", order, op, t.State, rows, want)
	}
	e.operate(resumeOf(q))
	if t := e.task(id); t.State == task.Ready {
		e.a.take(id)
	}
}

// permutations returns every order of the given names.
func permutations(names ...string) [][]string {
	if len(names) == 0 {
		return [][]string{nil}
	}
	var out [][]string
	for i, first := range names {
		rest := append(append([]string(nil), names[:i]...), names[i+1:]...)
		for _, p := range permutations(rest...) {
			out = append(out, append([]string{first}, p...))
		}
	}
	return out
}
