package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// wait records a wait for a signal; a zero timeout means no timeout.
func wait(c store.Claimed, name, signal string, timeout time.Duration) store.Record {
	r := step(c, name, "")
	r.Step.Kind, r.Step.State, r.Step.Value, r.Step.Signal = task.KindSignal, task.StepWaiting, nil, signal
	r.Timeout = timeout
	return r
}

// withdraw records the end of all waits for a signal.
func withdraw(c store.Claimed, name, signal string) store.Record {
	r := wait(c, name, signal, 0)
	r.Step.State = task.StepCompleted
	return r
}

func signalOf(id task.ID, name, key, payload string) store.SendSignal {
	return store.SendSignal{Audit: admin, Task: id, Name: name, Key: key, Payload: json.RawMessage(payload)}
}

// suspended ends an attempt that waits for its recorded wait, until an instant or, if that is zero, without a time
// limit.
func suspended(c store.Claimed, why task.Waiting, until time.Time) store.Finish {
	f := suspend(c, until)
	f.Waiting, f.WakeSeq = why, c.Task.WakeSeq
	return f
}

// waiting runs a task until it waits for a signal, without a time limit.
func (e *env) waiting(id task.ID, name, signal string) {
	e.Helper()
	c := e.a.take(id)
	e.equal("the wait", e.record(wait(c, name, signal, 0)).Step.State, task.StepWaiting)
	e.finish(suspended(c, task.WaitSignal, time.Time{}))
	e.is(id, task.Pending, task.WaitSignal)
	e.notDispatched(id)
}

// signalCases test waits for signals.
var signalCases = []testCase{
	{"a signal completes the wait and makes the task claimable", func(e *env) {
		id := e.one()
		e.waiting(id, "approved", "approve")
		e.equal("StepCount", e.task(id).StepCount, 0)
		e.pass(time.Second)
		got := e.operate(signalOf(id, "approve", "k", `{"by":"ada"}`))
		e.equal("the answer", got, store.CommandResult{State: task.Ready})
		t := e.due(id)
		e.check(t.WakeSeq == 1 && t.StepCount == 1 && t.AttemptCount == 0, "wake_seq %d, %d steps, %d attempts", t.WakeSeq, t.StepCount, t.AttemptCount)
		c := e.a.take(id)
		e.require(len(c.Steps) == 1, "%d steps", len(c.Steps))
		s := c.Steps[0]
		e.check(s.State == task.StepCompleted && string(s.Value) == `{"by":"ada"}` && s.Signal == "approve" && s.AttemptNo == 1, "the step is %+v", s)
		e.near("CompletedAt", s.CompletedAt, e.now())
		e.unchanged("the same wait", func() { e.equal("its answer", e.record(wait(c, "approved", "approve", 0)).Step, s) })
		h := e.history(id)
		e.equal("the signals", h.Signals, []task.Signal{{
			TaskID: id, Seq: 1, Name: "approve", Key: "k", Payload: json.RawMessage(`{"by":"ada"}`), SentAt: h.Signals[0].SentAt, Actor: "ada", Step: "approved",
		}})
		e.check(len(h.Audit) == 1 && h.Audit[0].Verb == "signal" && h.Audit[0].Actor == "ada", "the audit is %v", h.Audit)
		e.finish(success(c))
	}},
	{"early signals are kept, and the oldest is taken first", func(e *env) {
		id := e.one()
		for i := range 3 {
			e.operate(signalOf(id, "s", fmt.Sprint(i), fmt.Sprint(i)))
		}
		e.operate(signalOf(id, "other", "0", `"x"`))
		c := e.a.take(id)
		for i := range 3 {
			got := e.record(wait(c, fmt.Sprint("w", i), "s", time.Hour)).Step
			e.check(got.State == task.StepCompleted && string(got.Value) == fmt.Sprint(i), "wait %d got %+v", i, got)
		}
		e.equal("the fourth wait", e.record(wait(c, "w3", "s", 0)).Step.State, task.StepWaiting)
		t := e.task(id)
		e.check(t.StepCount == 3 && t.WakeSeq == 0, "%d steps, wake_seq %d", t.StepCount, t.WakeSeq)
		e.equal("who took them", mapped(e.history(id).Signals, func(s task.Signal) string { return s.Step }), []string{"w0", "w1", "w2", ""})
	}},
	{"the oldest wait by index takes a signal", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		for i, name := range []string{"z", "a"} {
			r := wait(c, name, "s", 0)
			r.Step.Index = i
			e.record(r)
		}
		e.record(wait(c, "other", "t", 0))
		e.operate(signalOf(id, "s", "1", `1`))
		e.operate(signalOf(id, "s", "2", `2`))
		e.operate(signalOf(id, "s", "3", `3`))
		e.equal("who took them", mapped(e.history(id).Signals, func(s task.Signal) string { return s.Step }), []string{"z", "a", ""})
		e.check(e.is(id, task.Running, task.WaitNone).WakeSeq == 2, "wake_seq is %d", e.task(id).WakeSeq)
	}},
	{"one key is one effect, and another payload a conflict", func(e *env) {
		id := e.one()
		e.waiting(id, "w", "s")
		cmd := signalOf(id, "s", "k", `1`)
		e.operate(cmd)
		e.unchanged("the same signal", func() {
			e.equal("the answer", e.operate(cmd), store.CommandResult{State: task.Ready, Existing: true})
		})
		e.contains("the refusal", e.commandRefused(signalOf(id, "s", "k", `2`), store.ErrConflict), "another payload", `"k"`)
		e.operate(signalOf(id, "t", "k", `2`))
		e.succeed(id)
		e.check(e.operate(cmd).Existing, "the same signal to a task that ended is not known")
		e.contains("the refusal", e.commandRefused(signalOf(id, "s", "k2", `1`), store.ErrState), "succeeded", "takes no signals")
		e.commandRefused(signalOf(e.newID(), "s", "k", `1`), store.ErrNotFound)
	}},
	{"what no client sends is refused", func(e *env) {
		id := e.one()
		for _, cmd := range []store.SendSignal{signalOf(id, "", "k", `1`), signalOf(id, "s", "", `1`), signalOf(id, "s", "k", ``)} {
			e.unchanged("it", func() { e.check(e.command(cmd).Err != nil, "it was accepted") })
		}
		c := e.a.take(id)
		unnamed, valued, waits := wait(c, "w", "", 0), withdraw(c, "w", "s"), step(c, "w", `1`)
		valued.Step.Value = json.RawMessage(`1`)
		waits.Step.State = task.StepWaiting
		f := suspended(c, task.WaitDeps, time.Time{})
		e.unchanged("it", func() {
			for _, r := range e.recordAll(unnamed, valued, waits) {
				e.check(r.Err != nil, "it was accepted")
			}
			e.check(e.finishAll(f)[0].Err != nil, "it was accepted")
		})
	}},
	{"a wait times out by the store's clock, and keeps its time", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		now := e.now()
		s := e.record(wait(c, "w", "s", 10*time.Second)).Step
		e.near("WakeAt", s.WakeAt, now.Add(10*time.Second))
		e.check(s.CompletedAt.IsZero() && s.State == task.StepWaiting, "it is %+v", s)
		e.pass(time.Second)
		e.unchanged("the same wait", func() { e.equal("the answer", e.record(wait(c, "w", "s", 10*time.Second)).Step, s) })
		e.finish(suspended(c, task.WaitSignal, s.WakeAt))
		e.dueAt(id, s.WakeAt)
		e.near("ReadyAt", e.is(id, task.Pending, task.WaitSignal).ReadyAt, s.WakeAt)
		e.crash(e.one(), 1)
		e.pass(10 * time.Second)
		c = e.a.take(id)
		e.equal("the steps handed out", c.Steps, []task.Step{s})
		got := e.record(wait(c, "w", "s", 10*time.Second)).Step
		e.check(got.State == task.StepCompleted && got.Value == nil && got.WakeAt.Equal(s.WakeAt) && got.AttemptNo == 1, "it timed out as %+v", got)
		e.near("CompletedAt", got.CompletedAt, e.now())
		t := e.task(id)
		e.check(t.StepCount == 1 && t.WakeSeq == 0, "%d steps, wake_seq %d", t.StepCount, t.WakeSeq)
		e.operate(signalOf(id, "s", "late", `1`))
		e.unchanged("the same wait", func() { e.equal("the answer", e.record(wait(c, "w", "s", 0)).Step, got) })
	}},
	{"a signal that comes when the wait has timed out, but before its handler looked, is taken", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		s := e.record(wait(c, "w", "s", time.Second)).Step
		e.finish(suspended(c, task.WaitSignal, s.WakeAt))
		e.pass(2 * time.Second)
		e.operate(signalOf(id, "s", "k", `1`))
		e.due(id)
		c = e.a.take(id)
		e.equal("the value", string(c.Steps[0].Value), `1`)
		e.finish(retry(c, 0))
		other := e.one()
		e.operate(signalOf(other, "s", "k", `1`))
		r := wait(e.a.take(other), "w", "s", 0)
		r.Step.WakeAt = e.now().Add(-time.Hour)
		e.equal("the value", string(e.record(r).Step.Value), `1`)
		r.Step.Name = "w2"
		e.equal("the next one", e.record(r).Step.State, task.StepCompleted)
	}},
	{"W3 R-18 a signal between the record and the suspension leaves the task claimable", func(e *env) {
		id := e.one(key("k", 1))
		c := e.a.take(id)
		e.record(wait(c, "w", "s", 0))
		e.operate(signalOf(id, "s", "k", `1`))
		e.is(id, task.Running, task.WaitNone)
		f := suspended(c, task.WaitSignal, time.Time{})
		e.equal("the answer", e.finish(f), store.FinishResult{State: task.Ready})
		e.due(id)
		e.equal("the answer to the same report", e.finish(f).Err, nil)
		c = e.a.take(id)
		e.equal("the wait", string(e.record(wait(c, "w", "s", 0)).Step.Value), `1`)
		e.record(wait(c, "w2", "s", 0))
		e.finish(suspended(c, task.WaitSignal, time.Time{}))
		e.is(id, task.Pending, task.WaitSignal)
	}},
	{"a signal that no wait took wakes nothing", func(e *env) {
		id := e.one()
		e.waiting(id, "w", "s")
		e.operate(signalOf(id, "other", "k", `1`))
		e.is(id, task.Pending, task.WaitSignal)
		e.equal("wake_seq", e.task(id).WakeSeq, 0)
		blocked := e.one()
		e.blockTask(blocked)
		e.operate(signalOf(blocked, "s", "k", `1`))
		e.is(blocked, task.Blocked, task.WaitManual)
	}},
	{"a signal for one of several waits ends a sleep", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(wait(c, "w", "s", 0))
		nap := e.record(sleep(c, "nap", time.Hour)).Step
		e.finish(suspended(c, task.WaitSleep, nap.WakeAt))
		e.dueAt(id, nap.WakeAt)
		e.operate(signalOf(id, "s", "k", `1`))
		e.check(e.due(id).ReadyAt.Before(nap.WakeAt), "it is due at the end of its sleep")
		e.dueAt(id, e.now())
		kids := e.decomposed(id, task.JoinRerun, 1)
		e.succeed(kids...)
		e.due(id)
	}},
	{"a task that waits for its children or another task takes a signal and goes on waiting", func(e *env) {
		p := e.one()
		c := e.a.take(p)
		e.record(wait(c, "w", "s", 0))
		e.finish(decompose(c, task.JoinRerun, e.drafts(1)...))
		e.operate(signalOf(p, "s", "k", `1`))
		e.is(p, task.Pending, task.WaitChildren)
		e.equal("StepCount", e.task(p).StepCount, 1)
		blocked := e.one()
		c = e.a.take(blocked)
		e.record(wait(c, "w", "s", 0))
		e.finish(block(c))
		e.operate(signalOf(blocked, "s", "k", `1`))
		e.equal("StepCount", e.is(blocked, task.Blocked, task.WaitManual).StepCount, 1)
	}},
	{"a task with a key queues again for it", func(e *env) {
		ids := e.many(2, key("k", 1))
		e.waiting(ids[0], "w", "s")
		other := e.a.take(ids[1])
		e.operate(signalOf(ids[0], "s", "k", `1`))
		e.a.getsNothing()
		e.check(e.waits(ids[0]), "it does not wait for its key")
		e.finish(success(other))
		e.succeed(ids[0])
	}},
	{"another wait under the same name is a conflict", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(wait(c, "w", "s", 0))
		e.record(step(c, "done", `1`))
		e.recordRefused(wait(c, "w", "other", 0), store.ErrStepConflict)
		e.recordRefused(step(c, "w", `1`), store.ErrStepConflict)
		e.recordRefused(sleep(c, "w", time.Second), store.ErrStepConflict)
		e.recordRefused(wait(c, "done", "s", 0), store.ErrStepConflict)
		e.recordRefused(called(c, "w", 1, 0, e.draft()), store.ErrStepConflict)
	}},
	{"R9 a lost lease registers nothing, and a task that is to end waits for nothing", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(wait(c, "before", "s", 0))
		e.operate(cancelOf(id))
		e.recordRefused(wait(c, "w", "s", 0), store.ErrCancelRequested)
		e.recordRefused(wait(c, "before", "s", 0), store.ErrCancelRequested)
		e.recordRefused(withdraw(c, "before", "s"), store.ErrCancelRequested)
		e.operate(signalOf(id, "s", "k", `1`))
		e.equal("the wait", string(e.record(wait(c, "before", "s", 0)).Step.Value), `1`)
		e.operate(forceOf(id))
		e.recordRefused(wait(c, "w", "s", 0), store.ErrLeaseLost)
	}},
	{"a wait that is withdrawn takes no signal", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(wait(c, "w", "s", time.Hour))
		e.record(wait(c, "w2", "s", 0))
		got := e.record(withdraw(c, "w", "s")).Step
		e.check(got.State == task.StepCompleted && got.Value == nil, "it is %+v", got)
		e.unchanged("the same", func() { e.equal("the answer", e.record(withdraw(c, "w", "s")).Step, got) })
		e.equal("StepCount", e.task(id).StepCount, 1)
		e.operate(signalOf(id, "s", "k", `1`))
		e.unchanged("one that is completed", func() { e.equal("the value", string(e.record(withdraw(c, "w2", "s")).Step.Value), `1`) })
		e.operate(signalOf(id, "s", "k2", `2`))
		e.equal("one that never waited", e.record(withdraw(c, "w3", "s")).Step.Value, json.RawMessage(nil))
		e.equal("the value", string(e.record(wait(c, "w4", "s", 0)).Step.Value), `2`)
	}},
	{"a registered wait sets crashes back, as a step does", func(e *env) {
		id := e.one()
		e.crash(id, 1)
		c := e.a.take(id)
		e.record(wait(c, "w", "s", 0))
		e.equal("CrashCount", e.task(id).CrashCount, 0)
	}},
	{"only so many signals are kept", func(e *env) {
		id := e.one()
		cmds := make([]store.Command, task.MaxSignals)
		for i := range cmds {
			cmds[i] = signalOf(id, "s", fmt.Sprint(i), `1`)
		}
		_, err := e.s.Operate(e.Context(), e.ns, cmds...)
		e.require(err == nil, "Operate: %v", err)
		e.contains("the refusal", e.commandRefused(signalOf(id, "s", "more", `1`), store.ErrLimit), "keeps 1000 signals")
		c := e.a.take(id)
		e.record(wait(c, "w", "t", 0))
		e.operate(signalOf(id, "t", "k", `1`))
		e.record(wait(c, "w2", "s", 0))
		e.operate(signalOf(id, "s", "more", `1`))
	}},
	{"a job with a task that waits for a signal is blocked, unless it waits until a time", func(e *env) {
		g := e.job("a", "b: a")
		e.waiting(g.id("a"), "w", "s")
		g.counts(task.JobBlocked, 2, 2, 0, 0, 0)
		e.operate(signalOf(g.id("a"), "s", "k", `1`))
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		c := e.a.take(g.id("a"))
		s := e.record(wait(c, "w2", "s", time.Hour)).Step
		e.finish(suspended(c, task.WaitSignal, s.WakeAt))
		g.counts(task.JobRunning, 2, 2, 1, 0, 0)
		e.operate(signalOf(g.id("a"), "s", "k2", `1`))
		e.succeed(g.all("a", "b")...)
		g.counts(task.JobSucceeded, 2, 0, 0, 0, 2)
	}},
	{"the waits of a task that ended go on with its retry", func(e *env) {
		g := e.job("a")
		id := g.id("a")
		c := e.a.take(id)
		s := e.record(wait(c, "w", "s", time.Minute)).Step
		e.record(wait(c, "w2", "t", 0))
		e.finish(suspended(c, task.WaitSignal, s.WakeAt))
		e.operate(cancelOf(id))
		e.notDispatched(id)
		e.commandRefused(signalOf(id, "s", "k", `1`), store.ErrState)
		e.pass(2 * time.Minute)
		e.operate(retryOf(id))
		e.due(id)
		e.operate(signalOf(id, "t", "k", `1`))
		c = e.a.take(id)
		e.equal("the end of the wait", e.record(wait(c, "w", "s", time.Minute)).Step.Value, json.RawMessage(nil))
		e.equal("the other one", string(e.record(wait(c, "w2", "t", 0)).Step.Value), `1`)
		e.finish(success(c))
		g.counts(task.JobSucceeded, 1, 0, 0, 0, 1)
	}},
	{"a cleanup begins while it waits", func(e *env) {
		g := e.graph("a").with("a", func(n *task.New) { n.CleanupWhenCancelled = true }).submit()
		c := e.a.take(g.id("a"))
		s := e.record(wait(c, "w", "s", time.Hour)).Step
		e.finish(suspended(c, task.WaitSignal, s.WakeAt))
		e.operate(cancelOf(g.id("a")))
		g.counts(task.JobRunning, 1, 1, 1, 0, 0)
		e.finish(undone(e.a.take(g.id("a"))))
		g.counts(task.JobFailed, 1, 0, 0, 1, 0)
	}},
	{"an operator moves no wait for a signal", func(e *env) {
		id := e.one()
		e.waiting(id, "w", "s")
		e.contains("the refusal", e.commandRefused(store.RescheduleTask{Audit: admin, Task: id}, store.ErrState), "waits: signal")
	}},
	{"the signals of a task are deleted with it", func(e *env) {
		id := e.one()
		e.operate(signalOf(id, "s", "k", `1`))
		e.succeed(id)
		e.operate(deleteOf(id))
		e.equal("the signals", len(e.snap().Signals), 0)
	}},
	{"a reap at the timeout leaves the task claimable, and a lost lease the wait", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(wait(c, "w", "s", 0))
		e.expire(c)
		e.due(id)
		c = e.a.take(id)
		e.equal("the wait handed out", c.Steps[0].State, task.StepWaiting)
		e.operate(signalOf(id, "s", "k", `1`))
		e.finish(released(c))
		e.equal("the wait handed out", string(e.a.take(id).Steps[0].Value), `1`)
	}},
}
