package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishGuardScenes = []scene{
	{"R2 a lease is refused when any part of it differs", leaseParts},
	{"R-03 finish after expiry, before reap: accepted", finishAfterExpiry},
	{"R-04 finish after reap, before the next claim: the lease is lost", finishAfterReap},
	{"R-05 A finishes after B claimed: the lease is lost, B untouched", finishAfterClaim},
	{"R-06 the same process claims again, its older goroutine finishes", olderGoroutine},
	{"R-07 finish, reply lost, finish again: success once", finishAgain},
	{"R-07 finish again after others went on: success, nothing written", finishAgainLater},
	{"R-08 A fails after B succeeded: the lease is lost", failAfterSuccess},
	{"R8 the same lease with another outcome is a conflict", otherOutcome},
	{"R8 two elements for one task in a batch", twiceInBatch},
	{"R8 a lease taken by force is lost, not in conflict", forcedAway},
	{"R-12 restored to before the claim: another generation", restoredAway},
	{"R-12 a finish tried again after a restore: another generation", restoredAfterFinish},
	{"R2 one loser does not cost the winners", oneLoser},
	{"a finish of an unknown task", finishUnknown},
}

// everyEnd calls fn with one finish of each kind.
func everyEnd(c store.Claimed, fn func(store.Finish)) {
	for _, o := range outcomes {
		fn(o.end(c))
	}
}

func leaseParts(e *env) {
	g := e.job("a", "b: a", "c: a")
	for _, id := range []task.ID{e.one(), e.one(key("k", 1)), g.id("a"), e.one(expires(time.Minute))} {
		e.guarded(e.a.take(id))
	}
}

// guarded tries every write with leases that resemble the given one.
func (e *env) guarded(c store.Claimed) {
	e.Helper()
	wrong := map[string]func(*task.Lease){
		"another lease id":   func(l *task.Lease) { l.ID = task.NewLeaseID() },
		"no lease id":        func(l *task.Lease) { l.ID = task.LeaseID{} },
		"an older epoch":     func(l *task.Lease) { l.Epoch-- },
		"a newer epoch":      func(l *task.Lease) { l.Epoch++ },
		"another generation": func(l *task.Lease) { l.Generation += "x" },
		"no generation":      func(l *task.Lease) { l.Generation = "" },
	}
	for what, change := range wrong {
		forged := c
		change(&forged.Lease)
		e.unchanged("a lease with "+what, func() {
			everyEnd(forged, func(f store.Finish) {
				e.wantErr("Finish under "+what, e.finishAll(f)[0].Err, store.ErrLeaseLost)
			})
			for _, r := range e.kinds(forged) {
				e.wantErr("Record under "+what, e.recordAll(r)[0].Err, store.ErrLeaseLost)
			}
		})
	}
	waiting := e.one()
	empty := store.Claimed{Lease: task.Lease{Task: waiting, Epoch: e.task(waiting).Epoch, Generation: c.Lease.Generation}}
	e.refused(success(empty), store.ErrLeaseLost)
	e.finish(success(c))
}

func finishAfterExpiry(e *env) {
	c := e.a.take(e.one())
	e.pass(2 * ttl)
	e.record(step(c, "s", `1`))
	e.finish(success(c))
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %v after its end", got)
	}
	e.ended(c.Task.ID, task.Succeeded, task.KindNone)
}

func finishAfterReap(e *env) {
	c := e.a.take(e.one())
	e.expire(c)
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	e.is(c.Task.ID, task.Ready, task.WaitNone)
}

func finishAfterClaim(e *env) {
	c := e.a.take(e.one())
	e.expire(c)
	b := e.b.take(c.Task.ID)
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	t := e.is(c.Task.ID, task.Running, task.WaitNone)
	e.equal("the holder", t.LeasedBy, "B")
	e.finish(success(b))
}

func olderGoroutine(e *env) {
	c := e.a.take(e.one())
	e.expire(c)
	again := e.a.take(c.Task.ID)
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	e.record(step(again, "s", `1`))
	e.finish(success(again))
}

func finishAgain(e *env) {
	for _, o := range outcomes {
		g := e.job("a", "b: a", "c: !a", "d: *a")
		c := e.a.take(g.id("a"))
		f := o.end(c)
		first := e.finish(f)
		for range 3 {
			e.unchanged(o.name+" again", func() { e.equal(o.name+" again", e.finish(f), first) })
		}
		if got := len(e.history(g.id("a")).Attempts); got != 1 {
			e.Errorf("%s: %d attempts, want 1", o.name, got)
		}
	}
}

func finishAgainLater(e *env) {
	id := e.one()
	f := retry(e.a.take(id), 0)
	e.finish(f)
	b := e.b.take(id)
	e.unchanged("the same finish while B runs", func() { e.finish(f) })
	e.finish(success(b))
	e.unchanged("the same finish after B ended", func() { e.finish(f) })
	e.pass(time.Second)
	e.unchanged("the same finish of B", func() { e.finish(success(b)) })
}

func failAfterSuccess(e *env) {
	g := e.job("a", "b: a")
	c := e.a.take(g.id("a"))
	e.expire(c)
	e.finish(success(e.b.take(g.id("a"))))
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	e.ended(g.id("a"), task.Succeeded, task.KindNone)
	e.is(g.id("b"), task.Ready, task.WaitNone)
}

func otherOutcome(e *env) {
	c := e.a.take(e.one())
	e.finish(success(c))
	other := success(c)
	other.Output = json.RawMessage(`"other"`)
	e.refused(other, store.ErrConflict)
	for _, o := range outcomes[1:] {
		e.refused(o.end(c), store.ErrConflict)
	}
	e.equal("the output", string(e.task(c.Task.ID).Output), `"done"`)
}

func twiceInBatch(e *env) {
	ids := e.many(2)
	cs := e.a.takeAll(ids...)
	got := e.finishAll(success(cs[0]), dead(cs[1]), success(cs[0]), success(cs[1]))
	e.equal("the first", got[0], store.FinishResult{State: task.Succeeded})
	e.equal("the second", got[1], store.FinishResult{State: task.Failed})
	e.equal("the first again", got[2], store.FinishResult{State: task.Succeeded})
	e.wantErr("the second with another outcome", got[3].Err, store.ErrConflict)
	e.is(ids[1], task.Failed, task.WaitNone)
}

func forcedAway(e *env) {
	c := e.a.take(e.one())
	e.operate(forceOf(c.Task.ID))
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	e.operate(retryOf(c.Task.ID))
	b := e.b.take(c.Task.ID)
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	e.finish(success(b))
}

func restoredAway(e *env) {
	id := e.one()
	c := e.a.take(id)
	before := e.snap().Generation
	e.operate(store.Restored{Audit: admin})
	if after := e.snap().Generation; after == before || after == "" {
		e.Errorf("the generation is %q after %q", after, before)
	}
	everyEnd(c, func(f store.Finish) { e.refused(f, store.ErrLeaseLost) })
	e.unchanged("a beat and a record of the old generation", func() {
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Lost: true}})
		e.wantErr("Record", e.recordAll(step(c, "s", `1`))[0].Err, store.ErrLeaseLost)
	})
	e.pass(ttl + ttl/3)
	e.reap()
	b := e.b.take(id)
	e.equal("the generation of the next lease", b.Lease.Generation, e.snap().Generation)
	e.finish(success(b))
}

func restoredAfterFinish(e *env) {
	c := e.a.take(e.one())
	e.finish(success(c))
	e.operate(store.Restored{Audit: admin})
	e.refused(success(c), store.ErrLeaseLost)
}

func oneLoser(e *env) {
	ids := e.many(5)
	cs := e.a.takeAll(ids...)
	e.operate(forceOf(ids[2]))
	var fs []store.Finish
	for _, c := range cs {
		fs = append(fs, success(c))
	}
	for i, r := range e.finishAll(fs...) {
		if i == 2 {
			e.wantErr("the loser", r.Err, store.ErrLeaseLost)
			continue
		}
		e.equal(fmt.Sprint("winner ", i), r, store.FinishResult{State: task.Succeeded})
		e.is(ids[i], task.Succeeded, task.WaitNone)
	}
	e.ended(ids[2], task.Cancelled, task.KindCancelled)
}

func finishUnknown(e *env) {
	c := e.a.take(e.one())
	forged := c
	forged.Lease.Task = e.newID()
	e.refused(success(forged), store.ErrLeaseLost)
	deleted := e.one()
	d := e.a.take(deleted)
	e.finish(success(d))
	e.operate(store.DeleteTask{Task: deleted})
	e.refused(success(d), store.ErrLeaseLost)
}
