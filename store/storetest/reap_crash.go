package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var reapCrashCases = []testCase{
	{"R7 a lease lost by a process that lives is no crash", func(e *env) {
		id := e.one()
		w := e.worker("forgetful")
		w.stay() // the process lives but does not renew this lease
		c := w.take(id)
		e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Ready})
		t := e.task(id)
		e.check(t.CrashCount == 0 && t.QuarantineLosses == 0 && t.Epoch == c.Lease.Epoch+1, "CrashCount = %d, QuarantineLosses = %d, Epoch = %d, want 0, 0, %d", t.CrashCount, t.QuarantineLosses, t.Epoch, c.Lease.Epoch+1)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeLeaseLost)
	}},
	{"R7 a loss that is no crash does not use up the budget", func(e *env) {
		id := e.one()
		e.crash(id, 2)
		w := e.worker("forgetful")
		w.stay() // it lives and still loses its lease
		w.take(id)
		e.pass(ttl + ttl/3)
		got := e.reapWith(2).Reaped
		e.check(len(got) == 1 && !got[0].Crash && got[0].State == task.Ready, "reaped %+v, want one that is ready again, and no crash", got)
	}},
	{"R7 a worker that was seen when its renewal was due is alive", func(e *env) {
		// A reap happens between two heartbeats. Only silence for more than half of the lease proves a missing
		// heartbeat.
		for _, c := range []struct {
			last  time.Duration // when it was last seen
			crash bool
		}{{2 * ttl / 3, false}, {ttl / 2, false}, {ttl/2 - time.Millisecond, true}, {ttl / 3, true}} {
			w := e.worker("forgetful")
			id := e.one()
			w.take(id)
			e.pass(c.last)
			w.beat() // it does not know of the lease
			e.pass(ttl - c.last)
			e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: c.crash}})
		}
	}},
	{"R7 a worker's own TTL says how long it may be silent", func(e *env) {
		const long = 4 * ttl
		w := e.worker("slow")
		w.join(long)
		e.worker("quick")
		id := e.one()
		e.equal("the number claimed", len(w.claim(claimTTL(long)).Tasks), 1)
		e.pass(long - ttl)
		w.beat()
		e.pass(ttl)
		e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready}})
	}},
	{"R7 a process known to be dead is reaped at once, else by expiry", func(e *env) {
		dead, alive := e.worker("dead"), e.worker("alive")
		ids := e.many(3)
		dead.takeAll(ids[0], ids[1])
		c := alive.take(ids[2])
		if !dead.die() {
			e.pass(ttl - time.Second)
			alive.beat(c.Lease)
			e.pass(2 * time.Second)
		}
		reaped := e.reap().Reaped
		slices.SortFunc(reaped, func(x, y store.Reaped) int { return x.Task.Compare(y.Task) })
		e.equal("the reaped", reaped, []store.Reaped{{Task: ids[0], State: task.Ready, Crash: true}, {Task: ids[1], State: task.Ready, Crash: true}})
		e.equal("CrashCount", e.task(ids[0]).CrashCount, 1)
		e.equal("the number claimed again", len(e.b.claim().Tasks), 2)
		e.finish(success(c))
	}},
	{"R7 a process known to be dead has crashed, however lately it was seen", func(e *env) {
		w := e.worker("doomed")
		w.stay()
		w.take(e.one())
		e.pass(ttl + ttl/3)
		w.quiet()
		known := w.die()
		got := e.reap().Reaped
		e.check(len(got) == 1 && got[0].Crash == known, "reaped %+v, want one with Crash %v", got, known)
	}},
	{"R7 a process that joined again is not dead", func(e *env) {
		w := e.worker("again")
		c := w.take(e.one())
		w.die()
		w.join(ttl)
		e.reapsNothing()
		e.finish(success(c))
	}},
	{"R7 a silent worker keeps its row while it holds leases", func(e *env) {
		w := e.worker("silent")
		id := e.one()
		w.claim(only(id), claimTTL(time.Hour))
		e.pass(15 * ttl)
		e.reap()
		e.is(id, task.Running, task.WaitNone)
		known := w.die()
		e.equal("reaped at once, if the process is known to be dead", len(e.reap().Reaped) == 1, known)
	}},
	{"R7 a dead worker keeps its row while leases of it are left", func(e *env) {
		w := e.worker("doomed")
		w.takeAll(e.many(3)...)
		known := w.die()
		for range 3 {
			got := e.reaper.reap(store.ReapRequest{CrashBudget: 3, Limit: 1}).Reaped
			e.equal("reaped at once, if the process is known to be dead", len(got) == 1, known)
		}
	}},
	{"R7 a worker that joins after its row was removed can be seen to die", func(e *env) {
		w := e.worker("sleeper")
		e.pass(40 * ttl)
		e.reap()
		w.join(ttl)
		w.showsCrash()
	}},
	{"R7 the death of a worker that only sent a heartbeat after its row was removed shows with its leases", func(e *env) {
		// The store no longer watches its process, which is no proof of death.
		w := e.worker("sleeper")
		e.pass(40 * ttl)
		e.reap()
		w.beat()
		id := e.one()
		c := w.take(id)
		w.die()
		if e.h.Alone {
			e.equal("the reaped", len(e.reap().Reaped), 1)
			return
		}
		e.equal("the reaped", len(e.reap().Reaped), 0)
		e.equal("the reaped when the lease has ended", e.expire(c), store.Reaped{Task: id, State: task.Ready, Crash: true})
	}},
	{"R-20 an outage of 2 × TTL, three times, poisons no task", func(e *env) {
		ids := e.many(4)
		cs := e.a.takeAll(ids...)
		a, b := leasesOf(cs[:2]), leasesOf(cs[2:])
		beats := func(w *worker, leases []task.Lease) {
			e.Helper()
			e.equal("the beats", w.beat(leases...), make([]store.Beat, len(leases)))
		}
		for range 3 {
			e.silence(2 * ttl)
			// The store is back. The first worker to reap must not take the leases of the others.
			e.reaper.warmsUp()
			e.reaper.beat()
			e.reaper.warmsUp()
			beats(e.a, a)
			e.pass(ttl / 3)
			beats(e.b, b)
			for range 4 {
				e.pass(ttl / 3)
				beats(e.a, a)
				beats(e.b, b)
			}
			e.equal("the reaped, whose workers live", len(e.reapWith(1).Reaped), 0)
		}
		for i, t := range e.tasks(ids...) {
			e.check(t.CrashCount == 0 && t.AttemptNo == 1, "CrashCount = %d, AttemptNo = %d, want 0 and 1", t.CrashCount, t.AttemptNo)
			e.finish(success(cs[i]))
		}
	}},
}

// showsCrash expects the loss of a task to be recorded as a crash. A store that detects dead processes needs the row
// of the worker and records it at once.
func (w *worker) showsCrash() {
	w.e.Helper()
	id := w.e.one()
	c := w.take(id)
	want := store.Reaped{Task: id, State: task.Ready, Crash: true}
	if w.die() {
		w.e.equal("the reaped", w.e.reap().Reaped, []store.Reaped{want})
		return
	}
	w.e.equal("the reaped when the lease has ended", w.e.expire(c), want)
}
