package storetest

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// guardMoreScenes go on where guardScenes end.
var guardMoreScenes = []scene{
	{"R2 every write compares the epoch and the lease id", bothCompared},
	{"R17 no write passes under a lease of before a restore", restoredEverywhere},
	{"of equal priority the oldest due goes first, over all lanes", oldestOverLanes},
	{"hints obey what is free in their queue", hintsObeyFreeSlots},
	{"a hint that comes twice starts its task once", hintTwice},
	{"a task of a job counts for it, be it as plain as others", plainTaskOfJob},
	{"a claim hands out the task as it reads", claimedAsRead},
	{"a resume ends the pause of its queue only", resumeOne},
	{"a retry forgives losses in company", retryForgivesLosses},
	{"a deadline stands after a retry", deadlineAfterRetry},
	{"a cancel that was asked for does not outlive a retry", cancelBeforeRetry},
	{"labels and needs of a deleted task go with it", deletedWithEdges},
	{"R7 a suspect that must be alone gets no company in the same call", aloneInACall},
	{"a worker that leaves takes nobody with it", leaveAlone},
	{"the cancel of a job spares all others", cancelOneJob},
	{"the last report comes with the end, of one and of many", progressAtTheEnd},
	{"many ends that another handle reports name their worker", manyByAnotherHandle},
	{"many steps that are more than values keep what else they are", manySteps},
	{"a waiter of a paused queue takes nobody's place", pausedWaiter},
	{"R8 a finish is compared with the outcome of its own task", sameLeaseOtherTask},
}

func bothCompared(e *env) {
	id := e.one(attempts(9))
	e.finish(retry(e.a.take(id), 0))
	c := e.a.take(id)
	bad := func(name string, change func(*task.Lease)) {
		e.Helper()
		b := c
		change(&b.Lease)
		e.unchanged("a write under "+name, func() {
			e.wantErr("a step", e.recordAll(step(b, "s", `1`))[0].Err, store.ErrLeaseLost)
			e.wantErr("a try", e.recordAll(try(b, "s", 1))[0].Err, store.ErrLeaseLost)
			e.wantErr("progress", e.recordAll(store.Record{Lease: b.Lease, Progress: &task.Progress{Current: 1}})[0].Err, store.ErrLeaseLost)
			e.refused(success(b), store.ErrLeaseLost)
			e.refused(dead(b), store.ErrLeaseLost)
		})
		if beat := e.a.beat(b.Lease)[0]; !beat.Lost {
			e.Errorf("a heartbeat under %s answered %+v, want Lost", name, beat)
		}
	}
	bad("an earlier epoch", func(l *task.Lease) { l.Epoch-- })
	bad("a later epoch", func(l *task.Lease) { l.Epoch++ })
	bad("another lease id", func(l *task.Lease) { l.ID = task.NewLeaseID() })
	e.finish(success(c))

	first := e.a.take(e.one()) // stores may take a short way for it
	for _, change := range []func(*task.Lease){func(l *task.Lease) { l.Epoch++ }, func(l *task.Lease) { l.ID = task.NewLeaseID() }} {
		b := first
		change(&b.Lease)
		e.unchanged("the end of a first attempt under another lease", func() { e.refused(success(b), store.ErrLeaseLost) })
	}
	e.finish(success(first))
}

func restoredEverywhere(e *env) {
	c := e.a.take(e.one())
	e.operate(store.Restored{Audit: admin})
	e.unchanged("a write under a lease of before", func() {
		e.wantErr("a step", e.recordAll(step(c, "s", `1`))[0].Err, store.ErrLeaseLost)
		e.wantErr("a try", e.recordAll(try(c, "s", 1))[0].Err, store.ErrLeaseLost)
		e.refused(success(c), store.ErrLeaseLost)
	})
	if beat := e.a.beat(c.Lease)[0]; !beat.Lost {
		e.Errorf("a heartbeat answered %+v, want Lost", beat)
	}
}

func oldestOverLanes(e *env) {
	first := e.one(queue("x"), after(time.Second))
	third := e.one(queue("x"), after(3*time.Second))
	second := e.one(queue("y"), after(2*time.Second))
	e.pass(4 * time.Second)
	e.a.gets([]task.ID{first, second, third})
}

func hintsObeyFreeSlots(e *env) {
	x, y := e.one(queue("q")), e.one(queue("q"))
	e.a.gets([]task.ID{x}, only(x, y), queues(map[string]int{"q": 1}))
	e.a.gets([]task.ID{y}, only(x, y), queues(map[string]int{"q": 1}))
}

func hintTwice(e *env) {
	x, y := e.one(), e.one()
	e.a.gets([]task.ID{x, y}, only(y, x, x, y))
}

func plainTaskOfJob(e *env) {
	n := e.draft()
	job := &task.NewJob{ID: e.newID(), Name: "plain"}
	e.submit(store.Submission{Job: job, Tasks: []task.New{n}})
	e.succeed(n.ID)
	got, err := e.s.Job(e.Context(), e.ns, job.ID)
	if err != nil || got.State != task.JobSucceeded {
		e.Errorf("the job whose only task succeeded is %+v, %v", got, err)
	}
}

func claimedAsRead(e *env) {
	same := func(what string, id task.ID) {
		e.Helper()
		got := e.a.take(id).Task
		if want := e.task(id); !reflect.DeepEqual(got, want) {
			e.Errorf("%s was claimed as\n%s and reads as\n%s", what, show(got), show(want))
		}
	}
	same("a plain task", e.one())
	same("a task with an idempotency key", e.one(once("once")))
	same("a task with a concurrency key", e.one(key("k", 2)))
	same("a task with labels", e.one(labels("a", "b")))
	same("a task with a deadline", e.one(expires(time.Hour)))
	same("a task with much input", e.one(input(`"`+strings.Repeat("x", 2000)+`"`)))
	child := e.draft()
	e.record(start(e.a.take(e.one()), "s", child))
	e.remember(child.ID)
	same("a task that was started by another", child.ID)
	g := e.job("a", "b: a")
	same("a task of a job", g.id("a"))
}

func resumeOne(e *env) {
	here, there := e.one(queue("here")), e.one(queue("there"))
	e.operate(store.PauseQueue{Audit: admin, Queue: "here"})
	e.operate(store.PauseQueue{Audit: admin, Queue: "there"})
	e.operate(store.ResumeQueue{Audit: admin, Queue: "here"})
	e.a.gets([]task.ID{here})
	e.is(there, task.Pending, task.WaitPaused)
}

func retryForgivesLosses(e *env) {
	ids := e.suspects(2)
	e.worker("doomed").claim(slots(16, 0))
	e.pass(ttl + ttl/3)
	e.reap()
	e.equal("SuspectLosses", e.task(ids[0]).QuarantineLosses, 1)
	e.operate(cancelOf(ids[0]))
	e.operate(retryOf(ids[0]))
	t := e.task(ids[0])
	e.equal("SuspectLosses after a retry", t.QuarantineLosses, 0)
	e.equal("CrashCount after a retry", t.CrashCount, 0)
}

func deadlineAfterRetry(e *env) {
	id := e.one(expires(10 * time.Second))
	e.fail(id)
	e.operate(retryOf(id))
	e.pass(11 * time.Second)
	e.reap()
	e.ended(id, task.Cancelled, task.KindDeadline)
}

func cancelBeforeRetry(e *env) {
	id := e.one()
	c := e.a.take(id)
	e.operate(cancelOf(id))
	e.finish(cancelled(c))
	e.operate(retryOf(id))
	c = e.a.take(id)
	e.equal("the heartbeat's answer", e.a.beat(c.Lease)[0], store.Beat{})
	e.record(step(c, "s", `1`))
	e.finish(success(c))
}

func deletedWithEdges(e *env) {
	need, n, dependent := e.draft(), e.draft(labels("a", "b")), e.draft()
	n.Needs = []task.Edge{{Needs: need.ID, Kind: task.OnSuccess}}
	dependent.Needs = []task.Edge{{Needs: n.ID, Kind: task.OnSuccess}}
	e.submit(store.Submission{Tasks: []task.New{need, n, dependent}})
	e.succeed(need.ID, n.ID, dependent.ID)
	e.operate(store.DeleteTask{Audit: admin, Task: n.ID})
	e.equal("needs of the dependent", len(e.history(dependent.ID).Needs), 0)
	e.equal("dependents of the need", len(e.history(need.ID).Dependents), 0)
	n.Needs = nil
	e.enqueue(n)
	list, _, err := e.s.List(e.Context(), e.ns, store.Filter{Labels: map[string]string{"a": "b"}})
	if err != nil || len(list) != 1 || list[0].ID != n.ID {
		e.Errorf("the list by label is %v, %v", list, err)
	}
	e.succeed(n.ID)
}

func sameLeaseOtherTask(e *env) {
	x, y := e.one(), e.one()
	cs := e.a.takeAll(x, y) // under one lease id
	e.finish(success(cs[0]))
	other := success(cs[1])
	other.Output = json.RawMessage(`"other"`)
	e.operate(forceOf(y))
	e.refused(other, store.ErrLeaseLost)
}

func leaveAlone(e *env) {
	e.prey()
	e.worker("leaver").leave()
	if got := e.reap(); len(got.Reaped) != 1 {
		e.Errorf("after somebody else left the keeper reaped %+v, want one", got.Reaped)
	}
}

func cancelOneJob(e *env) {
	id := e.one()
	here, there := e.job("a"), e.job("a")
	e.operate(store.CancelJob{Audit: admin, Job: here.sub.Job.ID})
	e.is(here.id("a"), task.Cancelled, task.WaitNone)
	e.is(there.id("a"), task.Ready, task.WaitNone)
	e.is(id, task.Ready, task.WaitNone)
}

func aloneInACall(e *env) {
	lonely, other := e.one(priority(1)), e.one()
	e.crash(lonely, 2)
	e.crash(other, 2)
	for _, running := range []int{3, 1} { // two losses in company
		got := e.worker("doomed").claim(only(lonely), slots(32, running)).Tasks
		if len(got) != 1 {
			e.Fatalf("beside %d others the suspect was not claimed", running)
		}
		e.expire(got[0])
	}
	e.equal("SuspectLosses", e.task(lonely).QuarantineLosses, 2)
	e.a.gets([]task.ID{lonely}, slots(32, 0))
}

func progressAtTheEnd(e *env) {
	for _, n := range []int{1, 10} {
		ids := e.many(n)
		var fins []store.Finish
		for i, c := range e.a.takeAll(ids...) {
			f := success(c)
			f.Progress = &task.Progress{Current: float64(i), Total: 10}
			fins = append(fins, f)
		}
		for _, got := range e.finishAll(fins...) {
			e.wantErr("the finish", got.Err, nil)
		}
		for i, t := range e.tasks(ids...) {
			e.equal("the progress", t.Progress, &task.Progress{Current: float64(i), Total: 10})
		}
	}
}

func manyByAnotherHandle(e *env) {
	ids := e.many(10)
	var fins []store.Finish
	for _, c := range e.a.takeAll(ids...) {
		fins = append(fins, success(c))
	}
	if _, err := e.second().Finish(e.Context(), e.ns, fins...); err != nil {
		e.Fatalf("Finish through another handle: %v", err)
	}
	for _, id := range ids {
		a := e.lastAttempt(id)
		e.equal("the worker", a.Worker, e.a.name)
		e.near("the start", a.StartedAt, e.now())
	}
}

func manySteps(e *env) {
	ids := e.many(10)
	cs := e.a.takeAll(ids...)
	var sleeps, starts, reports []store.Record
	var children []task.ID
	for _, c := range cs {
		child := e.draft()
		children = append(children, child.ID)
		sleeps = append(sleeps, sleep(c, "nap", time.Hour))
		starts = append(starts, start(c, "start", child))
		r := step(c, "report", `1`)
		r.Progress = &task.Progress{Current: 1, Total: 2}
		reports = append(reports, r)
	}
	for _, batch := range [][]store.Record{sleeps, starts, reports} {
		for _, got := range e.recordAll(batch...) {
			e.wantErr("the record", got.Err, nil)
		}
	}
	e.tasks(children...)
	for i, t := range e.tasks(ids...) {
		e.equal("the progress", t.Progress, &task.Progress{Current: 1, Total: 2})
		for _, s := range e.steps(ids[i]) {
			if s.Name == "nap" && (s.Kind != task.KindSleep || s.WakeAt.IsZero()) || s.Name == "start" && s.Kind != task.KindStart {
				e.Errorf("a step is recorded as %+v", s)
			}
		}
	}
}

func pausedWaiter(e *env) {
	holder := e.a.take(e.one(key("k", 1)))
	e.one(key("k", 1), queue("paused"))
	next := e.one(key("k", 1))
	e.b.getsNothing()
	e.operate(store.PauseQueue{Audit: admin, Queue: "paused"})
	e.finish(success(holder))
	e.b.gets([]task.ID{next})
}
