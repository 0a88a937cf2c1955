package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var workerScenes = []scene{
	{"R7 a worker that never joined may not reap", reapStranger},
	{"R7 a worker whose heartbeats were interrupted waits a TTL", reapInterrupted},
	{"R7 a steady worker may reap", reapSteady},
	{"R7 a forgotten worker is back with its heartbeat, and waits a TTL", backFromOblivion},
	{"a worker that joins again is steady", joinAgain},
	{"a worker that left may not reap, and its leases expire", leaveHolding},
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
		if !got.Paused || len(got.Reaped) != 0 || len(got.Expired) != 0 {
			w.e.Errorf("the reap of %s answered %+v, want only Paused", w.name, got)
		}
	})
}

// prey is a task with an expired lease and one past its deadline.
func (e *env) prey() {
	e.Helper()
	id := e.one()
	e.one(expires(time.Second))
	e.worker("doomed").take(id)
	e.pass(ttl + ttl/3)
}

func reapStranger(e *env) {
	e.prey()
	stranger := &worker{e: e, id: "stranger", name: "stranger"}
	stranger.mayNot()
	stranger.join()
	got := stranger.reap(store.ReapRequest{CrashBudget: 3})
	if got.Paused || len(got.Reaped) != 1 || len(got.Expired) != 1 {
		e.Errorf("the reap after Join answered %+v, want one of each", got)
	}
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
	if got := w.reap(store.ReapRequest{CrashBudget: 3}); got.Paused || len(got.Reaped) != 1 || len(got.Expired) != 1 {
		e.Errorf("the reap of a worker that is steady again answered %+v, want one of each", got)
	}
}

func backFromOblivion(e *env) {
	lost := &worker{e: e, id: "lost", name: "lost"} // no row, as after a long silence
	e.prey()
	lost.mayNot()
	lost.beat()
	lost.mayNot()
	lost.stay()
	e.pass(ttl + time.Second)
	if got := lost.reap(store.ReapRequest{CrashBudget: 3}); got.Paused || len(got.Reaped) != 1 || len(got.Expired) != 1 {
		e.Errorf("the reap of a worker that is back answered %+v, want one of each", got)
	}
}

func reapSteady(e *env) {
	w := e.worker("steady")
	w.stay()
	e.prey()
	if got := w.reap(store.ReapRequest{CrashBudget: 3}); got.Paused || len(got.Reaped) != 1 {
		e.Errorf("the reap of a steady worker answered %+v", got)
	}
}

func joinAgain(e *env) {
	w := e.worker("again")
	e.prey()
	w.mayNot()
	w.join()
	if got := w.reap(store.ReapRequest{CrashBudget: 3}); got.Paused {
		e.Errorf("a worker that joined again may not reap")
	}
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
	w.mayNot()
	e.finish(success(c))
	e.pass(ttl + ttl/3)
	reaped := e.reap().Reaped
	if len(reaped) != 1 || reaped[0].Task != lost || reaped[0].State != task.Ready {
		e.Errorf("reaped %v, want the task left behind", reaped)
	}
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
