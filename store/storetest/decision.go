package storetest

import (
	"encoding/json"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// splits ends a failed attempt with the decision to decompose the task.
func splits(c store.Claimed, join task.Join, children ...task.New) store.Finish {
	f := failure(c, task.DecideDecompose, 0)
	f.Join, f.Children = join, children
	if join == task.JoinComplete {
		f.Output = json.RawMessage(`"joined"`)
	}
	return f
}

// sendsAfter ends a failed attempt with the decision to wait for another task.
func sendsAfter(c store.Claimed, on task.ID) store.Finish {
	f := failure(c, task.DecideAddDependency, 0)
	f.DependsOn = on
	return f
}

// decidedLast returns the last attempt of a task and its decision.
func (e *env) decidedLast(id task.ID, kind task.DecisionKind) (task.Attempt, task.Decision) {
	e.Helper()
	h := e.history(id)
	a := h.Attempts[len(h.Attempts)-1]
	e.require(len(h.Decisions) > 0, "no decision is recorded")
	d := h.Decisions[len(h.Decisions)-1]
	e.equal("the decision's attempt", d.AttemptNo, a.No)
	e.equal("the decision", d.Kind, kind)
	return a, d
}

// decisionCases test failures with the decision to decompose or to wait for another task.
var decisionCases = []testCase{
	{"a failure is followed by children, and its handler runs again when they have ended", func(e *env) {
		p := e.one()
		drafts := e.drafts(2)
		f := splits(e.a.take(p), task.JoinRerun, drafts...)
		first := e.finish(f)
		e.equal("the answer", first, store.FinishResult{State: task.Pending, Waiting: task.WaitChildren})
		kids := mapped(drafts, draftID)
		e.remember(kids[0])
		e.remember(kids[1])
		e.waitsFor(p, 2)
		a, d := e.decidedLast(p, task.DecideDecompose)
		e.check(a.Outcome == task.OutcomeFailure && a.Error != nil && a.Error.Message == f.Error.Message, "the attempt ended %s with %v", a.Outcome, a.Error)
		e.equal("the children of the decision", d.ChildIDs, kids)
		t := e.task(p)
		e.check(t.AttemptCount == 1 && t.Error != nil && t.Error.Message == f.Error.Message, "%d attempts count, the error is %v", t.AttemptCount, t.Error)
		e.unchanged("the same report", func() { e.equal("the answer", e.finish(f), first) })
		other := f
		other.Children = e.drafts(2)
		e.finishRefused(other, store.ErrConflict)
		e.succeed(kids...)
		e.equal("the answer", e.finish(f), first)
		e.due(p)
		e.succeed(p)
	}},
	{"a task that was asked for a person ends with the children of its Decider", func(e *env) {
		g := e.job("a", "after: a")
		drafts := e.drafts(2)
		f := splits(e.a.take(g.id("a")), task.JoinComplete, drafts...)
		f.Outcome = task.OutcomeBlocked
		e.finish(f)
		kids := mapped(drafts, draftID)
		e.remember(kids[0])
		e.remember(kids[1])
		g.counts(task.JobRunning, 4, 4, 2, 0, 0)
		e.equal("attempt_count", e.task(g.id("a")).AttemptCount, 0)
		e.succeed(kids...)
		t := e.ended(g.id("a"), task.Succeeded, task.KindNone)
		e.check(string(t.Output) == `"joined"` && t.Error == nil, "output %s, error %v", t.Output, t.Error)
		e.succeed(g.id("after"))
	}},
	{"over a limit the task fails, and says what was chosen and what had failed", func(e *env) {
		p := e.one()
		for range task.MaxDepth {
			p = e.decomposed(p, task.JoinRerun, 1)[0]
		}
		tasks := len(e.snap().Tasks)
		f := splits(e.a.take(p), task.JoinRerun, e.draft())
		want := store.FinishResult{State: task.Failed}
		e.equal("the answer", e.finish(f), want)
		e.equal("the answer to the same report", e.finish(f), want)
		text := e.ended(p, task.Failed, task.KindValidation).Error.Message
		e.contains("the text", text, "the decider chose decompose")
		e.contains("the text", text, f.Error.Message)
		_, d := e.decidedLast(p, task.DecideMarkDead)
		e.contains("the reason", d.Reason.Text, "cannot be done")
		e.equal("the tasks", len(e.snap().Tasks), tasks)
	}},
	{"a failure is followed by a wait for another task", func(e *env) {
		a, b := e.one(), e.one()
		f := sendsAfter(e.a.take(a), b)
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Pending, Waiting: task.WaitDeps})
		attempt, d := e.decidedLast(a, task.DecideAddDependency)
		e.check(attempt.Outcome == task.OutcomeFailure && len(d.ChildIDs) == 0, "the attempt ended %s, children %v", attempt.Outcome, d.ChildIDs)
		t := e.is(a, task.Pending, task.WaitDeps)
		e.check(t.RemainingDeps == 1 && t.AttemptCount == 1 && t.Error != nil, "it waits for %d, after %d attempts that count, with %v", t.RemainingDeps, t.AttemptCount, t.Error)
		e.succeed(b)
		e.due(a)

		e.equal("the state when it has succeeded", e.finish(sendsAfter(e.a.take(e.one()), b)).State, task.Ready)
		again := sendsAfter(e.a.take(a), b)
		for range 2 {
			e.equal("the state when it asks again", e.finish(again).State, task.Failed)
		}
		e.contains("the text", e.ended(a, task.Failed, task.KindValidation).Error.Message, "was waited for already")
		e.decidedLast(a, task.DecideMarkDead)
	}},
	{"a wait for a task that ended otherwise ends the task", func(e *env) {
		a, b := e.one(), e.one()
		e.fail(b)
		f := sendsAfter(e.a.take(a), b)
		for range 2 {
			e.equal("the answer", e.finish(f), store.FinishResult{State: task.Cancelled})
		}
		e.ended(a, task.Cancelled, task.KindDependencyFailed)
		e.decidedLast(a, task.DecideAddDependency)
		e.operate(retryOf(b))
		e.succeed(b, a)
	}},
	{"in one batch with the end of the other one", func(e *env) {
		bothOrders(func(turn func(...store.Finish) []store.Finish) {
			a, b := e.one(), e.one()
			cs := e.a.takeAll(a, b)
			e.finishOK(turn(sendsAfter(cs[0], b), success(cs[1]))...)
			e.due(a)
			e.succeed(a)
		})
	}},
	{"of a task that is to be cancelled nothing that was decided is done", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.operate(cancelOf(p))
		tasks := len(e.snap().Tasks)
		e.equal("the answer", e.finish(splits(c, task.JoinRerun, e.draft())), store.FinishResult{State: task.Cancelled})
		e.equal("the tasks", len(e.snap().Tasks), tasks)
		e.equal("the decisions", len(e.history(p).Decisions), 0)
	}},
	{"R9: a lost lease stores no child of a decision", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.expire(c)
		e.finishRefused(splits(c, task.JoinRerun, e.draft()), store.ErrLeaseLost)
	}},
}
