package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var reapEligibleCases = []testCase{
	{"R7 a worker that never joined warms up for a TTL first", func(e *env) {
		e.expiredLease()
		stranger := e.stranger("stranger")
		stranger.warmsUp()
		stranger.join(ttl)
		stranger.warmsUp()
		stranger.stay()
		e.pass(ttl - time.Millisecond)
		stranger.warmsUp()
		e.pass(time.Millisecond)
		stranger.reapsOne()
	}},
	{"R7 a worker whose heartbeats were interrupted warms up again", func(e *env) {
		w := e.worker("late")
		e.expiredLease() // w was silent meanwhile
		w.warmsUp()
		w.beat()
		w.warmsUp()
		w.stay()
		e.pass(ttl - time.Second)
		w.warmsUp()
		e.pass(2 * time.Second)
		w.reapsOne()
	}},
	{"R7 a missing heartbeat is an interruption", func(e *env) {
		// Heartbeats are due every TTL/3. A heartbeat after half a TTL is late; a longer gap means a missed
		// heartbeat.
		late, missed := e.worker("late"), e.worker("missed")
		late.stay()
		missed.stay()
		e.expiredLease()
		late.quiet()
		missed.quiet()
		e.pass(ttl / 2)
		late.beat()
		e.pass(time.Millisecond)
		missed.warmsUp() // the store may have been unreachable for this worker only
		missed.beat()
		missed.warmsUp()
		late.reapsOne()
	}},
	{"R7 an outage of less than a TTL takes no lease", func(e *env) {
		// The store becomes unreachable just after a renewal and returns when the leases have just expired. The first
		// worker to reap must not take them.
		c := e.a.take(e.one())
		e.reaper.beat()
		e.silence(ttl/3 - time.Millisecond)
		e.reaper.beat()
		e.silence(2*ttl/3 + 2*time.Millisecond)
		e.reaper.warmsUp()
		e.reaper.beat()
		e.reaper.warmsUp()
		e.equal("the heartbeat of the holder", e.a.beat(c.Lease), []store.Beat{{}})
		e.reapsNothing()
		e.finish(success(c))
	}},
	{"R7 a worker whose row was removed is back with its heartbeat and warms up", func(e *env) {
		lost := e.stranger("lost") // no row, as after a long silence
		e.expiredLease()
		lost.warmsUp()
		lost.beat()
		lost.warmsUp()
		lost.stay()
		e.pass(ttl + time.Second)
		lost.reapsOne()
	}},
	{"R7 joining again is a heartbeat", func(e *env) {
		again, beats := e.worker("again"), e.worker("beats")
		beats.stay()
		e.expiredLease()
		again.warmsUp()
		again.join(ttl) // after a gap
		again.warmsUp()
		beats.join(ttl) // without one
		beats.reapsOne()
	}},
	{"R7 deadlines and dead processes do not wait for the warm-up", func(e *env) {
		dead, silent := e.worker("dead"), e.worker("silent")
		ids := e.many(3)
		dead.take(ids[0])
		silent.take(ids[1])
		silent.take(e.one(expires(time.Second)))
		late := e.one(expires(time.Second))
		e.pass(ttl + ttl/3)
		known := dead.die()
		w := e.worker("newcomer")
		got := w.reap(store.ReapRequest{CrashBudget: 3})
		e.equal("WarmingUp", got.WarmingUp, true)
		e.equal("ended or asked to end by their deadline", len(got.Expired), 2)
		e.is(late, task.Cancelled, task.WaitNone)
		e.is(ids[1], task.Running, task.WaitNone)
		want := []store.Reaped{{Task: ids[0], State: task.Ready, Crash: true}}
		if !known {
			want = nil
		}
		e.equal("the reaped", got.Reaped, want)
	}},
	{"R7 a reap that warms up answers when it can be eligible", func(e *env) {
		e.expiredLease()
		w := e.worker("newcomer")
		next := func(want time.Duration) {
			e.Helper()
			got := w.reap(store.ReapRequest{CrashBudget: 3})
			e.check(got.WarmingUp && got.Next == want, "the reap answered %+v, want it warming up and Next = %v", got, want)
		}
		next(ttl)
		w.stay()
		e.pass(ttl / 3)
		next(ttl - ttl/3)
		id := e.one(expires(ttl / 3))
		next(ttl / 3)
		e.operate(cancelOf(id))
		w.quiet()
		e.pass(ttl/2 + time.Millisecond)
		next(ttl) // it was interrupted and must send heartbeats for a TTL from now on

		// One claim granted two leases: one expired, the other was renewed.
		cs := e.worker("half").takeAll(e.many(2)...)
		e.pass(ttl / 2)
		e.a.beat(cs[0].Lease)
		e.pass(ttl / 2)
		next(ttl / 2)
	}},
	{"R7 a reaper that warms up removes no worker", func(e *env) {
		w := e.worker("silent")
		e.pass(12 * ttl)
		e.worker("newcomer").reap(store.ReapRequest{CrashBudget: 3})
		w.showsCrash()
	}},
	{"R7 a worker's own TTL says when its row is removed", func(e *env) {
		w := e.worker("slow")
		w.join(4 * ttl)
		e.pass(12 * ttl) // three of its leases
		e.reap()
		w.showsCrash()
	}},
	{"a worker that left is not eligible, and its leases expire without a crash", func(e *env) {
		w := e.worker("leaver")
		kept, lost := e.one(), e.one()
		c := w.take(kept)
		w.take(lost)
		w.leave()
		e.finish(success(c))
		e.pass(ttl + ttl/3)
		w.warmsUp()
		// Leaving is not a crash.
		e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: lost, State: task.Ready}})
	}},
	{"a worker may leave twice, and without having joined, and removes no other", func(e *env) {
		w := e.worker("leaver")
		w.leave()
		w.leave()
		e.stranger("stranger").leave()
		e.expiredLease()
		e.equal("the number reaped after other workers left", len(e.reap().Reaped), 1)
		w.join(ttl)
		e.finish(success(w.take(e.one())))
	}},
}

// warmsUp expects a reap that warms up and changes nothing.
func (w *worker) warmsUp() {
	w.e.Helper()
	w.e.unchanged("a reap that warms up", func() {
		got := w.reap(store.ReapRequest{CrashBudget: 3})
		w.e.check(got.WarmingUp && len(got.Reaped) == 0 && len(got.Expired) == 0, "the reap of %s answered %+v, want only WarmingUp", w.name, got)
	})
}

// reapsOne expects a reap to take one lease.
func (w *worker) reapsOne() {
	w.e.Helper()
	got := w.reap(store.ReapRequest{CrashBudget: 3})
	w.e.check(!got.WarmingUp && len(got.Reaped) == 1, "the reap of %s answered %+v, want one lease", w.name, got)
}

// expiredLease returns a task whose lease has expired.
func (e *env) expiredLease() task.ID {
	e.Helper()
	id := e.one()
	e.worker("doomed").take(id)
	e.pass(ttl + ttl/3)
	return id
}
