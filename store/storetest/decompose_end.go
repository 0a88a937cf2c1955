package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// decomposeEndCases test tasks that end with their children or before them.
var decomposeEndCases = []testCase{
	{"it succeeds with its own output when all children have", func(e *env) {
		g := e.job("all", "after: all")
		kids := e.decomposed(g.id("all"), task.JoinComplete, 2)
		e.equal("the output meanwhile", len(e.task(g.id("all")).Output), 0)
		e.succeed(kids...)
		t := e.ended(g.id("all"), task.Succeeded, task.KindNone)
		e.equal("the output", string(t.Output), `"joined"`)
		e.equal("the attempts", t.AttemptNo, 1)
		e.due(g.id("after"))
		g.counts(task.JobRunning, 4, 1, 1, 0, 3)
	}},
	{"a long output is kept, and none is null", func(e *env) {
		p, q := e.one(), e.one()
		long := decompose(e.a.take(p), task.JoinComplete, e.draft())
		long.Output = json.RawMessage(`"` + strings.Repeat("x", 3000) + `"`)
		none := decompose(e.a.take(q), task.JoinComplete, e.draft())
		none.Output = nil
		e.finishOK(long, none)
		e.succeed(long.Children[0].ID, none.Children[0].ID)
		e.equal("the output", string(e.task(p).Output), string(long.Output))
		e.equal("no output", string(e.task(q).Output), "null")
	}},
	{"it fails when a child did not succeed, with the last of them", func(e *env) {
		for _, wrong := range []func(id task.ID){
			func(id task.ID) { e.fail(id) },
			func(id task.ID) { e.operate(cancelOf(id)) },
		} {
			g := e.job("all", "after: all", "alarm: !all")
			kids := e.decomposed(g.id("all"), task.JoinComplete, 3)
			wrong(kids[1])
			e.waitsFor(g.id("all"), 2)
			e.fail(kids[2])
			e.succeed(kids[0])
			t := e.ended(g.id("all"), task.Failed, task.KindDependencyFailed)
			e.contains("the text", t.Error.Message, `its child "all/decompose[1]" (`+kids[1].String()+`) ended `)
			e.ended(g.id("after"), task.Cancelled, task.KindDependencyFailed)
			e.due(g.id("alarm"))
		}
	}},
	{"what may fail has children that may", func(e *env) {
		g := e.graph("all", "after: all").with("all", func(n *task.New) { n.AllowFailure = true }).submit()
		e.fail(e.decomposed(g.id("all"), task.JoinComplete, 1)...)
		e.ended(g.id("all"), task.Failed, task.KindDependencyFailed)
		e.succeed(g.id("after"))
		e.equal("the job", g.read().State, task.JobSucceeded)
	}},
	{"its children are cancelled when it is, and theirs", func(e *env) {
		g := e.job("all")
		kids := e.decomposed(g.id("all"), task.JoinRerun, 4)
		inner := e.decomposed(kids[3], task.JoinComplete, 1)
		e.succeed(kids[0])
		c := e.a.take(kids[1])
		e.operate(cancelOf(g.id("all")))
		e.ended(g.id("all"), task.Cancelled, task.KindCancelled)
		for _, id := range []task.ID{kids[2], kids[3], inner[0]} {
			t := e.ended(id, task.Cancelled, task.KindCancelled)
			e.equal("the text", t.Error.Message, "cancelled: its parent ended")
			e.equal("the kind", t.CancelKind, task.KindParentEnded)
		}
		e.check(e.is(kids[1], task.Running, task.WaitNone).CancelRequested, "the child that runs was not asked to end")
		beat := e.a.beat(c.Lease)[0]
		e.equal("the beat", beat, store.Beat{Cancel: task.KindParentEnded, Reason: "its parent ended"})
		g.counts(task.JobRunning, 6, 1, 1, 4, 1)
		e.finish(cancelled(c))
		e.equal("the job", g.read().State, task.JobFailed)
	}},
	{"a child that succeeds although its parent ended has succeeded", func(e *env) {
		p := e.one()
		kids := e.decomposed(p, task.JoinRerun, 2)
		cs := e.a.takeAll(kids...)
		e.operate(forceOf(p))
		e.finishOK(success(cs[0]), dead(cs[1]))
		e.ended(kids[0], task.Succeeded, task.KindNone)
		e.ended(kids[1], task.Cancelled, task.KindCancelled)
		e.ended(p, task.Cancelled, task.KindCancelled)
	}},
	{"they end with its deadline", func(e *env) {
		p := e.one(expires(time.Minute))
		kids := e.decomposed(p, task.JoinRerun, 2)
		soon := e.one(expires(time.Second))
		late := e.decomposed(soon, task.JoinComplete, 1)
		e.pass(2 * time.Minute)
		e.reap()
		for _, id := range []task.ID{p, kids[0], kids[1], soon, late[0]} {
			e.ended(id, task.Cancelled, task.KindDeadline)
		}
	}},
	{"its children are cancelled when its cleanup begins", func(e *env) {
		p := e.one(cleansUp())
		kids := e.decomposed(p, task.JoinRerun, 2)
		c := e.a.take(kids[0])
		e.operate(cancelOf(p))
		e.isToCleanUp("a cancel", p, task.KindCancelled)
		e.equal("the kind", e.ended(kids[1], task.Cancelled, task.KindCancelled).CancelKind, task.KindParentEnded)
		e.finish(success(c))
		e.finish(undone(e.a.take(p)))
		e.ended(p, task.Cancelled, task.KindCancelled)
	}},
	{"one that fails with its children cleans up first", func(e *env) {
		g := e.graph("saga", "next: saga", "alarm: !saga").with("saga", cleansUp()).submit()
		p := g.id("saga")
		kids := e.decomposed(p, task.JoinComplete, 2)
		e.succeed(kids[0])
		e.fail(kids[1])
		t := e.is(p, task.Pending, task.WaitUndo)
		e.check(t.Undo != nil && t.Undo.EndsAs == task.Failed && t.RemainingDeps == 0, "%s, %+v", show(t), t.Undo)
		e.contains("its failure", t.Error.Message, "its child")
		e.all(task.Pending, task.WaitDeps, g.all("next", "alarm")...)
		e.finish(undone(e.a.take(p)))
		e.ended(p, task.Failed, task.KindDependencyFailed)
		e.is(g.id("alarm"), task.Ready, task.WaitNone)
	}},
	{"one that is to be cancelled stores no child", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.operate(cancelOf(p))
		f := decompose(c, task.JoinRerun, e.draft())
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Cancelled})
		e.equal("the tasks", len(e.snap().Tasks), 1)
	}},
	{"the children of a job that is cancelled end with it, and come back with their parent", func(e *env) {
		g := e.job("all", "after: all")
		kids := e.decomposed(g.id("all"), task.JoinRerun, fanned)
		e.operate(cancelJobOf(g.sub.Job.ID))
		e.finishChores()
		for _, id := range []task.ID{kids[0], kids[fanned-1]} {
			t := e.ended(id, task.Cancelled, task.KindCancelled)
			e.check(t.CancelKind == task.KindParentEnded && t.CancelBy == "ada", "it was cancelled by %q, as %s", t.CancelBy, t.CancelKind)
		}
		e.equal("the job", g.read().State, task.JobCancelled)
		e.operate(retryOf(g.id("all")))
		e.finishChores()
		e.waitsFor(g.id("all"), fanned)
		g.counts(task.JobRunning, fanned+2, fanned+1, fanned, 1, 0)
	}},
	{"many children end with it", func(e *env) {
		g := e.job("all")
		kids := e.decomposed(g.id("all"), task.JoinRerun, fanned)
		e.operate(cancelOf(g.id("all")))
		e.finishChores()
		e.ended(kids[fanned-1], task.Cancelled, task.KindCancelled)
		g.counts(task.JobFailed, fanned+1, 0, 0, fanned+1, 0)
	}},
}
