package storetest

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// callEndCases test tasks that end while one of their calls waits, and retries.
var callEndCases = []testCase{
	{"the children of its calls are cancelled when it ends, in whatever way, and theirs", func(e *env) {
		for _, end := range []func(p task.ID, c store.Claimed){
			func(p task.ID, c store.Claimed) { e.finish(success(c)) },
			func(p task.ID, c store.Claimed) { e.finish(dead(c)) },
			func(p task.ID, c store.Claimed) { e.operate(forceOf(p)) },
			func(p task.ID, c store.Claimed) {
				e.finish(suspended(c, task.WaitSignal, time.Time{}))
				e.operate(cancelOf(p))
			},
		} {
			p := e.one()
			c := e.a.take(p)
			kids := e.calls(c, "build", 3)
			inner := e.waitsForCall(kids[2], "part", 1)
			e.succeed(kids[0])
			end(p, c)
			e.check(e.task(p).State.Terminal(), "it has not ended")
			for _, id := range []task.ID{kids[1], kids[2], inner[0]} {
				t := e.ended(id, task.Cancelled, task.KindCancelled)
				e.equal("the text", t.Error.Message, "cancelled: its parent ended")
				e.equal("the kind", t.CancelKind, task.KindParentEnded)
			}
			e.equal("the call", e.stepOf(p, "build").State, task.StepWaiting)
		}
	}},
	{"a child that runs is asked to end", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		cs := e.a.takeAll(kids...)
		e.operate(cancelOf(p))
		e.contains("the refusal", e.commandRefused(retryOf(p), store.ErrState), "still being cancelled")
		e.contains("the refusal", e.commandRefused(deleteOf(p), store.ErrState), "has not ended")
		e.finishOK(cancelled(cs[0]), success(cs[1]))
		e.operate(retryOf(p))
		e.due(p)
		e.left(p, "build", 1)
		e.succeed(kids[0])
		e.over(p, "build", 2)
		c := e.a.take(p)
		e.equal("wake_seq", c.Task.WakeSeq, 1)
		e.finish(success(c))
	}},
	{"a child that ends in the batch in which its parent ends", func(e *env) {
		for _, childFirst := range []bool{true, false} {
			p := e.one()
			c := e.a.take(p)
			kids := e.calls(c, "build", 2)
			fs := []store.Finish{dead(c), success(e.b.take(kids[0]))}
			if childFirst {
				fs[0], fs[1] = fs[1], fs[0]
			}
			e.finishOK(fs...)
			e.ended(p, task.Failed, task.KindHandler)
			e.ended(kids[0], task.Succeeded, task.KindNone)
			e.ended(kids[1], task.Cancelled, task.KindCancelled)
			e.operate(retryOf(p))
			e.left(p, "build", 1)
			e.due(kids[1])
			e.succeed(kids[1])
			e.over(p, "build", 2)
		}
	}},
	{"a child that is to go on in the batch in which its parent ends", func(e *env) {
		for _, childFirst := range []bool{true, false} {
			for i, how := range []func(c store.Claimed) store.Finish{
				func(c store.Claimed) store.Finish { return retry(c, 0) },
				func(c store.Claimed) store.Finish { return retry(c, time.Hour) },
				released,
				func(c store.Claimed) store.Finish { return decompose(c, task.JoinRerun, e.drafts(2)...) },
				func(c store.Claimed) store.Finish { return suspended(c, task.WaitSignal, e.now().Add(time.Hour)) },
			} {
				p := e.one()
				c := e.a.take(p)
				kids := e.calls(c, "build", 1, key("k", 9))
				fs := []store.Finish{dead(c), how(e.b.take(kids[0]))}
				if childFirst {
					fs[0], fs[1] = fs[1], fs[0]
				}
				e.finishOK(fs...)
				e.ended(kids[0], task.Cancelled, task.KindCancelled)
				e.equal(fmt.Sprint("the dispatch rows after ", i), len(e.snap().Dispatch), 0)
			}
		}
	}},
	{"its retry waits again for those that ended with it, and theirs", func(e *env) {
		g := e.job("all")
		kids := e.waitsForCall(g.id("all"), "build", 4)
		inner := e.waitsForCall(kids[3], "part", 1)
		e.succeed(kids[0])
		e.fail(kids[1])
		e.operate(cancelOf(g.id("all")))
		e.operate(retryOf(g.id("all")))
		e.due(g.id("all"))
		e.left(g.id("all"), "build", 3)
		e.left(kids[3], "part", 1)
		e.due(kids[1])
		e.due(kids[2])
		e.due(inner[0])
		c := e.a.take(g.id("all"))
		e.unchanged("the same call", func() {
			e.equal("ChildrenLeft", e.record(called(c, "build", 4, 0, e.drafts(4)...)).Step.ChildrenLeft, 3)
		})
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		e.succeed(kids[1], kids[2], inner[0], kids[3])
		e.due(g.id("all"))
		e.succeed(g.id("all"))
		g.counts(task.JobSucceeded, 6, 0, 0, 0, 6)
	}},
	{"children that are not stored yet are waited for after a retry", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		drafts := e.drafts(3)
		e.record(called(c, "build", 3, 0, drafts[:2]...))
		e.finish(dead(c))
		e.operate(retryOf(p))
		e.left(p, "build", 3)
		c = e.a.take(p)
		e.record(called(c, "build", 3, 2, drafts[2]))
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		e.succeed(mapped(drafts, draftID)...)
		e.due(p)
	}},
	{"a call whose children all ended by themselves is completed by the retry", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		cs := e.a.takeAll(kids...)
		e.operate(cancelOf(p))
		e.finishOK(finishes(cs, success)...)
		e.operate(retryOf(p))
		e.over(p, "build", 2)
		e.equal("StepCount", e.due(p).StepCount, 1)
	}},
	{"a child that is retried counts again while its call waits, and not when that is completed", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		e.fail(kids[0])
		e.called(p, "build", 1)
		e.operate(retryOf(kids[0]))
		e.called(p, "build", 2)
		e.fail(kids[0])
		e.succeed(kids[1])
		before := e.due(p)
		e.operate(retryOf(kids[0]))
		e.succeed(kids[0])
		e.equal("the parent", e.task(p), before)
		e.equal("the ends", e.childEnds(p), []task.State{task.Failed, task.Succeeded})
		e.contains("the refusal", e.commandRefused(deleteOf(kids[0]), store.ErrState), "still waits for it")
		e.fail(p)
		e.operate(retryOf(p))
		e.over(p, "build", 2)
		e.equal("the ends", e.childEnds(p), []task.State{task.Succeeded, task.Succeeded})
	}},
	{"a child that is retried after its parent has ended changes nothing for it", func(e *env) {
		p := e.one()
		kids := e.waitsForCall(p, "build", 2)
		e.operate(cancelOf(p))
		before := e.task(p)
		e.operate(retryOf(kids[0]))
		e.succeed(kids[0])
		e.equal("the parent", e.task(p), before)
		e.operate(retryOf(p))
		e.left(p, "build", 1)
		e.equal("the ends", e.childEnds(p), []task.State{task.Succeeded, ""})
		e.succeed(kids[1])
		e.over(p, "build", 2)
	}},
	{"a child is not deleted while its parent may be retried", func(e *env) {
		for _, how := range []func(id task.ID) []task.ID{
			func(id task.ID) []task.ID { return e.waitsForCall(id, "build", 2) },
			func(id task.ID) []task.ID { return e.decomposed(id, task.JoinRerun, 2) },
			func(id task.ID) []task.ID {
				need := e.one()
				e.asksFor(id, need)
				return []task.ID{need}
			},
		} {
			p := e.one()
			kids := how(p)
			e.operate(cancelOf(p))
			if e.task(kids[0]).State == task.Ready {
				e.succeed(kids[0])
			}
			e.contains("the refusal", e.commandRefused(deleteOf(kids[0]), store.ErrState), p.String(), "may be retried", "delete that one first, or its job")
			e.operate(deleteOf(p))
			e.operate(deleteOf(kids[0]))
		}
		p := e.one()
		kids := e.waitsForCall(p, "build", 1)
		e.succeed(kids[0], p)
		e.operate(deleteOf(kids[0]))
	}},
	{"they end with its deadline, and come back", func(e *env) {
		p := e.one(expires(time.Minute))
		kids := e.waitsForCall(p, "build", 2)
		e.succeed(kids[0])
		e.pass(2 * time.Minute)
		e.reap()
		e.ended(p, task.Cancelled, task.KindDeadline)
		e.ended(kids[1], task.Cancelled, task.KindDeadline)
		e.operate(retryOf(p))
		e.left(p, "build", 1)
		e.succeed(kids[1])
		e.over(p, "build", 2)
	}},
	{"its children are cancelled when its cleanup begins", func(e *env) {
		p := e.one(cleansUp())
		kids := e.waitsForCall(p, "build", 3)
		c := e.a.take(kids[0])
		e.succeed(kids[1])
		e.operate(cancelOf(p))
		e.isToCleanUp("a cancel", p, task.KindCancelled)
		e.equal("the kind", e.ended(kids[2], task.Cancelled, task.KindCancelled).CancelKind, task.KindParentEnded)
		e.equal("the beat", e.a.beat(c.Lease), []store.Beat{{Cancel: task.KindParentEnded, Reason: "its parent ended"}})
		e.finish(success(c))
		e.left(p, "build", 2) // it was asked to end: they are counted when it is retried
		e.finish(undone(e.a.take(p)))
		e.operate(retryOf(p))
		e.left(p, "build", 1)
	}},
	{"R-19 the children of a job that is cancelled end with it, and come back with their parent", func(e *env) {
		for _, runs := range []bool{false, true} {
			g := e.job("all", "after: all")
			kids := e.waitsForCall(g.id("all"), "build", fanned)
			var c store.Claimed
			if runs {
				c = e.a.take(kids[0])
			}
			e.operate(cancelJobOf(g.sub.Job.ID))
			e.finishChores()
			if runs {
				e.finish(cancelled(c))
			}
			for _, id := range []task.ID{kids[0], kids[fanned-1]} {
				e.equal("the kind", e.ended(id, task.Cancelled, task.KindCancelled).CancelKind, task.KindParentEnded)
			}
			e.equal("the job", g.read().State, task.JobCancelled)
			e.operate(retryOf(g.id("all")))
			e.finishChores()
			e.left(g.id("all"), "build", fanned)
			e.due(g.id("all"))
			g.counts(task.JobRunning, fanned+2, fanned+1, fanned+1, 1, 0)
			e.operate(cancelJobOf(g.sub.Job.ID))
			e.finishChores()
		}
	}},
	{"a job that is cancelled while the parent runs does not complete its call", func(e *env) {
		g := e.job("all")
		c := e.a.take(g.id("all"))
		kids := e.calls(c, "build", 2)
		e.succeed(kids[0])
		e.operate(cancelJobOf(g.sub.Job.ID))
		e.ended(kids[1], task.Cancelled, task.KindCancelled)
		e.left(g.id("all"), "build", 1)
		e.finish(cancelled(c))
		e.operate(retryOf(g.id("all")))
		e.left(g.id("all"), "build", 1)
		e.due(kids[1])
		e.succeed(kids[1])
		e.over(g.id("all"), "build", 2)
	}},
	{"many children end and revive with it", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		kids := e.calls(c, "build", 2*fanned)
		inner := e.waitsForCall(kids[0], "part", fanned)
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		for range 2 {
			e.operate(cancelOf(p))
			e.finishChores()
			e.equal("the dispatch rows", len(e.snap().Dispatch), 0)
			e.operate(retryOf(p))
			e.left(p, "build", 2*fanned)
			e.left(kids[0], "part", fanned)
			e.finishChores()
			e.equal("the dispatch rows", len(e.snap().Dispatch), 3*fanned+1)
		}
		for len(inner) > 0 {
			n := min(1000, len(inner))
			e.finishOK(finishes(e.a.takeAll(inner[:n]...), success)...)
			inner = inner[n:]
		}
		e.finishChores()
		e.over(kids[0], "part", fanned)
	}},
	{"a task that ends with its decomposition leaves no child of a call behind", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		lost := e.calls(c, "lost", 2)
		d := e.draft()
		e.finish(decompose(c, task.JoinComplete, d))
		e.remember(d.ID)
		e.succeed(d.ID)
		e.ended(p, task.Succeeded, task.KindNone)
		e.finishChores()
		e.ended(lost[0], task.Cancelled, task.KindCancelled)
		other, need := e.one(), e.one()
		c = e.a.take(other)
		lost = e.calls(c, "lost", 1)
		e.finish(depend(c, need))
		e.fail(need)
		e.ended(other, task.Cancelled, task.KindDependencyFailed)
		e.finishChores()
		e.ended(lost[0], task.Cancelled, task.KindCancelled)
	}},
	{"a lost lease and a restart leave the call as it is", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		kids := e.calls(c, "build", 2)
		e.succeed(kids[0])
		e.expire(c)
		e.left(p, "build", 1)
		c = e.a.take(p)
		e.equal("the call handed out", c.Steps[0].ChildrenLeft, 1)
		e.succeed(kids[1])
		e.equal("the answer", e.finish(suspended(c, task.WaitChildren, time.Time{})).State, task.Ready)
	}},
}
