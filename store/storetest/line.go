package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func (e *env) line(id task.ID) *store.Line {
	o, err := e.s.Overview(e.Context(), e.ns, store.OverviewRequest{Parts: store.OverviewLine, Task: id})
	e.require(err == nil, "Overview: %v", err)
	return o.Line
}

var lineCases = []testCase{
	{"a due task has a place among the due tasks of its queue", func(e *env) {
		first := e.one(queue("q"))
		before := e.now()
		e.many(3, queue("q"))
		e.many(2, queue("q"), typed(beta))
		id := e.one(queue("q"))
		e.many(4, queue("q"))
		e.many(1, queue("q"), priority(1))
		e.many(1, queue("q"), priority(9))
		e.many(2, queue("other"))
		e.check(e.line(e.one(queue("q"), after(time.Hour))) == nil, "a task that is due later has a line")
		line := e.line(id)
		e.check(line != nil, "it has no line")
		e.equal("its type", line.Ahead, store.Count{N: 5})
		e.equal("its queue", line.Queue, store.Count{N: 7})
		e.check(!line.Since.After(before), "the first is due since %s, want at most %s", line.Since, before)
		e.equal("limits", len(line.Limits), 0)
		e.equal("the first", e.line(first).Ahead, store.Count{N: 1})

		e.operate(store.PauseType{Audit: admin, Type: beta})
		e.equal("without a paused type", e.line(id).Queue, store.Count{N: 5})
		e.equal("claimed", len(e.a.claim(limit(6)).Tasks), 6)
		e.check(e.line(id) == nil, "a running task has a line")
	}},
	{"groups that take turns are ahead by a turn for each task of the own group", func(e *env) {
		e.many(10, tenant("a"))
		e.many(2, tenant("b"))
		e.many(1, tenant("c"))
		id := e.one(tenant("b"))
		e.equal("ahead", e.line(id).Ahead, store.Count{N: 2 + 3 + 1})
	}},
	{"limits count the tasks ahead to which they apply", func(e *env) {
		e.operate(store.SetLimit{Name: "queue:q", Limit: store.Limit{Running: 2}})
		e.many(3, rated("k", 10, time.Second, 1), queue("q"))
		e.many(2, rated("l", 10, time.Second, 1), queue("q"))
		e.many(4, typed(beta), queue("q"))
		id := e.one(rated("k", 10, time.Second, 1), queue("q"))
		limits := e.line(id).Limits
		e.equal("limits", len(limits), 2)
		e.equal("the queue", limits[0].Ahead, store.Count{N: 3 + 2 + 4})
		e.equal("the key", limits[1].Ahead, store.Count{N: 3})
		e.equal("its rate", limits[1].Starts, 10)
	}},
}
