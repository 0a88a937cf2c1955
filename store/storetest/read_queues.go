package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var readQueueCases = []testCase{
	{"a queue says since when its oldest due task is due", func(e *env) {
		e.one(queue("x"), after(time.Minute), priority(1))
		e.check(e.queueNamed("x").OldestDue.IsZero(), "nothing is due, and %+v", e.queueNamed("x"))
		e.pass(10 * time.Second)
		due := e.now()
		e.one(queue("x"), typed(beta))
		e.pass(2 * time.Minute)
		e.near("the oldest due", e.queueNamed("x").OldestDue, due)
		e.a.claim(types(map[string]int{beta: 1}))
		e.near("the oldest due, then", e.queueNamed("x").OldestDue, due.Add(50*time.Second))
	}},
	{"a queue counts what runs, also when nothing waits in it", func(e *env) {
		cs := e.a.takeAll(e.many(3, queue("x"))...)
		e.b.take(e.one(queue("x"), typed(beta)))
		e.equal("the queues", e.queueList(), map[string]store.Queue{"x": {Name: "x", Running: n(4)}})
		e.finish(success(cs[0]))
		e.finish(retry(cs[1], time.Hour))
		e.equal("the queues", e.queueList(), map[string]store.Queue{"x": {Name: "x", Running: n(2), Later: n(1)}})
	}},
	{"a queue says who paused it, when and why", func(e *env) {
		e.one(queue("x"))
		e.check(e.queueNamed("x").Pause == nil, "a pause of a queue that is not paused: %+v", e.queueNamed("x").Pause)
		at := e.now()
		e.operate(pauseOf("x"))
		e.pass(time.Second)
		e.operate(store.PauseQueue{Audit: store.Audit{By: "second"}, Queue: "x"})
		e.pausedBy("the queue", e.queueNamed("x").Pause, "pause", "x", at)
		e.operate(resumeOf("x"))
		e.check(e.queueNamed("x").Pause == nil && !e.queueNamed("x").Paused, "after the end of the pause: %+v", e.queueNamed("x"))
	}},
	{"a paused type says who paused it, and counts its tasks of all queues", func(e *env) {
		at := e.now()
		e.operate(pauseTypeOf(beta))
		e.a.getsNothing()
		e.many(2, typed(beta), queue("x"))
		e.one(typed(beta), queue("y"), after(time.Hour))
		e.one(queue("x"))
		list := e.overview(store.OverviewQueues).Queues
		e.require(len(list) == 3 && list[2].Type == beta, "the queues are %+v", list)
		e.equal("the type", depth(list[2]), store.Queue{Type: beta, Due: n(2), Later: n(1), Paused: true})
		e.near("its oldest due", list[2].OldestDue, at)
		e.pausedBy("the type", list[2].Pause, "pause_type", beta, at)
		e.equal("queue x", e.queueList()["x"], store.Queue{Name: "x", Due: n(3)})
		e.equal("of another namespace", len(e.in(otherNamespace).overview(store.OverviewQueues).Queues), 0)
	}},
	{"a queue and a type may have one name, and a queue any", func(e *env) {
		e.one(queue(beta))
		e.operate(pauseOf(beta))
		e.operate(pauseTypeOf(beta))
		got := mapped(e.overview(store.OverviewQueues).Queues, depth)
		e.equal("the queues", got, []store.Queue{{Name: beta, Due: n(1), Paused: true}, {Type: beta, Paused: true}})
	}},
	{"a task that waits for its key or is paused itself is not in its queue", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		e.one(key("k", 1))
		e.operate(pauseTaskOf(e.one()))
		e.b.getsNothing()
		e.equal("the queues", e.queueList(), map[string]store.Queue{task.DefaultQueue: {Name: task.DefaultQueue, Running: n(1)}})
		e.finish(success(c))
		e.equal("the queues", e.queueList(), map[string]store.Queue{task.DefaultQueue: {Name: task.DefaultQueue, Due: n(1)}})
	}},
}

// depth returns a queue without its times and its operators.
func depth(q store.Queue) store.Queue {
	q.OldestDue, q.Pause = time.Time{}, nil
	return q
}

// queueNamed reads one queue.
func (e *env) queueNamed(name string) store.Queue {
	e.Helper()
	for _, q := range e.overview(store.OverviewQueues).Queues {
		if q.Name == name {
			return q
		}
	}
	e.Fatalf("queue %q is not listed", name)
	return store.Queue{}
}

// queueList returns the depths of the queues by name.
func (e *env) queueList() map[string]store.Queue {
	e.Helper()
	list := e.overview(store.OverviewQueues).Queues
	byName := map[string]store.Queue{}
	for _, q := range list {
		byName[q.Name] = depth(q)
	}
	e.check(len(byName) == len(list), "a queue is listed twice: %v", list)
	return byName
}

// pausedBy checks the audit entry of a pause by the suite's operator.
func (e *env) pausedBy(what string, p *store.AuditEntry, verb, target string, at time.Time) {
	e.Helper()
	e.require(p != nil && p.Actor == admin.By && p.Reason == admin.Reason && p.Verb == verb && p.Target == target, "the pause of %s is %+v", what, p)
	e.near("the pause of "+what, p.At, at)
}
