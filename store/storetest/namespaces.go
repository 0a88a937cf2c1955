package storetest

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var namespaceCases = []testCase{
	{"readers see their own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		id := e.one(labels("a", "b"))
		g := e.job("x")
		if got, err := e.s.Tasks(e.Context(), other.ns, id); err != nil || len(got) != 0 {
			e.Errorf("Tasks elsewhere = %v, %v", got, err)
		}
		if got, _, err := e.s.List(e.Context(), other.ns, store.Filter{}); err != nil || len(got) != 0 {
			e.Errorf("List elsewhere = %v, %v", got, err)
		}
		if got, _, err := e.s.Jobs(e.Context(), other.ns, store.JobFilter{}); err != nil || len(got) != 0 {
			e.Errorf("Jobs elsewhere = %v, %v", got, err)
		}
		if _, err := e.s.Job(e.Context(), other.ns, g.sub.Job.ID); !errors.Is(err, store.ErrNotFound) {
			e.Errorf("Job elsewhere: %v", err)
		}
		if got, err := e.s.Queues(e.Context(), other.ns); err != nil || len(got) != 0 {
			e.Errorf("Queues elsewhere = %v, %v", got, err)
		}
		_, err := e.s.History(e.Context(), other.ns, id)
		e.wantErr("History elsewhere", err, store.ErrNotFound)
	}},
	{"workers act in their own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		id := e.one()
		e.one(queue("later"), expires(time.Second))
		other.a.getsNothing()
		other.a.getsNothing(only(id))
		c := e.a.take(id)
		if got := other.a.claim(lookUp(c.Lease.ID)).Tasks; len(got) != 0 {
			e.Errorf("a lease was found elsewhere: %v", got)
		}
		other.finishRefused(success(c), store.ErrLeaseLost)
		got, err := e.s.Record(e.Context(), other.ns, step(c, "s", `1`))
		e.require(err == nil && len(got) == 1, "Record: %v", err)
		e.wantErr("Record elsewhere", got[0].Err, store.ErrLeaseLost)
		if beat := other.a.beat(c.Lease)[0]; !beat.Lost {
			e.Errorf("a heartbeat elsewhere answered %+v, want Lost", beat)
		}
		other.pass(ttl + ttl/3)
		if got := other.reap(); len(got.Reaped) != 0 || len(got.Expired) != 0 || got.Next >= 0 {
			e.Errorf("a reap elsewhere answered %+v", got)
		}
		e.is(id, task.Running, task.WaitNone)
	}},
	{"operators act in their own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		id := e.one()
		g := e.job("x")
		other.commandRefused(cancelOf(id), store.ErrNotFound)
		other.commandRefused(retryOf(id), store.ErrNotFound)
		other.commandRefused(unblockOf(id, `1`), store.ErrNotFound)
		other.commandRefused(deleteOf(id), store.ErrNotFound)
		other.commandRefused(cancelJobOf(g.sub.Job.ID), store.ErrNotFound)
		other.operate(pauseOf(task.DefaultQueue))
		e.is(id, task.Ready, task.WaitNone)
		e.a.take(id)
	}},
	{"idempotency keys are taken per namespace", func(e *env) {
		other := e.in(otherNamespace)
		here, there := e.one(once("k")), other.one(once("k"))
		e.existing(e.draft(once("k")), here)
		other.existing(e.draft(once("k")), there)
	}},
	{"concurrency keys are held per namespace", func(e *env) {
		other := e.in(otherNamespace)
		here, there := e.one(key("k", 1)), other.one(key("k", 1))
		c := e.a.take(here)
		other.a.take(there)
		next := e.one(key("k", 1))
		e.b.getsNothing()
		other.many(3, key("k", 1))
		e.finish(success(c))
		e.b.gets([]task.ID{next})
	}},
	{"an operation touches neither a bystander nor the same ID in another namespace", func(e *env) {
		for _, st := range situations {
			here, there := e.in("here/"+st.name), e.in("there/"+st.name)
			for _, v := range verbs {
				there.follow(here)
				s := &subject{queue: v.name, full: true}
				twin := *s
				st.reach(here, s)
				st.reach(there, &twin)
				before := here.snap()
				there.unchanged(v.name+" in another namespace", func() { v.do(here, s) })
				switch v.name {
				case "time", "reap", "restored": // meant for all
				default:
					here.bystanders(before, s)
				}
				if snap := here.snap(); slices.ContainsFunc(snap.Tasks, func(t task.Task) bool { return t.ID == s.id }) {
					here.readersAgree(snap, s.id)
				}
				there.readersAgree(there.snap(), twin.id)
				e.require(!e.Failed(), "%s on a task that is %s", v.name, st.name)
			}
			here.close()
			there.outlive()
			there.close()
		}
	}},
	{"big payloads of the same ID are each namespace's own", func(e *env) {
		big := `"` + strings.Repeat("x", 100<<10) + `"`
		other := e.in(otherNamespace)
		n := e.draft(input(big))
		e.enqueue(n)
		other.enqueue(n)
		unblock := func(e *env, answer string) {
			e.blockTask(n.ID)
			e.operate(unblockOf(n.ID, answer))
		}
		unblock(e, big)
		unblock(other, big)
		c := other.a.take(n.ID)
		other.record(step(c, "s", big))
		f := success(c)
		f.Output = json.RawMessage(big)
		other.finish(f)
		other.unchanged("the end of a twin", func() {
			unblock(e, `"small"`)
			c := e.a.take(n.ID)
			e.record(step(c, "s", `1`))
			e.finish(dead(c))
			e.operate(retryOf(n.ID))
			e.succeed(n.ID)
			e.operate(deleteOf(n.ID))
		})
		t := other.task(n.ID)
		e.check(string(t.Input) == big && string(t.UnblockInput) == big && string(t.Output) == big && string(other.steps(n.ID)[0].Value) == big, "the twin of a deleted task lost what it had: %s", show(t))
	}},
	{"a batch of many touches none of the same IDs in another namespace", func(e *env) {
		other := e.in(otherNamespace)
		other.follow(e)
		var rs [2][]store.Record
		var fs [2][]store.Finish
		ids, same := e.many(many), other.many(many)
		e.equal("the ids", ids, same)
		rs[0], fs[0] = work(e.a.gets(ids)) // leaves what is due in the other one
		rs[1], fs[1] = work(other.a.gets(same))
		for i, here := range []*env{e, other} {
			there := []*env{other, e}[i]
			there.unchanged("what is done in another namespace", func() {
				here.showEach(false, rs[i])
				here.endEach(false, fs[i])
			})
		}
	}},
}

// bystanders expects that nothing was written about tasks that have nothing to
// do with the subject.
func (e *env) bystanders(before *store.Snapshot, s *subject) {
	e.Helper()
	after := e.snap()
	same := func(what string, x, y any) {
		e.Helper()
		e.check(reflect.DeepEqual(x, y), "the %s of others were %+v and are %+v", what, x, y)
	}
	others := func(snap *store.Snapshot) (out store.Snapshot) {
		out.Tasks = of(snap.Tasks, func(t task.Task) bool { return !s.about(t.ID) })
		out.Jobs = of(snap.Jobs, func(j task.Job) bool { return j.ID != s.job })
		out.Edges = of(snap.Edges, func(r store.EdgeRow) bool { return !s.about(r.Task) })
		out.Attempts = of(snap.Attempts, func(a task.Attempt) bool { return !s.about(a.TaskID) })
		out.Decisions = of(snap.Decisions, func(d task.Decision) bool { return !s.about(d.TaskID) })
		out.Steps = of(snap.Steps, func(st task.Step) bool { return !s.about(st.TaskID) })
		out.Dispatch = of(snap.Dispatch, func(d store.DispatchRow) bool { return !s.about(d.Task) })
		out.Waiters = of(snap.Waiters, func(w store.WaiterRow) bool { return !s.about(w.Task) })
		return out
	}
	x, y := others(before), others(after)
	same("tasks", x.Tasks, y.Tasks)
	same("jobs", x.Jobs, y.Jobs)
	same("edges", x.Edges, y.Edges)
	same("attempts", x.Attempts, y.Attempts)
	same("decisions", x.Decisions, y.Decisions)
	same("steps", x.Steps, y.Steps)
	same("dispatch rows", x.Dispatch, y.Dispatch)
	same("waiters", x.Waiters, y.Waiters)
}

// outlive waits until every deadline has passed, and expects that each was
// kept.
func (e *env) outlive() {
	e.Helper()
	e.silence(lifetime)
	e.reaper.beat()
	e.reapExpired()
	for _, t := range e.snap().Tasks {
		e.check(t.DeadlineAt.IsZero() || t.State.Terminal(), "task %v is %s, %v after its deadline", t.ID, t.State, e.now().Sub(t.DeadlineAt))
	}
}
