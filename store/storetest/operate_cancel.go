package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var cancelCases = []testCase{
	{"a cancel acts in every state that is not terminal", func(e *env) {
		for _, st := range situations {
			for _, force := range []bool{false, true} {
				s := &subject{queue: "cancel/" + st.name}
				if force {
					s.queue = "force/" + st.name
				}
				st.reach(e, s)
				before := e.task(s.id)
				cmd := store.CancelTask{Audit: admin, Task: s.id, Force: force}
				if before.State.Terminal() {
					e.commandRefused(cmd, store.ErrState)
					continue
				}
				got := e.operate(cmd)
				if before.State == task.Running && !force {
					e.equal(st.name, got, store.CommandResult{State: task.Running, Asked: true})
					continue
				}
				e.equal(st.name, got, store.CommandResult{State: task.Cancelled})
				t := e.ended(s.id, task.Cancelled, task.KindCancelled)
				e.near("FinishedAt", t.FinishedAt, e.now())
				e.contains(st.name+": the message", t.Error.Message, admin.By, admin.Reason)
				e.check(t.CancelBy == admin.By && t.CancelReason == admin.Reason, "%s: cancelled by %q because %q", st.name, t.CancelBy, t.CancelReason)
				e.notDispatched(s.id)
				e.check(!e.waits(s.id), "%s: still among the waiters", st.name)
			}
		}
	}},
	{"a running task is asked, and the first request counts", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.equal("the answer", e.operate(cancelOf(id)), store.CommandResult{State: task.Running, Asked: true})
		t := e.is(id, task.Running, task.WaitNone)
		e.check(t.CancelRequested && t.CancelKind == task.KindCancelled && t.CancelBy == admin.By && t.CancelReason == admin.Reason, "the request is not on the task: %s", show(t))
		e.equal("the epoch", t.Epoch, c.Lease.Epoch)
		other := store.CancelTask{Audit: store.Audit{By: "bob", Reason: "me too"}, Task: id}
		e.equal("the second answer", e.operate(other), store.CommandResult{State: task.Running, Asked: true})
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason}})
		e.finish(cancelled(c))
		e.endsCancelled("asked twice", id, task.KindCancelled, admin.By, admin.Reason)
	}},
	{"force takes a running task away at once", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.operate(cancelOf(id))
		e.equal("the answer", e.operate(forceOf(id)), store.CommandResult{State: task.Cancelled})
		t := e.ended(id, task.Cancelled, task.KindCancelled)
		e.check(t.Epoch == c.Lease.Epoch+1 && t.LeaseID.IsZero() && t.LeasedBy == "" && t.LeaseExpiresAt.IsZero(), "the lease was not revoked: %s", show(t))
		a := e.lastAttempt(id)
		e.check(a.Outcome == task.OutcomeCancelled && a.No == 1 && a.LeaseID == c.Lease.ID && !a.FinishedAt.IsZero(), "the attempt was not ended: %+v", a)
		e.powerless("a revoked lease", c)
		e.expireNothing()
	}},
	{"a cancelled task leaves no row behind", func(e *env) {
		now, later := e.one(), e.one(after(time.Second))
		e.operate(cancelOf(now))
		e.operate(cancelOf(later))
		e.pass(2 * time.Second)
		e.a.getsNothing()
		e.a.getsNothing(only(now, later))
		e.next(-1)
		e.equal("the dispatch rows", len(e.snap().Dispatch), 0)
	}},
	{"a terminal task is left alone", func(e *env) {
		for _, end := range ends {
			id := e.one()
			end.end(e, id)
			for _, cmd := range []store.Command{cancelOf(id), forceOf(id)} {
				e.contains("the refusal", e.commandRefused(cmd, store.ErrState), id.String(), string(end.state))
			}
		}
		e.commandRefused(cancelOf(e.newID()), store.ErrNotFound)
	}},
	{"an asked task whose worker dies ends cancelled", func(e *env) {
		g := e.job("a", "b: *a")
		c := e.worker("doomed").take(g.id("a"))
		e.operate(cancelOf(g.id("a")))
		e.equal("the reaped", e.expire(c), store.Reaped{Task: g.id("a"), State: task.Cancelled})
		e.equal("CrashCount", e.ended(g.id("a"), task.Cancelled, task.KindCancelled).CrashCount, 0)
		e.equal("the outcome", e.lastAttempt(g.id("a")).Outcome, task.OutcomeLeaseLost)
		e.is(g.id("b"), task.Ready, task.WaitNone)
	}},
	{"a job's cancel reaches every unfinished task", func(e *env) {
		g := e.graph("done", "ready", "late", "stuck", "needy: ready", "any: *ready *late").with("late", after(time.Minute)).submit()
		e.succeed(g.id("done"))
		e.blockTask(g.id("stuck"))
		e.equal("the answer", g.cancelsJob(), [3]int{5, 0, 1})
		for _, node := range []string{"ready", "late", "stuck", "needy", "any"} {
			e.is(g.id(node), task.Cancelled, task.WaitNone)
			e.notDispatched(g.id(node))
		}
		j := g.counts(task.JobCancelled, 6, 0, 0, 5, 1)
		e.check(j.CancelRequested && j.CancelBy == admin.By && j.CancelReason == admin.Reason, "the actor and reason are not on the job: %+v", j)
	}},
	{"a job's running tasks are asked", func(e *env) {
		g := e.job("a", "b", "c: a", "d: *b")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.equal("the answer", g.cancelsJob(), [3]int{2, 2, 0})
		e.all(task.Cancelled, task.WaitNone, g.all("c", "d")...)
		for _, b := range e.a.beat(cs[0].Lease, cs[1].Lease) {
			e.equal("the beat", b, store.Beat{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason})
		}
		e.equal("the job while tasks run", g.read().State, task.JobRunning)
		e.finish(success(cs[0]))
		e.finish(retry(cs[1], 0))
		e.is(g.id("a"), task.Succeeded, task.WaitNone)
		g.counts(task.JobCancelled, 4, 0, 0, 3, 1)
	}},
	{"a job that ended is left alone", func(e *env) {
		g := e.job("a", "b: a")
		e.succeed(g.id("a"), g.id("b"))
		before := g.read()
		e.equal("the answer", g.cancelsJob(), [3]int{0, 0, 2})
		e.equal("the job", g.read(), before)
		e.commandRefused(cancelJobOf(e.newID()), store.ErrNotFound)
	}},
	{"the first cancel of a job counts", func(e *env) {
		g := e.job("a", "b")
		c := e.a.take(g.id("a"))
		e.equal("the answer", g.cancelsJob(), [3]int{1, 1, 0})
		second := e.operate(store.CancelJob{Audit: store.Audit{By: "bob", Reason: "me too"}, Job: g.sub.Job.ID})
		e.equal("the second answer", second, store.CommandResult{AskedTasks: 1, AlreadyDone: 1})
		e.finish(cancelled(c))
		e.endsCancelled("asked twice", g.id("a"), task.KindCancelled, admin.By, admin.Reason)
		j := g.counts(task.JobCancelled, 2, 0, 0, 2, 0)
		e.equal("the actor and reason", store.Audit{By: j.CancelBy, Reason: j.CancelReason}, admin)
	}},
}

// cancelsJob cancels a job and returns the number of tasks that ended, were asked to end, and had ended before.
func (g *graph) cancelsJob() [3]int {
	g.e.Helper()
	r := g.e.operate(cancelJobOf(g.sub.Job.ID))
	return [3]int{r.Cancelled, r.AskedTasks, r.AlreadyDone}
}

// expireNothing lets every lease expire and expects a reap to find no lease.
func (e *env) expireNothing() {
	e.Helper()
	e.pass(ttl + ttl/3)
	e.reapsNothing()
}
