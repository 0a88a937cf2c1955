package storetest

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var finishScenes = []scene{
	{"every outcome with every decision", everyOutcome},
	{"an attempt is written as it was", attemptWritten},
	{"a decision is written with its evidence", decisionWritten},
	{"attempts count as the vocabulary says", attemptsCount},
	{"engine errors in a row are counted", internalInARow},
	{"a retry waits for its delay", retryWaits},
	{"a released task is ready at once under a new epoch", releasedAtOnce},
	{"a suspended task wakes at its instant", suspendedWakes},
	{"success forgets the error of earlier attempts", successForgetsError},
	{"an unblocked input stays until the end", unblockInputStays},
	{"a batch ends each task its own way", finishBatch},
	{"a big output comes back byte by byte", bigOutput},
	{"a started task keeps its time and its end", finishTimes},
}

// outcome is what a task becomes by one way of ending its attempt.
type outcome struct {
	name    string
	end     func(c store.Claimed) store.Finish
	state   task.State
	waiting task.Waiting
	kind    task.ErrorKind // of the task's error
	decided bool           // a decision is written
}

// decided changes the outcome and error kind of a decided failure.
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
	{"suspended until the past", func(c store.Claimed) store.Finish { return suspend(c, store.Now().Add(-time.Second)) }, task.Ready, task.WaitNone, task.KindNone, false},
	{"cancelled", cancelled, task.Cancelled, task.WaitNone, task.KindCancelled, false},
	{"released", released, task.Ready, task.WaitNone, task.KindNone, false},
}

func everyOutcome(e *env) {
	for _, o := range outcomes {
		id := e.one()
		c := e.a.take(id)
		f := o.end(c)
		got := e.finish(f)
		if got.State != o.state || got.Waiting != o.waiting {
			e.Errorf("%s: Finish answered %s/%s, want %s/%s", o.name, got.State, got.Waiting, o.state, o.waiting)
		}
		t := e.task(id)
		if t.State != o.state || t.Waiting != o.waiting {
			e.Errorf("%s: the task is %s/%s, want %s/%s", o.name, t.State, t.Waiting, o.state, o.waiting)
		}
		if !t.LeaseID.IsZero() || t.LeasedBy != "" || !t.LeaseExpiresAt.IsZero() {
			e.Errorf("%s: a lease is left: %s", o.name, show(t))
		}
		if t.FinishedAt.IsZero() == t.State.Terminal() {
			e.Errorf("%s: FinishedAt = %v of a %s task", o.name, t.FinishedAt, t.State)
		}
		switch {
		case o.kind == task.KindNone && t.Error != nil:
			e.Errorf("%s: the error is %v, want none", o.name, t.Error)
		case o.kind != task.KindNone && (t.Error == nil || *t.Error != *f.Error):
			e.Errorf("%s: the error is %v, want %v", o.name, t.Error, f.Error)
		}
		if has := len(e.dispatch(id)) == 1; has != (o.state == task.Pending || o.state == task.Ready) {
			e.Errorf("%s: has a dispatch row: %v", o.name, has)
		}
		h := e.history(id)
		if len(h.Attempts) != 1 || h.Attempts[0].Outcome != f.Outcome {
			e.Errorf("%s: attempts %+v, want one with %s", o.name, h.Attempts, f.Outcome)
		}
		if (len(h.Decisions) == 1) != o.decided {
			e.Errorf("%s: decisions %+v", o.name, h.Decisions)
		}
		if o.state == task.Succeeded {
			e.equal(o.name+": the output", string(t.Output), string(f.Output))
		}
	}
}

func attemptWritten(e *env) {
	id := e.one()
	c := e.a.take(id)
	e.pass(2 * time.Second)
	f := dead(c)
	f.CodeVersion, f.StepsRun, f.StepsUnreached = 7, []string{"charge", "mail"}, []string{"renamed"}
	f.Error = &task.Error{Kind: task.KindPanic, Message: "boom", Step: "mail", Stack: "goroutine 1"}
	e.finish(f)
	h := e.history(id)
	if len(h.Attempts) != 1 {
		e.Fatalf("%d attempts, want 1", len(h.Attempts))
	}
	a := h.Attempts[0]
	e.near("StartedAt", a.StartedAt, e.now().Add(-2*time.Second))
	e.near("FinishedAt", a.FinishedAt, e.now())
	e.equal("the attempt", a, task.Attempt{
		TaskID: id, No: 1, Epoch: c.Lease.Epoch, LeaseID: c.Lease.ID, Worker: "A", CodeVersion: 7,
		StartedAt: a.StartedAt, FinishedAt: a.FinishedAt, Outcome: task.OutcomeFailure, Error: f.Error,
		OutcomeHash: f.Hash(), StepsRun: f.StepsRun, StepsUnreached: f.StepsUnreached,
	})
	e.equal("the attempts of the snapshot", e.snap().Attempts, h.Attempts)
}

func decisionWritten(e *env) {
	id := e.one()
	c := e.a.take(id)
	f := retry(c, 5*time.Second)
	f.Decision.Reason = task.Reason{
		Policy: "weaver.default", Version: 3, Text: "attempt 1 of 5 failed; again in 5 s", Change: "waits",
		Evidence: map[string]any{"attempts": []any{"no luck"}, "attempt_count": 1, "left_ms": 1.5, "nested": map[string]any{"a": nil, "b": true}},
	}
	now := e.now()
	e.finish(f)
	h := e.history(id)
	if len(h.Decisions) != 1 {
		e.Fatalf("%d decisions, want 1", len(h.Decisions))
	}
	d := h.Decisions[0]
	e.near("At", d.At, now)
	e.near("NextReadyAt", d.NextReadyAt, now.Add(5*time.Second))
	e.sameJSON("the decision", d, task.Decision{
		TaskID: id, AttemptNo: 1, At: d.At, Kind: task.DecideRetry, NextReadyAt: d.NextReadyAt, Reason: f.Decision.Reason,
	})
	e.equal("NextReadyAt and the dispatch", d.NextReadyAt, e.dispatch(id)[0].AvailableAt)
	e.pass(6 * time.Second)
	e.fail(id)
	h = e.history(id)
	if len(h.Decisions) != 2 || h.Decisions[1].AttemptNo != 2 || !h.Decisions[1].NextReadyAt.IsZero() {
		e.Errorf("decisions %+v, want a second one, of attempt 2, without NextReadyAt", h.Decisions)
	}
	e.sameJSON("the decisions of the snapshot", e.snap().Decisions, h.Decisions)
}

func attemptsCount(e *env) {
	for _, o := range outcomes {
		id := e.one()
		f := o.end(e.a.take(id))
		e.finish(f)
		kind := task.KindNone
		if f.Error != nil {
			kind = f.Error.Kind
		}
		want := 0
		if task.Counts(f.Outcome, kind) {
			want = 1
		}
		if t := e.task(id); t.AttemptCount != want || t.AttemptNo != 1 {
			e.Errorf("%s: AttemptCount = %d and AttemptNo = %d, want %d and 1", o.name, t.AttemptCount, t.AttemptNo, want)
		}
	}
	lost := e.one()
	e.expire(e.a.take(lost))
	if t := e.task(lost); t.AttemptCount != 0 || t.AttemptNo != 1 {
		e.Errorf("lost: AttemptCount = %d and AttemptNo = %d, want 0 and 1", t.AttemptCount, t.AttemptNo)
	}
}

func internalInARow(e *env) {
	id := e.one()
	for n := 1; n <= 3; n++ {
		e.finish(internalError(e.a.take(id), 0))
		e.equal("InternalCount", e.task(id).InternalCount, n)
	}
	e.finish(retry(e.a.take(id), 0))
	e.equal("InternalCount after a handler's error", e.task(id).InternalCount, 0)
}

func retryWaits(e *env) {
	id := e.one()
	e.finish(retry(e.a.take(id), 5*time.Second))
	due := e.now().Add(5 * time.Second)
	e.near("ReadyAt", e.is(id, task.Pending, task.WaitRetry).ReadyAt, due)
	e.dueAt(id, due)
	e.pass(4 * time.Second)
	e.a.getsNothing()
	e.pass(2 * time.Second)
	e.is(id, task.Ready, task.WaitNone)
	e.a.gets([]task.ID{id})
}

func releasedAtOnce(e *env) {
	id := e.one()
	c := e.a.take(id)
	e.pass(time.Second)
	e.finish(released(c))
	t := e.is(id, task.Ready, task.WaitNone)
	e.dueAt(id, e.now())
	if t.Epoch != c.Lease.Epoch+1 {
		e.Errorf("the epoch is %d after the release of %d, want one more", t.Epoch, c.Lease.Epoch)
	}
	e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeReleased)
	e.refused(success(c), store.ErrConflict)
	again := e.b.take(id)
	e.equal("the epoch of the next claim", again.Lease.Epoch, c.Lease.Epoch+2)
}

func suspendedWakes(e *env) {
	id := e.one()
	wake := e.now().Add(5 * time.Second)
	e.finish(suspend(e.a.take(id), wake))
	e.near("ReadyAt", e.is(id, task.Pending, task.WaitSleep).ReadyAt, wake)
	e.dueAt(id, wake)
	e.a.getsNothing()
	e.pass(6 * time.Second)
	e.is(id, task.Ready, task.WaitNone)
	e.succeed(id)
	h := e.history(id)
	e.equal("the outcome of the first attempt", h.Attempts[0].Outcome, task.OutcomeSuspended)
	e.equal("the decisions", len(h.Decisions), 0)
}

func successForgetsError(e *env) {
	id := e.one()
	e.finish(retry(e.a.take(id), 0))
	c := e.a.take(id)
	e.equal("the error the next attempt is handed", c.Task.Error, &task.Error{Kind: task.KindHandler, Message: "no luck"})
	e.finish(success(c))
	e.ended(id, task.Succeeded, task.KindNone)
	e.equal("the error in history", e.history(id).Attempts[0].Error.Message, "no luck")
}

func unblockInputStays(e *env) {
	id := e.one()
	e.blockTask(id)
	e.operate(store.UnblockTask{Audit: admin, Task: id, Input: json.RawMessage(`{"approved":true}`)})
	c := e.a.take(id)
	e.equal("the input of the unblock", string(c.Task.UnblockInput), `{"approved":true}`)
	e.finish(retry(c, 0))
	c = e.a.take(id)
	e.equal("the input of the unblock, next attempt", string(c.Task.UnblockInput), `{"approved":true}`)
}

func finishBatch(e *env) {
	ids := e.many(len(outcomes))
	cs := e.a.takeAll(ids...)
	var fs []store.Finish
	for i, o := range outcomes {
		fs = append(fs, o.end(cs[i]))
	}
	for i, r := range e.finishAll(fs...) {
		e.equal(outcomes[i].name, r, store.FinishResult{State: outcomes[i].state, Waiting: outcomes[i].waiting})
		e.is(ids[i], outcomes[i].state, outcomes[i].waiting)
	}
	if got := e.finishAll(); len(got) != 0 {
		e.Errorf("an empty batch answered %v", got)
	}
}

func bigOutput(e *env) {
	c := e.a.take(e.one())
	f := success(c)
	big, err := json.Marshal(make([]byte, 200<<10))
	if err != nil {
		e.Fatal(err)
	}
	f.Output = big
	e.finish(f)
	if got := e.task(c.Task.ID).Output; string(got) != string(big) {
		e.Errorf("an output of %d bytes came back with %d", len(big), len(got))
	}
}

func finishTimes(e *env) {
	id := e.one()
	e.pass(time.Second)
	started := e.now()
	c := e.a.take(id)
	e.pass(2 * time.Second)
	e.finish(success(c))
	t := e.task(id)
	e.near("StartedAt", t.StartedAt, started)
	e.near("FinishedAt", t.FinishedAt, e.now())
	e.near("UpdatedAt", t.UpdatedAt, e.now())
}
