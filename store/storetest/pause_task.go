package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var pauseTaskCases = []testCase{
	{"a paused task has no dispatch row until it resumes, and keeps its place", func(e *env) {
		paused := e.one()
		due := e.now()
		e.pass(time.Second)
		other := e.one()
		e.equal("the state in the answer", e.operate(pauseTaskOf(paused)).State, task.Ready)
		e.isParked(paused, due)
		e.a.getsNothing(only(paused))
		e.operate(resumeTaskOf(paused))
		t := e.is(paused, task.Ready, task.WaitNone)
		e.check(t.Pause == task.PauseNone, "the task still shows the pause %q", t.Pause)
		e.dueAt(paused, due)
		e.a.gets([]task.ID{paused, other})
	}},
	{"a pause of a task shows its actor and reason, and the first one stays on record", func(e *env) {
		id := e.one()
		e.operate(pauseTaskOf(id))
		e.operate(store.PauseTask{Audit: store.Audit{By: "second"}, Task: id})
		h := e.history(id)
		p := h.TaskPause
		e.require(p != nil && p.Actor == admin.By && p.Reason == admin.Reason && p.Target == id.String(), "the history says %+v about the pause", p)
		e.near("the pause", p.At, e.now())
		for range 2 {
			e.operate(resumeTaskOf(id))
			e.is(id, task.Ready, task.WaitNone)
			e.dueAt(id, e.now())
		}
		h = e.history(id)
		e.check(h.TaskPause == nil, "the history still shows a pause")
		e.equal("the verbs on record", verbsOf(h.Audit), []string{"pause_task", "pause_task", "resume_task", "resume_task"})
	}},
	{"a task that ended cannot be paused, and one that does not exist neither", func(e *env) {
		done, failed := e.one(), e.one()
		e.succeed(done)
		e.fail(failed)
		e.commandRefused(pauseTaskOf(done), store.ErrState)
		e.commandRefused(pauseTaskOf(failed), store.ErrState)
		e.commandRefused(pauseTaskOf(e.newID()), store.ErrNotFound)
		e.commandRefused(resumeTaskOf(e.newID()), store.ErrNotFound)
	}},
	{"a task stays paused wherever it comes from", func(e *env) {
		for what, from := range map[string]func(id task.ID){
			"a retry":   func(id task.ID) { e.finish(retry(e.pausedAsItRuns(id), 0)) },
			"a release": func(id task.ID) { e.finish(released(e.pausedAsItRuns(id))) },
			"a sleep": func(id task.ID) {
				e.finish(suspend(e.pausedAsItRuns(id), e.now().Add(time.Second)))
				e.pass(2 * time.Second)
			},
			"a lost lease": func(id task.ID) { e.expire(e.pausedAsItRuns(id)) },
			"an unblock": func(id task.ID) {
				e.finish(block(e.pausedAsItRuns(id)))
				e.is(id, task.Blocked, task.WaitManual)
				e.operate(unblockOf(id, ""))
			},
			"an operator's retry": func(id task.ID) {
				e.finish(dead(e.pausedAsItRuns(id)))
				e.ended(id, task.Failed, task.KindHandler)
				e.operate(retryOf(id))
			},
			"a reschedule": func(id task.ID) {
				e.operate(pauseTaskOf(id))
				e.operate(store.RescheduleTask{Audit: admin, Task: id, At: e.now().Add(time.Hour)})
				e.isParked(id, e.now().Add(time.Hour))
				e.operate(store.RescheduleTask{Audit: admin, Task: id})
			},
			"its children": func(id task.ID) {
				child := e.decomposed(id, task.JoinRerun, 1)[0]
				e.operate(pauseTaskOf(id))
				e.is(id, task.Pending, task.WaitChildren)
				e.succeed(child)
			},
		} {
			id := e.one()
			from(id)
			t := e.task(id)
			e.check(t.State == task.Pending && t.Waiting == task.WaitPaused && t.Pause == task.PauseTask, "after %s the paused task is %s", what, show(t))
			e.a.getsNothing(only(id))
			e.notDispatched(id)
			e.operate(resumeTaskOf(id))
			e.succeed(id)
		}
	}},
	{"a need that ends does not start a paused dependent", func(e *env) {
		g := e.job("a", "b: a", "c: b")
		e.operate(pauseTaskOf(g.id("b")))
		e.is(g.id("b"), task.Pending, task.WaitDeps)
		e.equal("its pause", e.task(g.id("b")).Pause, task.PauseTask)
		e.succeed(g.id("a"))
		e.is(g.id("b"), task.Pending, task.WaitPaused)
		e.a.getsNothing()
		e.operate(resumeTaskOf(g.id("b")))
		e.succeed(g.id("b"), g.id("c"))
	}},
	{"a paused task that is due later becomes due then", func(e *env) {
		id := e.one(after(time.Hour))
		due := e.task(id).ReadyAt
		e.operate(pauseTaskOf(id))
		e.isParked(id, due)
		e.operate(resumeTaskOf(id))
		e.is(id, task.Pending, task.WaitDelay)
		e.dueAt(id, due)
	}},
	{"a paused task ends by a cancel, by its deadline and by a need", func(e *env) {
		id, late := e.one(), e.one(expires(time.Second))
		g := e.job("a", "b: a")
		for _, p := range []task.ID{id, late, g.id("b")} {
			e.operate(pauseTaskOf(p))
		}
		e.operate(cancelOf(id))
		e.ended(id, task.Cancelled, task.KindCancelled)
		e.fail(g.id("a"))
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.pass(2 * time.Second)
		e.reap()
		e.ended(late, task.Cancelled, task.KindDeadline)
		e.operate(deleteOf(id))
		e.equal("the pauses that are left", len(e.snap().PausedTasks), 2)
	}},
	{"a paused task that ended is not due when it resumes", func(e *env) {
		id, kept := e.one(), e.one()
		for _, p := range []task.ID{id, kept} {
			e.operate(pauseTaskOf(p))
		}
		e.operate(cancelOf(id))
		e.equal("the due times that are kept", mapped(e.snap().PausedTasks, func(p store.PausedTask) bool { return p.Task == kept && !p.DueAt.IsZero() }), []bool{false, true})
		e.operate(resumeTaskOf(id))
		e.ended(id, task.Cancelled, task.KindCancelled)
		e.notDispatched(id)
		e.operate(retryOf(id))
		e.succeed(id)
	}},
	{"a paused task that waits again is not due when it resumes", func(e *env) {
		g := e.job("a", "alarm: !a")
		e.fail(g.id("a"))
		e.operate(pauseTaskOf(g.id("alarm")))
		e.isParked(g.id("alarm"), e.now())
		e.operate(retryOf(g.id("a")))
		e.is(g.id("alarm"), task.Pending, task.WaitDeps)
		e.operate(resumeTaskOf(g.id("alarm")))
		e.is(g.id("alarm"), task.Pending, task.WaitDeps)
		e.notDispatched(g.id("alarm"))
		e.succeed(g.id("a"))
		e.ended(g.id("alarm"), task.Cancelled, task.KindNotNeeded)
	}},
	{"a paused task that is cancelled cleans up", func(e *env) {
		id := e.one(cleansUp())
		e.finish(retry(e.a.take(id), time.Hour))
		e.operate(pauseTaskOf(id))
		e.operate(cancelOf(id))
		e.isToCleanUp("a cancel", id, task.KindCancelled)
		e.a.take(id)
	}},
	{"a paused task leaves its place under its key to the next one", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		first := e.one(key("k", 1))
		e.pass(time.Second)
		next := e.one(key("k", 1))
		e.b.getsNothing() // both wait
		e.operate(pauseTaskOf(first))
		e.equal("the waiters", len(e.snap().Waiters), 1)
		e.finish(success(c))
		c = e.b.gets([]task.ID{next})[0]
		e.operate(resumeTaskOf(first))
		e.b.getsNothing()
		e.finish(success(c))
		e.b.gets([]task.ID{first})
	}},
	{"a due task that is paused wakes a waiter of its key", func(e *env) {
		c := e.a.take(e.one(key("k", 1)))
		first := e.one(key("k", 1))
		e.pass(time.Second)
		next := e.one(key("k", 1))
		e.b.getsNothing()
		e.finish(success(c))
		e.is(first, task.Ready, task.WaitNone)
		e.operate(pauseTaskOf(first))
		e.b.gets([]task.ID{next})
	}},
	{"readers find paused tasks", func(e *env) {
		ids := e.many(3)
		e.operate(pauseTaskOf(ids[0]))
		list, _, err := e.s.List(e.Context(), e.ns, store.Filter{States: []task.State{task.Pending}})
		e.require(err == nil && len(list) == 1 && list[0].ID == ids[0], "List of pending tasks: %v, %v", list, err)
		e.countsAs(map[task.State]int{task.Pending: 1, task.Ready: 2})
	}},
	{"R-17 pause of a task, claim and resume in every order leave one row or one lease", func(e *env) {
		for _, order := range permutations("pause", "claim", "resume", "cancel") {
			id := e.one(key(fmt.Sprint(order), 1))
			for _, op := range order {
				switch op {
				case "pause":
					e.command(pauseTaskOf(id))
				case "resume":
					e.command(resumeTaskOf(id))
				case "claim":
					e.a.claim(only(id))
				case "cancel":
					e.command(cancelOf(id))
				}
				t, rows, want := e.task(id), len(e.dispatch(id)), 1
				if t.State == task.Running || t.State.Terminal() || t.Pause != task.PauseNone {
					want = 0
				}
				e.check(rows == want, "%v: after %s the task is %s with %d dispatch rows, want %d", order, op, t.State, rows, want)
			}
			e.command(resumeTaskOf(id))
			if t := e.task(id); t.State == task.Ready {
				e.a.take(id)
			}
		}
	}},
}

// pausedAsItRuns claims a task and then pauses it.
func (e *env) pausedAsItRuns(id task.ID) store.Claimed {
	e.Helper()
	c := e.a.take(id)
	e.equal("the state in the answer", e.operate(pauseTaskOf(id)).State, task.Running)
	t := e.is(id, task.Running, task.WaitNone)
	e.equal("the pause of a running task", t.Pause, task.PauseTask)
	return c
}

// isParked expects a task to be paused, with its due time kept.
func (e *env) isParked(id task.ID, due time.Time) {
	e.Helper()
	t := e.is(id, task.Pending, task.WaitPaused)
	e.equal("the pause", t.Pause, task.PauseTask)
	e.near("ReadyAt of a paused task", t.ReadyAt, due)
	e.notDispatched(id)
}
