package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var heartbeatScenes = []scene{
	{"R6 a beat extends the lease", beatExtends},
	{"R6 a beat never shortens a lease", beatNeverShortens},
	{"R6 a beat changes nothing else", beatChangesNothingElse},
	{"R-01 heartbeat, then reap: the reap takes nothing", beatThenReap},
	{"R-02 reap, then heartbeat: the lease is lost", reapThenBeat},
	{"R-11 one lost lease does not cost the others", beatOneLost},
	{"a beat answers in the order asked", beatOrder},
	{"a beat carries the operator's cancel", beatCarriesCancel},
	{"a beat carries the deadline", beatCarriesDeadline},
	{"leases that never were are lost", beatUnknown},
	{"a beat of many leases", beatMany},
}

func beatExtends(e *env) {
	c := e.a.take(e.one())
	e.pass(2 * time.Second)
	e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{}})
	e.near("LeaseExpiresAt", e.task(c.Task.ID).LeaseExpiresAt, e.now().Add(ttl))
	e.pass(2 * time.Second)
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %v, whose lease was extended", got)
	}
}

func beatNeverShortens(e *env) {
	c := e.a.claim(claimTTL(time.Minute), only(e.one())).Tasks
	e.a.beat(c[0].Lease)
	e.near("LeaseExpiresAt", e.task(c[0].Task.ID).LeaseExpiresAt, e.now().Add(time.Minute))
}

func beatChangesNothingElse(e *env) {
	c := e.a.take(e.one())
	before := e.task(c.Task.ID)
	e.pass(time.Second)
	e.a.beat(c.Lease)
	got := e.task(c.Task.ID)
	before.LeaseExpiresAt, got.LeaseExpiresAt = time.Time{}, time.Time{}
	before.UpdatedAt, got.UpdatedAt = time.Time{}, time.Time{}
	e.equal("the task", got, before)
}

func beatThenReap(e *env) {
	c := e.a.take(e.one())
	e.pass(ttl + ttl/3)
	e.equal("the beat of an expired lease that nobody reaped", e.a.beat(c.Lease), []store.Beat{{}})
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %v after a heartbeat", got)
	}
	e.is(c.Task.ID, task.Running, task.WaitNone)
	e.finish(success(c))
}

func reapThenBeat(e *env) {
	c := e.a.take(e.one())
	e.expire(c)
	e.unchanged("the beat of a lost lease", func() {
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Lost: true}})
	})
	again := e.b.take(c.Task.ID)
	e.unchanged("the beat of a lost lease", func() {
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Lost: true}})
	})
	e.finish(success(again))
	e.equal("the beat of a finished task", e.b.beat(again.Lease), []store.Beat{{Lost: true}})
}

func beatOneLost(e *env) {
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
}

func beatOrder(e *env) {
	ids := e.many(4)
	cs := e.a.takeAll(ids...)
	e.finish(success(cs[0]))
	e.operate(cancelOf(ids[2]))
	ask := store.Beat{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason}
	got := e.a.beat(cs[3].Lease, cs[2].Lease, cs[1].Lease, cs[0].Lease)
	e.equal("the beats", got, []store.Beat{{}, ask, {}, {Lost: true}})
	got = e.a.beat(cs[2].Lease, cs[0].Lease, cs[3].Lease)
	e.equal("the beats", got, []store.Beat{ask, {Lost: true}, {}})
}

func beatCarriesCancel(e *env) {
	c := e.a.take(e.one())
	e.operate(cancelOf(c.Task.ID))
	for range 2 {
		e.pass(time.Second)
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason}})
		e.near("LeaseExpiresAt", e.task(c.Task.ID).LeaseExpiresAt, e.now().Add(ttl))
	}
}

func beatCarriesDeadline(e *env) {
	c := e.a.take(e.one(expires(2 * time.Second)))
	e.pass(time.Second)
	e.equal("the beat before the deadline", e.a.beat(c.Lease), []store.Beat{{}})
	e.pass(2 * time.Second)
	e.reap()
	if got := e.a.beat(c.Lease)[0]; got.Cancel != task.KindDeadline || got.Lost || got.Retry {
		e.Errorf("the beat after the deadline = %+v, want Cancel deadline", got)
	}
}

func beatUnknown(e *env) {
	c := e.a.take(e.one())
	wrong := map[string]func(*task.Lease){
		"another lease id":   func(l *task.Lease) { l.ID = task.NewLeaseID() },
		"no lease id":        func(l *task.Lease) { l.ID = task.LeaseID{} },
		"an older epoch":     func(l *task.Lease) { l.Epoch-- },
		"a newer epoch":      func(l *task.Lease) { l.Epoch++ },
		"another generation": func(l *task.Lease) { l.Generation += "x" },
		"another task":       func(l *task.Lease) { l.Task = e.newID() },
	}
	e.pass(time.Second)
	for what, change := range wrong {
		lease := c.Lease
		change(&lease)
		e.unchanged("a beat with "+what, func() {
			if got := e.a.beat(lease)[0]; !got.Lost {
				e.Errorf("a beat with %s answered %+v, want Lost", what, got)
			}
		})
	}
	waiting := e.one()
	lost := e.a.beat(task.Lease{Task: waiting, Epoch: e.task(waiting).Epoch, Generation: c.Lease.Generation})
	e.equal("a beat without a lease id for a task that does not run", lost, []store.Beat{{Lost: true}})
}

func beatMany(e *env) {
	cs := e.a.takeAll(e.many(500)...)
	var leases []task.Lease
	for _, c := range cs {
		leases = append(leases, c.Lease)
	}
	e.pass(2 * time.Second)
	e.equal("the beats", e.a.beat(leases...), make([]store.Beat, len(leases)))
	e.pass(2 * time.Second)
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %d tasks whose leases were extended", len(got))
	}
}
