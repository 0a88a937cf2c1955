package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var namespaceCases = []testCase{
	{"readers see their own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		id, g := e.one(labels("a", "b")), e.job("x", "y: x")
		got, err := e.s.Tasks(e.Context(), other.ns, id)
		e.check(err == nil && len(got) == 0, "Tasks of another namespace = %v, %v", got, err)
		other.lists(store.Filter{})
		other.jobsList(store.JobFilter{})
		e.equal("the queues of another namespace", other.queueList(), map[string]store.Queue{})
		e.equal("the needs in another namespace", other.needs(g.id("y")), []store.Need(nil))
		_, err = store.JobOf(e.Context(), e.s, other.ns, g.sub.Job.ID)
		e.wantErr("Job of another namespace", err, store.ErrNotFound)
		_, err = e.s.History(e.Context(), other.ns, id)
		e.wantErr("History of another namespace", err, store.ErrNotFound)
	}},
	{"workers act in their own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		id := e.one()
		e.one(queue("later"), expires(time.Second))
		other.a.getsNothing()
		other.a.getsNothing(only(id))
		c := e.a.take(id)
		other.a.getsNothing(lookUp(c.Lease.ID))
		e.unchanged("a write in another namespace", func() { other.powerless("a lease of another namespace", c) })
		other.pass(ttl + ttl/3)
		other.reapsNothing()
		e.check(other.reap().Next < 0, "a reap in another namespace sees something to come")
		e.is(id, task.Running, task.WaitNone)
	}},
	{"operators act in their own namespace only", func(e *env) {
		other := e.in(otherNamespace)
		id, g := e.one(), e.job("x")
		for _, cmd := range []store.Command{cancelOf(id), retryOf(id), unblockOf(id, `1`), runNowOf(id), deleteOf(id), cancelJobOf(g.sub.Job.ID)} {
			other.commandRefused(cmd, store.ErrNotFound)
		}
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
	{"a verb changes neither other tasks nor the same ID in another namespace", func(e *env) {
		for i, st := range situations {
			if (testing.Short() || e.h.Repeat < 50) && i%4 != 0 { // reduced sizes run a sample
				continue
			}
			here, there := e.in("here/"+st.name), e.in("there/"+st.name)
			for _, v := range verbs {
				there.follow(here)
				s := &subject{queue: v.name, full: true}
				same := *s
				st.reach(here, s)
				st.reach(there, &same)
				before := here.snap()
				there.unchanged(v.name+" in another namespace", func() { v.do(here, s) })
				switch v.name {
				case "time", "reap", "restored": // these act on all tasks
				default:
					here.othersUnchanged(before, s)
				}
				if snap := here.snap(); slices.ContainsFunc(snap.Tasks, func(t task.Task) bool { return t.ID == s.id }) {
					here.readersAgree(snap, s.id)
				}
				there.readersAgree(there.snap(), same.id)
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
		other.unchanged("the end of the same ID", func() {
			unblock(e, `"small"`)
			c := e.a.take(n.ID)
			e.record(step(c, "s", `1`))
			e.finish(dead(c))
			e.operate(retryOf(n.ID))
			e.succeed(n.ID)
			e.operate(deleteOf(n.ID))
		})
		t := other.task(n.ID)
		for _, got := range []json.RawMessage{t.Input, t.UnblockInput, t.Output, other.steps(n.ID)[0].Value} {
			e.check(string(got) == big, "a payload of %d bytes has %d after the same ID was deleted in another namespace", len(big), len(got))
		}
	}},
	{"a batch of many touches none of the same IDs in another namespace", func(e *env) {
		other := e.sameIDs()
		var rs [2][]store.Record
		var fs [2][]store.Finish
		ids, same := e.many(many), other.many(many)
		e.equal("the ids", ids, same)
		rs[0], fs[0] = work(e.a.gets(ids)) // leaves a due task in the other namespace
		rs[1], fs[1] = work(other.a.gets(same))
		for i, here := range []*env{e, other} {
			there := []*env{other, e}[i]
			there.unchanged("a batch in another namespace", func() {
				here.recordEach(false, rs[i])
				here.finishEachOrAll(false, fs[i])
			})
		}
	}},
	{"what follows from a batch touches none of the same IDs in another namespace", func(e *env) {
		other := e.sameIDs()
		var graphs [2]*graph
		var fs [2][]store.Finish
		envs := [2]*env{e, other}
		for i, here := range envs {
			graphs[i] = here.job("a", "b", "c: a b", "d: *a *b")
			fs[i] = mapped(here.a.takeAll(graphs[i].all("a", "b")...), success)
		}
		e.equal("the IDs", graphs[0].nodes, graphs[1].nodes)
		for i, here := range envs {
			envs[1-i].unchanged("a batch in another namespace", func() { here.finishOK(fs[i]...) })
			for _, id := range graphs[i].all("c", "d") {
				here.due(id)
			}
		}
	}},
}

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
		there.reapsOne() // independent of the worker with the same ID here
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
	{"R7 a crash counts by what is known of the task in its own namespace", func(e *env) {
		other := e.sameIDs()
		ids := e.many(2)
		other.many(2)
		both := []struct {
			in                 *env
			quarantined, asked task.ID
		}{{e, ids[0], ids[1]}, {other, ids[1], ids[0]}}
		for _, c := range both {
			c.in.crash(c.quarantined, 2)
			c.in.worker("doomed").take(c.quarantined)
			c.in.worker("doomed").take(c.asked)
		}
		for _, c := range both {
			c.in.operate(cancelOf(c.asked))
		}
		e.pass(ttl + ttl/3)
		for _, c := range both {
			c.in.reap()
			c.in.ended(c.quarantined, task.Failed, task.KindPoison)
			c.in.ended(c.asked, task.Cancelled, task.KindCancelled)
		}
	}},
	{"a lease that is renewed in another namespace expires here", func(e *env) {
		other := e.sameIDs()
		here, there := []store.Claimed{e.a.take(e.one()), e.a.take(e.one())}, []store.Claimed{other.a.take(other.one()), other.a.take(other.one())}
		e.pass(ttl / 3)
		e.a.beat(here[0].Lease)
		other.a.beat(there[1].Lease)
		e.pass(ttl - time.Second/2)
		e.equal("reaped here", mapped(e.reap().Reaped, func(r store.Reaped) task.ID { return r.Task }), []task.ID{here[1].Task.ID})
		e.equal("reaped there", mapped(other.reap().Reaped, func(r store.Reaped) task.ID { return r.Task }), []task.ID{there[0].Task.ID})
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

// othersUnchanged expects no write to tasks unrelated to the subject.
func (e *env) othersUnchanged(before *store.Snapshot, s *subject) {
	e.Helper()
	others := func(snap *store.Snapshot) []any {
		return []any{
			of(snap.Tasks, func(t task.Task) bool { return !s.about(t.ID) }),
			of(snap.Jobs, func(j task.Job) bool { return j.ID != s.job }),
			of(snap.Edges, func(r store.EdgeRow) bool { return !s.about(r.Task) }),
			of(snap.Attempts, func(a task.Attempt) bool { return !s.about(a.TaskID) }),
			of(snap.Decisions, func(d task.Decision) bool { return !s.about(d.TaskID) }),
			of(snap.Steps, func(st task.Step) bool { return !s.about(st.TaskID) }),
			of(snap.Dispatch, func(d store.DispatchRow) bool { return !s.about(d.Task) }),
			of(snap.Waiters, func(w store.WaiterRow) bool { return !s.about(w.Task) }),
		}
	}
	was := others(before)
	for i, is := range others(e.snap()) {
		e.equal("rows of other tasks", is, was[i])
	}
}

// outlive waits until every deadline has passed and expects each deadline to have ended its task.
func (e *env) outlive() {
	e.Helper()
	e.silence(lifetime)
	e.reaper.beat()
	e.reapExpired()
	for _, t := range e.snap().Tasks {
		e.check(t.DeadlineAt.IsZero() || t.State.Terminal(), "task %v is %s, %v after its deadline", t.ID, t.State, e.now().Sub(t.DeadlineAt))
	}
}
