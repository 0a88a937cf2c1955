package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// decompose ends an attempt with children.
func decompose(c store.Claimed, join task.Join, children ...task.New) store.Finish {
	f := store.Finish{Lease: c.Lease, Outcome: task.OutcomeDecompose, Join: join, Children: children, CodeVersion: 1}
	if join == task.JoinComplete {
		f.Output = json.RawMessage(`"joined"`)
	}
	return f
}

// decomposed runs a task until it waits for n children, and returns these.
func (e *env) decomposed(id task.ID, join task.Join, n int, opts ...opt) []task.ID {
	e.Helper()
	drafts := e.drafts(n, opts...)
	e.finish(decompose(e.a.take(id), join, drafts...))
	for i := range drafts {
		e.remember(drafts[i].ID)
	}
	return mapped(drafts, draftID)
}

// waitsFor expects a task to wait for open children.
func (e *env) waitsFor(id task.ID, open int) {
	e.Helper()
	e.equal("RemainingDeps", e.is(id, task.Pending, task.WaitChildren).RemainingDeps, open)
	e.notDispatched(id)
}

// due expects a task to be claimable now.
func (e *env) due(id task.ID) task.Task {
	e.Helper()
	t := e.is(id, task.Ready, task.WaitNone)
	e.equal("RemainingDeps", t.RemainingDeps, 0)
	e.equal("the number of its dispatch rows", len(e.dispatch(id)), 1)
	return t
}

// childEnds returns the states of the children that ended a task's wait, oldest first.
func (e *env) childEnds(id task.ID) []task.State {
	e.Helper()
	needs, err := e.s.Needs(e.Context(), e.ns, id)
	e.require(err == nil, "Needs: %v", err)
	awaited := of(needs, func(n store.Need) bool { return n.Awaited > 0 })
	return mapped(awaited, func(n store.Need) task.State { return n.EndedState })
}

// decomposeCases test tasks that wait for their children.
var decomposeCases = []testCase{
	{"its handler runs again when all children have ended, in whatever way", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 3)
		e.waitsFor(p, 3)
		e.all(task.Ready, task.WaitNone, kids...)
		e.succeed(kids[0])
		e.fail(kids[2])
		e.waitsFor(p, 1)
		e.operate(cancelOf(kids[1]))
		t := e.due(p)
		e.equal("the join", t.Join, task.JoinNone)
		e.equal("attempt_count", t.AttemptCount, 0)
		e.equal("the ends", e.childEnds(p), []task.State{task.Succeeded, task.Cancelled, task.Failed})
		c := e.a.take(p)
		e.equal("the attempt", c.Task.AttemptNo, 2)
		e.finish(success(c))
		e.ended(p, task.Succeeded, task.KindNone)
	}},
	{"a child has its job, deadline and depth from its parent, and the rest from its draft", func(e *env) {
		g := e.graph("all", "after: all").with("all", expires(time.Hour)).submit()
		kids := e.decomposed(g.id("all"), task.JoinRerun, 2, queue("kids"), priority(2), typed(beta), expires(2*time.Hour))
		for i, id := range kids {
			t := e.task(id)
			e.equal("the node", t.Node, fmt.Sprintf("all/decompose[%d]", i))
			e.check(t.JobID == g.sub.Job.ID && t.ParentID == g.id("all") && t.Depth == 1, "job %v, parent %v, depth %d", t.JobID, t.ParentID, t.Depth)
			e.equal("the deadline", t.DeadlineAt, e.task(g.id("all")).DeadlineAt)
			e.check(t.Queue == "kids" && t.Priority == 2 && t.Type == beta, "queue %q, priority %d, type %q", t.Queue, t.Priority, t.Type)
		}
		soon := e.decomposed(kids[0], task.JoinRerun, 1, expires(time.Second))
		t := e.task(soon[0])
		e.equal("the node", t.Node, "all/decompose[0]/decompose[0]")
		e.equal("the depth", t.Depth, 2)
		e.near("the deadline", t.DeadlineAt, e.now().Add(time.Second))
		own := e.drafts(1)
		own[0].Node = "all[one]"
		e.finish(decompose(e.a.take(kids[1]), task.JoinRerun, own...))
		e.remember(own[0].ID)
		e.equal("the node of one that has a name", e.task(own[0].ID).Node, "all[one]")
		e.equal("the node outside of a job", e.task(e.decomposed(e.one(), task.JoinRerun, 1)[0]).Node, "decompose[0]")
	}},
	{"children count for their job, which is blocked only when none can move", func(e *env) {
		g := e.job("all", "after: all")
		kids := e.decomposed(g.id("all"), task.JoinRerun, 2)
		g.counts(task.JobRunning, 4, 4, 2, 0, 0)
		e.succeed(kids[0])
		e.blockTask(kids[1])
		g.counts(task.JobBlocked, 4, 3, 0, 0, 1)
		e.operate(unblockOf(kids[1], ""))
		e.succeed(kids[1], g.id("all"), g.id("after"))
		g.counts(task.JobSucceeded, 4, 0, 0, 0, 4)
	}},
	{"children that end in one batch all count", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 3)
		cs := e.a.takeAll(kids...)
		e.finishOK(success(cs[0]), dead(cs[1]))
		e.waitsFor(p, 1)
		e.finishOK(success(cs[2]))
		e.due(p)
		other := e.one()
		e.finishOK(finishes(e.a.takeAll(e.decomposed(other, task.JoinComplete, 3)...), success)...)
		e.ended(other, task.Succeeded, task.KindNone)
	}},
	{"R8: the same report again stores no child twice", func(e *env) {
		p := e.one()
		f := decompose(e.a.take(p), task.JoinRerun, e.drafts(2)...)
		first := e.finish(f)
		e.equal("the answer", first, store.FinishResult{State: task.Pending, Waiting: task.WaitChildren})
		e.unchanged("the same report", func() { e.equal("the answer", e.finish(f), first) })
		other := f
		other.Children = e.drafts(2)
		e.finishRefused(other, store.ErrConflict)
		kids := mapped(f.Children, draftID)
		e.succeed(kids...)
		e.equal("the answer", e.finish(f), first)
		e.due(p)
	}},
	{"R9: a lost lease stores no child", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.expire(c)
		e.finishRefused(decompose(c, task.JoinRerun, e.draft()), store.ErrLeaseLost)
		e.a.take(p)
		e.finishRefused(decompose(c, task.JoinRerun, e.draft()), store.ErrLeaseLost)
	}},
	{"it may decompose again", func(e *env) {
		p := e.one()
		e.fail(e.decomposed(p, task.JoinRerun, 1)...)
		kids := e.decomposed(p, task.JoinComplete, 2)
		e.equal("the node", e.task(kids[1]).Node, "decompose[2]")
		e.waitsFor(p, 2)
		e.succeed(kids...)
		e.ended(p, task.Succeeded, task.KindNone)
		e.equal("the ends", e.childEnds(p), []task.State{task.Failed, task.Succeeded, task.Succeeded})
	}},
	{"over a limit it fails for good, and no child is stored", func(e *env) {
		p := e.one()
		for depth := 1; depth <= task.MaxDepth; depth++ {
			p = e.decomposed(p, task.JoinRerun, 1)[0]
			e.equal("the depth", e.task(p).Depth, depth)
		}
		tasks := len(e.snap().Tasks)
		f := decompose(e.a.take(p), task.JoinRerun, e.draft())
		want := store.FinishResult{State: task.Failed}
		e.equal("the answer", e.finish(f), want)
		e.equal("the answer to the same report", e.finish(f), want)
		e.contains("the text", e.ended(p, task.Failed, task.KindValidation).Error.Message, "depth 8")
		e.equal("the tasks", len(e.snap().Tasks), tasks)

		many := e.one()
		small := e.draft()
		list := make([]task.New, task.MaxChildren+1)
		for i := range list {
			list[i] = small
			list[i].ID = e.newID()
		}
		e.finish(decompose(e.a.take(many), task.JoinRerun, list...))
		e.contains("the text", e.ended(many, task.Failed, task.KindValidation).Error.Message, "10000 are allowed")
		e.equal("the tasks", len(e.snap().Tasks), tasks+1)
	}},
	{"what no engine reports is refused", func(e *env) {
		c := e.a.take(e.one())
		child := e.draft()
		child.Needs = []task.Edge{{Needs: c.Task.ID, Kind: task.OnDone}}
		for what, f := range map[string]store.Finish{
			"without children": decompose(c, task.JoinRerun),
			"join":             decompose(c, "later", e.draft()),
			"idempotency key":  decompose(c, task.JoinRerun, e.draft(once("k"))),
			"needs":            decompose(c, task.JoinRerun, child),
		} {
			e.unchanged(what, func() {
				err := e.finishAll(f)[0].Err
				e.require(err != nil && strings.Contains(err.Error(), what), "%s: %v", what, err)
			})
		}
		e.finish(success(c))
	}},
	{"its key is free while it waits, and its children have their own", func(e *env) {
		p := e.one(key("k", 1))
		kids := e.decomposed(p, task.JoinRerun, 2, key("k", 1))
		e.succeed(kids...)
		e.due(p)
	}},
	{"many children", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinComplete, fanned)
		e.waitsFor(p, fanned)
		for len(kids) > 0 {
			n := min(1000, len(kids))
			e.finishOK(finishes(e.a.takeAll(kids[:n]...), success)...)
			kids = kids[n:]
		}
		e.finishChores()
		e.ended(p, task.Succeeded, task.KindNone)
	}},
	{"another handle sees the children, and ends the last one", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 2)
		other := e.second()
		got, err := other.Claim(e.Context(), e.ns, e.b.request(only(kids...)))
		e.require(err == nil && len(got.Tasks) == 2, "Claim: %d, %v", len(got.Tasks), err)
		e.finish(success(got.Tasks[0]))
		_, err = other.Finish(e.Context(), e.ns, success(got.Tasks[1]))
		e.require(err == nil, "Finish: %v", err)
		e.due(p)
	}},
	{"nobody deletes a task that is waited for, or that has children which run", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinComplete, 2)
		e.fail(kids[0])
		e.contains("the refusal", e.commandRefused(deleteOf(kids[0]), store.ErrState), "still waits for it")
		c := e.a.take(kids[1])
		e.operate(cancelOf(p))
		e.contains("the refusal", e.commandRefused(deleteOf(p), store.ErrState), "has not ended")
		e.finish(cancelled(c))
		e.operate(deleteOf(p))
		e.operate(deleteOf(kids[0]))
	}},
}
