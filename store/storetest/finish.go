package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishCases = []testCase{
	{"every outcome with every decision leads to its state, and counts as the vocabulary says", func(e *env) {
		for _, o := range outcomes {
			id := e.one()
			c := e.a.take(id)
			f := o.end(c)
			got := e.finish(f)
			e.check(got.State == o.state && got.Waiting == o.waiting, "%s: Finish answered %s/%s, want %s/%s", o.name, got.State, got.Waiting, o.state, o.waiting)
			t := e.task(id)
			e.check(t.State == o.state && t.Waiting == o.waiting, "%s: the task is %s/%s, want %s/%s", o.name, t.State, t.Waiting, o.state, o.waiting)
			e.check(t.LeaseID.IsZero() && t.LeasedBy == "" && t.LeaseExpiresAt.IsZero(), "%s: a lease is left: %s", o.name, show(t))
			e.check(t.FinishedAt.IsZero() != t.State.Terminal(), "%s: FinishedAt = %v of a %s task", o.name, t.FinishedAt, t.State)
			if o.kind == task.KindNone {
				e.check(t.Error == nil, "%s: the error is %v, want none", o.name, t.Error)
			} else {
				e.equal(o.name+": the error", t.Error, f.Error)
			}
			e.equal(o.name+": AttemptCount and AttemptNo", [2]int{t.AttemptCount, t.AttemptNo}, [2]int{counted(f), 1})
			e.equal(o.name+": has a dispatch row", len(e.dispatch(id)) == 1, o.state == task.Pending || o.state == task.Ready)
			h := e.history(id)
			e.check(len(h.Attempts) == 1 && h.Attempts[0].Outcome == f.Outcome, "%s: attempts %+v, want one with %s", o.name, h.Attempts, f.Outcome)
			e.check((len(h.Decisions) == 1) == o.decided, "%s: decisions %+v", o.name, h.Decisions)
			if o.state == task.Succeeded {
				e.equal(o.name+": the output", string(t.Output), string(f.Output))
			}
		}
	}},
	{"an attempt is written as it was, and the task keeps its times", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.pass(2 * time.Second)
		f := dead(c)
		f.CodeVersion, f.StepsRun, f.StepsUnreached = 7, []string{"charge", "mail"}, []string{"renamed"}
		f.Handler, f.RouteReason = "canary", "rule 1: metadata tenant=t1"
		f.Notes = map[string]string{"traceparent": "00-a-b-01", "ключ": ""}
		f.Error = &task.Error{Kind: task.KindPanic, Message: "boom", Code: "E17", Step: "mail", Stack: "goroutine 1"}
		e.finish(f)
		h := e.history(id)
		e.require(len(h.Attempts) == 1, "%d attempts, want 1", len(h.Attempts))
		a := h.Attempts[0]
		e.near("StartedAt", a.StartedAt, e.now().Add(-2*time.Second))
		e.near("FinishedAt", a.FinishedAt, e.now())
		e.equal("the attempt", a, task.Attempt{
			TaskID: id, No: 1, Epoch: c.Lease.Epoch, LeaseID: c.Lease.ID, Worker: "A", CodeVersion: 7,
			StartedAt: a.StartedAt, FinishedAt: a.FinishedAt, Outcome: task.OutcomeFailure, Error: f.Error,
			OutcomeHash: f.Hash(), StepsRun: f.StepsRun, StepsUnreached: f.StepsUnreached,
			Handler: f.Handler, RouteReason: f.RouteReason, Notes: f.Notes,
		})
		t := e.task(id)
		e.near("StartedAt of the task", t.StartedAt, a.StartedAt)
		e.near("FinishedAt of the task", t.FinishedAt, e.now())
		e.near("UpdatedAt of the task", t.UpdatedAt, e.now())
		e.equal("the attempts of the snapshot", e.snap().Attempts, h.Attempts)
	}},
	{"a first attempt that succeeds keeps its handler, or why it has none by name", func(e *env) {
		cs := e.a.takeAll(e.many(3)...)
		fins := finishes(cs, success)
		fins[0].Handler, fins[0].RouteReason = "canary", "rule 1"
		fins[1].RouteReason = "no rule"
		fins[2].Notes = map[string]string{"a": "b"}
		e.finishOK(fins...)
		for i, c := range cs {
			a := e.history(c.Task.ID).Attempts[0]
			e.equal("the handler", a.Handler, fins[i].Handler)
			e.equal("the reason", a.RouteReason, fins[i].RouteReason)
			e.equal("the notes", a.Notes, fins[i].Notes)
		}
		e.equal("the attempts of the snapshot", of(e.snap().Attempts, func(a task.Attempt) bool { return a.Handler == "canary" && a.RouteReason == "rule 1" })[0].TaskID, cs[0].Task.ID)
	}},
	{"a decision is written with its evidence", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		f := retry(c, 5*time.Second)
		f.Decision.Reason = task.Reason{
			Policy: "weaver.default", Version: 3, Text: "attempt 1 of 5 failed; again in 5 s", Change: "waits",
			Evidence: map[string]any{"attempts": []any{"no luck"}, "attempt_count": 1, "left_ms": 1.5, "id": int64(9007199254740993), "nested": map[string]any{"a": nil, "b": true}},
			Asked:    &task.Asked{AttemptCount: 2, CrashCount: 1, RepairCount: 1, StepCount: 7, Permanent: true, RetryAfter: time.Second, TimeLeft: time.Hour},
		}
		now := e.now()
		e.finish(f)
		h := e.history(id)
		e.require(len(h.Decisions) == 1, "%d decisions, want 1", len(h.Decisions))
		d := h.Decisions[0]
		e.near("At", d.At, now)
		e.near("NextReadyAt", d.NextReadyAt, now.Add(5*time.Second))
		e.sameJSON("the decision", d, task.Decision{
			TaskID: id, AttemptNo: 1, At: d.At, Kind: task.DecideRetry, NextReadyAt: d.NextReadyAt, Reason: f.Decision.Reason,
		})
		evidence, err := json.Marshal(d.Reason.Evidence)
		e.check(err == nil && strings.Contains(string(evidence), "9007199254740993") && d.Reason.Evidence["attempt_count"] == 1.0, "the evidence is %s, %v", evidence, err)
		e.equal("NextReadyAt and the dispatch", d.NextReadyAt, e.dispatch(id)[0].AvailableAt)
		e.pass(6 * time.Second)
		e.fail(id)
		h = e.history(id)
		e.check(len(h.Decisions) == 2 && h.Decisions[1].AttemptNo == 2 && h.Decisions[1].NextReadyAt.IsZero(), "decisions %+v, want a second one, of attempt 2, without NextReadyAt", h.Decisions)
		e.sameJSON("the decisions of the snapshot", e.snap().Decisions, h.Decisions)
	}},
	{"engine errors in a row are counted", func(e *env) {
		id := e.one()
		for n := 1; n <= 3; n++ {
			e.finish(internalError(e.a.take(id), 0))
			e.equal("InternalCount", e.task(id).InternalCount, n)
		}
		e.finish(retry(e.a.take(id), 0))
		e.equal("InternalCount after a handler's error", e.task(id).InternalCount, 0)
		e.finish(internalError(e.a.take(id), 0))
		e.succeed(id)
		e.equal("InternalCount after a success", e.task(id).InternalCount, 0)
	}},
	{"a blocked attempt counts for nothing, however often", func(e *env) {
		id := e.one(attempts(2))
		asks := decided(task.OutcomeBlocked, task.KindHandler, task.DecideBlock, 0)
		for n := 1; n <= 4; n++ {
			e.finish(asks(e.a.take(id)))
			t := e.task(id)
			e.equal("AttemptCount and AttemptNo", [2]int{t.AttemptCount, t.AttemptNo}, [2]int{0, n})
			e.operate(unblockOf(id, `"go on"`))
		}
		e.finish(retry(e.a.take(id), 0))
		e.finish(asks(e.a.take(id)))
		e.equal("AttemptCount after a failure and a block", e.task(id).AttemptCount, 1)
	}},
	{"a released task is ready at once under a new epoch", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.pass(time.Second)
		e.finish(released(c))
		t := e.is(id, task.Ready, task.WaitNone)
		e.dueAt(id, e.now())
		e.check(t.Epoch == c.Lease.Epoch+1, "the epoch is %d after the release of %d, want one more", t.Epoch, c.Lease.Epoch)
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeReleased)
		e.finishRefused(success(c), store.ErrConflict)
		again := e.b.take(id)
		e.equal("the epoch of the next claim", again.Lease.Epoch, c.Lease.Epoch+2)
	}},
	{"a task that its worker cannot run is due again later, with the reason on record", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		before := e.task(id)
		e.finish(notRun(e.a.take(id)))
		t, last := e.is(id, task.Pending, task.WaitRetry), e.lastAttempt(id)
		e.dueAt(id, e.now().Add(time.Second))
		e.sameJSON("the task's error", t.Error, before.Error)
		e.equal("AttemptCount and MaxAttempts", [2]int{t.AttemptCount, t.MaxAttempts}, [2]int{1, before.MaxAttempts})
		e.sameJSON("the attempt's error", last.Error, notRun(store.Claimed{}).Error)
		e.check(len(e.history(id).Decisions) == 1, "a decision was written")
		e.pass(time.Second)
		e.finish(success(e.b.take(id)))
	}},
	{"success clears the error of earlier attempts", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), 0))
		c := e.a.take(id)
		e.equal("the error the next attempt is handed", c.Task.Error, &task.Error{Kind: task.KindHandler, Message: "no luck"})
		e.finish(success(c))
		e.ended(id, task.Succeeded, task.KindNone)
		e.equal("the error in history", e.history(id).Attempts[0].Error.Message, "no luck")
	}},
	{"a negative delay is due now", func(e *env) {
		id := e.one()
		e.finish(retry(e.a.take(id), -time.Hour))
		e.near("NextReadyAt", e.history(id).Decisions[0].NextReadyAt, e.now())
		e.dueAt(id, e.now())
	}},
	{"a finish that no worker makes is refused", func(e *env) {
		c := e.a.take(e.one())
		undecided, odd, lost := dead(c), dead(c), dead(c)
		undecided.Decision = nil
		odd.Decision = &task.Decision{Kind: "guess"}
		lost.Outcome = task.OutcomeLeaseLost
		for what, f := range map[string]store.Finish{"an outcome of the reaper's": lost, "a failure without a decision": undecided, "an unknown decision": odd} {
			e.unchanged(what, func() { e.check(e.finishAll(f)[0].Err != nil, "%s was accepted", what) })
		}
		e.finish(success(c))
	}},
	{"an attempt that was asked to cancel ends cancelled unless it succeeded", func(e *env) {
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
			e.check(t.CancelBy == admin.By && t.CancelReason == admin.Reason && t.CancelRequested, "%s: the actor and reason are lost: %s", o.name, show(t))
		}
	}},
	{"a cancel by deadline keeps its kind", func(e *env) {
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
	}},
	{"a cancelled attempt decides edges and counters", func(e *env) {
		g := e.job("a", "b: a", "c: *a")
		c := e.a.take(g.id("a"))
		e.operate(cancelOf(g.id("a")))
		e.all(task.Pending, task.WaitDeps, g.all("b", "c")...)
		g.counts(task.JobRunning, 3, 3, 1, 0, 0)
		e.finish(block(c))
		e.ended(g.id("b"), task.Cancelled, task.KindDependencyFailed)
		e.is(g.id("c"), task.Ready, task.WaitNone)
		g.counts(task.JobRunning, 3, 1, 1, 2, 0)
	}},
	{"a handler that cancels itself keeps its own message", func(e *env) {
		c := e.a.take(e.one())
		f := cancelled(c)
		f.Error = &task.Error{Kind: task.KindDeadline, Message: "no time left"}
		e.finish(f)
		t := e.ended(c.Task.ID, task.Cancelled, task.KindDeadline)
		e.equal("the message", t.Error.Message, "no time left")
	}},
}

// outcome is the expected state of a task after one kind of finish.
type outcome struct {
	name    string
	end     func(c store.Claimed) store.Finish
	state   task.State
	waiting task.Waiting
	kind    task.ErrorKind // of the task's error
	decided bool           // a decision is written
}

// counted returns the number of attempts that a finish counts.
func counted(f store.Finish) int {
	if f.Error != nil && task.Counts(f.Outcome, f.Error.Kind) || f.Error == nil && task.Counts(f.Outcome, task.KindNone) {
		return 1
	}
	return 0
}

// decided returns a decided failure with another outcome and error kind.
func decided(o task.Outcome, kind task.ErrorKind, d task.DecisionKind, delay time.Duration) func(store.Claimed) store.Finish {
	return func(c store.Claimed) store.Finish {
		f := failure(c, d, delay)
		f.Outcome, f.Error.Kind = o, kind
		return f
	}
}

var outcomes = []outcome{
	{"success", success, task.Succeeded, task.WaitNone, task.KindNone, false},
	{"failure, retry later", decided(task.OutcomeFailure, task.KindHandler, task.DecideRetry, time.Minute), task.Pending, task.WaitRetry, task.KindHandler, true},
	{"failure, retry at once", decided(task.OutcomeFailure, task.KindPanic, task.DecideRetry, 0), task.Ready, task.WaitNone, task.KindPanic, true},
	{"failure, mark dead", decided(task.OutcomeFailure, task.KindTimeout, task.DecideMarkDead, 0), task.Failed, task.WaitNone, task.KindTimeout, true},
	{"failure, block", decided(task.OutcomeFailure, task.KindHandler, task.DecideBlock, 0), task.Blocked, task.WaitManual, task.KindHandler, true},
	{"failure, overruled", decided(task.OutcomeFailure, task.KindHandler, task.DecideSucceed, 0), task.Succeeded, task.WaitNone, task.KindNone, true},
	{"blocked, block", decided(task.OutcomeBlocked, task.KindHandler, task.DecideBlock, 0), task.Blocked, task.WaitManual, task.KindHandler, true},
	{"blocked, retry later", decided(task.OutcomeBlocked, task.KindHandler, task.DecideRetry, time.Minute), task.Pending, task.WaitRetry, task.KindHandler, true},
	{"blocked, mark dead", decided(task.OutcomeBlocked, task.KindHandler, task.DecideMarkDead, 0), task.Failed, task.WaitNone, task.KindHandler, true},
	{"decode failed, block", decided(task.OutcomeDecodeFailed, task.KindDecode, task.DecideBlock, 0), task.Blocked, task.WaitManual, task.KindDecode, true},
	{"decode failed, retry later", decided(task.OutcomeDecodeFailed, task.KindDecode, task.DecideRetry, time.Minute), task.Pending, task.WaitRetry, task.KindDecode, true},
	{"decode failed, mark dead", decided(task.OutcomeDecodeFailed, task.KindDecode, task.DecideMarkDead, 0), task.Failed, task.WaitNone, task.KindDecode, true},
	{"internal, again", func(c store.Claimed) store.Finish { return internalError(c, time.Minute) }, task.Pending, task.WaitRetry, task.KindInternal, false},
	{"internal, the last", func(c store.Claimed) store.Finish { return internalError(c, -1) }, task.Failed, task.WaitNone, task.KindInternal, false},
	{"suspended", func(c store.Claimed) store.Finish { return suspend(c, store.Now().Add(time.Minute)) }, task.Pending, task.WaitSleep, task.KindNone, false},
	{"suspended for a signal, until later", func(c store.Claimed) store.Finish { return suspended(c, task.WaitSignal, store.Now().Add(time.Minute)) }, task.Pending, task.WaitSignal, task.KindNone, false},
	{"suspended for a call, until later", func(c store.Claimed) store.Finish {
		return suspended(c, task.WaitChildren, store.Now().Add(time.Minute))
	}, task.Pending, task.WaitChildren, task.KindNone, false},
	{"suspended until the past", func(c store.Claimed) store.Finish { return suspend(c, store.Now().Add(-time.Second)) }, task.Ready, task.WaitNone, task.KindNone, false},
	{"cancelled", cancelled, task.Cancelled, task.WaitNone, task.KindCancelled, false},
	{"released", released, task.Ready, task.WaitNone, task.KindNone, false},
	{"released by a worker that cannot run it", notRun, task.Pending, task.WaitRetry, task.KindNone, false},
}

// endsCancelled checks a task whose cancel was requested while it ran.
func (e *env) endsCancelled(what string, id task.ID, kind task.ErrorKind, parts ...string) {
	e.Helper()
	e.contains(what+": the message", e.ended(id, task.Cancelled, kind).Error.Message, parts...)
	h := e.history(id)
	e.equal(what+": the attempt's outcome", h.Attempts[len(h.Attempts)-1].Outcome, task.OutcomeCancelled)
	e.check(len(h.Decisions) == 0, "%s: a decision was written: %+v", what, h.Decisions)
	e.notDispatched(id)
}
