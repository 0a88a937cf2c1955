package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// called records a call with total children, of which kids are the next to store after the stored ones.
func called(c store.Claimed, name string, total, stored int, kids ...task.New) store.Record {
	r := step(c, name, "")
	r.Step.Kind, r.Step.State, r.Step.Value = task.KindCall, task.StepWaiting, nil
	r.Step.ChildrenLeft, r.Step.ChildrenStored, r.Tasks = total, stored, kids
	return r
}

// calls records a call with n children and returns them.
func (e *env) calls(c store.Claimed, name string, n int, opts ...opt) []task.ID {
	e.Helper()
	drafts := e.drafts(n, opts...)
	for at := 0; at < n; at += 1000 {
		got := e.record(called(c, name, n, at, drafts[at:min(n, at+1000)]...)).Step
		e.check(got.State == task.StepWaiting && got.Children == n && got.ChildrenStored == min(n, at+1000), "the call is %+v", got)
	}
	return mapped(drafts, draftID)
}

// waitsForCall runs a task until it is suspended for the n children of a call, and returns them.
func (e *env) waitsForCall(id task.ID, name string, n int, opts ...opt) []task.ID {
	e.Helper()
	c := e.a.take(id)
	kids := e.calls(c, name, n, opts...)
	e.finish(suspended(c, task.WaitChildren, time.Time{}))
	e.called(id, name, n)
	return kids
}

// called expects a task to be suspended with left children of a call open.
func (e *env) called(id task.ID, name string, left int) {
	e.Helper()
	e.is(id, task.Pending, task.WaitChildren)
	e.notDispatched(id)
	e.left(id, name, left)
}

// left expects a call to wait for n children.
func (e *env) left(id task.ID, name string, left int) {
	e.Helper()
	s := e.stepOf(id, name)
	e.check(s.State == task.StepWaiting && s.ChildrenLeft == left, "the call %s is %s, with %d children left, want %d", name, s.State, s.ChildrenLeft, left)
}

// over expects a call to be completed, with n children.
func (e *env) over(id task.ID, name string, n int) {
	e.Helper()
	s := e.stepOf(id, name)
	e.check(s.State == task.StepCompleted && s.ChildrenLeft == 0 && s.Children == n && s.ChildrenStored == n && s.Value == nil, "the call is %+v", s)
}

// stepOf returns the completed or waiting step of a task.
func (e *env) stepOf(id task.ID, name string) task.Step {
	e.Helper()
	list := of(e.steps(id), func(s task.Step) bool { return s.Name == name && s.State != task.StepFailed })
	e.require(len(list) == 1, "the step %s of %v is recorded %d times", name, id, len(list))
	return list[0]
}

// callCases test calls: waits for the end of children.
var callCases = []testCase{
	{"a call stores its children, and their ends complete it", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 3)
		e.all(task.Ready, task.WaitNone, kids...)
		t := e.task(p)
		e.check(t.RemainingDeps == 0 && t.Join == task.JoinNone && t.StepCount == 0, "it has remaining_deps %d, join %q, %d steps", t.RemainingDeps, t.Join, t.StepCount)
		e.succeed(kids[0])
		e.fail(kids[2])
		e.called(p, "build", 1)
		e.operate(cancelOf(kids[1]))
		t = e.due(p)
		e.check(t.WakeSeq == 1 && t.StepCount == 1 && t.AttemptCount == 0, "wake_seq %d, %d steps, %d attempts", t.WakeSeq, t.StepCount, t.AttemptCount)
		e.over(p, "build", 3)
		e.equal("the ends", e.childEnds(p), []task.State{task.Succeeded, task.Cancelled, task.Failed})
		needs, err := e.s.Needs(e.Context(), e.ns, p)
		e.require(err == nil, "Needs: %v", err)
		for i, n := range needs {
			e.check(n.ID == kids[i] && n.Step == "build" && n.Awaited == 1 && n.Kind == task.OnDone && n.Done, "the edge is %+v", n)
		}
		c := e.a.take(p)
		e.equal("the steps handed out", c.Steps, []task.Step{e.stepOf(p, "build")})
		e.unchanged("the same call", func() {
			e.equal("its answer", e.record(called(c, "build", 3, 0, e.drafts(3)...)).Step, c.Steps[0])
		})
		e.finish(success(c))
	}},
	{"a child has its job, deadline, depth and name from its parent, and the rest from its draft", func(e *env) {
		g := e.graph("all", "after: all").with("all", expires(time.Hour), func(n *task.New) { n.AllowFailure = true }).submit()
		kids := e.waitsForCall(g.id("all"), "build", 2, queue("kids"), priority(2), typed(beta), expires(2*time.Hour))
		for i, id := range kids {
			t := e.task(id)
			e.equal("the node", t.Node, fmt.Sprintf("all/build[%d]", i))
			e.check(t.JobID == g.sub.Job.ID && t.ParentID == g.id("all") && t.Depth == 1 && t.AllowFailure, "job %v, parent %v, depth %d, may fail %v", t.JobID, t.ParentID, t.Depth, t.AllowFailure)
			e.equal("the deadline", t.DeadlineAt, e.task(g.id("all")).DeadlineAt)
			e.check(t.Queue == "kids" && t.Priority == 2 && t.Type == beta, "queue %q, priority %d, type %q", t.Queue, t.Priority, t.Type)
		}
		g.countsAllowed(task.JobRunning, task.JobCounters{Total: 4, Unfinished: 4, Movable: 2})
		inner := e.waitsForCall(kids[0], "part", 1)
		e.equal("the node", e.task(inner[0]).Node, "all/build[0]/part[0]")
		e.equal("the node outside of a job", e.task(e.waitsForCall(e.one(), "build", 1)[0]).Node, "build[0]")
		p := e.one()
		e.succeed(e.waitsForCall(p, "build", 2)...)
		more := e.decomposed(p, task.JoinRerun, 1)
		e.equal("the node of a decomposition", e.task(more[0]).Node, "decompose[0]")
	}},
	{"the children of a call come in several records", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		drafts := e.drafts(5)
		first := called(c, "build", 5, 0, drafts[:2]...)
		got := e.record(first)
		e.equal("the answers", got.Enqueued, []store.Enqueued{{ID: drafts[0].ID, Disposition: store.DispositionCreated}, {ID: drafts[1].ID, Disposition: store.DispositionCreated}})
		e.unchanged("the same record", func() { e.equal("its answer", e.record(first).Step, got.Step) })
		e.succeed(drafts[0].ID)
		e.left(p, "build", 4)
		e.record(called(c, "build", 5, 2, drafts[2:4]...))
		e.unchanged("a record that does not know of the last one", func() {
			e.equal("ChildrenStored", e.record(called(c, "build", 5, 2, drafts[2:4]...)).Step.ChildrenStored, 4)
		})
		e.succeed(drafts[1].ID, drafts[2].ID, drafts[3].ID)
		e.left(p, "build", 1)
		e.unchanged("a look", func() { e.left(p, "build", 1); e.record(called(c, "build", 5, 4)) })
		e.recordRefused(called(c, "build", 5, 4, e.drafts(2)...), store.ErrStepConflict)
		e.finish(retry(c, 0))
		c = e.a.take(p)
		last := e.draft()
		e.equal("the node", e.task(drafts[3].ID).Node, "build[3]")
		e.record(called(c, "build", 5, 4, last))
		e.remember(last.ID)
		e.equal("the node", e.task(last.ID).Node, "build[4]")
		e.succeed(last.ID)
		e.over(p, "build", 5)
		e.equal("the answer to the suspension", e.finish(suspended(c, task.WaitChildren, time.Time{})).State, task.Ready)
	}},
	{"what no engine records is refused", func(e *env) {
		c := e.a.take(e.one())
		needs := e.draft()
		needs.Needs = []task.Edge{{Needs: c.Task.ID, Kind: task.OnDone}}
		done := called(c, "build", 1, 0, e.draft())
		done.Step.State = task.StepCompleted
		for _, r := range []store.Record{
			called(c, "build", 1, 0, needs), called(c, "build", 1, 0, e.draft(once("k"))), done,
			called(c, "build", -1, 0), called(c, "build", 2000, 0, e.drafts(1001)...), called(c, "build", 1, 0, e.drafts(2)...), called(c, "build", 2, 1, e.draft()),
		} {
			e.unchanged("it", func() { e.check(e.recordAll(r)[0].Err != nil, "it was accepted") })
		}
	}},
	{"the limits of children hold for calls and decompositions together", func(e *env) {
		p := e.one()
		for depth := 1; depth <= task.MaxDepth; depth++ {
			p = e.waitsForCall(p, "down", 1)[0]
			e.equal("the depth", e.task(p).Depth, depth)
		}
		c := e.a.take(p)
		e.recordRefused(called(c, "down", 1, 0, e.draft()), store.ErrLimit)
		e.finish(success(c))

		many := e.one()
		e.succeed(e.decomposed(many, task.JoinRerun, 1)...)
		c = e.a.take(many)
		e.recordRefused(called(c, "build", task.MaxChildren, 0, e.draft()), store.ErrLimit)
		e.record(called(c, "build", task.MaxChildren-1, 0, e.draft()))
		e.record(called(c, "other", 1, 0, e.draft()))
		f := decompose(c, task.JoinRerun, e.drafts(1)...)
		f.Children = nil
		small := e.draft()
		for range task.MaxChildren - 2 {
			small.ID = e.newID()
			f.Children = append(f.Children, small)
		}
		e.finish(f)
		e.contains("the text", e.ended(many, task.Failed, task.KindValidation).Error.Message, "10000 are allowed")
	}},
	{"R-16 the last child and the suspension in one batch", func(e *env) {
		for _, childFirst := range []bool{true, false} {
			p := e.one()
			c := e.a.take(p)
			kids := e.calls(c, "build", 1)
			fs := []store.Finish{suspended(c, task.WaitChildren, time.Time{}), success(e.b.take(kids[0]))}
			if childFirst {
				fs[0], fs[1] = fs[1], fs[0]
			}
			e.finishOK(fs...)
			e.due(p)
			e.over(p, "build", 1)
		}
	}},
	{"R-15 children that end in one batch all count, in whatever way", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 5)
		cs := e.a.takeAll(kids[:4]...)
		e.finishOK(success(cs[0]), dead(cs[1]), cancelled(cs[2]), retry(cs[3], 0))
		e.called(p, "build", 2)
		e.operate(cancelOf(kids[4]))
		e.succeed(kids[3])
		e.due(p)
		e.equal("the ends", e.childEnds(p), []task.State{task.Succeeded, task.Failed, task.Cancelled, task.Succeeded, task.Cancelled})
	}},
	{"two calls of one task, and two tasks with calls, in one batch", func(e *env) {
		p, other := e.one(), e.one()
		c := e.a.take(p)
		x, y := e.calls(c, "x", 1), e.calls(c, "y", 2)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		z := e.waitsForCall(other, "x", 1)
		e.finishOK(finishes(e.a.takeAll(x[0], y[0], y[1], z[0]), success)...)
		e.equal("wake_seq", e.due(p).WakeSeq, 2)
		e.equal("StepCount", e.task(p).StepCount, 2)
		e.equal("wake_seq", e.due(other).WakeSeq, 1)
	}},
	{"a call that is complete wakes a task that waits for another one too", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		x, y := e.calls(c, "x", 1), e.calls(c, "y", 1)
		e.record(wait(c, "w", "s", 0))
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		e.succeed(x...)
		c = e.a.take(p)
		e.finish(suspended(c, task.WaitSignal, time.Time{}))
		e.is(p, task.Pending, task.WaitSignal)
		e.operate(signalOf(p, "s", "k", `1`))
		c = e.a.take(p)
		e.finish(suspended(c, task.WaitChildren, e.now().Add(time.Minute)))
		e.dueAt(p, e.now().Add(time.Minute))
		e.succeed(y...)
		e.dueAt(p, e.now())
		e.due(p)
	}},
	{"calls do not count among needs, and needs do not wake calls", func(e *env) {
		g := e.job("a", "b", "alarm: !a !b")
		e.fail(g.id("a"))
		kids := e.waitsForCall(g.id("alarm"), "build", 1)
		e.succeed(g.id("b"))
		e.called(g.id("alarm"), "build", 1)
		e.succeed(kids...)
		e.due(g.id("alarm"))
		e.succeed(g.id("alarm"))
		g.counts(task.JobFailed, 4, 0, 0, 1, 3)
	}},
	{"the job of a task with a call moves by the children", func(e *env) {
		g := e.job("all")
		kids := e.waitsForCall(g.id("all"), "build", 2)
		g.counts(task.JobRunning, 3, 3, 2, 0, 0)
		e.blockTask(kids[0])
		e.waiting(kids[1], "w", "s")
		g.counts(task.JobBlocked, 3, 3, 0, 0, 0)
		e.operate(signalOf(kids[1], "s", "k", `1`))
		e.operate(unblockOf(kids[0], ""))
		e.succeed(kids...)
		g.counts(task.JobRunning, 3, 1, 1, 0, 2)
	}},
	{"its key is free while it waits, and its children have their own", func(e *env) {
		p := e.one(key("k", 1))
		kids := e.waitsForCall(p, "build", 2, key("k", 1))
		e.succeed(kids...)
		e.due(p)
	}},
	{"R9 a lost lease stores no child, nor does a task that is to end", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.operate(cancelOf(p))
		e.recordRefused(called(c, "build", 1, 0, e.draft()), store.ErrCancelRequested)
		e.operate(forceOf(p))
		e.recordRefused(called(c, "build", 1, 0, e.draft()), store.ErrLeaseLost)
	}},
	{"a task that waits by a call for another one is found in a circle", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		inner := e.waitsForCall(kids[0], "part", 1)
		e.equal("the state", e.asksFor(inner[0], p).State, task.Failed)
		e.contains("the text", e.ended(inner[0], task.Failed, task.KindValidation).Error.Message, "waits for it")
		e.equal("the state", e.asksFor(kids[1], kids[0]).State, task.Pending)
		other := e.one()
		e.equal("the state", e.asksFor(other, p).State, task.Pending)
	}},
	{"many children", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", fanned)
		for len(kids) > 0 {
			n := min(1000, len(kids))
			e.finishOK(finishes(e.a.takeAll(kids[:n]...), success)...)
			kids = kids[n:]
		}
		e.finishChores()
		e.due(p)
		e.over(p, "build", fanned)
	}},
	{"suspended tasks are counted and listed once, as pending", func(e *env) {
		ids := e.many(5)
		e.waiting(ids[0], "w", "s")
		kids := e.waitsForCall(ids[1], "build", 2)
		for i, why := range []task.Waiting{task.WaitChildren, task.WaitSignal} {
			c := e.a.take(ids[2+i])
			e.record(wait(c, "w", "s", 0))
			kids = append(kids, e.calls(c, "build", 1)...)
			until := e.now().Add(time.Hour)
			if i == 1 {
				until = time.Time{}
			}
			e.finish(suspended(c, why, until))
		}
		e.waiting(ids[4], "w", "s")
		e.operate(cancelOf(ids[4]))
		e.countsAs(map[task.State]int{task.Ready: 4, task.Pending: 4, task.Cancelled: 1})
		e.lists(store.Filter{States: []task.State{task.Pending}}, ids[:4]...)
		e.lists(store.Filter{States: []task.State{task.Pending}, Queue: task.DefaultQueue, Types: []string{alpha}}, ids[:4]...)
		e.lists(store.Filter{States: []task.State{task.Ready}}, kids...)
	}},
	{"another handle sees the call, and ends the last child", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		other := e.second()
		got, err := other.Claim(e.Context(), e.ns, e.b.request(only(kids...)))
		e.require(err == nil && len(got.Tasks) == 2, "Claim: %d, %v", len(got.Tasks), err)
		e.finish(success(got.Tasks[0]))
		_, err = other.Finish(e.Context(), e.ns, success(got.Tasks[1]))
		e.require(err == nil, "Finish: %v", err)
		e.due(p)
	}},
}
