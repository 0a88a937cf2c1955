package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Workers have the same IDs in both namespaces of these cases.
var namespaceWorkerCases = []testCase{
	{"R7 a worker is seen and leaves in its own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		here, there := e.worker("same"), other.worker("same")
		there.stay()
		e.expiredLease()
		other.expiredLease()
		here.warmsUp() // it sent no heartbeat; the other one did
		here.beat()
		here.leave()
		there.reapsOne() // whatever the worker of its ID did here
		here.join(ttl)
		id := e.one()
		here.take(id)
		there.join(4 * ttl)
		e.pass(ttl)
		got := e.reap().Reaped
		e.check(slices.Contains(got, store.Reaped{Task: id, State: task.Ready, Crash: true}), "reaped %+v, want a crash of %v", got, id)
	}},
	{"R7 a reap removes no row of a silent worker in another namespace", func(e *env) {
		other := e.in(otherNamespace)
		id := other.one()
		other.worker("doomed").take(id)
		e.pass(12 * ttl)
		e.reap()
		e.equal("the reaped there", other.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: true}})
	}},
	{"R7 a worker that dies in one namespace keeps its row in another", func(e *env) {
		other := e.in(otherNamespace)
		here, there := e.worker("same"), other.worker("same")
		id := other.one()
		c := there.take(id)
		here.die()
		e.reap()
		e.equal("the reaped there", other.expire(c), store.Reaped{Task: id, State: task.Ready, Crash: true})
	}},
	{"a dead worker's claim under the same lease id in another namespace hides no lease here", func(e *env) {
		other := e.in(otherNamespace)
		dies, there, lease := e.worker("same"), other.worker("same"), task.NewLeaseID()
		there.claim(only(other.one()), under(lease))
		id := e.one()
		c := e.a.claim(only(id), under(lease)).Tasks[0]
		dies.die()
		e.equal("the reaped of a worker without leases", len(e.reap().Reaped), 0)
		e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Ready, Crash: true})
	}},
	{"an earlier claim under the same lease id in another namespace hides no lease here", func(e *env) {
		other := e.in(otherNamespace)
		there, here, lease := other.one(), e.one(), task.NewLeaseID()
		other.a.claim(only(there), under(lease))
		e.pass(2 * time.Second)
		e.a.claim(only(here), under(lease))
		e.pass(2 * time.Second)
		e.equal("reaped here when the lease there ended", len(e.reap().Reaped), 0)
		e.pass(2 * time.Second)
		e.equal("reaped here", e.reap().Reaped, []store.Reaped{{Task: here, State: task.Ready, Crash: true}})
	}},
	{"a lease lookup finds the tasks of its own namespace", func(e *env) {
		other := e.sameIDs()
		ids, lease := e.many(3, input(`"here"`)), task.NewLeaseID()
		other.many(3, input(`"there"`))
		e.a.claim(only(ids[:2]...), under(lease))
		other.a.claim(only(ids[1:]...), under(lease))
		for _, c := range append(e.a.gets(ids[:2], lookUp(lease)), other.a.gets(ids[1:], lookUp(lease))...) {
			want := `"here"`
			if c.Task.ID == ids[2] {
				want = `"there"`
			}
			e.check(c.Task.ID == ids[1] || string(c.Task.Input) == want, "the input is %s, want %s", c.Task.Input, want)
		}
	}},
	{"an end that another handle reports is none in another namespace", func(e *env) {
		other := e.sameIDs()
		here := e.a.take(e.one())
		other.a.take(other.one())
		other.unchanged("the end of the same ID", func() {
			got, err := e.second().Finish(e.Context(), e.ns, success(here))
			e.check(err == nil && got[0].Err == nil, "Finish through another handle = %+v, %v", got, err)
		})
	}},
}
