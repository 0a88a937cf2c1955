package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishLeaseCases = []testCase{
	{"R2 a write is refused when any part of its lease differs", func(e *env) {
		g := e.job("a", "b: a", "c: a")
		again := e.one()
		e.finish(retry(e.a.take(again), 0))
		for _, id := range []task.ID{e.one(), again, e.one(key("k", 1)), g.id("a"), e.one(expires(time.Minute))} {
			e.guarded(e.a.take(id))
		}
	}},
	{"R-03 a finish after expiry and before the reap is accepted", func(e *env) {
		c := e.a.take(e.one())
		e.pass(2 * ttl)
		e.record(step(c, "s", `1`))
		e.finish(success(c))
		e.reapsNothing()
		e.ended(c.Task.ID, task.Succeeded, task.KindNone)
	}},
	{"R-04 a finish after the reap and before the next claim finds the lease lost", func(e *env) {
		c := e.a.take(e.one())
		e.expire(c)
		e.powerless("a reaped lease", c)
		e.is(c.Task.ID, task.Ready, task.WaitNone)
	}},
	{"R-05 a finish after another worker claimed finds the lease lost", func(e *env) {
		c := e.a.take(e.one())
		e.expire(c)
		b := e.b.take(c.Task.ID)
		e.powerless("a reaped lease beside that of B", c)
		e.equal("the holder", e.is(c.Task.ID, task.Running, task.WaitNone).LeasedBy, "B")
		e.finish(success(b))
	}},
	{"R-06 a finish of an older attempt in the same process finds the lease lost", func(e *env) {
		c := e.a.take(e.one())
		e.expire(c)
		again := e.a.take(c.Task.ID)
		e.powerless("a reaped lease beside the next one", c)
		e.record(step(again, "s", `1`))
		e.finish(success(again))
	}},
	{"R-07 the same finish again succeeds and writes nothing", func(e *env) {
		for _, o := range outcomes {
			g := e.job("a", "b: a", "c: !a", "d: *a")
			c := e.a.take(g.id("a"))
			f := o.end(c)
			first := e.finish(f)
			first.Job = "" // a repeated call does not return it
			for range 3 {
				e.unchanged(o.name+" again", func() { e.equal(o.name+" again", e.finish(f), first) })
			}
			e.equal(o.name+": the attempts", len(e.history(g.id("a")).Attempts), 1)
		}
	}},
	{"R-07 the same finish again succeeds after later attempts", func(e *env) {
		id := e.one()
		f := retry(e.a.take(id), 0)
		e.finish(f)
		b := e.b.take(id)
		e.unchanged("the same finish while B runs", func() { e.finish(f) })
		e.finish(success(b))
		e.unchanged("the same finish after B ended", func() { e.finish(f) })
		e.pass(time.Second)
		e.unchanged("the same finish of B", func() { e.finish(success(b)) })
	}},
	{"R8 the same finish again is answered with the state that it led to", func(e *env) {
		// The engine notifies its listeners with the answer. A failed attempt whose reply was lost must not read as
		// the success of the next attempt.
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
			e.equal(name+": the answer to the finish once more", e.finish(f), want)
		}
		c := e.a.take(e.one())
		e.operate(cancelOf(c.Task.ID))
		want := e.finish(dead(c))
		e.equal("the answer of one that was cancelled", want.State, task.Cancelled)
		e.unchanged("the same finish", func() { e.equal("the answer", e.finish(dead(c)), want) })
		e.finishRefused(success(c), store.ErrConflict)
		e.operate(retryOf(c.Task.ID))
		e.equal("the answer once more", e.finish(dead(c)), want)
	}},
	{"R8 the same finish is recognized by task and lease id", func(e *env) {
		// R8 compares the task and the lease ID. A wrong epoch is refused while the task runs and is ignored once it
		// has ended.
		c := e.a.take(e.one())
		f := success(c)
		f.Lease.Epoch++
		e.finishRefused(f, store.ErrLeaseLost)
		f.Lease.Epoch--
		want := e.finish(f)
		f.Lease.Epoch++
		e.equal("the same finish once more", e.finish(f), want)
	}},
	{"R-08 a failure after another worker's success finds the lease lost", func(e *env) {
		g := e.job("a", "b: a")
		c := e.a.take(g.id("a"))
		e.expire(c)
		e.finish(success(e.b.take(g.id("a"))))
		e.powerless("a reaped lease after the success of B", c)
		e.ended(g.id("a"), task.Succeeded, task.KindNone)
		e.is(g.id("b"), task.Ready, task.WaitNone)
	}},
	{"R8 another outcome under the same lease is a conflict", func(e *env) {
		c := e.a.take(e.one())
		e.finish(success(c))
		other := success(c)
		other.Output = json.RawMessage(`"other"`)
		e.finishRefused(other, store.ErrConflict)
		for _, o := range outcomes[1:] {
			e.finishRefused(o.end(c), store.ErrConflict)
		}
		e.equal("the output", string(e.task(c.Task.ID).Output), `"done"`)
	}},
	{"R8 two elements for one task in a batch", func(e *env) {
		ids := e.many(2)
		cs := e.a.takeAll(ids...)
		got := e.finishAll(success(cs[0]), dead(cs[1]), success(cs[0]), success(cs[1]))
		e.equal("the first", got[0], store.FinishResult{State: task.Succeeded})
		e.equal("the second", got[1], store.FinishResult{State: task.Failed})
		e.equal("the first again", got[2], store.FinishResult{State: task.Succeeded})
		e.wantErr("the second with another outcome", got[3].Err, store.ErrConflict)
		e.is(ids[1], task.Failed, task.WaitNone)
	}},
	{"R8 a finish is compared with the outcome of its own task", func(e *env) {
		x, y := e.one(), e.one()
		cs := e.a.takeAll(x, y) // under one lease id
		e.finish(success(cs[0]))
		other := success(cs[1])
		other.Output = json.RawMessage(`"other"`)
		e.operate(forceOf(y))
		e.finishRefused(other, store.ErrLeaseLost)
	}},
	{"R8 a lease taken by force is lost, not in conflict", func(e *env) {
		c := e.a.take(e.one())
		e.operate(forceOf(c.Task.ID))
		e.powerless("a lease taken by force", c)
		e.operate(retryOf(c.Task.ID))
		b := e.b.take(c.Task.ID)
		e.powerless("a lease taken by force, after a retry", c)
		e.finish(success(b))
	}},
	{"R-10 a finish between expiry and reap leaves nothing to reap", func(e *env) {
		ids := e.many(len(outcomes))
		cs := e.a.takeAll(ids...)
		e.pass(ttl + ttl/3)
		for i, o := range outcomes {
			e.finish(o.end(cs[i]))
		}
		e.unchanged("a reap after the finish", e.reapsNothing)
	}},
	{"R-12 R17 no lease is valid after a restore", func(e *env) {
		id, ended := e.one(), e.a.take(e.one())
		e.finish(success(ended))
		c := e.a.take(id)
		before := e.snap().Generation
		e.operate(store.Restored{Audit: admin})
		after := e.snap().Generation
		e.check(after != before && after != "", "the generation is %q after %q", after, before)
		e.powerless("a lease from before a restore", c)
		e.powerless("a lease that ended before a restore", ended)
		e.reapExpired()
		b := e.b.take(id)
		e.equal("the generation of the next lease", b.Lease.Generation, after)
		e.finish(success(b))
	}},
	{"R17 a restore ends the leases, if no process is left, and counts no crash", func(e *env) {
		id, other, child := e.one(), e.one(expires(time.Hour)), e.one()
		cs := e.a.takeAll(id, other)
		steps := e.a.take(child)
		e.record(step(steps, "s", `1`))
		e.operate(cancelOf(other))
		got := e.operate(store.Restored{Audit: admin, EndLeases: true})
		e.equal("leases ended", got.Leases, 3)
		for i := range cs {
			e.powerless("a lease that the restore ended", cs[i])
		}
		e.equal("the state of what ran", [2]any{e.task(id).State, e.task(id).CrashCount}, [2]any{task.Ready, 0})
		e.equal("the state of what was asked to end", e.task(other).State, task.Cancelled)
		a := e.history(id).Attempts[0]
		e.check(a.Outcome == task.OutcomeLeaseLost && a.Error != nil && strings.Contains(a.Error.Message, "restored"), "the attempt is %+v", a)
		e.equal("what is left to end", e.operate(store.Restored{Audit: admin, EndLeases: true}).Leases, 0)
		again := e.b.take(child) // at once, by any worker
		e.equal("its steps", len(again.Steps), 1)
		e.finish(success(again))
		e.finish(success(e.b.take(id)))
	}},
	{"R2 one lost lease does not cost the other elements", func(e *env) {
		ids := e.many(5)
		cs := e.a.takeAll(ids...)
		e.operate(forceOf(ids[2]))
		for i, r := range e.finishAll(finishes(cs, success)...) {
			if i == 2 {
				e.wantErr("the loser", r.Err, store.ErrLeaseLost)
				continue
			}
			e.equal(fmt.Sprint("winner ", i), r, store.FinishResult{State: task.Succeeded})
			e.is(ids[i], task.Succeeded, task.WaitNone)
		}
		e.ended(ids[2], task.Cancelled, task.KindCancelled)
	}},
	{"a finish of an unknown or deleted task finds the lease lost", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.finish(success(c))
		e.operate(deleteOf(id))
		e.powerless("a lease of a deleted task", c)
	}},
}

// everyEnd calls fn with one finish of each kind.
func everyEnd(c store.Claimed, fn func(store.Finish)) {
	for _, o := range outcomes {
		fn(o.end(c))
	}
}

// guarded tries every write with leases that resemble the given one.
func (e *env) guarded(c store.Claimed) {
	e.Helper()
	for what, change := range map[string]func(*task.Lease){
		"another lease id":   func(l *task.Lease) { l.ID = task.NewLeaseID() },
		"no lease id":        func(l *task.Lease) { l.ID = task.LeaseID{} },
		"an older epoch":     func(l *task.Lease) { l.Epoch-- },
		"a newer epoch":      func(l *task.Lease) { l.Epoch++ },
		"another generation": func(l *task.Lease) { l.Generation += "x" },
		"no generation":      func(l *task.Lease) { l.Generation = "" },
		"another task":       func(l *task.Lease) { l.Task = e.newID() },
	} {
		forged := c
		change(&forged.Lease)
		e.powerless("a lease with "+what, forged)
	}
	waiting := e.one()
	e.powerless("a lease without id of a task that does not run", store.Claimed{
		Lease: task.Lease{Task: waiting, Epoch: e.task(waiting).Epoch, Generation: c.Lease.Generation},
	})
	e.finish(success(c))
}

// powerless expects every write under a lease to report it lost and to change nothing.
func (e *env) powerless(what string, c store.Claimed) {
	e.Helper()
	e.unchanged(what, func() {
		e.Helper()
		everyEnd(c, func(f store.Finish) {
			e.Helper()
			e.wantErr("Finish under "+what, e.finishAll(f)[0].Err, store.ErrLeaseLost)
		})
		for _, r := range e.kinds(c) {
			e.wantErr("Record under "+what, e.recordAll(r)[0].Err, store.ErrLeaseLost)
		}
		e.equal("the heartbeat under "+what, e.a.beat(c.Lease), []store.Beat{{Lost: true}})
	})
}
