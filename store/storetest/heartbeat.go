package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var heartbeatCases = []testCase{
	{"R6 a heartbeat extends the lease", func(e *env) {
		c := e.a.take(e.one())
		e.pass(2 * time.Second)
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{}})
		e.near("LeaseExpiresAt", e.task(c.Task.ID).LeaseExpiresAt, e.now().Add(ttl))
		e.pass(2 * time.Second)
		e.reapsNothing()
	}},
	{"R6 a heartbeat never shortens a lease", func(e *env) {
		c := e.a.claim(claimTTL(time.Minute), only(e.one())).Tasks
		e.a.beat(c[0].Lease)
		e.near("LeaseExpiresAt", e.task(c[0].Task.ID).LeaseExpiresAt, e.now().Add(time.Minute))
	}},
	{"R6 a heartbeat changes nothing else", func(e *env) {
		c := e.a.take(e.one())
		before := e.task(c.Task.ID)
		e.pass(time.Second)
		e.a.beat(c.Lease)
		got := e.task(c.Task.ID)
		before.LeaseExpiresAt, got.LeaseExpiresAt = time.Time{}, time.Time{}
		before.UpdatedAt, got.UpdatedAt = time.Time{}, time.Time{}
		e.equal("the task", got, before)
	}},
	{"R-01 a heartbeat before the reap keeps an expired lease", func(e *env) {
		c := e.a.take(e.one())
		e.pass(ttl + ttl/3)
		e.equal("the heartbeat of an expired lease that was not reaped", e.a.beat(c.Lease), []store.Beat{{}})
		e.reapsNothing()
		e.is(c.Task.ID, task.Running, task.WaitNone)
		e.finish(success(c))
	}},
	{"R-02 a heartbeat after the reap finds the lease lost", func(e *env) {
		c := e.a.take(e.one())
		e.expire(c)
		e.powerless("a reaped lease", c)
		again := e.b.take(c.Task.ID)
		e.powerless("a reaped lease", c)
		e.finish(success(again))
		e.equal("the beat of a finished task", e.b.beat(again.Lease), []store.Beat{{Lost: true}})
	}},
	{"R-11 one lost lease does not cost the others", func(e *env) {
		ids := e.many(3)
		cs := e.a.takeAll(ids...)
		e.operate(forceOf(ids[1]))
		e.pass(2 * time.Second)
		got := e.a.beat(cs[0].Lease, cs[1].Lease, cs[2].Lease)
		e.equal("the beats", got, []store.Beat{{}, {Lost: true}, {}})
		for _, i := range []int{0, 2} {
			e.near("LeaseExpiresAt", e.task(ids[i]).LeaseExpiresAt, e.now().Add(ttl))
			e.finish(success(cs[i]))
		}
	}},
	{"the answers come in the order of the leases", func(e *env) {
		ids := e.many(4)
		cs := e.a.takeAll(ids...)
		e.finish(success(cs[0]))
		e.operate(cancelOf(ids[2]))
		ask := store.Beat{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason}
		got := e.a.beat(cs[3].Lease, cs[2].Lease, cs[1].Lease, cs[0].Lease)
		e.equal("the beats", got, []store.Beat{{}, ask, {}, {Lost: true}})
		got = e.a.beat(cs[2].Lease, cs[0].Lease, cs[3].Lease)
		e.equal("the beats", got, []store.Beat{ask, {Lost: true}, {}})
	}},
	{"a heartbeat carries the operator's cancel", func(e *env) {
		c := e.a.take(e.one())
		e.operate(cancelOf(c.Task.ID))
		for range 2 {
			e.pass(time.Second)
			e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason}})
			e.near("LeaseExpiresAt", e.task(c.Task.ID).LeaseExpiresAt, e.now().Add(ttl))
		}
	}},
	{"a heartbeat extends hundreds of leases", func(e *env) {
		leases := leasesOf(e.a.takeAll(e.many(500)...))
		e.pass(2 * time.Second)
		e.equal("the beats", e.a.beat(leases...), make([]store.Beat, len(leases)))
		e.pass(2 * time.Second)
		e.reapsNothing()
	}},
}
