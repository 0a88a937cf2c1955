package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
)

var lineCases = []testCase{
	{"the history of a due task has its place among the due tasks of its queue", func(e *env) {
		first := e.one(queue("q"))
		before := e.now()
		e.many(3, queue("q"))
		e.many(2, queue("q"), typed(beta))
		id := e.one(queue("q"))
		e.many(4, queue("q"))
		e.many(1, queue("q"), priority(1))
		e.many(1, queue("q"), priority(9))
		e.many(2, queue("other"))
		e.one(queue("q"), after(time.Hour))
		line := e.history(id).Line
		e.check(line != nil, "it has no line")
		e.equal("its type", line.Ahead, store.Count{N: 5})
		e.equal("its queue", line.Queue, store.Count{N: 7})
		e.check(!line.Since.After(before), "the first is due since %s, want at most %s", line.Since, before)
		e.equal("limits", len(line.Limits), 0)
		e.equal("the first", e.history(first).Line.Ahead, store.Count{N: 1})

		e.operate(store.PauseType{Audit: admin, Type: beta})
		e.equal("without a paused type", e.history(id).Line.Queue, store.Count{N: 5})
		e.equal("claimed", len(e.a.claim(limit(6)).Tasks), 6)
		e.check(e.history(id).Line == nil, "a running task has a line")
	}},
	{"groups that take turns are ahead by a turn for each task of the own group", func(e *env) {
		e.many(10, tenant("a"))
		e.many(2, tenant("b"))
		e.many(1, tenant("c"))
		id := e.one(tenant("b"))
		e.equal("ahead", e.history(id).Line.Ahead, store.Count{N: 2 + 3 + 1})
	}},
	{"limits count the tasks ahead to which they apply", func(e *env) {
		e.operate(store.SetLimit{Name: "queue:q", Limit: store.Limit{Running: 2}})
		e.many(3, rated("k", 10, time.Second, 1), queue("q"))
		e.many(2, rated("l", 10, time.Second, 1), queue("q"))
		e.many(4, typed(beta), queue("q"))
		id := e.one(rated("k", 10, time.Second, 1), queue("q"))
		limits := e.history(id).Line.Limits
		e.equal("limits", len(limits), 2)
		e.equal("the queue", limits[0].Ahead, store.Count{N: 3 + 2 + 4})
		e.equal("the key", limits[1].Ahead, store.Count{N: 3})
		e.equal("its rate", limits[1].Starts, 10)
	}},
}
