package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var keyCases = []testCase{
	{"one holder at a time, oldest first, drops no task", func(e *env) {
		var ids []task.ID
		for range 6 {
			ids = append(ids, e.one(key("k", 1)))
			e.pass(time.Second)
		}
		for i, id := range ids {
			c := e.a.gets([]task.ID{id})[0]
			e.b.getsNothing()
			e.keyHeld("k", 1, 1)
			e.all(task.Pending, task.WaitConcurrency, ids[i+1:]...)
			e.finish(success(c))
		}
		e.keyHeld("k", 0, 0)
		e.equal("the waiters", len(e.snap().Waiters), 0)
	}},
	{"a cap of n admits n holders", func(e *env) {
		ids := e.many(8, key("k", 3))
		running := e.a.gets(ids[:3])
		e.b.getsNothing()
		for i := 3; i < 8; i++ {
			e.finish(success(running[0]))
			running = append(running[1:], e.b.gets(ids[i:i+1])...)
			e.keyHeld("k", 3, 3)
		}
		e.finishOK(finishes(running, success)...)
	}},
	{"those over the cap wait with their original due time", func(e *env) {
		holder := e.one(key("k", 1))
		e.pass(time.Second)
		id := e.one(key("k", 1))
		due := e.now()
		e.pass(time.Second)
		c := e.a.gets([]task.ID{holder})[0]
		t := e.is(id, task.Pending, task.WaitConcurrency)
		e.near("ReadyAt", t.ReadyAt, due)
		e.notDispatched(id)
		w := e.snap().Waiters
		e.require(len(w) == 1 && w[0].Task == id && w[0].Key == "k", "the waiters are %v, want one", w)
		e.near("due_at", e.snap().Waiters[0].DueAt, due)
		e.pass(time.Second)
		e.finish(success(c))
		e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, due)
		e.equal("the waiters", len(e.snap().Waiters), 0)
	}},
	{"a key is held across types and queues", func(e *env) {
		x := e.one(key("k", 1), typed(alpha), queue("x"))
		e.pass(time.Second)
		y := e.one(key("k", 1), typed(beta), queue("y"), priority(1))
		c := e.a.gets([]task.ID{x}, queues(map[string]int{"x": 1}))[0]
		e.b.getsNothing(queues(map[string]int{"y": 1}))
		e.is(y, task.Pending, task.WaitConcurrency)
		e.finish(success(c))
		e.b.gets([]task.ID{y}, queues(map[string]int{"y": 1}))
	}},
	{"a claim of keyed and plain tasks takes all that may run", func(e *env) {
		keyed := e.many(3, key("k", 1))
		plain := e.many(3)
		got := map[task.ID]bool{}
		for range 10 {
			r := e.a.claim(limit(2))
			for _, c := range r.Tasks {
				got[c.Task.ID] = true
			}
			if r.Next != 0 {
				break
			}
		}
		for _, id := range append(plain, keyed[0]) {
			e.check(got[id], "task %v was not claimed though claims went on until nothing was due", id)
		}
		e.equal("the tasks claimed", len(got), 4)
	}},
	{"the cap of the task claimed last counts", func(e *env) {
		a, b, c, d := e.one(key("k", 3)), e.one(key("k", 3)), e.one(key("k", 1)), e.one(key("k", 3))
		ca, cb, cc := e.a.take(a), e.a.take(b), e.a.take(c)
		e.a.getsNothing(only(d))
		e.finish(success(ca))
		e.a.getsNothing()
		e.finish(success(cb))
		e.a.getsNothing()
		e.is(d, task.Pending, task.WaitConcurrency)
		e.finish(success(cc))
		e.a.gets([]task.ID{d})
		e.keyHeld("k", 1, 3)
	}},
	{"a raised cap wakes those it has room for", func(e *env) {
		first := e.one(key("k", 1))
		e.pass(time.Second)
		rest := e.many(4, key("k", 3))
		c := e.a.take(first)
		e.a.getsNothing()
		e.all(task.Pending, task.WaitConcurrency, rest...)
		e.finish(success(c))
		// The key admits one more task, whose cap then makes room for two others.
		e.a.gets(rest[:1], limit(1))
		e.a.gets(rest[1:3])
		e.is(rest[3], task.Pending, task.WaitConcurrency)
	}},
	{"a key without holders is free whatever its last cap", func(e *env) {
		e.succeed(e.one(key("k", 1)))
		wide := e.many(3, key("k", 2))
		e.a.gets(wide[:1], limit(1))
		e.a.gets(wide[1:2])
	}},
	{"a history names the holders", func(e *env) {
		ids := e.many(4, key("k", 2))
		e.a.gets(ids[:2])
		holders := e.history(ids[2]).Holders
		slices.SortFunc(holders, task.ID.Compare)
		e.equal("the holders", holders, ids[:2])
		e.equal("the holders before a running task", len(e.history(ids[0]).Holders), 0)
		e.equal("the holders before a task without a key", len(e.history(e.one()).Holders), 0)
	}},
	{"a dependent queues at its release", func(e *env) {
		g := e.graph("a", "b: a").with("b", key("k", 1)).submit()
		e.pass(time.Second)
		holder := e.one(key("k", 1))
		c := e.a.take(holder)
		e.succeed(g.id("a"))
		e.a.getsNothing()
		e.is(g.id("b"), task.Pending, task.WaitConcurrency)
		g.counts(task.JobRunning, 2, 1, 1, 0, 1)
		e.finish(success(c))
		e.a.gets([]task.ID{g.id("b")})
	}},
	{"a hint does not pass the key", func(e *env) {
		ids := e.many(2, key("k", 1))
		c := e.a.take(ids[1])
		e.b.getsNothing(only(ids[0]))
		e.b.getsNothing(only(ids[0]))
		e.finish(success(c))
		e.b.gets(ids[:1], only(ids...))
	}},
	{"one claim takes many keys", func(e *env) {
		const keys, each = 50, 3
		var drafts []task.New
		for i := range keys * each {
			drafts = append(drafts, e.draft(key(fmt.Sprintf("k%d", i%keys), 1)))
		}
		ids := e.enqueue(drafts...)
		for round := range each {
			fs := finishes(e.a.gets(ids[round*keys:(round+1)*keys]), success)
			e.b.getsNothing()
			e.finishAll(fs...)
		}
	}},
	{"a key without holders and waiters leaves no row", func(e *env) {
		x, y := e.one(key("k", 1)), e.one(key("k", 1))
		c := e.a.take(x)
		e.b.getsNothing()
		e.operate(cancelOf(y))
		e.finish(success(c))
		e.equal("rows of keys", len(e.snap().Keys), 0)
	}},
	{"the cap of a key with waiters is kept without holders, and that of others is not", func(e *env) {
		e.capKept(e.wokenWithCap("k"))
		ids := e.wokenWithCap("x")
		e.succeed(e.one(key("y", 1)))
		keys := mapped(e.snap().Keys, func(k store.KeyRow) string { return k.Key })
		e.equal("keys with a row", keys, []string{"k", "x"})
		e.capKept(ids)
	}},
	{"Next counts what a raised cap let in", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		waiter := e.one(key("k", 1))
		e.b.getsNothing()
		raises := e.one(key("k", 2))
		e.finish(success(c)) // the task that raises the cap is already due: no waiter is woken
		e.is(waiter, task.Pending, task.WaitConcurrency)
		got := e.a.claim()
		e.equal("the claimed", claimedIDs(got.Tasks), []task.ID{raises})
		e.equal("Next", got.Next, time.Duration(0))
		e.b.gets([]task.ID{waiter})
	}},
}

// keyHeld checks the holders and the limit of a key. A key without holders may be absent.
func (e *env) keyHeld(name string, held, limit int) {
	e.Helper()
	var got store.KeyRow
	for _, k := range of(e.snap().Keys, func(k store.KeyRow) bool { return k.Key == name }) {
		got = k
	}
	e.check(got.Held == held && (held == 0 || got.Cap == limit), "the key %s is held by %d of %d, want %d of %d", name, got.Held, got.Cap, held, limit)
}

// wokenWithCap returns three tasks of a key with a cap of two: two due tasks that do not run, and a waiter.
func (e *env) wokenWithCap(name string) []task.ID {
	e.Helper()
	ids := e.many(5, key(name, 2))
	cs := e.a.takeAll(ids[:2]...)
	e.b.getsNothing(only(ids...))
	e.finishAll(success(cs[0]), success(cs[1]))
	e.is(ids[2], task.Ready, task.WaitNone)
	e.is(ids[3], task.Ready, task.WaitNone)
	e.is(ids[4], task.Pending, task.WaitConcurrency)
	return ids[2:]
}

// capKept expects that the store still knows the cap: the waiter replaces a task that leaves, while the other stays
// due.
func (e *env) capKept(ids []task.ID) {
	e.Helper()
	e.operate(cancelOf(ids[0]))
	e.is(ids[2], task.Ready, task.WaitNone)
	e.b.takeAll(ids[1:]...)
}
