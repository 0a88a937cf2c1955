package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func schema(version int) opt { return func(n *task.New) { n.SchemaVersion = version } }

// reading sets the maximum schema versions that a worker reads.
func reading(versions map[string]int) ask {
	return func(r *store.ClaimRequest) { r.Schemas = versions }
}

var claimSchemaCases = []testCase{
	{"a claim leaves tasks of a newer schema than the worker reads", func(e *env) {
		one, two, three, other := e.one(schema(1)), e.one(schema(2)), e.one(schema(3)), e.one(typed(beta), schema(9))
		got := e.a.gets([]task.ID{one, two, other}, reading(map[string]int{alpha: 2}))
		e.equal("the version handed out", got[1].Task.SchemaVersion, 2)
		e.is(three, task.Ready, task.WaitNone)
		e.equal("dispatch rows of the newer task", len(e.dispatch(three)), 1)
		e.a.getsNothing(only(three), reading(map[string]int{alpha: 2}))
		e.b.gets([]task.ID{three}, reading(map[string]int{alpha: 3}))
	}},
	{"a worker is not asked to come back for what it cannot read", func(e *env) {
		e.one(schema(2))
		reads := reading(map[string]int{alpha: 1, beta: 1})
		got := e.a.claim(reads)
		e.check(len(got.Tasks) == 0 && got.Next < 0, "claimed %d tasks, and the next is due in %v", len(got.Tasks), got.Next)
		e.one(schema(1), after(5*time.Second))
		e.nearly("Next", e.a.claim(reads).Next, 5*time.Second)
		e.pass(5 * time.Second)
		e.equal("tasks claimed when the readable one is due", len(e.a.claim(reads).Tasks), 1)
	}},
	{"newer tasks do not hold back those behind them", func(e *env) {
		e.many(1200, schema(2))
		keyed := e.one(schema(2), key("k", 1))
		old := e.many(3)
		waiting := e.one(key("k", 1))
		reads := reading(map[string]int{alpha: 1})
		e.a.gets(old[:1], limit(1), reads)
		e.a.gets(append(slices.Clone(old[1:]), waiting), reads)
		e.is(keyed, task.Ready, task.WaitNone)
		e.operate(forceOf(waiting))
		e.b.take(keyed)
	}},
	{"a claim by ids leaves them where they are, also under a key that is full", func(e *env) {
		e.a.take(e.one(key("k", 1)))
		id := e.one(schema(2), key("k", 1))
		e.b.getsNothing(only(id), reading(map[string]int{alpha: 1}))
		e.equal("its dispatch rows", len(e.dispatch(id)), 1)
	}},
	{"a task that ran before is left as well", func(e *env) {
		id := e.one(schema(2), once("o"))
		e.finish(retry(e.a.take(id), 0))
		e.b.getsNothing(reading(map[string]int{alpha: 1}))
		e.b.gets([]task.ID{id}, reading(map[string]int{alpha: 2}))
	}},
}
