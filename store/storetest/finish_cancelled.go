package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishCancelledScenes = []scene{
	{"a cancelled attempt ends cancelled unless it succeeded", cancelledEnds},
	{"a cancel by deadline keeps its kind", cancelledByDeadline},
	{"a cancelled attempt decides edges and counters", cancelledDecidesEdges},
	{"a cancelled attempt answered again", cancelledAgain},
	{"a handler that gives up by itself keeps its own words", gaveUpItself},
}

// endsCancelled checks a task whose cancel was requested while it ran.
func (e *env) endsCancelled(what string, id task.ID, kind task.ErrorKind, words ...string) {
	e.Helper()
	t := e.ended(id, task.Cancelled, kind)
	for _, w := range words {
		if t.Error != nil && !strings.Contains(t.Error.Message, w) {
			e.Errorf("%s: the message %q does not contain %q", what, t.Error.Message, w)
		}
	}
	h := e.history(id)
	if got := h.Attempts[len(h.Attempts)-1].Outcome; got != task.OutcomeCancelled {
		e.Errorf("%s: the attempt's outcome is %s, want cancelled", what, got)
	}
	if len(h.Decisions) != 0 {
		e.Errorf("%s: a decision was written: %+v", what, h.Decisions)
	}
	e.notDispatched(id)
}

func cancelledEnds(e *env) {
	for _, o := range outcomes {
		id := e.one()
		c := e.a.take(id)
		e.operate(cancelOf(id))
		got := e.finish(o.end(c))
		e.equal(o.name+": AttemptCount, as of what was recorded", e.task(id).AttemptCount, 1)
		if o.name == "success" {
			e.equal("the answer", got, store.FinishResult{State: task.Succeeded})
			e.ended(id, task.Succeeded, task.KindNone)
			continue
		}
		e.equal(o.name+": the answer", got, store.FinishResult{State: task.Cancelled})
		e.endsCancelled(o.name, id, task.KindCancelled, admin.By, admin.Reason)
		t := e.task(id)
		if t.CancelBy != admin.By || t.CancelReason != admin.Reason || !t.CancelRequested {
			e.Errorf("%s: who and why are lost: %s", o.name, show(t))
		}
	}
}

func cancelledByDeadline(e *env) {
	ids := e.many(2, expires(2*time.Second))
	cs := e.a.takeAll(ids...)
	e.pass(time.Second)
	e.a.beat(cs[0].Lease, cs[1].Lease)
	e.pass(2 * time.Second)
	e.reap()
	e.finish(retry(cs[0], 0))
	e.endsCancelled("retry", ids[0], task.KindDeadline)
	e.finish(success(cs[1]))
	e.ended(ids[1], task.Succeeded, task.KindNone)
}

func cancelledDecidesEdges(e *env) {
	g := e.job("a", "b: a", "c: *a")
	c := e.a.take(g.id("a"))
	e.operate(cancelOf(g.id("a")))
	e.all(task.Pending, task.WaitDeps, g.all("b", "c")...)
	g.counts(task.JobRunning, 3, 3, 1, 0, 0)
	e.finish(block(c))
	e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
	e.is(g.id("c"), task.Ready, task.WaitNone)
	g.counts(task.JobRunning, 3, 1, 1, 2, 0)
}

func cancelledAgain(e *env) {
	c := e.a.take(e.one())
	e.operate(cancelOf(c.Task.ID))
	f := retry(c, time.Minute)
	first := e.finish(f)
	e.unchanged("the same finish", func() { e.equal("the answer", e.finish(f), first) })
	e.refused(success(c), store.ErrConflict)
}

func gaveUpItself(e *env) {
	c := e.a.take(e.one())
	f := cancelled(c)
	f.Error = &task.Error{Kind: task.KindDeadline, Message: "no time left"}
	e.finish(f)
	t := e.ended(c.Task.ID, task.Cancelled, task.KindDeadline)
	e.equal("the message", t.Error.Message, "no time left")
}
