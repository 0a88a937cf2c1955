package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

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
	{"a lease lost after the deadline ends the task", func(e *env) {
		id := e.one(expires(time.Second))
		c := e.worker("doomed").take(id)
		e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Cancelled})
		e.ended(id, task.Cancelled, task.KindDeadline)
		e.notDispatched(id)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeLeaseLost)
	}},
	{"a task that ended before its deadline is left alone", func(e *env) {
		id := e.one(expires(2 * time.Second))
		e.succeed(id)
		e.pass(3 * time.Second)
		e.unchanged("a reap", func() { e.equal("the tasks ended", len(e.reap().Expired), 0) })
		e.ended(id, task.Succeeded, task.KindNone)
	}},
	{"a deadline decides edges and counters", func(e *env) {
		g := e.graph("a", "b: a", "c: *a").with("a", expires(time.Second)).submit()
		e.pass(2 * time.Second)
		e.reap()
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("c"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, 3, 1, 1, 2, 0)
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
	{"a task that ends with its need misses no deadline", func(e *env) {
		g := e.graph("a", "b: a")
		g.sub.Job.Budget.MaxDuration = 4 * time.Second
		g.submit()
		e.a.take(g.id("a"))
		e.pass(5 * time.Second)
		res := e.reap()
		e.equal("the leases taken", len(res.Reaped), 1)
		e.equal("the tasks past their deadline", len(res.Expired), 0)
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.check(res.Next < 0, "Next is %v, and nothing is left that could expire", res.Next)
	}},
	{"tasks past their deadline in one reap all end by it", func(e *env) {
		g := e.graph("a", "b: a", "c: !b").with("a", expires(time.Second)).with("b", expires(2*time.Second)).submit()
		e.pass(3 * time.Second)
		res := e.reap()
		e.equal("the tasks past their deadline", len(res.Expired), 2)
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("b"), task.Cancelled, task.KindDeadline)
		e.ended(g.id("c"), task.Cancelled, task.KindNotNeeded)
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
