package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var edgeCases = []testCase{
	{"I7 each kind of edge is decided by each end of its need", func(e *env) {
		for _, end := range ends {
			g := e.job("a", "needs: a", "failed: !a", "done: *a")
			end.end(e, g.id("a"))
			for node, kind := range map[string]task.EdgeKind{"needs": task.OnSuccess, "failed": task.OnFailed, "done": task.OnDone} {
				what := fmt.Sprintf("%s edge of a %s need", kind, end.state)
				id := g.id(node)
				if holds, _ := kind.Holds(task.End{State: end.state}); holds {
					e.equal(what+": RemainingDeps", e.is(id, task.Ready, task.WaitNone).RemainingDeps, 0)
					e.dueAt(id, e.now())
					continue
				}
				want := task.KindDependencyFailed
				if kind == task.OnFailed {
					want = task.KindNotNeeded
				}
				e.contains(what+": the message", e.ended(id, task.Cancelled, want).Error.Message, g.id("a").String(), `"a"`)
				e.notDispatched(id)
			}
			for _, edge := range e.snap().Edges {
				e.check(edge.Done, "the edge to a %s need is not done", end.state)
			}
		}
	}},
	{"a blocked need decides nothing", func(e *env) {
		g := e.job("a", "needs: a", "failed: !a", "done: *a")
		e.blockTask(g.id("a"))
		e.all(task.Pending, task.WaitDeps, g.all("needs", "failed", "done")...)
		e.operate(cancelOf(g.id("a")))
		e.is(g.id("done"), task.Ready, task.WaitNone)
	}},
	{"a task that is not needed does not count against the job", func(e *env) {
		g := e.job("a", "b: a", "repair: !a")
		e.succeed(g.id("a"))
		e.ended(g.id("repair"), task.Cancelled, task.KindNotNeeded)
		g.counts(task.JobRunning, 3, 1, 1, 0, 1)
		e.succeed(g.id("b"))
		g.counts(task.JobSucceeded, 3, 0, 0, 0, 2)
	}},
	{"a task that cannot run passes that on down a chain", func(e *env) {
		const n = 100
		spec := []string{"n0"}
		for i := 1; i < n; i++ {
			spec = append(spec, fmt.Sprintf("n%d: n%d", i, i-1))
		}
		g := e.job(append(spec, fmt.Sprintf("end: *n%d", n-1))...)
		e.fail(g.id("n0"))
		for i := 1; i < n; i++ {
			e.ended(g.id(fmt.Sprintf("n%d", i)), task.Cancelled, task.KindDependencyFailed)
		}
		e.is(g.id("end"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, n+1, 1, 1, n, 0)
		e.succeed(g.id("end"))
		g.counts(task.JobFailed, n+1, 0, 0, n, 1)
	}},
	{"several edges are decided one by one", func(e *env) {
		g := e.job("ok", "bad", "any", "d: ok !bad *any")
		e.fail(g.id("bad"))
		e.operate(cancelOf(g.id("any")))
		e.equal("RemainingDeps", e.is(g.id("d"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.succeed(g.id("ok"))
		e.is(g.id("d"), task.Ready, task.WaitNone)
		e.succeed(g.id("d"))
	}},
	{"R-15 the last of two parents releases the child once", func(e *env) {
		g := e.job("a", "b", "child: a b")
		cs := e.a.takeAll(g.all("a", "b")...)
		e.finish(success(cs[1]))
		e.notDispatched(g.id("child"))
		e.finish(success(cs[0]))
		e.readyOnce(g.id("child"))
	}},
	{"a cancelled dependent is not touched again", func(e *env) {
		g := e.job("a", "b: a", "c: *b")
		e.operate(cancelOf(g.id("b")))
		e.is(g.id("c"), task.Ready, task.WaitNone)
		before := e.task(g.id("b"))
		e.pass(time.Second)
		e.succeed(g.id("a"))
		e.equal("the cancelled dependent", e.task(g.id("b")), before)
		e.dueAt(g.id("c"), e.now().Add(-time.Second))
	}},
	{"a failure of many needs cancels once", func(e *env) {
		g := e.job("a", "b", "c: a b", "d: *c")
		cs := e.a.takeAll(g.all("a", "b")...)
		for _, r := range e.finishAll(dead(cs[0]), dead(cs[1])) {
			e.equal("the answer", r, store.FinishResult{State: task.Failed})
		}
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.equal("RemainingDeps of d", e.is(g.id("d"), task.Ready, task.WaitNone).RemainingDeps, 0)
		e.dueAt(g.id("d"), e.now())
		g.counts(task.JobRunning, 4, 1, 1, 3, 0)
	}},
	{"an operator's cancel decides the edges", func(e *env) {
		g := e.job("a", "b: a", "c: b", "d: *c")
		e.operate(cancelOf(g.id("a")))
		e.ended(g.id("a"), task.Cancelled, task.KindCancelled)
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.ended(g.id("c"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("d"), task.Ready, task.WaitNone)
	}},
}

var jobCases = []testCase{
	{"a job reads back as it was submitted", func(e *env) {
		g := e.graph("a", "b: a")
		g.sub.Job = &task.NewJob{
			ID: g.sub.Job.ID, Name: "nightly", Meta: map[string]string{"by": "cron"},
			Budget: task.Budget{MaxAttemptsPerTask: 3, MaxTotalAttempts: 20, MaxDuration: time.Hour, MaxCost: 5_000_000, MaxRepairs: 1, MaxNoProgress: 9},
		}
		g.submit()
		now := e.now()
		j := g.read()
		e.near("DeadlineAt", j.DeadlineAt, now.Add(time.Hour))
		e.near("UpdatedAt", j.UpdatedAt, now)
		e.equal("the job", j, task.Job{
			ID: g.sub.Job.ID, Name: "nightly", State: task.JobRunning, Budget: g.sub.Job.Budget, Meta: g.sub.Job.Meta,
			Counters: task.JobCounters{Total: 2, Unfinished: 2, Movable: 1}, DeadlineAt: j.DeadlineAt,
			CreatedAt: j.ID.Time(), UpdatedAt: j.UpdatedAt,
		})
		for _, node := range []string{"a", "b"} {
			t := e.task(g.id(node))
			e.equal("the job of a task", t.JobID, j.ID)
			e.equal("the node of a task", t.Node, node)
		}
		e.equal("the edges", e.snap().Edges, []store.EdgeRow{{Task: g.id("b"), Needs: g.id("a"), Kind: task.OnSuccess}})
	}},
	{"a job's only plain task counts for it", func(e *env) {
		n := e.draft()
		job := &task.NewJob{ID: e.newID(), Name: "plain"}
		e.submit(store.Submission{Job: job, Tasks: []task.New{n}})
		e.succeed(n.ID)
		got, err := store.JobOf(e.Context(), e.s, e.ns, job.ID)
		e.check(err == nil && got.State == task.JobSucceeded, "the job whose only task succeeded is %+v, %v", got, err)
	}},
	{"a diamond runs in its order and counts", func(e *env) {
		g := e.job("a", "b: a", "c: a", "d: b c")
		e.is(g.id("a"), task.Ready, task.WaitNone)
		e.all(task.Pending, task.WaitDeps, g.all("b", "c", "d")...)
		for node, deps := range map[string]int{"a": 0, "b": 1, "c": 1, "d": 2} {
			e.equal("RemainingDeps of "+node, e.task(g.id(node)).RemainingDeps, deps)
		}
		g.counts(task.JobRunning, 4, 4, 1, 0, 0)
		e.a.getsNothing(only(g.all("b", "c", "d")...))

		e.a.gets(g.all("a"))
		g.counts(task.JobRunning, 4, 4, 1, 0, 0)
		e.finish(success(e.a.claimAgain(g.id("a"))))
		e.all(task.Ready, task.WaitNone, g.all("b", "c")...)
		e.dueAt(g.id("b"), e.now())
		g.counts(task.JobRunning, 4, 3, 2, 0, 1)
		e.succeed(g.id("c"))
		e.equal("RemainingDeps of d", e.is(g.id("d"), task.Pending, task.WaitDeps).RemainingDeps, 1)
		e.notDispatched(g.id("d"))
		e.succeed(g.id("b"))
		e.is(g.id("d"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, 4, 1, 1, 0, 3)
		e.pass(time.Second)
		e.succeed(g.id("d"))
		j := g.counts(task.JobSucceeded, 4, 0, 0, 0, 4)
		e.near("FinishedAt", j.FinishedAt, e.now())
	}},
	{"a wide job joins once", func(e *env) {
		const n = 100
		spec := []string{"first"}
		last := "last:"
		var middle []string
		for i := range n {
			node := fmt.Sprintf("m%d", i)
			middle = append(middle, node)
			spec = append(spec, node+": first")
			last += " " + node
		}
		g := e.job(append(spec, last)...)
		e.succeed(g.id("first"))
		g.counts(task.JobRunning, n+2, n+1, n, 0, 1)
		e.finishOK(finishes(e.a.takeAll(g.all(middle...)...), success)...)
		e.equal("RemainingDeps of the last", e.is(g.id("last"), task.Ready, task.WaitNone).RemainingDeps, 0)
		e.dueAt(g.id("last"), e.now())
		e.succeed(g.id("last"))
		g.counts(task.JobSucceeded, n+2, 0, 0, 0, n+2)
	}},
	{"a chain of a hundred runs link by link", func(e *env) {
		const n = 100
		spec := []string{"n0"}
		for i := 1; i < n; i++ {
			spec = append(spec, fmt.Sprintf("n%d: n%d", i, i-1))
		}
		g := e.job(spec...)
		for i := range n {
			id := g.id(fmt.Sprintf("n%d", i))
			e.finish(success(e.a.gets([]task.ID{id})[0]))
		}
		g.counts(task.JobSucceeded, n, 0, 0, 0, n)
	}},
	{"a job blocks with its last movable task", func(e *env) {
		g := e.job("a", "b: a", "c")
		e.succeed(g.id("c"))
		e.blockTask(g.id("a"))
		g.counts(task.JobBlocked, 3, 2, 0, 0, 1)
		e.operate(unblockOf(g.id("a"), ""))
		g.counts(task.JobRunning, 3, 2, 1, 0, 1)
		e.succeed(g.id("a"), g.id("b"))
		g.counts(task.JobSucceeded, 3, 0, 0, 0, 3)
	}},
	{"the counters follow every wait of a task", func(e *env) {
		g := e.graph("a").with("a", after(time.Second)).submit()
		id := g.id("a")
		movable := func(what string) {
			e.Helper()
			j := g.read()
			e.check(j.Counters.Movable == 1 && j.State == task.JobRunning, "%s: the job is %s with %+v", what, j.State, j.Counters)
		}
		movable("delayed")
		e.pass(2 * time.Second)
		movable("due")
		c := e.a.take(id)
		movable("running")
		e.finish(suspend(c, e.now().Add(time.Second)))
		movable("sleeping")
		e.pass(2 * time.Second)
		c = e.a.take(id)
		e.finish(released(c))
		movable("released")
		e.finish(retry(e.a.take(id), time.Second))
		movable("to be retried")
		e.pass(2 * time.Second)
		e.operate(pauseOf(task.DefaultQueue))
		movable("paused")
		e.operate(resumeOf(task.DefaultQueue))
		e.expire(e.b.take(id))
		movable("lost")
		e.succeed(id)
		g.counts(task.JobSucceeded, 1, 0, 0, 0, 1)
	}},
	{"a dependent keeps its own delay", func(e *env) {
		g := e.graph("a", "late: a", "early: a").with("late", after(10*time.Second)).with("early", after(time.Second)).submit()
		wish := e.now().Add(10 * time.Second)
		e.all(task.Pending, task.WaitDeps, g.all("late", "early")...)
		e.pass(2 * time.Second)
		e.succeed(g.id("a"))
		e.is(g.id("late"), task.Pending, task.WaitDelay)
		e.dueAt(g.id("late"), wish)
		e.is(g.id("early"), task.Ready, task.WaitNone)
		e.dueAt(g.id("early"), e.now())
		e.a.gets(g.all("early"))
		e.pass(9 * time.Second)
		e.a.gets(g.all("late"))
	}},
	{"the job's time limits every task of it", func(e *env) {
		g := e.graph("a", "b: a", "c").with("b", expires(2*time.Second)).with("c", expires(time.Hour))
		g.sub.Job.Budget.MaxDuration = time.Minute
		g.submit()
		now := e.now()
		e.near("the job's deadline", g.read().DeadlineAt, now.Add(time.Minute))
		e.near("the deadline of a", e.task(g.id("a")).DeadlineAt, now.Add(time.Minute))
		e.near("the deadline of b", e.task(g.id("b")).DeadlineAt, now.Add(2*time.Second))
		e.near("the deadline of c", e.task(g.id("c")).DeadlineAt, now.Add(time.Minute))
	}},
	{"a job ends with its deadline", func(e *env) {
		g := e.graph("a", "b: a", "c")
		g.sub.Job.Budget.MaxDuration = 5 * time.Second
		g.submit()
		e.succeed(g.id("c"))
		e.pass(6 * time.Second)
		e.reap()
		e.ended(g.id("a"), task.Cancelled, task.KindDeadline)
		e.is(g.id("b"), task.Cancelled, task.WaitNone)
		g.counts(task.JobFailed, 3, 0, 0, 2, 1)
	}},
}

// ends lists the ways in which a need ends, with the resulting state.
var ends = []struct {
	state task.State
	end   func(e *env, id task.ID)
}{
	{task.Succeeded, func(e *env, id task.ID) { e.succeed(id) }},
	{task.Failed, func(e *env, id task.ID) { e.fail(id) }},
	{task.Cancelled, func(e *env, id task.ID) { e.operate(cancelOf(id)) }},
}

// readyOnce expects a task to be ready exactly once: one dispatch row, and one lease over all claims.
func (e *env) readyOnce(id task.ID) {
	e.Helper()
	e.equal("RemainingDeps", e.is(id, task.Ready, task.WaitNone).RemainingDeps, 0)
	e.equal("the number of its dispatch rows", len(e.dispatch(id)), 1)
	c := e.a.take(id)
	e.b.getsNothing(only(id))
	e.finish(success(c))
	e.b.getsNothing(only(id))
}

// counts expects a job's counters and state: total, unfinished, movable,
// failed, succeeded.
func (g *graph) counts(state task.JobState, c ...int) task.Job {
	g.e.Helper()
	j := g.read()
	want := task.JobCounters{Total: c[0], Unfinished: c[1], Movable: c[2], Failed: c[3], Succeeded: c[4]}
	g.e.require(j.Counters == want && j.State == state, "the job is %s with %+v, want %s with %+v", j.State, j.Counters, state, want)
	g.e.require(j.FinishedAt.IsZero() != state.Terminal(), "a %s job has FinishedAt %v", state, j.FinishedAt)
	return j
}
