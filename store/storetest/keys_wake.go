package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var keyWakeCases = []testCase{
	{"R-22 whatever ends a holder, the next one runs, never two", func(e *env) {
		for _, l := range holderEnds() {
			k := key(l.name, 1)
			holder := e.one(k)
			c := e.a.take(holder)
			e.pass(10 * time.Millisecond)
			next, last := e.one(k), e.one(k)
			e.b.getsNothing(only(next, last))
			e.pass(10 * time.Millisecond)
			l.do(e, c)
			if e.waits(next) {
				e.Errorf("%s: the next one still waits", l.name)
				continue
			}
			got := e.b.claim(only(holder, next, last)).Tasks
			if len(got) != 1 || got[0].Task.ID != next {
				e.Errorf("%s: %v were claimed after it, want the next one, %v", l.name, claimedIDs(got), next)
				continue
			}
			e.a.getsNothing(only(holder, next, last))
			e.finish(success(got[0]))
			e.operate(cancelOf(last))
		}
	}},
	{"R-22 a holder that returns queues again", func(e *env) {
		first, second := e.one(key("k", 1)), e.one(key("k", 1))
		c := e.a.take(first)
		e.b.getsNothing()
		e.pass(time.Second)
		e.finish(retry(c, time.Second))
		cb := e.b.gets([]task.ID{second})[0]
		e.pass(2 * time.Second)
		e.is(first, task.Ready, task.WaitNone)
		e.a.getsNothing()
		e.is(first, task.Pending, task.WaitConcurrency)
		e.finish(success(cb))
		e.a.gets([]task.ID{first})
	}},
	{"R-22 every order of claims and ends keeps the cap and drops no task", func(e *env) {
		// At most two holders, in every order of four operations.
		for round, order := range permutations("claim", "finish", "retry", "cancel waiter") {
			k := key(fmt.Sprint("k", round), 2)
			ids := e.many(5, k)
			running := e.a.takeAll(ids[:2]...)
			e.b.getsNothing(only(ids[2:]...))
			for _, op := range order {
				switch op {
				case "claim":
					running = append(running, e.b.claim(only(ids...)).Tasks...)
				case "finish":
					e.finish(success(running[0]))
					running = running[1:]
				case "retry":
					e.finish(retry(running[0], 0))
					running = running[1:]
				case "cancel waiter":
					if t := e.task(ids[4]); t.State != task.Running {
						e.operate(cancelOf(ids[4]))
					}
				}
				e.keyHeld(fmt.Sprint("k", round), len(running), 2)
				e.check(len(running) <= 2, "%v: after %s %d tasks run", order, op, len(running))
			}
			// Run the other tasks to their end.
			for range 6 {
				e.finishOK(finishes(running, success)...)
				running = e.a.claim(only(ids...)).Tasks
			}
			for _, t := range e.tasks(ids...) {
				e.check(t.State.Terminal(), "%v: task %v was dropped: %s/%s", order, t.ID, t.State, t.Waiting)
			}
		}
	}},
	{"a woken task that goes away unclaimed wakes the next", func(e *env) {
		away := map[string]func(id task.ID){
			"cancelled": func(id task.ID) { e.operate(cancelOf(id)) },
			"by force":  func(id task.ID) { e.operate(forceOf(id)) },
			"expired": func(id task.ID) {
				e.pass(ttl)
				e.reap()
				e.ended(id, task.Cancelled, task.KindDeadline)
			},
			"with its job": func(id task.ID) { e.operate(cancelJobOf(e.task(id).JobID)) },
		}
		for name, leave := range away {
			k := key(name, 1)
			c := e.a.take(e.one(k))
			g := e.graph("woken").with("woken", k, expires(2*time.Second)).submit()
			woken, next := g.id("woken"), e.one(k)
			e.b.getsNothing(only(woken, next))
			e.finish(success(c))
			e.is(woken, task.Ready, task.WaitNone)
			e.is(next, task.Pending, task.WaitConcurrency)
			leave(woken)
			e.equal(name+": the tasks claimed", claimedIDs(e.b.claim(only(next)).Tasks), []task.ID{next})
		}
	}},
	{"the last holder of one key takes nothing from another", func(e *env) {
		x, y := e.many(3, key("x", 1)), e.one(key("y", 1))
		cs := e.a.takeAll(x[0], y)
		e.b.getsNothing()
		e.finish(success(cs[0])) // x[1] is woken, and x has no holder
		e.finish(success(cs[1])) // y has neither holders nor waiters
		e.operate(cancelOf(x[1]))
		e.b.gets(x[2:])
	}},
	{"a woken task in a paused queue does not hold up the others", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		woken := e.one(key("k", 1), queue("slow"))
		next := e.one(key("k", 1))
		e.b.getsNothing()
		e.finish(success(c))
		e.is(woken, task.Ready, task.WaitNone)
		e.operate(pauseOf("slow"))
		cn := e.b.gets([]task.ID{next})[0]
		e.operate(resumeOf("slow"))
		e.a.getsNothing()
		e.finish(success(cn))
		e.succeed(woken)
	}},
	{"a waiter of a paused queue does not hold up the others", func(e *env) {
		holder := e.a.take(e.one(key("k", 1)))
		e.one(key("k", 1), queue("paused"))
		next := e.one(key("k", 1))
		e.b.getsNothing()
		e.operate(pauseOf("paused"))
		e.finish(success(holder))
		e.b.gets([]task.ID{next})
	}},
	{"a row of the future does not hold up a waiter", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		waiter := e.one(key("k", 1))
		e.b.getsNothing()
		tomorrow := e.one(key("k", 1), after(time.Minute))
		e.finish(success(c))
		e.is(tomorrow, task.Pending, task.WaitDelay)
		e.succeed(waiter)
	}},
	{"the waiter that was due first is woken first", func(e *env) {
		holder := e.a.take(e.one(key("k", 1)))
		later, sooner := e.one(key("k", 1), after(4*time.Second)), e.one(key("k", 1), after(2*time.Second))
		e.pass(3 * time.Second)
		e.b.getsNothing()
		e.pass(2 * time.Second)
		e.b.getsNothing()
		e.finish(success(holder))
		e.finish(success(e.b.gets([]task.ID{sooner})[0]))
		e.b.gets([]task.ID{later})
	}},
	{"a cancelled waiter is no waiter", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		gone, next := e.one(key("k", 1)), e.one(key("k", 1))
		e.b.getsNothing()
		e.operate(cancelOf(gone))
		e.ended(gone, task.Cancelled, task.KindCancelled)
		e.finish(success(c))
		e.b.gets([]task.ID{next})
	}},
	{"a freed place wakes one waiter, however often it is freed", func(e *env) {
		ids := e.many(5, key("k", 2))
		cs := e.a.gets(ids[:2])
		e.finish(success(cs[0]))
		// The second finish frees no place: the place is already promised.
		e.unchanged("the same finish again", func() { e.finish(success(cs[0])) })
		e.equal("the waiters", len(e.snap().Waiters), 2)
		e.finish(success(cs[1]))
		e.equal("the waiters", len(e.snap().Waiters), 1)
		e.b.gets(ids[2:4])
	}},
	{"a dependent does not overtake a waiter of its key", func(e *env) {
		g := e.graph("a", "b: a").with("a", key("k", 1)).with("b", key("k", 1), priority(1)).submit()
		c := e.a.take(g.id("a"))
		waiter := e.one(key("k", 1))
		e.b.getsNothing()
		e.finish(success(c))
		e.is(waiter, task.Ready, task.WaitNone)
	}},
	{"a cancelled task's place goes to the waiter before its dependent", func(e *env) {
		holder := e.one(key("k", 1))
		c := e.a.take(holder)
		g := e.graph("a", "b: *a").with("a", key("k", 1)).with("b", key("k", 1)).submit()
		waiter := e.one(key("k", 1))
		e.b.getsNothing()
		e.finish(success(c))
		e.is(g.id("a"), task.Ready, task.WaitNone)
		e.is(waiter, task.Pending, task.WaitConcurrency)
		e.operate(cancelOf(g.id("a")))
		e.is(waiter, task.Ready, task.WaitNone)
	}},
}

// holderEnd is an event that ends a holder's attempt.
type holderEnd struct {
	name string
	do   func(e *env, c store.Claimed)
}

// holderEnds lists every end of an attempt and every loss of a lease.
func holderEnds() []holderEnd {
	var out []holderEnd
	for _, o := range outcomes {
		out = append(out, holderEnd{o.name, func(e *env, c store.Claimed) { e.finish(o.end(c)) }})
	}
	return append(out,
		holderEnd{"reaped", func(e *env, c store.Claimed) { e.expire(c) }},
		holderEnd{"taken by force", func(e *env, c store.Claimed) { e.operate(forceOf(c.Task.ID)) }},
		holderEnd{"cancelled while running", func(e *env, c store.Claimed) {
			e.operate(cancelOf(c.Task.ID))
			e.finish(retry(c, 0))
		}},
	)
}
