package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var reapScenes = []scene{
	{"an expired lease goes back to claimable", reapExpired},
	{"a lease that has not expired is left alone", reapNotYet},
	{"a task is poison after as many crashes as the budget allows", reapPoison},
	{"a budget of one", reapBudgetOne},
	{"no budget, no poison", reapNoBudget},
	{"poison fails the dependents and the job", reapPoisonJob},
	{"a lost lease keeps its task's wishes", reapKeepsRest},
	{"a limit is obeyed", reapLimit},
	{"a reap of many leases", reapMany},
	{"a lease that was extended does not hide another that was not", reapEachByItself},
	{"Next is the time to the next expiry", reapNext},
	{"R7 a lease lost by a process that lives is no crash", reapNoCrash},
	{"R7 who was heard of when he should have renewed lives", reapHeardOf},
	{"R7 how long a worker may be silent is a matter of its own leases", reapSlowBeats},
	{"R-14 a second reap does nothing", reapTwice},
	{"R-20 the store is gone for 2 × TTL three times: nobody is poisoned", storeGone},
}

func reapExpired(e *env) {
	id := e.one()
	c := e.worker("doomed").take(id)
	e.pass(ttl + ttl/3)
	got := e.reap()
	e.equal("the reaped", got.Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: true}})
	t := e.is(id, task.Ready, task.WaitNone)
	e.dueAt(id, e.now())
	if t.Epoch != c.Lease.Epoch+1 || !t.LeaseID.IsZero() || t.LeasedBy != "" || !t.LeaseExpiresAt.IsZero() {
		e.Errorf("the lease was not revoked: %s", show(t))
	}
	if t.CrashCount != 1 || t.AttemptCount != 0 || t.AttemptNo != 1 {
		e.Errorf("CrashCount = %d, AttemptCount = %d, AttemptNo = %d, want 1, 0, 1", t.CrashCount, t.AttemptCount, t.AttemptNo)
	}
	a := e.lastAttempt(id)
	if a.Error == nil || a.Error.Kind != task.KindLeaseExpired || a.Error.Message == "" {
		e.Errorf("the attempt's error is %v, want lease_expired", a.Error)
	}
	e.near("FinishedAt", a.FinishedAt, e.now())
	e.equal("the attempt", a, task.Attempt{
		TaskID: id, No: 1, Epoch: c.Lease.Epoch, LeaseID: c.Lease.ID, Worker: "doomed", CodeVersion: a.CodeVersion,
		StartedAt: c.Task.StartedAt, FinishedAt: a.FinishedAt, Outcome: task.OutcomeLeaseLost, Error: a.Error,
	})
	e.equal("the decisions", len(e.history(id).Decisions), 0)
	e.succeed(id)
	e.equal("CrashCount after success", e.task(id).CrashCount, 0)
}

func reapNotYet(e *env) {
	c := e.a.take(e.one())
	e.pass(ttl - time.Second)
	e.unchanged("a reap before the lease's end", func() {
		if got := e.reap().Reaped; len(got) != 0 {
			e.Errorf("reaped %v", got)
		}
	})
	e.finish(success(c))
}

func reapPoison(e *env) {
	id := e.one()
	for n := 1; n <= 2; n++ {
		e.equal("the reaped", e.expire(e.worker("doomed").take(id)), store.Reaped{Task: id, State: task.Ready, Crash: true})
		e.equal("CrashCount", e.task(id).CrashCount, n)
	}
	e.equal("the last reaped", e.expire(e.worker("doomed").take(id)), store.Reaped{Task: id, State: task.Failed, Crash: true})
	t := e.ended(id, task.Failed, task.KindPoison)
	e.notDispatched(id)
	if !strings.Contains(t.Error.Message, "3") {
		e.Errorf("the message %q does not say that 3 leases were lost in a row", t.Error.Message)
	}
	e.equal("the attempts", len(e.history(id).Attempts), 3)
	e.b.getsNothing()
}

func reapBudgetOne(e *env) {
	id := e.one()
	e.worker("doomed").take(id)
	e.pass(ttl + ttl/3)
	e.reapWith(1)
	e.ended(id, task.Failed, task.KindPoison)
}

func reapNoBudget(e *env) {
	id := e.one()
	for range 6 {
		e.worker("doomed").take(id)
		e.pass(ttl + ttl/3)
		e.reapWith(-1)
		e.is(id, task.Ready, task.WaitNone)
	}
	e.succeed(id)
}

func reapPoisonJob(e *env) {
	g := e.job("a", "b: a", "c: !a")
	e.crash(g.id("a"), 3)
	e.ended(g.id("a"), task.Failed, task.KindPoison)
	e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
	e.is(g.id("c"), task.Ready, task.WaitNone)
	g.counts(task.JobRunning, 3, 1, 1, 2, 0)
}

func reapKeepsRest(e *env) {
	n := e.draft(labels("a", "b"), input(`"x"`), priority(2), queue("q"), once("k"), expires(time.Minute))
	e.enqueue(n)
	c := e.a.take(n.ID)
	e.record(step(c, "s", `1`))
	e.record(store.Record{Lease: c.Lease, Progress: &task.Progress{Current: 1}})
	before := e.task(n.ID)
	e.expire(c)
	got := e.task(n.ID)
	before.State, before.ReadyAt, before.Epoch, before.UpdatedAt, before.CrashCount = got.State, got.ReadyAt, got.Epoch, got.UpdatedAt, got.CrashCount
	before.LeaseID, before.LeasedBy, before.LeaseExpiresAt, before.Error = task.LeaseID{}, "", time.Time{}, got.Error
	e.equal("the task", got, before)
	e.equal("the dispatch row", e.dispatch(n.ID), []store.DispatchRow{{Task: n.ID, Queue: "q", Type: alpha, Priority: 2, AvailableAt: got.ReadyAt}})
	e.equal("the steps handed out next", len(e.b.take(n.ID).Steps), 1)
}

func reapLimit(e *env) {
	ids := e.many(5)
	e.a.takeAll(ids...)
	e.pass(ttl + ttl/3)
	for _, want := range []int{2, 2, 1, 0} {
		got := e.keeper.reap(store.ReapRequest{CrashBudget: 3, Limit: 2})
		e.equal("the number reaped", len(got.Reaped), want)
	}
	e.all(task.Ready, task.WaitNone, ids...)
}

func reapMany(e *env) {
	ids := e.many(500)
	cs := e.a.takeAll(ids...)
	e.pass(2 * time.Second)
	e.a.beat(cs[0].Lease, cs[1].Lease)
	e.pass(2 * time.Second)
	e.equal("the number reaped", len(e.reap().Reaped), 498)
	e.all(task.Running, task.WaitNone, ids[:2]...)
	e.equal("the number claimed again", len(e.b.claim().Tasks), 498)
}

func reapEachByItself(e *env) {
	long, short := e.one(), e.one()
	c := e.a.take(long)
	e.pass(time.Second)
	e.b.take(short)
	e.pass(time.Second)
	e.a.beat(c.Lease)
	e.pass(time.Second + time.Second/2) // past the end that the first had at its claim
	e.a.beat(c.Lease)
	if got := e.reap().Reaped; len(got) != 0 {
		e.Errorf("reaped %v before any lease's end", got)
	}
	e.pass(time.Second)
	e.a.beat(c.Lease)
	got := e.reap().Reaped
	if len(got) != 1 || got[0].Task != short {
		e.Errorf("reaped %v, want only %v", got, short)
	}
	e.is(long, task.Running, task.WaitNone)
}

func reapNext(e *env) {
	if got := e.reap().Next; got >= 0 {
		e.Errorf("Next = %v with nothing to expire, want < 0", got)
	}
	e.one(expires(20 * time.Second))
	e.nearly("Next with a deadline", e.reap().Next, 20*time.Second)
	c := e.a.take(e.one())
	e.nearly("Next with a lease", e.reap().Next, ttl)
	e.finish(success(c))
	e.nearly("Next with the deadline again", e.reap().Next, 20*time.Second)
}

func reapNoCrash(e *env) {
	id := e.one()
	w := e.worker("forgetful")
	w.stay() // the process lives, but does not renew this lease
	c := w.take(id)
	e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Ready})
	t := e.task(id)
	if t.CrashCount != 0 || t.QuarantineLosses != 0 || t.Epoch != c.Lease.Epoch+1 {
		e.Errorf("CrashCount = %d, SuspectLosses = %d, Epoch = %d, want 0, 0, %d", t.CrashCount, t.QuarantineLosses, t.Epoch, c.Lease.Epoch+1)
	}
	e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeLeaseLost)
}

// A reap comes between two heartbeats. Only silence for more than half of the
// lease says that one of them is missing.
func reapHeardOf(e *env) {
	for _, c := range []struct {
		last  time.Duration // when it was last heard of
		crash bool
	}{{2 * ttl / 3, false}, {ttl / 2, false}, {ttl/2 - time.Millisecond, true}, {ttl / 3, true}} {
		w := e.worker("deaf")
		id := e.one()
		w.take(id)
		e.pass(c.last)
		w.beat() // it does not know of the lease
		e.pass(ttl - c.last)
		e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: c.crash}})
	}
}

func reapSlowBeats(e *env) {
	const long = 4 * ttl
	w := e.worker("slow")
	if err := e.s.Join(e.Context(), e.ns, store.WorkerInfo{ID: w.id, Name: w.name, TTL: long}); err != nil {
		e.Fatalf("Join: %v", err)
	}
	e.worker("quick")
	id := e.one()
	if got := w.claim(func(r *store.ClaimRequest) { r.TTL = long }).Tasks; len(got) != 1 {
		e.Fatalf("claimed %v, want one", claimedIDs(got))
	}
	e.pass(long - ttl)
	w.beat()
	e.pass(ttl)
	e.equal("the reaped", e.reap().Reaped, []store.Reaped{{Task: id, State: task.Ready}})
}

func reapTwice(e *env) {
	e.a.takeAll(e.many(3)...)
	e.pass(ttl + ttl/3)
	e.equal("the number reaped", len(e.reap().Reaped), 3)
	e.unchanged("a second reap", func() {
		if got := e.reap(); len(got.Reaped) != 0 || len(got.Expired) != 0 {
			e.Errorf("reaped %v, ended %v", got.Reaped, got.Expired)
		}
	})
}

func storeGone(e *env) {
	ids := e.many(4)
	cs := e.a.takeAll(ids...)
	a := []task.Lease{cs[0].Lease, cs[1].Lease}
	b := []task.Lease{cs[2].Lease, cs[3].Lease}
	beats := func(w *worker, leases []task.Lease) {
		e.Helper()
		e.equal("the beats", w.beat(leases...), make([]store.Beat, len(leases)))
	}
	for range 3 {
		e.silence(2 * ttl)
		// It is back. Whoever comes first may not judge the others.
		e.unchanged("a reap before any heartbeat", func() {
			e.equal("paused", e.keeper.reap(store.ReapRequest{CrashBudget: 1}).WarmingUp, true)
		})
		e.keeper.beat()
		e.unchanged("a reap just after the first heartbeat", func() {
			e.equal("paused", e.keeper.reap(store.ReapRequest{CrashBudget: 1}).WarmingUp, true)
		})
		beats(e.a, a)
		e.pass(ttl / 3)
		beats(e.b, b)
		for range 4 {
			e.pass(ttl / 3)
			beats(e.a, a)
			beats(e.b, b)
		}
		if got := e.reapWith(1).Reaped; len(got) != 0 {
			e.Fatalf("reaped %v, whose workers live", got)
		}
	}
	for i, t := range e.tasks(ids...) {
		if t.CrashCount != 0 || t.AttemptNo != 1 {
			e.Errorf("CrashCount = %d, AttemptNo = %d, want 0 and 1", t.CrashCount, t.AttemptNo)
		}
		e.finish(success(cs[i]))
	}
}
