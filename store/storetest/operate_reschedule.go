package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func rescheduleOf(id task.ID, at time.Time) store.RescheduleTask {
	return store.RescheduleTask{Audit: admin, Task: id, At: at}
}

// runNowOf is a reschedule without an instant.
func runNowOf(id task.ID) store.RescheduleTask { return rescheduleOf(id, time.Time{}) }

// timed are the ways to wait for a time, a minute from now.
var timed = map[task.Waiting]func(e *env) task.ID{
	task.WaitDelay: func(e *env) task.ID { return e.one(after(time.Minute)) },
	task.WaitRetry: func(e *env) task.ID {
		id := e.one()
		e.finish(retry(e.a.take(id), time.Minute))
		return id
	},
	task.WaitSleep: func(e *env) task.ID {
		id := e.one()
		c := e.a.take(id)
		got := e.record(sleep(c, "nap", time.Minute))
		e.finish(suspend(c, got.Step.WakeAt))
		return id
	},
}

var rescheduleCases = []testCase{
	{"a task that waits for a time is due at another one", func(e *env) {
		for why, reach := range timed {
			for _, d := range []time.Duration{10 * time.Second, time.Hour} {
				id := reach(e)
				before, at := e.task(id), e.now().Add(d)
				e.equal("the answer", e.operate(rescheduleOf(id, at)), store.CommandResult{State: task.Pending})
				t := e.is(id, task.Pending, why)
				e.dueAt(id, at)
				e.check(t.ReadyAt.Equal(at) && t.Epoch == before.Epoch && t.AttemptCount == before.AttemptCount && t.AttemptNo == before.AttemptNo, "the task is %s, was %s", show(t), show(before))
				e.equal("the error", t.Error, before.Error)
				e.a.getsNothing(only(id))
				e.silence(d)
				e.finish(success(e.a.take(id)))
			}
		}
	}},
	{"a task that waits for a time runs now", func(e *env) {
		for _, reach := range timed {
			for _, at := range []time.Time{{}, e.now().Add(-time.Hour)} {
				id := reach(e)
				e.equal("the answer", e.operate(rescheduleOf(id, at)), store.CommandResult{State: task.Ready})
				e.is(id, task.Ready, task.WaitNone)
				e.dueAt(id, e.now())
				e.finish(success(e.a.take(id)))
			}
		}
	}},
	{"the sleep that the task is in ends at the new time, and no other", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		short, long := e.record(sleep(c, "short", time.Minute)), e.record(sleep(c, "long", time.Hour))
		e.finish(suspend(c, short.Step.WakeAt))
		wakes := func(name string) time.Time {
			e.Helper()
			for _, s := range e.history(id).Steps {
				if s.Name == name {
					return s.WakeAt
				}
			}
			return time.Time{}
		}
		later := e.now().Add(10 * time.Minute)
		e.operate(rescheduleOf(id, later))
		e.equal("the sleep moved", wakes("short"), later)
		e.equal("the other sleep", wakes("long"), long.Step.WakeAt)
		e.pass(time.Second)
		e.operate(runNowOf(id))
		e.near("the sleep ended", wakes("short"), e.now())
		c = e.a.take(id)
		for _, s := range c.Steps {
			e.check(s.WakeAt.After(c.Task.StartedAt) == (s.Name == "long"), "the sleep %q handed out wakes at %v, the attempt began at %v", s.Name, s.WakeAt, c.Task.StartedAt)
		}
		e.equal("the other sleep", wakes("long"), long.Step.WakeAt)
	}},
	{"a due task waits again until the new time, and a running one's key is not touched", func(e *env) {
		id, at := e.one(), e.now().Add(time.Minute)
		e.operate(rescheduleOf(id, at))
		e.is(id, task.Pending, task.WaitDelay)
		e.dueAt(id, at)
		e.a.getsNothing()

		holder, first, second := e.one(key("k", 1)), e.one(key("k", 1)), e.one(key("k", 1))
		c := e.a.take(holder)
		e.a.getsNothing(only(first, second))
		e.operate(rescheduleOf(first, at))
		e.check(!e.waits(first), "a task that was moved to a later time waits for its key")
		e.finish(success(c))
		e.is(second, task.Ready, task.WaitNone)
		e.succeed(second)
		e.pass(time.Minute)
		e.operate(cancelOf(id))
		e.a.gets([]task.ID{first}, limit(1))
	}},
	{"what is due already keeps its place when it is to run now", func(e *env) {
		old, young := e.one(), e.one(after(time.Second))
		e.pass(2 * time.Second)
		holder, waiter, next := e.one(key("k", 1), priority(9)), e.one(key("k", 1), priority(9)), e.one(key("k", 1), priority(9))
		c := e.a.take(holder)
		e.a.getsNothing(only(waiter, next))
		e.pass(time.Second)
		for _, id := range []task.ID{old, waiter} {
			e.operate(runNowOf(id))
		}
		e.a.gets([]task.ID{old, young}, limit(2))
		e.finish(success(c))
		e.a.gets([]task.ID{waiter})
	}},
	{"a paused task is due at the new time when the pause ends", func(e *env) {
		id := e.one(queue("slow"), after(time.Hour))
		e.operate(pauseOf("slow"))
		e.operate(runNowOf(id))
		e.is(id, task.Pending, task.WaitPaused)
		e.operate(resumeOf("slow"))
		e.a.take(id)
	}},
	{"a job counts on with its rescheduled task", func(e *env) {
		g := e.graph("a", "b: a").with("a", after(time.Hour)).submit()
		e.operate(runNowOf(g.id("a")))
		e.equal("the job's state", g.read().State, task.JobRunning)
		e.succeed(g.id("a"), g.id("b"))
		e.equal("the job's state", g.read().State, task.JobSucceeded)
	}},
	{"reschedule in every other state is refused", func(e *env) {
		for _, st := range situations {
			s := &subject{queue: "reschedule/" + st.name}
			st.reach(e, s)
			t := e.task(s.id)
			if t.Waiting == task.WaitDeps || t.State != task.Pending && t.State != task.Ready {
				e.contains("the refusal", e.commandRefused(runNowOf(s.id), store.ErrState), s.id.String())
			}
		}
		e.commandRefused(runNowOf(e.newID()), store.ErrNotFound)
	}},
	{"a deadline does not move", func(e *env) {
		id := e.one(after(time.Hour), expires(2*time.Hour))
		deadline := e.task(id).DeadlineAt
		e.operate(rescheduleOf(id, e.now().Add(3*time.Hour)))
		e.equal("the deadline", e.task(id).DeadlineAt, deadline)
		e.silence(2 * time.Hour)
		e.pass(2 * ttl)
		e.reap()
		e.ended(id, task.Cancelled, task.KindDeadline)
	}},
}
