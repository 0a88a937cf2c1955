package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var workerScenes = []scene{
	{"R7 a worker that never joined may not judge, and then waits a TTL", reapStranger},
	{"R7 a worker whose heartbeats were interrupted waits a TTL", reapInterrupted},
	{"R7 a heartbeat that is missing is an interruption", reapMissing},
	{"R7 an outage of less than a lease takes nobody's lease", shortOutage},
	{"R7 a steady worker may reap", reapSteady},
	{"R7 a forgotten worker is back with its heartbeat, and waits a TTL", backFromOblivion},
	{"R7 joining again is a heartbeat", joinAgain},
	{"R7 deadlines and the dead wait for nobody", pausedReap},
	{"R7 a paused reaper is told when to come again", pausedNext},
	{"R7 who may not judge forgets nobody", unsteadyForgets},
	{"R7 after how long a worker is forgotten is a matter of its own leases", slowIsRemembered},
	{"a worker that left may not judge, and its leases expire", leaveHolding},
	{"a process known to be dead is reaped at once, else by expiry", killed},
	{"a worker that joins after it was forgotten can be seen to die", killedAfterOblivion},
	{"the death of a worker that was forgotten and only beats again shows with its leases", killedUnwatched},
	{"leaving twice, and without having joined", leaveTwice},
}

// mayNot expects a reap to be paused and to do nothing.
func (w *worker) mayNot() {
	w.e.Helper()
	w.e.unchanged("a paused reap", func() {
		got := w.reap(store.ReapRequest{CrashBudget: 3})
		if !got.WarmingUp || len(got.Reaped) != 0 || len(got.Expired) != 0 {
			w.e.Errorf("the reap of %s answered %+v, want only Paused", w.name, got)
		}
	})
}

// may expects a reap to take one lease.
func (w *worker) may() {
	w.e.Helper()
	if got := w.reap(store.ReapRequest{CrashBudget: 3}); got.WarmingUp || len(got.Reaped) != 1 {
		w.e.Errorf("the reap of %s answered %+v, want one lease", w.name, got)
	}
}

// prey is a task whose lease has expired.
func (e *env) prey() task.ID {
	e.Helper()
	id := e.one()
	e.worker("doomed").take(id)
	e.pass(ttl + ttl/3)
	return id
}

func reapStranger(e *env) {
	e.prey()
	stranger := &worker{e: e, id: "stranger", name: "stranger"}
	stranger.mayNot()
	stranger.join()
	stranger.mayNot()
	stranger.stay()
	e.pass(ttl - time.Millisecond)
	stranger.mayNot()
	e.pass(time.Millisecond)
	stranger.may()
}

func reapInterrupted(e *env) {
	w := e.worker("late")
	e.prey() // w was silent meanwhile
	w.mayNot()
	w.beat()
	w.mayNot()
	w.stay()
	e.pass(ttl - time.Second)
	w.mayNot()
	e.pass(2 * time.Second)
	w.may()
}

// Beats come every TTL/3. One that comes after half a TTL is late; after that
// one was missed.
func reapMissing(e *env) {
	late, missed := e.worker("late"), e.worker("missed")
	late.stay()
	missed.stay()
	e.prey()
	late.quiet()
	missed.quiet()
	e.pass(ttl / 2)
	late.beat()
	e.pass(time.Millisecond)
	missed.mayNot() // it may have been away itself
	missed.beat()
	missed.mayNot()
	late.may()
}

// The store goes away just after a renewal and comes back when the leases have
// just expired. Whoever comes first may not take them.
func shortOutage(e *env) {
	c := e.a.take(e.one())
	e.keeper.beat()
	e.silence(ttl/3 - time.Millisecond)
	e.keeper.beat()
	e.silence(2*ttl/3 + 2*time.Millisecond)
	e.keeper.mayNot()
	e.keeper.beat()
	e.keeper.mayNot()
	e.equal("the beat of who holds it", e.a.beat(c.Lease), []store.Beat{{}})
	if got := e.keeper.reap(store.ReapRequest{CrashBudget: 3}); got.WarmingUp || len(got.Reaped) != 0 {
		e.Errorf("the reap with nothing to take answered %+v", got)
	}
	e.finish(success(c))
}

// remembered expects that the loss of a task shows as a crash, at once where
// death can be proven, which takes a row of the worker.
func (w *worker) remembered() {
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

func unsteadyForgets(e *env) {
	w := e.worker("silent")
	e.pass(12 * ttl)
	e.worker("newcomer").reap(store.ReapRequest{CrashBudget: 3})
	w.remembered()
}

func slowIsRemembered(e *env) {
	w := e.worker("slow")
	if err := e.s.Join(e.Context(), e.ns, store.WorkerInfo{ID: w.id, Name: w.name, TTL: 4 * ttl}); err != nil {
		e.Fatalf("Join: %v", err)
	}
	e.pass(12 * ttl) // three of its leases
	e.reap()
	w.remembered()
}

func backFromOblivion(e *env) {
	lost := &worker{e: e, id: "lost", name: "lost"} // no row, as after a long silence
	e.prey()
	lost.mayNot()
	lost.beat()
	lost.mayNot()
	lost.stay()
	e.pass(ttl + time.Second)
	lost.may()
}

func reapSteady(e *env) {
	w := e.worker("steady")
	w.stay()
	e.prey()
	w.may()
}

func joinAgain(e *env) {
	again, beats := e.worker("again"), e.worker("beats")
	beats.stay()
	e.prey()
	again.mayNot()
	again.join() // after a gap
	again.mayNot()
	beats.join() // without one
	beats.may()
}

func pausedReap(e *env) {
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
	e.equal("paused", got.WarmingUp, true)
	e.equal("ended or asked to end by their deadline", len(got.Expired), 2)
	e.is(late, task.Cancelled, task.WaitNone)
	e.is(ids[1], task.Running, task.WaitNone)
	want := []store.Reaped{{Task: ids[0], State: task.Ready, Crash: true}}
	if !known {
		want = nil
	}
	e.equal("the reaped", got.Reaped, want)
}

func pausedNext(e *env) {
	e.prey()
	w := e.worker("newcomer")
	next := func(want time.Duration) {
		e.Helper()
		if got := w.reap(store.ReapRequest{CrashBudget: 3}); !got.WarmingUp || got.Next != want {
			e.Errorf("the reap answered %+v, want it paused and Next = %v", got, want)
		}
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
	next(ttl) // it was interrupted, and has to beat for a TTL from now on

	// Of one claim, one lease is left and another was renewed.
	cs := e.worker("half").takeAll(e.many(2)...)
	e.pass(ttl / 2)
	e.a.beat(cs[0].Lease)
	e.pass(ttl / 2)
	next(ttl / 2)
}

func (w *worker) leave() {
	w.e.Helper()
	if err := w.e.s.Leave(w.e.Context(), w.e.ns, w.id); err != nil {
		w.e.Fatalf("Leave of %s: %v", w.name, err)
	}
}

func leaveHolding(e *env) {
	w := e.worker("leaver")
	kept, lost := e.one(), e.one()
	c := w.take(kept)
	w.take(lost)
	w.leave()
	e.finish(success(c))
	e.pass(ttl + ttl/3)
	w.mayNot()
	// Leaving is no crash.
	e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: lost, State: task.Ready}})
}

func killed(e *env) {
	dead, alive := e.worker("dead"), e.worker("alive")
	ids := e.many(3)
	dead.takeAll(ids[0], ids[1])
	c := alive.take(ids[2])
	if e.h.Kill != nil {
		e.h.Kill(e.T, e.s, dead.id)
	} else {
		e.pass(ttl - time.Second)
		alive.beat(c.Lease)
		e.pass(2 * time.Second)
	}
	reaped := e.reap().Reaped
	if len(reaped) != 2 {
		e.Fatalf("reaped %v, want the two of the dead process", reaped)
	}
	for _, r := range reaped {
		if r.Task == ids[2] || r.State != task.Ready || !r.Crash {
			e.Errorf("reaped %+v, want a crash of the dead process", r)
		}
	}
	e.equal("CrashCount", e.task(ids[0]).CrashCount, 1)
	e.equal("the number claimed again", len(e.b.claim().Tasks), 2)
	e.finish(success(c))
}

func killedAfterOblivion(e *env) {
	w := e.worker("sleeper")
	e.pass(40 * ttl)
	e.reap()
	w.join()
	id := e.one()
	c := w.take(id)
	if e.h.Kill == nil {
		e.expire(c)
		return
	}
	e.h.Kill(e.T, e.s, w.id)
	e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: true}})
}

// Its process is not watched any more, and nothing else must be made of that.
func killedUnwatched(e *env) {
	w := e.worker("sleeper")
	e.pass(40 * ttl)
	e.reap()
	w.beat()
	id := e.one()
	c := w.take(id)
	if e.h.Kill != nil {
		e.h.Kill(e.T, e.s, w.id)
	}
	e.equal("the reaped", len(e.reap().Reaped), 0)
	e.equal("the reaped when the lease has ended", e.expire(c), store.Reaped{Task: id, State: task.Ready, Crash: true})
}

func leaveTwice(e *env) {
	w := e.worker("leaver")
	w.leave()
	w.leave()
	(&worker{e: e, id: "stranger", name: "stranger"}).leave()
	w.join()
	e.finish(success(w.take(e.one())))
}
