package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// unserved is a type that the suite's workers do not claim by default.
const unserved = "acme.test.unserved.v1"

var everyType = map[string]int{alpha: 1, beta: 1, unserved: 1}

var keyLaneCases = []testCase{
	{"a due row of a type that no worker serves does not hold other types", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		stays := e.one(key("k", 1), typed(unserved))
		e.pass(time.Second)
		next := e.one(key("k", 1))
		e.b.getsNothing()
		e.finish(success(c))
		e.all(task.Ready, task.WaitNone, stays, next)
		e.b.gets([]task.ID{next})
	}},
	{"a waiter of a type that no worker serves any more does not hold other types", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		first := e.one(key("k", 1), typed(unserved))
		e.pass(time.Second)
		next, last := e.one(key("k", 1)), e.one(key("k", 1))
		e.b.getsNothing(types(everyType))
		e.all(task.Pending, task.WaitConcurrency, first, next, last)
		e.finish(success(c))
		e.finish(success(e.b.gets([]task.ID{next})[0]))
		e.finish(success(e.b.gets([]task.ID{last})[0]))
		e.b.gets([]task.ID{first}, types(everyType))
	}},
	{"a queue that no worker serves does not hold other queues", func(e *env) {
		c := e.a.take(e.one(key("k", 2)))
		d := e.a.take(e.one(key("k", 2)))
		e.many(3, key("k", 2), queue("unserved"))
		e.pass(time.Second)
		served := e.many(3, key("k", 2), queue("served"))
		e.b.getsNothing()
		e.finishAll(success(c), success(d))
		free := queues(map[string]int{"served": 9})
		for _, id := range served {
			e.finish(success(e.b.gets([]task.ID{id}, free)[0]))
		}
	}},
	{"each lane with waiters gets its oldest one, and those over the cap go back as old as they were", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		var oldest, rest []task.ID
		var due []time.Time
		for _, lane := range keyLanes {
			oldest = append(oldest, e.one(lane, key("k", 1)))
			due = append(due, e.now())
			e.pass(time.Second)
		}
		for _, lane := range keyLanes {
			rest = append(rest, e.one(lane, key("k", 1), priority(1)))
		}
		e.b.getsNothing()
		e.finish(success(c))
		e.all(task.Ready, task.WaitNone, oldest...)
		e.all(task.Pending, task.WaitConcurrency, rest...)
		e.b.gets(oldest[:1])
		e.all(task.Pending, task.WaitConcurrency, oldest[1:]...)
		for i, w := range e.snap().Waiters[:len(oldest)-1] {
			e.near("due_at", w.DueAt, due[i+1])
		}
	}},
	{"a due task whose rate is closed does not hold up waiters with another rate", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		closed := e.one(key("k", 1), rated("slow", 1, time.Hour, 1))
		e.command(store.Rest{Name: "rate:slow", For: time.Hour})
		e.pass(time.Second)
		open := e.one(key("k", 1), rated("fast", 100, time.Second, 100))
		e.b.getsNothing()
		e.all(task.Pending, task.WaitConcurrency, closed, open)
		e.finish(success(c))
		e.b.gets([]task.ID{open})
	}},
	{"a key with room for many wakes the oldest over all lanes", func(e *env) {
		cs := e.a.takeAll(e.many(4, key("k", 4))...)
		var ids []task.ID
		for range 2 {
			for _, lane := range keyLanes[:2] {
				ids = append(ids, e.one(lane, key("k", 4)))
				e.pass(time.Second)
			}
		}
		last := e.one(keyLanes[1], key("k", 4))
		e.b.getsNothing()
		e.finishAll(finishes(cs, success)...)
		e.all(task.Ready, task.WaitNone, ids...)
		e.all(task.Pending, task.WaitConcurrency, last)
		e.b.gets(ids)
	}},
	{"of a paused queue one waiter is woken, and the others leave their places", func(e *env) {
		cs := e.a.takeAll(e.many(3, key("k", 3))...)
		paused := e.many(4, key("k", 3), queue("paused"))
		e.pass(time.Second)
		next := e.many(4, key("k", 3))
		e.b.getsNothing()
		e.operate(pauseOf("paused"))
		e.finishAll(finishes(cs, success)...)
		e.all(task.Ready, task.WaitNone, next[:3]...)
		e.all(task.Pending, task.WaitConcurrency, next[3])
		e.all(task.Pending, task.WaitPaused, paused[0])
		e.all(task.Pending, task.WaitConcurrency, paused[1:]...)
		cs = e.b.gets(next[:3])
		e.operate(resumeOf("paused"))
		e.finishAll(finishes(cs, success)...)
		for len(paused) > 0 || len(next) > 3 {
			got := e.b.claim().Tasks
			e.require(len(got) > 0, "nothing is claimed, and %d of the paused queue wait", len(paused))
			paused, next = without(paused, got), without(next, got)
			e.finishAll(finishes(got, success)...)
		}
	}},
	{"due rows of a paused queue take no places", func(e *env) {
		cs := e.a.takeAll(e.many(3, key("k", 3))...)
		e.operate(pauseOf("paused"))
		e.many(2, key("k", 3), queue("paused"))
		e.pass(time.Second)
		next := e.many(3, key("k", 3))
		e.b.getsNothing()
		e.finishAll(finishes(cs, success)...)
		e.all(task.Ready, task.WaitNone, next...)
	}},
	{"a row of a paused queue that is woken does not hold its key when the pause is over", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		paused, next := e.one(key("k", 1), queue("paused")), e.one(key("k", 1))
		e.b.getsNothing()
		e.operate(pauseOf("paused"))
		e.finish(success(c))
		e.operate(resumeOf("paused"))
		e.finish(success(e.a.gets([]task.ID{paused})[0]))
		e.b.gets([]task.ID{next})
	}},
	{"a lane that is woken is not woken again", func(e *env) {
		cs := e.a.takeAll(e.many(2, key("k", 2))...)
		e.many(2, key("k", 2), typed(unserved))
		e.pass(time.Second)
		mine := e.many(3, key("k", 2))
		e.b.getsNothing()
		e.finish(success(cs[0])) // two rows without a worker are due: the lane gets one
		e.finish(success(cs[1]))
		e.equal("the waiters", len(e.snap().Waiters), 2)
		e.b.gets(mine[:1])
		e.b.gets(mine[1:2]) // the key still has room: the promised place was used
		e.b.getsNothing()
	}},
	{"a key with very many lanes wakes all of them", func(e *env) {
		const lanes = 1100
		c := e.a.take(e.one(key("k", 1)))
		var drafts []task.New
		for i := range lanes {
			drafts = append(drafts, e.draft(key("k", 1), queue(fmt.Sprint("q", i))))
		}
		ids := e.enqueue(drafts...)
		e.b.getsNothing(only(ids...), limit(2000))
		e.equal("the waiters", len(e.snap().Waiters), lanes)
		e.finish(success(c))
		e.finishChores()
		e.equal("the waiters", len(e.snap().Waiters), 0)
		e.b.gets(ids[lanes-1:], queues(map[string]int{fmt.Sprint("q", lanes-1): 1}))
	}},
	{"the due rows of a key are filled up to a thousand, and each claim fills them again", func(e *env) {
		low := e.a.take(e.one(key("k", 1)))
		ids := e.many(2500, key("k", 2500))
		e.b.getsNothing()
		e.finish(success(low))
		e.b.gets(ids[:1], limit(1)) // it raises the limit
		e.equal("due rows", len(e.snap().Dispatch), 1000)
		for ids = ids[1:]; len(ids) > 0; {
			got := e.b.claim(limit(1000))
			e.equal("the tasks claimed", len(got.Tasks), min(1000, len(ids)))
			ids = ids[len(got.Tasks):]
			e.check((got.Next == 0) == (len(ids) > 0), "with %d left Next is %v", len(ids), got.Next)
		}
	}},
	{"a history names what is due before a waiter of a key with room", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		stays := e.many(2, key("k", 1), typed(unserved))
		e.pass(time.Second)
		other := e.one(key("k", 1))
		e.b.getsNothing(types(everyType))
		h := e.history(stays[1])
		e.check(h.Ahead.IsZero() && len(h.Holders) == 1, "while the key is held the history has %v ahead and the holders %v", h.Ahead, h.Holders)
		e.finish(success(c))
		h = e.history(stays[1])
		e.check(h.Ahead == stays[0] && len(h.Holders) == 0, "while the key has room the history has %v ahead and the holders %v, want %v and none", h.Ahead, h.Holders, stays[0])
		for _, id := range []task.ID{stays[0], other} { // they no longer wait
			h := e.history(id)
			e.check(h.Ahead.IsZero() && len(h.Holders) == 0, "the history of a due task has %v ahead and the holders %v", h.Ahead, h.Holders)
		}
	}},
}

// keyLanes are lanes of one key that differ in queue, in type, or in both.
var keyLanes = []opt{
	func(n *task.New) { n.Queue = "x" },
	func(n *task.New) { n.Queue = "y" },
	func(n *task.New) { n.Queue, n.Type = "x", beta },
}

// without returns the ids that are not among the claimed tasks.
func without(ids []task.ID, claimed []store.Claimed) []task.ID {
	gone := map[task.ID]bool{}
	for _, c := range claimed {
		gone[c.Task.ID] = true
	}
	return of(ids, func(id task.ID) bool { return !gone[id] })
}
