package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// batchScenes are about the moves of one call: what follows from them follows
// when all of them are made, so their order changes nothing (LEASES §3, §4).
var batchScenes = []scene{
	{"of two needs in one batch the one that should have succeeded counts", batchBlamesSuccess},
	{"of two needs of a kind in one batch the oldest is named", batchBlamesOldest},
	{"needs that ended in one batch are all counted, whatever comes of it", batchCountsAll},
	{"what ends by a batch ends those behind it", batchRounds},
	{"holders that come back in one batch queue behind the waiters", batchQueuesAgain},
	{"a dependent does not overtake who waits for its key", dependentWaits},
	{"a cancelled task's place goes to the waiter before its dependent", cancelledPlace},
	{"leases lost in one reap free their keys before they queue again", reapQueuesAgain},
	{"who ends for a need that a reap ended misses no deadline", reapNeedsFirst},
	{"tasks past their deadline in one reap all end for it", reapDeadlinesTogether},
	{"a later epoch does not make a report a new one", sameReportLaterEpoch},
	{"a report told again is answered with what it led to then", answeredAsThen},
}

// bothOrders plays a story for each order of two elements.
func bothOrders(play func(turn func(fs ...store.Finish) []store.Finish)) {
	play(func(fs ...store.Finish) []store.Finish { return fs })
	play(func(fs ...store.Finish) []store.Finish {
		slices.Reverse(fs)
		return fs
	})
}

func batchBlamesSuccess(e *env) {
	bothOrders(func(turn func(...store.Finish) []store.Finish) {
		g := e.job("a", "b", "c: a !b")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finishAll(turn(dead(cs[0]), success(cs[1]))...)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		g.counts(task.JobFailed, 3, 0, 0, 2, 1)
	})
	bothOrders(func(turn func(...store.Finish) []store.Finish) {
		g := e.job("b", "a", "c: a !b")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finishAll(turn(dead(cs[0]), success(cs[1]))...)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
	})
}

func batchBlamesOldest(e *env) {
	bothOrders(func(turn func(...store.Finish) []store.Finish) {
		g := e.job("a", "b", "c: b a", "d: !b !a")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finishAll(turn(dead(cs[0]), dead(cs[1]))...)
		t := e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.equal("the text", t.Error.Message, `it needs task "a" (`+g.id("a").String()+`), which ended failed`)
		e.is(g.id("d"), task.Ready, task.WaitNone)
	})
	bothOrders(func(turn func(...store.Finish) []store.Finish) {
		g := e.job("a", "b", "c: !b !a")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finishAll(turn(success(cs[0]), success(cs[1]))...)
		t := e.ended(g.id("c"), task.Cancelled, task.KindNotNeeded)
		e.equal("the text", t.Error.Message, `not needed: it runs if task "a" (`+g.id("a").String()+`) fails, which ended succeeded`)
	})
}

func batchCountsAll(e *env) {
	g := e.job("a", "b", "late", "c: a b late")
	cs := e.a.takeAll(g.all("a", "b")...)
	e.finishAll(success(cs[0]), dead(cs[1]))
	e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
	e.equal("RemainingDeps", e.task(g.id("c")).RemainingDeps, 1)
	done := 0
	for _, row := range e.snap().Edges {
		if row.Done {
			done++
		}
	}
	e.equal("the edges that are done", done, 2)
}

func batchRounds(e *env) {
	// c hears of b, which ends because of a, a round after it heard of x.
	g := e.job("a", "x", "b: a", "c: b x", "d: *c")
	cs := e.a.takeAll(g.all("a", "x")...)
	e.finishAll(dead(cs[0]), success(cs[1]))
	e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
	e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
	e.is(g.id("d"), task.Ready, task.WaitNone)
	g.counts(task.JobRunning, 5, 1, 1, 3, 1)
}

func batchQueuesAgain(e *env) {
	ids := e.many(2, key("k", 2))
	cs := e.a.gets(ids)
	e.pass(time.Second)
	waiters := e.many(2, key("k", 2))
	e.b.getsNothing()
	e.pass(time.Second)
	e.finishAll(released(cs[0]), retry(cs[1], 0))
	e.all(task.Ready, task.WaitNone, waiters...)
	e.b.gets(waiters)
	e.a.getsNothing()
}

func dependentWaits(e *env) {
	g := e.graph("a", "b: a").with("a", key("k", 1)).with("b", key("k", 1), priority(1)).submit()
	c := e.a.take(g.id("a"))
	waiter := e.one(key("k", 1))
	e.b.getsNothing()
	e.finish(success(c))
	e.is(waiter, task.Ready, task.WaitNone)
}

func cancelledPlace(e *env) {
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
}

func reapQueuesAgain(e *env) {
	ids := e.many(2, key("k", 2))
	e.a.gets(ids)
	e.pass(time.Second)
	waiters := e.many(2, key("k", 2))
	e.b.getsNothing()
	e.pass(ttl)
	e.equal("the leases taken", len(e.reap().Reaped), 2)
	e.all(task.Ready, task.WaitNone, waiters...)
	e.b.gets(waiters)
	e.a.getsNothing()
}

func reapNeedsFirst(e *env) {
	g := e.graph("a", "b: a")
	g.sub.Job.Budget.MaxDuration = 4 * time.Second
	g.submit()
	e.a.take(g.id("a"))
	e.pass(5 * time.Second)
	res := e.reap()
	e.equal("the leases taken", len(res.Reaped), 1)
	e.equal("the tasks past their deadline", len(res.Expired), 0)
	e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
	e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
	if res.Next >= 0 {
		e.Errorf("Next is %v, and nothing is left that could expire", res.Next)
	}
}

func reapDeadlinesTogether(e *env) {
	g := e.graph("a", "b: a", "c: !b").with("a", expires(time.Second)).with("b", expires(2*time.Second)).submit()
	e.pass(3 * time.Second)
	res := e.reap()
	e.equal("the tasks past their deadline", len(res.Expired), 2)
	e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
	e.ended(g.id("b"), task.Cancelled, task.KindDeadline)
	e.ended(g.id("c"), task.Cancelled, task.KindNotNeeded)
}

// R8 compares the task and the lease id: an epoch that its holder tells wrongly
// is refused while the lease stands, and does not matter once it has ended.
func sameReportLaterEpoch(e *env) {
	c := e.a.take(e.one())
	f := success(c)
	f.Lease.Epoch++
	e.refused(f, store.ErrLeaseLost)
	f.Lease.Epoch--
	want := e.finish(f)
	f.Lease.Epoch++
	e.equal("the same report once more", e.finish(f), want)
}

// The engine tells listeners what it is answered, so a failed attempt whose
// answer was lost must not be told as the success of the next one.
func answeredAsThen(e *env) {
	ends := map[string]func(c store.Claimed) store.Finish{
		"retried":  func(c store.Claimed) store.Finish { return retry(c, time.Second) },
		"at once":  func(c store.Claimed) store.Finish { return retry(c, 0) },
		"released": released,
		"asleep":   func(c store.Claimed) store.Finish { return suspend(c, e.now().Add(time.Second)) },
		"awake":    func(c store.Claimed) store.Finish { return suspend(c, e.now()) },
	}
	for name, end := range ends {
		id := e.one()
		f := end(e.a.take(id))
		want := e.finish(f)
		e.pass(2 * time.Second)
		e.succeed(id)
		e.equal(name+": the answer to the report once more", e.finish(f), want)
	}
	c := e.a.take(e.one())
	e.operate(cancelOf(c.Task.ID))
	want := e.finish(dead(c))
	e.equal("the answer of one that was cancelled", want.State, task.Cancelled)
	e.operate(retryOf(c.Task.ID))
	e.equal("the answer once more", e.finish(dead(c)), want)
}
