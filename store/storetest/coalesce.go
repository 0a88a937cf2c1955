package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func coalesces(n *task.New) { n.Coalesce = true }

var coalesceCases = []testCase{
	{"a task with the concurrency key that has not started takes the input of the next one", func(e *env) {
		id := e.one(key("k", 1), input(`1`), coalesces, after(time.Hour))
		due := e.task(id).ReadyAt
		for i, raw := range []string{`2`, `"` + strings.Repeat("x", 5000) + `"`, `3`} {
			e.coalesced(id, key("k", 1), input(raw), priority(1), func(n *task.New) { n.SchemaVersion = i + 2 })
			t := e.task(id)
			e.check(string(t.Input) == raw && t.SchemaVersion == i+2 && t.Priority == task.DefaultPriority, "the task is %s", show(t))
			e.dueAt(id, due)
		}
		e.operate(runNowOf(id))
		c := e.a.take(id)
		e.equal("the input of the attempt", string(c.Task.Input), `3`)
		next := e.one(key("k", 1), coalesces)
		e.finish(success(c))
		e.succeed(next)
	}},
	{"one that waits for its key takes it, not one that runs or waits to be retried", func(e *env) {
		c := e.a.take(e.one(key("k", 2)))
		d := e.a.take(e.one(key("k", 2)))
		e.finish(retry(c, 0))
		waits := e.one(key("k", 2), input(`1`))
		e.b.claim(limit(0))
		e.coalesced(waits, key("k", 2), input(`2`))
		e.finish(success(d))
		e.equal("its input", string(e.task(waits).Input), `2`)
	}},
	{"an idempotency key decides by itself: what has started stays as it is", func(e *env) {
		id := e.one(once("o"), input(`1`))
		other := e.one(key("k", 1), input(`1`))
		e.coalesced(id, once("o"), key("k", 1), input(`2`))
		e.equal("the input of the one with the concurrency key", string(e.task(other).Input), `1`)
		c := e.a.take(id)
		e.existing(e.draft(once("o"), input(`3`), coalesces), id)
		e.equal("its input", string(e.task(id).Input), `2`)
		e.finish(success(c))
		e.existing(e.draft(once("o"), input(`3`), coalesces), id)
	}},
	{"tasks of another type, queue or job, and paused ones, are left alone", func(e *env) {
		e.one(key("k", 1), typed(beta))
		e.one(key("k", 1), queue("other"))
		paused := e.one(key("k", 1), once("o"))
		e.operate(pauseTaskOf(paused))
		g := e.graph("a")
		g.sub.Tasks[0].ConcurrencyKey, g.sub.Tasks[0].ConcurrencyLimit = "k", 1
		e.submit(g.sub)
		id := e.one(key("k", 1), coalesces)
		e.coalesced(id, key("k", 1), input(`2`))
		e.existing(e.draft(once("o"), input(`3`), coalesces), paused)
	}},
	{"of several the one that is due first takes it, also in one submission", func(e *env) {
		late := e.one(key("k", 9), after(time.Hour))
		first := e.one(key("k", 9))
		e.pass(time.Second)
		e.many(2, key("k", 9))
		e.coalesced(first, key("k", 9), input(`2`))
		e.equal("the input of the late one", string(e.task(late).Input), `{"n":1}`)
		a, b := e.draft(key("l", 1), coalesces), e.draft(key("l", 1), coalesces, input(`2`))
		got := e.submit(store.Submission{Tasks: []task.New{a, b}})
		e.check(got[0].Disposition == store.DispositionCreated && got[1] == store.Enqueued{ID: a.ID, Disposition: store.DispositionCoalesced}, "the answers are %+v", got)
		e.equal("the input", string(e.task(a.ID).Input), `2`)
	}},
	{"the same call again changes nothing", func(e *env) {
		n := e.draft(key("k", 1), coalesces)
		e.enqueue(n)
		e.unchanged("the same enqueue", func() {
			got, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}})
			e.require(err == nil && got[0] == store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated}, "Enqueue = %+v, %v", got, err)
		})
	}},
}

// coalesced enqueues a task and expects an existing task to take its input.
func (e *env) coalesced(id task.ID, opts ...opt) {
	e.Helper()
	n := e.draft(append(opts, coalesces)...)
	got, err := e.s.Enqueue(e.Context(), e.ns, nil, store.Submission{Tasks: []task.New{n}})
	e.require(err == nil && len(got) == 1 && got[0] == store.Enqueued{ID: id, Disposition: store.DispositionCoalesced}, "Enqueue = %+v, %v, want %v, coalesced", got, err, id)
	tasks, err := e.s.Tasks(e.Context(), e.ns, n.ID)
	e.check(err == nil && len(tasks) == 0, "the task was stored as well: %v, %v", tasks, err)
}
