package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// twinRowScenes go on where guardTwinScenes end: rows of the same key in two
// namespaces, of which only one's own may be read or deleted.
var twinRowScenes = []scene{
	{"a claim elsewhere under the same lease is not the one looked up", twinLookUp},
	{"a big payload elsewhere is not read", twinPayloads},
	{"needs elsewhere stay when a task is deleted", twinNeedsStay},
	{"a pause elsewhere takes no row of a key out of the count", twinPauseOfKey},
	{"the cap of a key that is awaited elsewhere is not forgotten", twinCap},
	{"rows elsewhere bring nobody back earlier", twinNext},
	{"a dependent elsewhere is not revived here", twinRevived},
	{"a deadline elsewhere ends nobody here", twinDeadline},
	{"a claim elsewhere that is over hides no lease here", twinClaimRow},
	{"the claims elsewhere of one who died hide no lease here", twinClaimsOfTheDead},
	{"the crash of a task is judged by what is known of it here", twinCrash},
	{"R7 a worker elsewhere is not forgotten with the silent", twinSilent},
	{"R7 a worker elsewhere is not forgotten with the dead", twinKilled},
}

func twinLookUp(e *env) {
	other := e.twin()
	ids := e.many(3, input(`"here"`))
	other.many(3, input(`"there"`))
	lease := task.NewLeaseID()
	e.a.claim(only(ids[:2]...), under(lease))
	other.a.claim(only(ids[1:]...), under(lease))
	for _, c := range []struct {
		w     *worker
		want  []task.ID
		input string
	}{{e.a, ids[:2], `"here"`}, {other.a, ids[1:], `"there"`}} {
		got := c.w.claim(lookUp(lease)).Tasks
		e.equal("the tasks looked up in "+c.w.e.ns, claimedIDs(got), c.want)
		for i := range got {
			e.equal("the input in "+c.w.e.ns, string(got[i].Task.Input), c.input)
		}
	}
}

func twinPayloads(e *env) {
	other := e.twin()
	here, there := strings.Repeat("h", 100<<10), strings.Repeat("t", 100<<10)
	id := e.one(input(`"` + here + `"`))
	other.one(input(`"` + there + `"`))
	for _, c := range []struct {
		in   *env
		want string
	}{{e, here}, {other, there}} {
		if got := string(c.in.a.take(id).Task.Input); got != `"`+c.want+`"` {
			e.Errorf("the input claimed in %s is %.10s… (%d bytes), want %.10s…", c.in.ns, got, len(got), c.want)
		}
		if got := string(c.in.task(id).Input); got != `"`+c.want+`"` {
			e.Errorf("the input read in %s is %.10s… (%d bytes), want %.10s…", c.in.ns, got, len(got), c.want)
		}
	}
}

func twinNeedsStay(e *env) {
	other := e.twin()
	ids := e.many(2)
	need, dependent := other.draft(), other.draft()
	dependent.Needs = []task.Edge{{Needs: need.ID, Kind: task.OnSuccess}}
	other.submit(store.Submission{Tasks: []task.New{need, dependent}})
	e.succeed(ids[1])
	other.unchanged("the deletion of a twin", func() { e.operate(store.DeleteTask{Audit: admin, Task: ids[1]}) })
	e.succeed(ids[0])
	other.succeed(need.ID)
	other.is(dependent.ID, task.Ready, task.WaitNone)
}

func twinPauseOfKey(e *env) {
	other := e.in(otherNamespace)
	other.operate(store.PauseQueue{Audit: admin, Queue: task.DefaultQueue})
	ids := e.many(5, key("k", 2))
	cs := e.a.gets(ids[:2])
	e.finish(success(cs[0]))
	e.equal("the waiters, of whom one was woken", len(e.snap().Waiters), 2)
	e.finish(success(cs[1]))
	e.equal("the waiters, of whom two were woken", len(e.snap().Waiters), 1)
}

func twinCap(e *env) {
	other := e.in(otherNamespace)
	ids := other.wokenWithCap("k")
	e.succeed(e.one(key("k", 1)))
	other.capKept(ids)
}

func twinNext(e *env) {
	other := e.in(otherNamespace)
	other.one(after(time.Minute))
	e.one(after(time.Hour))
	e.nearly("Next", e.a.claim().Next, time.Hour)
	e.one(expires(time.Second))
	e.pass(2 * time.Second) // a row that is due and can not run comes first
	e.nearly("Next beside a task that is too late", e.a.claim().Next, time.Hour-2*time.Second)
}

// Who ended because of a need stays so when that need is gone.
func twinRevived(e *env) {
	other := e.twin()
	need, child, bystander := e.draft(), e.draft(), e.draft()
	child.Needs = []task.Edge{{Needs: need.ID, Kind: task.OnSuccess}}
	e.submit(store.Submission{Tasks: []task.New{need, child, bystander}})
	other.draft()
	child, bystander = other.draft(), other.draft()
	child.Needs = []task.Edge{{Needs: bystander.ID, Kind: task.OnSuccess}}
	other.submit(store.Submission{Tasks: []task.New{bystander, child}})

	e.fail(need.ID)
	e.ended(child.ID, task.Cancelled, task.KindDependencyFailed)
	e.operate(store.DeleteTask{Audit: admin, Task: need.ID})
	e.fail(bystander.ID)
	e.operate(retryOf(bystander.ID))
	e.ended(child.ID, task.Cancelled, task.KindDependencyFailed)
}

func twinDeadline(e *env) {
	other := e.twin()
	late, never := e.one(expires(time.Hour)), e.one()
	other.many(2, expires(time.Second))
	e.pass(2 * time.Second)
	e.equal("the tasks that expired here", len(e.reap().Expired), 0)
	e.all(task.Ready, task.WaitNone, late, never)
	e.equal("the tasks that expired there", len(other.reap().Expired), 2)
}

func twinCrash(e *env) {
	other := e.twin()
	ids := e.many(2)
	other.many(2)
	e.crash(ids[0], 2)
	e.worker("doomed").takeAll(ids...)
	other.crash(ids[1], 2)
	other.worker("doomed").takeAll(ids...)
	e.operate(cancelOf(ids[1]))
	other.operate(cancelOf(ids[0]))
	e.pass(ttl + ttl/3)
	for _, c := range []struct {
		in             *env
		suspect, asked task.ID
	}{{e, ids[0], ids[1]}, {other, ids[1], ids[0]}} {
		got := map[task.ID]store.Reaped{}
		for _, r := range c.in.reap().Reaped {
			got[r.Task] = r
		}
		e.equal("what became in "+c.in.ns+" of the suspect, which ran alone", got[c.suspect], store.Reaped{Task: c.suspect, State: task.Failed, Crash: true})
		e.equal("what became in "+c.in.ns+" of the one to be cancelled", got[c.asked], store.Reaped{Task: c.asked, State: task.Cancelled})
	}
}

func twinClaimRow(e *env) {
	other := e.in(otherNamespace)
	there, here, lease := other.one(), e.one(), task.NewLeaseID()
	other.a.claim(only(there), under(lease))
	e.pass(2 * time.Second)
	e.a.claim(only(here), under(lease))
	e.pass(2 * time.Second)
	e.equal("reaped here when the lease there was over", len(e.reap().Reaped), 0)
	e.pass(2 * time.Second)
	e.equal("reaped here", e.reap().Reaped, []store.Reaped{{Task: here, State: task.Ready, Crash: true}})
}

func twinClaimsOfTheDead(e *env) {
	other := e.in(otherNamespace)
	dies, there := e.worker("same"), other.worker("same")
	there.id = dies.id
	there.join()
	lease := task.NewLeaseID()
	there.claim(only(other.one()), under(lease))
	id := e.one()
	c := e.a.claim(only(id), under(lease)).Tasks[0]
	if e.h.Kill != nil {
		e.h.Kill(e.T, e.s, dies.id)
	}
	e.equal("the reaped of one who held nothing", len(e.reap().Reaped), 0)
	e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Ready, Crash: true})
}

// A crash shows by when the worker was last seen.
func twinSilent(e *env) {
	other := e.in(otherNamespace)
	id := other.one()
	other.worker("doomed").take(id)
	e.pass(12 * ttl)
	e.reap()
	e.equal("the reaped there", other.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: true}})
}

func twinKilled(e *env) {
	other := e.in(otherNamespace)
	here, there := e.worker("same"), other.worker("same")
	there.id = here.id
	there.join()
	id := other.one()
	c := there.take(id)
	if e.h.Kill != nil {
		e.h.Kill(e.T, e.s, here.id)
	}
	e.reap()
	e.equal("the reaped there", other.expire(c), store.Reaped{Task: id, State: task.Ready, Crash: true})
}
