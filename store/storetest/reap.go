package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var reapCases = []testCase{
	{"an expired lease goes back to claimable", func(e *env) {
		id := e.one()
		c := e.worker("doomed").take(id)
		got := e.reapExpired()
		e.equal("the reaped", got.Reaped, []store.Reaped{{Task: id, State: task.Ready, Crash: true}})
		t := e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, t.CreatedAt)
		e.check(t.Epoch == c.Lease.Epoch+1 && t.LeaseID.IsZero() && t.LeasedBy == "" && t.LeaseExpiresAt.IsZero(), "the lease was not revoked: %s", show(t))
		e.check(t.CrashCount == 1 && t.AttemptCount == 0 && t.AttemptNo == 1, "CrashCount = %d, AttemptCount = %d, AttemptNo = %d, want 1, 0, 1", t.CrashCount, t.AttemptCount, t.AttemptNo)
		a := e.lastAttempt(id)
		e.check(a.Error != nil && a.Error.Kind == task.KindLeaseExpired && a.Error.Message != "", "the attempt's error is %v, want lease_expired", a.Error)
		e.near("FinishedAt", a.FinishedAt, e.now())
		e.equal("the attempt", a, task.Attempt{
			TaskID: id, No: 1, Epoch: c.Lease.Epoch, LeaseID: c.Lease.ID, Worker: "doomed", CodeVersion: a.CodeVersion,
			StartedAt: c.Task.StartedAt, FinishedAt: a.FinishedAt, Outcome: task.OutcomeLeaseLost, Error: a.Error,
		})
		e.equal("the decisions", len(e.history(id).Decisions), 0)
		e.succeed(id)
		e.equal("CrashCount after success", e.task(id).CrashCount, 0)
	}},
	{"an interrupted task goes before what is younger; one that crashed before does not", func(e *env) {
		for n, want := range []int{0, 1} {
			ids := []task.ID{e.one(), {}}
			for range n {
				e.worker("doomed").take(ids[0])
				e.reapExpired()
			}
			e.worker("doomed").take(ids[0])
			e.pass(time.Second)
			ids[1] = e.one()
			e.reapExpired()
			next := []task.ID{ids[want], ids[1-want]}
			for _, id := range next {
				got := e.b.gets([]task.ID{id}, limit(1))
				e.finish(success(got[0]))
			}
		}
	}},
	{"a lease that has not expired is left alone", func(e *env) {
		c := e.a.take(e.one())
		e.pass(ttl - time.Second)
		e.unchanged("a reap before the lease's end", e.reapsNothing)
		e.finish(success(c))
	}},
	{"a task is poison after as many crashes as the budget allows", func(e *env) {
		for _, budget := range []int{1, 3} {
			id := e.one()
			for n := 1; n <= budget; n++ {
				e.worker("doomed").take(id)
				e.pass(ttl + ttl/3)
				want := store.Reaped{Task: id, State: task.Ready, Crash: true}
				if n == budget {
					want.State = task.Failed
				}
				e.equal("the reaped", e.reapWith(budget).Reaped, []store.Reaped{want})
				e.equal("CrashCount", e.task(id).CrashCount, n)
			}
			t := e.ended(id, task.Failed, task.KindPoison)
			e.notDispatched(id)
			e.check(strings.Contains(t.Error.Message, fmt.Sprint(budget)), "the message %q does not say that %d leases were lost in a row", t.Error.Message, budget)
			e.equal("the attempts", len(e.history(id).Attempts), budget)
			e.b.getsNothing()
		}
		id := e.one()
		for range 6 { // without a crash budget no task is poison
			e.worker("doomed").take(id)
			e.pass(ttl + ttl/3)
			e.reapWith(-1)
			e.is(id, task.Ready, task.WaitNone)
		}
		e.succeed(id)
	}},
	{"poison fails the dependents and the job", func(e *env) {
		g := e.job("a", "b: a", "c: !a")
		e.crash(g.id("a"), 3)
		e.ended(g.id("a"), task.Failed, task.KindPoison)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("c"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, 3, 1, 1, 2, 0)
	}},
	{"a lost lease keeps all else of its task", func(e *env) {
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
	}},
	{"a reap obeys its limit", func(e *env) {
		ids := e.many(5)
		e.a.takeAll(ids...)
		e.pass(ttl + ttl/3)
		for _, want := range []int{2, 2, 1, 0} {
			got := e.reaper.reap(store.ReapRequest{CrashBudget: 3, Limit: 2})
			e.equal("the number reaped", len(got.Reaped), want)
		}
		e.all(task.Ready, task.WaitNone, ids...)
	}},
	{"a reap takes hundreds of leases", func(e *env) {
		ids := e.many(500)
		cs := e.a.takeAll(ids...)
		e.pass(2 * time.Second)
		e.a.beat(cs[0].Lease, cs[1].Lease)
		e.pass(2 * time.Second)
		e.equal("the number reaped", len(e.reap().Reaped), 498)
		e.all(task.Running, task.WaitNone, ids[:2]...)
		e.equal("the number claimed again", len(e.b.claim().Tasks), 498)
	}},
	{"an extended lease does not hide one that was not extended", func(e *env) {
		long, short := e.one(), e.one()
		c := e.a.take(long)
		e.pass(time.Second)
		e.b.take(short)
		e.pass(time.Second)
		e.a.beat(c.Lease)
		e.pass(time.Second + time.Second/2) // past the lease end that the first had at its claim
		e.a.beat(c.Lease)
		e.reapsNothing()
		e.pass(time.Second)
		e.a.beat(c.Lease)
		got := e.reap().Reaped
		e.check(len(got) == 1 && got[0].Task == short, "reaped %v, want only %v", got, short)
		e.is(long, task.Running, task.WaitNone)
	}},
	{"Next is the time to the next expiry", func(e *env) {
		e.check(e.reap().Next < 0, "Next is not negative with nothing to expire")
		e.one(expires(20 * time.Second))
		e.nearly("Next with a deadline", e.reap().Next, 20*time.Second)
		c := e.a.take(e.one())
		e.nearly("Next with a lease", e.reap().Next, ttl)
		e.finish(success(c))
		e.nearly("Next with the deadline again", e.reap().Next, 20*time.Second)
	}},
	{"NextDeadline is the time to the next deadline", func(e *env) {
		e.equal("NextDeadline with nothing to expire", e.reap().NextDeadline, time.Duration(0))
		c := e.a.take(e.one())
		e.equal("NextDeadline with a lease", e.reap().NextDeadline, time.Duration(0))
		late, soon := e.one(expires(time.Minute)), e.one(expires(20*time.Second))
		e.nearly("NextDeadline of two", e.reap().NextDeadline, 20*time.Second)
		e.operate(cancelOf(soon))
		e.nearly("NextDeadline of the other", e.reap().NextDeadline, time.Minute)
		e.finish(success(c))
		e.succeed(late)
		e.equal("NextDeadline after their ends", e.reap().NextDeadline, time.Duration(0))
		ids := e.many(3, expires(time.Second))
		e.pass(2 * time.Second)
		got := e.reaper.reap(store.ReapRequest{CrashBudget: 3, Limit: 2})
		e.check(len(got.Expired) == 2 && got.NextDeadline == 1, "a reap that left one of %d past deadlines answered %d and NextDeadline %v, want 2 and 1ns", len(ids), len(got.Expired), got.NextDeadline)
	}},
	{"R-14 a second reap does nothing", func(e *env) {
		e.a.takeAll(e.many(3)...)
		e.equal("the number reaped", len(e.reapExpired().Reaped), 3)
		e.unchanged("a second reap", e.reapsNothing)
	}},
	{"leases lost in one reap free their keys before they queue again", func(e *env) {
		ids := e.many(2, key("k", 2))
		e.a.gets(ids)
		e.pass(time.Second)
		waiters := e.many(2, key("k", 2))
		e.b.getsNothing()
		e.pass(ttl)
		e.equal("the leases taken", len(e.reap().Reaped), 2)
		e.all(task.Ready, task.WaitNone, waiters...)
		e.b.gets(waiters)
		e.a.getsNothing()
	}},
}

var reapDeadlineCases = []testCase{
	{"a task that does not run ends at its deadline", func(e *env) {
		soon := expires(5 * time.Second)
		late, blocked, again, paused, held := e.one(soon, after(time.Minute)), e.one(soon), e.one(soon), e.one(soon, queue("slow")), e.one(soon, key("k", 1))
		g := e.graph("a", "needy: a").with("needy", soon).submit()
		ready, free := e.one(soon), e.one()
		e.blockTask(blocked)
		e.finish(retry(e.a.take(again), time.Minute))
		e.operate(pauseOf("slow"))
		c := e.a.take(e.one(key("k", 1)))
		e.b.getsNothing(only(held))
		want := []task.ID{late, blocked, again, paused, held, g.id("needy"), ready}
		slices.SortFunc(want, task.ID.Compare)

		e.pass(2 * time.Second)
		e.a.beat(c.Lease)
		e.unchanged("a reap before the deadline", func() { e.reap() })
		e.pass(2 * time.Second)
		e.a.beat(c.Lease)
		e.pass(2 * time.Second)
		got := e.reap()
		slices.SortFunc(got.Expired, task.ID.Compare)
		e.equal("the tasks ended", got.Expired, want)
		for _, id := range want {
			t := e.ended(id, task.Cancelled, task.KindDeadline)
			e.check(strings.Contains(t.Error.Message, "deadline"), "the message %q does not speak of the deadline", t.Error.Message)
			e.notDispatched(id)
			e.check(!e.waits(id), "a task past its deadline is still a waiter")
		}
		e.all(task.Ready, task.WaitNone, g.id("a"), free)
		e.unchanged("a second reap", func() { e.equal("the tasks ended", len(e.reap().Expired), 0) })
	}},
	{"a running task is asked at its deadline, once", func(e *env) {
		id := e.one(expires(2 * time.Second))
		c := e.a.take(id)
		e.pass(time.Second)
		e.equal("the heartbeat before the deadline", e.a.beat(c.Lease), []store.Beat{{}})
		e.pass(2 * time.Second)
		e.equal("the tasks asked", e.reap().Expired, []task.ID{id})
		t := e.is(id, task.Running, task.WaitNone)
		e.check(t.CancelRequested && t.CancelKind == task.KindDeadline, "the request is not on the task: %s", show(t))
		e.unchanged("a second reap", func() { e.equal("the tasks asked", len(e.reap().Expired), 0) })
		beat := e.a.beat(c.Lease)[0]
		e.check(beat.Cancel == task.KindDeadline && !beat.Lost && !beat.Retry, "the heartbeat answered %+v, want Cancel deadline", beat)
		e.recordRefused(step(c, "s", `1`), store.ErrCancelRequested)
		e.finish(dead(c))
		e.endsCancelled("deadline", id, task.KindDeadline)
	}},
	{"a task that ended before its deadline is left alone", func(e *env) {
		id := e.one(expires(2 * time.Second))
		e.succeed(id)
		e.pass(3 * time.Second)
		e.unchanged("a reap", func() { e.equal("the tasks ended", len(e.reap().Expired), 0) })
		e.ended(id, task.Succeeded, task.KindNone)
	}},
	{"an operator's cancel counts before the deadline", func(e *env) {
		id := e.one(expires(2 * time.Second))
		c := e.a.take(id)
		e.operate(cancelOf(id))
		e.pass(time.Second)
		e.a.beat(c.Lease)
		e.pass(2 * time.Second)
		e.reap()
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Cancel: task.KindCancelled, By: admin.By, Reason: admin.Reason}})
		e.finish(dead(c))
		e.endsCancelled("cancelled first", id, task.KindCancelled, admin.By, admin.Reason)
	}},
	{"a reap obeys its limit", func(e *env) {
		ids := e.many(5, expires(time.Second))
		e.pass(2 * time.Second)
		total := 0
		for range 3 {
			got := e.reaper.reap(store.ReapRequest{CrashBudget: 3, Limit: 2})
			e.check(len(got.Expired) <= 2, "%d tasks were ended, at most 2 were asked for", len(got.Expired))
			total += len(got.Expired)
		}
		e.equal("the tasks ended", total, 5)
		e.all(task.Cancelled, task.WaitNone, ids...)
	}},
	{"a lease lost after the deadline ends the task, and its dependent ends by that", func(e *env) {
		g := e.graph("a", "b: a")
		g.sub.Job.Budget.MaxDuration = 4 * time.Second
		g.submit()
		e.a.take(g.id("a"))
		e.pass(5 * time.Second)
		res := e.reap()
		e.equal("the reaped", res.Reaped, []store.Reaped{{Task: g.id("a"), State: task.Cancelled}})
		e.equal("the outcome", e.lastAttempt(g.id("a")).Outcome, task.OutcomeLeaseLost)
		e.notDispatched(g.id("a"))
		e.equal("the tasks past their deadline", len(res.Expired), 0)
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.check(res.Next < 0, "Next is %v, and nothing is left that could expire", res.Next)
	}},
	{"tasks past their deadline in one reap all end by it, and decide edges and counters", func(e *env) {
		g := e.graph("a", "b: a", "c: !b", "d: *a").with("a", expires(time.Second)).with("b", expires(2*time.Second)).submit()
		e.pass(3 * time.Second)
		res := e.reap()
		e.equal("the tasks past their deadline", len(res.Expired), 2)
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("b"), task.Cancelled, task.KindDeadline)
		e.all(task.Ready, task.WaitNone, g.all("c", "d")...)
		g.counts(task.JobRunning, 4, 2, 2, 2, 0)
	}},
	{"a waiter past its deadline ends", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		late, next := e.one(key("k", 1), expires(2*time.Second)), e.one(key("k", 1))
		e.b.getsNothing()
		for range 3 {
			e.pass(time.Second)
			e.a.beat(c.Lease)
		}
		e.equal("the tasks ended", e.reap().Expired, []task.ID{late})
		e.ended(late, task.Cancelled, task.KindDeadline)
		e.finish(success(c))
		e.b.gets([]task.ID{next})
	}},
}
