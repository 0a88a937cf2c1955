package storetest

import (
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// guardTwinScenes are about tasks of the same id, under the same lease id,
// that go different ways in two namespaces.
var guardTwinScenes = []scene{
	{"a key that is taken names the task of its own namespace", twinKey},
	{"an id that stands elsewhere does not stand here", twinID},
	{"a claim hands out the task of its own namespace", twinClaim},
	{"a job elsewhere has its own tasks", twinJob},
	{"needs that ended elsewhere are open here", twinNeeds},
	{"a dependent elsewhere keeps nobody here", twinDependent},
	{"labels elsewhere are not those that go", twinLabels},
	{"a step elsewhere is not the one recorded here", twinStep},
	{"an outcome elsewhere is not the one reported here", twinOutcome},
	{"a cancel elsewhere is not asked for here", twinCancel},
	{"the end of a need releases nobody elsewhere", twinRelease},
	{"an end reported by another handle is none elsewhere", twinOtherHandle},
	{"a lease that is renewed elsewhere expires here", twinRenewed},
	{"a worker elsewhere is another one", twinWorker},
	{"who awaits a key elsewhere does not keep its row here", twinAwaited},
}

// twin returns the same stage in another namespace, which draws the ids that
// this one drew before it.
func (e *env) twin() *env {
	e.Helper()
	other := e.in(otherNamespace)
	other.follow(e)
	return other
}

func twinKey(e *env) {
	other := e.in(otherNamespace)
	other.one(once("k"))
	id := e.one(once("k"))
	got := e.submit(store.Submission{Tasks: []task.New{e.draft(once("k"))}})
	e.equal("the answer", got, []store.Enqueued{{ID: id, Disposition: store.DispositionExisting}})
}

func twinID(e *env) {
	other := e.twin()
	n := e.draft(once("k"))
	other.enqueue(other.draft())
	id := e.one(once("k"))
	got := e.submit(store.Submission{Tasks: []task.New{n}})
	e.equal("the answer", got, []store.Enqueued{{ID: id, Disposition: store.DispositionExisting}})
}

func twinJob(e *env) {
	other := e.in(otherNamespace)
	job := e.newID()
	there, here := other.drafts(2), e.drafts(2) // the older ones are elsewhere
	e.submit(store.Submission{Job: &task.NewJob{ID: job, Name: "here"}, Tasks: here})
	other.submit(store.Submission{Job: &task.NewJob{ID: job, Name: "there"}, Tasks: there})
	other.unchanged("the cancel of a job of the same id", func() {
		got := e.operate(store.CancelJob{Audit: admin, Job: job})
		e.equal("tasks that ended", got.Cancelled, 2)
		e.equal("tasks that had ended", got.AlreadyDone, 0)
	})
}

func twinNeeds(e *env) {
	other := e.twin()
	here := e.job("a", "b: a")
	there := other.job("a", "b: a")
	e.fail(here.id("a"))
	other.succeed(there.id("a"))
	other.unchanged("the retry of a twin", func() { e.operate(retryOf(here.id("a"))) })
	e.is(here.id("b"), task.Pending, task.WaitDeps)
	e.succeed(here.id("a"))
	e.fail(here.id("b"))
	other.fail(there.id("b"))
	e.operate(retryOf(here.id("b")))

	here = e.job("a", "b: a")
	there = other.job("a", "b: a")
	other.fail(there.id("a"))
	e.succeed(here.id("a"))
	e.fail(here.id("b"))
	other.unchanged("the retry of a twin", func() { e.operate(retryOf(here.id("b"))) })
	e.is(here.id("b"), task.Ready, task.WaitNone)
}

func twinDependent(e *env) {
	other := e.twin()
	id := e.one()
	e.newID()
	there, dependent := other.draft(), other.draft()
	dependent.Needs = []task.Edge{{Needs: there.ID, Kind: task.OnSuccess}}
	other.submit(store.Submission{Tasks: []task.New{there, dependent}})
	e.succeed(id)
	e.operate(store.DeleteTask{Audit: admin, Task: id})
}

func twinLabels(e *env) {
	other := e.twin()
	n := e.draft(labels("here", "x"))
	e.enqueue(n)
	other.one(labels("there", "y"))
	e.succeed(n.ID)
	e.operate(store.DeleteTask{Audit: admin, Task: n.ID})
	e.enqueue(n)
}

func twinStep(e *env) {
	other := e.twin()
	here := e.a.take(e.one())
	there := other.a.take(other.one())
	other.record(step(there, "s", `"there"`))
	for range 2 {
		e.record(step(here, "s", `"here"`))
	}
}

func twinOutcome(e *env) {
	other := e.twin()
	here := e.a.take(e.one(attempts(5)))
	there := other.a.take(other.one(attempts(5)))
	other.finish(success(there))
	again := retry(here, time.Hour)
	for range 2 {
		got := e.finish(again)
		e.equal("the state answered", got.State, task.Pending)
	}

	here = e.a.take(e.one())
	there = other.a.take(other.one())
	other.finish(success(there))
	e.operate(forceOf(here.Task.ID))
	e.refused(success(here), store.ErrLeaseLost)
}

func twinCancel(e *env) {
	other := e.twin()
	here := e.a.take(e.one())
	there := other.a.take(other.one())
	other.operate(cancelOf(there.Task.ID))
	e.equal("the heartbeat's answer", e.a.beat(here.Lease)[0], store.Beat{})
	e.finish(success(here))
}

func twinRelease(e *env) {
	other := e.twin()
	here := e.job("a", "b: a")
	there := other.job("a", "b: a")
	other.unchanged("the end of a twin's need", func() { e.succeed(here.id("a")) })
	other.is(there.id("b"), task.Pending, task.WaitDeps)
}

func twinOtherHandle(e *env) {
	other := e.twin()
	second := e.second()
	here := e.a.take(e.one())
	other.a.take(other.one())
	other.unchanged("the end of a twin", func() {
		got, err := second.Finish(e.Context(), e.ns, success(here))
		if err != nil || got[0].Err != nil {
			e.Errorf("Finish through another handle = %+v, %v", got, err)
		}
	})
}

func twinRenewed(e *env) {
	other := e.twin()
	var here, there []store.Claimed
	for range 2 {
		here = append(here, e.a.take(e.one()))
		there = append(there, other.a.take(other.one()))
	}
	// The first lives on here, the second there.
	e.pass(ttl / 3)
	e.a.beat(here[0].Lease)
	other.a.beat(there[1].Lease)
	e.pass(ttl - time.Second/2)
	e.equal("reaped here", len(e.reap().Reaped), 1)
	e.equal("reaped there", len(other.reap().Reaped), 1)
	e.is(here[0].Task.ID, task.Running, task.WaitNone)
	other.is(there[1].Task.ID, task.Running, task.WaitNone)
}

func twinWorker(e *env) {
	other := e.in(otherNamespace)
	here, there := e.worker("same"), other.worker("same")
	there.id = here.id
	there.join()
	there.stay()
	e.prey()
	other.prey()
	here.mayNot() // it was silent; who beat is another one
	here.beat()
	here.leave()
	there.may() // whatever one of its id elsewhere did

	// Nor does it know how long the other's leases are.
	here.join()
	id := e.one()
	here.take(id)
	if err := e.s.Join(e.Context(), other.ns, store.WorkerInfo{ID: there.id, Name: there.name, TTL: 4 * ttl}); err != nil {
		e.Fatalf("Join: %v", err)
	}
	e.pass(ttl)
	if got := e.reap().Reaped; !slices.Contains(got, store.Reaped{Task: id, State: task.Ready, Crash: true}) {
		e.Errorf("reaped %+v, want a crash of %v", got, id)
	}
}

func twinAwaited(e *env) {
	other := e.in(otherNamespace)
	there := other.a.take(other.one(key("k", 1)))
	other.one(key("k", 1))
	other.b.getsNothing()
	e.finish(success(e.a.take(e.one(key("k", 1)))))
	e.equal("rows of keys", len(e.snap().Keys), 0)
	other.finish(success(there))
}

func twinClaim(e *env) {
	other := e.twin()
	for _, asks := range [][]ask{nil, {only()}} {
		id := e.one(input(`"here"`))
		other.one(input(`"there"`))
		if asks != nil {
			asks = []ask{only(id)}
		}
		c := e.a.gets([]task.ID{id}, asks...)[0]
		e.equal("the input", string(c.Task.Input), `"here"`)
	}
}
