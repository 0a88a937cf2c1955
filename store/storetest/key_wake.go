package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var keyWakeScenes = []scene{
	{"R-22 whatever takes the holder away, the next one runs, never two", nextRuns},
	{"R-22 a holder that comes back queues again", comesBack},
	{"a woken task that goes away unclaimed wakes the next", wokenGoesAway},
	{"the last holder of one key takes nothing from another", otherKeyStays},
	{"a woken task in a paused queue does not hold the others up", wokenIsPaused},
	{"a row of the future does not hold a waiter of today up", futureRow},
	{"a waiter that goes away is no waiter", waiterGoesAway},
	{"a waiter past its deadline ends", waiterPastDeadline},
	{"a batch that frees several keys wakes one each", batchWakes},
	{"a freed place wakes one, however often it is freed", oneWakePerPlace},
}

// leave is a way in which a holder leaves running.
type leave struct {
	name string
	do   func(e *env, c store.Claimed)
}

// leaves lists them all: every end of an attempt, and every loss of a lease.
func leaves() []leave {
	var out []leave
	for _, o := range outcomes {
		out = append(out, leave{o.name, func(e *env, c store.Claimed) { e.finish(o.end(c)) }})
	}
	return append(out,
		leave{"reaped", func(e *env, c store.Claimed) { e.expire(c) }},
		leave{"taken by force", func(e *env, c store.Claimed) { e.operate(forceOf(c.Task.ID)) }},
		leave{"cancelled while running", func(e *env, c store.Claimed) {
			e.operate(cancelOf(c.Task.ID))
			e.finish(retry(c, 0))
		}},
	)
}

func nextRuns(e *env) {
	for _, l := range leaves() {
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
}

func comesBack(e *env) {
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
}

func wokenGoesAway(e *env) {
	away := map[string]func(id task.ID){
		"cancelled": func(id task.ID) { e.operate(cancelOf(id)) },
		"by force":  func(id task.ID) { e.operate(forceOf(id)) },
		"expired": func(id task.ID) {
			e.pass(ttl)
			e.reap()
			e.ended(id, task.Cancelled, task.KindDeadline)
		},
		"with its job": func(id task.ID) { e.operate(store.CancelJob{Audit: admin, Job: e.task(id).JobID}) },
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
		if got := e.b.claim(only(next)).Tasks; len(got) != 1 {
			e.Errorf("%s: the next one was not woken", name)
		}
	}
}

func otherKeyStays(e *env) {
	x, y := e.many(3, key("x", 1)), e.one(key("y", 1))
	cs := e.a.takeAll(x[0], y)
	e.b.getsNothing()
	e.finish(success(cs[0])) // x[1] is woken, nobody holds x
	e.finish(success(cs[1])) // nobody needs y any more
	e.operate(cancelOf(x[1]))
	e.b.gets(x[2:])
}

func wokenIsPaused(e *env) {
	c := e.a.take(e.one(key("k", 1)))
	woken := e.one(key("k", 1), queue("slow"))
	next := e.one(key("k", 1))
	e.b.getsNothing()
	e.finish(success(c))
	e.is(woken, task.Ready, task.WaitNone)
	e.operate(store.PauseQueue{Audit: admin, Queue: "slow"})
	cn := e.b.gets([]task.ID{next})[0]
	e.operate(store.ResumeQueue{Audit: admin, Queue: "slow"})
	e.a.getsNothing()
	e.finish(success(cn))
	e.succeed(woken)
}

func futureRow(e *env) {
	c := e.a.take(e.one(key("k", 1)))
	waiter := e.one(key("k", 1))
	e.b.getsNothing()
	tomorrow := e.one(key("k", 1), after(time.Minute))
	e.finish(success(c))
	e.is(tomorrow, task.Pending, task.WaitDelay)
	e.succeed(waiter)
}

func waiterGoesAway(e *env) {
	c := e.a.take(e.one(key("k", 1)))
	gone, next := e.one(key("k", 1)), e.one(key("k", 1))
	e.b.getsNothing()
	e.operate(cancelOf(gone))
	e.ended(gone, task.Cancelled, task.KindCancelled)
	e.finish(success(c))
	e.b.gets([]task.ID{next})
}

func waiterPastDeadline(e *env) {
	c := e.a.take(e.one(key("k", 1)))
	late, next := e.one(key("k", 1), expires(2*time.Second)), e.one(key("k", 1))
	e.b.getsNothing()
	for range 3 {
		e.pass(time.Second)
		e.a.beat(c.Lease)
	}
	e.equal("the tasks ended", e.reap().Expired, []task.ID{late})
	e.ended(late, task.Cancelled, task.KindDeadline)
	e.finish(success(c))
	e.b.gets([]task.ID{next})
}

func batchWakes(e *env) {
	var first, rest []task.ID
	for _, name := range []string{"x", "y", "z"} {
		ids := e.many(3, key(name, 1))
		first, rest = append(first, ids[0]), append(rest, ids[1:]...)
	}
	cs := e.a.takeAll(first...)
	e.b.getsNothing()
	e.finishAll(success(cs[0]), retry(cs[1], time.Minute), dead(cs[2]))
	e.b.gets([]task.ID{rest[0], rest[2], rest[4]})
}

func oneWakePerPlace(e *env) {
	ids := e.many(5, key("k", 2))
	cs := e.a.gets(ids[:2])
	e.finish(success(cs[0]))
	// The second of these frees nothing: the place is already promised.
	e.unchanged("the same finish again", func() { e.finish(success(cs[0])) })
	e.equal("the waiters", len(e.snap().Waiters), 2)
	e.finish(success(cs[1]))
	e.equal("the waiters", len(e.snap().Waiters), 1)
	e.b.gets(ids[2:4])
}
