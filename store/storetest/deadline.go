package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var deadlineScenes = []scene{
	{"a task that does not run ends at its deadline", deadlineEvery},
	{"a running task is asked at its deadline, once", deadlineRunning},
	{"a lease lost after the deadline ends the task", deadlineLost},
	{"a task that ended before its deadline is left alone", deadlineAfterEnd},
	{"a deadline decides edges and counters", deadlineEdges},
	{"an operator's cancel comes before the deadline", deadlineAfterCancel},
	{"a limit is obeyed", deadlineLimit},
}

func deadlineEvery(e *env) {
	soon := expires(5 * time.Second)
	late, blocked, again, paused, held := e.one(soon, after(time.Minute)), e.one(soon), e.one(soon), e.one(soon, queue("slow")), e.one(soon, key("k", 1))
	g := e.graph("a", "needy: a").with("needy", soon).submit()
	ready, free := e.one(soon), e.one()
	e.blockTask(blocked)
	e.finish(retry(e.a.take(again), time.Minute))
	e.operate(store.PauseQueue{Audit: admin, Queue: "slow"})
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
		if !strings.Contains(t.Error.Message, "deadline") {
			e.Errorf("the message %q does not speak of the deadline", t.Error.Message)
		}
		e.notDispatched(id)
		if e.waits(id) {
			e.Errorf("a task past its deadline is still a waiter")
		}
	}
	e.all(task.Ready, task.WaitNone, g.id("a"), free)
	e.unchanged("a second reap", func() { e.equal("the tasks ended", len(e.reap().Expired), 0) })
}

func deadlineRunning(e *env) {
	id := e.one(expires(2 * time.Second))
	c := e.a.take(id)
	e.pass(time.Second)
	e.a.beat(c.Lease)
	e.pass(2 * time.Second)
	e.equal("the tasks asked", e.reap().Expired, []task.ID{id})
	t := e.is(id, task.Running, task.WaitNone)
	if !t.CancelRequested || t.CancelKind != task.KindDeadline {
		e.Errorf("the request is not on the task: %s", show(t))
	}
	e.unchanged("a second reap", func() { e.equal("the tasks asked", len(e.reap().Expired), 0) })
	e.equal("the beat", e.a.beat(c.Lease)[0].Cancel, task.KindDeadline)
	e.notRecorded(step(c, "s", `1`), store.ErrCancelRequested)
	e.finish(dead(c))
	e.endsCancelled("deadline", id, task.KindDeadline)
}

func deadlineLost(e *env) {
	id := e.one(expires(time.Second))
	c := e.worker("doomed").take(id)
	e.equal("the reaped", e.expire(c), store.Reaped{Task: id, State: task.Cancelled})
	e.ended(id, task.Cancelled, task.KindDeadline)
	e.notDispatched(id)
	e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeLeaseLost)
}

func deadlineAfterEnd(e *env) {
	id := e.one(expires(2 * time.Second))
	e.succeed(id)
	e.pass(3 * time.Second)
	e.unchanged("a reap", func() { e.equal("the tasks ended", len(e.reap().Expired), 0) })
	e.ended(id, task.Succeeded, task.KindNone)
}

func deadlineEdges(e *env) {
	g := e.graph("a", "b: a", "c: *a").with("a", expires(time.Second)).submit()
	e.pass(2 * time.Second)
	e.reap()
	e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
	e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
	e.is(g.id("c"), task.Ready, task.WaitNone)
	g.counts(task.JobRunning, 3, 1, 1, 2, 0)
}

func deadlineAfterCancel(e *env) {
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
}

func deadlineLimit(e *env) {
	ids := e.many(5, expires(time.Second))
	e.pass(2 * time.Second)
	total := 0
	for range 3 {
		got := e.keeper.reap(store.ReapRequest{CrashBudget: 3, Limit: 2})
		if len(got.Expired) > 2 {
			e.Errorf("%d tasks were ended, at most 2 were asked for", len(got.Expired))
		}
		total += len(got.Expired)
	}
	e.equal("the tasks ended", total, 5)
	e.all(task.Cancelled, task.WaitNone, ids...)
}
