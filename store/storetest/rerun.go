package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var rerunCases = []testCase{
	{"a rerun is a new task that names the one it repeats", func(e *env) {
		old := e.one(key("k", 1), priority(3))
		e.fail(old)
		n := e.draft(priority(3), input(`{"n":2}`))
		got := e.operate(store.RerunTask{Audit: admin, Task: old, New: n})
		e.check(got.ID == n.ID && got.State == task.Ready && !got.Existing, "the answer is %+v, want %v, ready", got, n.ID)
		e.remember(n.ID)
		t := e.is(n.ID, task.Ready, task.WaitNone)
		e.check(t.RerunOf == old && t.StepCount == 0 && string(t.Input) == `{"n":2}`, "the new task is %s", show(t))
		e.ended(old, task.Failed, task.KindHandler)
		audit := e.history(old).Audit
		e.require(len(audit) == 1, "the audit of the old task has %d entries", len(audit))
		e.check(audit[0].Verb == "rerun" && audit[0].Reason == "as "+n.ID.String()+": "+admin.Reason, "the audit says %+v", audit[0])
		c := e.a.take(n.ID)
		e.check(c.Task.RerunOf == old && c.Task.AttemptNo == 1 && len(c.Steps) == 0, "claimed as %s with %d steps", show(c.Task), len(c.Steps))
		e.finish(success(c))
	}},
	{"a rerun from a step takes over the completed ones before it", func(e *env) {
		old := e.one()
		c := e.a.take(old)
		e.record(indexed(step(c, "a", `"one"`), 0))
		e.record(indexed(try(c, "b", 1), 1))
		e.record(indexed(step(c, "b", `"two"`), 1))
		undo := indexed(step(c, "undo", `"done"`), 2)
		undo.Step.Kind = task.KindCleanup
		e.record(undo)
		e.record(indexed(step(c, "c", `"three"`), 3))
		e.record(indexed(step(c, "d", `"four"`), 4))
		e.finish(dead(c))
		before := e.steps(old)
		e.pass(time.Second)

		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: old, New: n, StepsBelow: 4, KeepSteps: true})
		e.remember(n.ID)
		e.equal("StepCount", e.task(n.ID).StepCount, 3)
		var want []task.Step
		for _, s := range before {
			if s.State == task.StepCompleted && s.Index < 4 && s.Kind != task.KindCleanup {
				s.TaskID, s.AttemptNo = n.ID, 0
				want = append(want, s)
			}
		}
		e.equal("the steps of the old task", e.steps(old), before)
		e.equal("the steps taken over", e.steps(n.ID), want)
		again := e.a.take(n.ID)
		e.equal("the steps of the first attempt", again.Steps, want)
		e.record(indexed(step(again, "d", `"other"`), 4))
		e.equal("StepCount", e.task(n.ID).StepCount, 4)
		got, err := e.s.Record(e.Context(), e.ns, indexed(step(again, "a", `"other"`), 0))
		e.require(err == nil, "Record: %v", err)
		e.wantErr("another value of a step that was taken over", got[0].Err, store.ErrStepConflict)
		e.finish(success(again))
	}},
	{"the same rerun again changes nothing", func(e *env) {
		old := e.one()
		e.succeed(old)
		cmd := store.RerunTask{Audit: admin, Task: old, New: e.draft()}
		e.operate(cmd)
		e.remember(cmd.New.ID)
		e.unchanged("the same rerun", func() {
			got := e.operate(cmd)
			e.check(got.ID == cmd.New.ID && got.State == task.Ready && !got.Existing, "the answer is %+v", got)
		})
	}},
	{"a rerun obeys idempotency keys as an enqueue does", func(e *env) {
		old := e.one(once("k"))
		e.succeed(old)
		n := e.draft(once("k"))
		e.unchanged("a rerun with the key of an existing task", func() {
			got := e.operate(store.RerunTask{Audit: admin, Task: old, New: n})
			e.check(got.ID == old && got.Existing && got.State == task.Succeeded, "the answer is %+v, want the existing task", got)
		})
	}},
	{"what cannot be rerun", func(e *env) {
		g := e.job("a", "b: a")
		e.succeed(g.id("a"), g.id("b"))
		e.commandRefused(store.RerunTask{Audit: admin, Task: g.id("b"), New: e.draft()}, store.ErrState)
		e.commandRefused(store.RerunTask{Audit: admin, Task: e.newID(), New: e.draft()}, store.ErrNotFound)
		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: g.id("a"), New: n})
		e.remember(n.ID)
		t := e.task(n.ID)
		e.check(t.JobID.IsZero() && t.RerunOf == g.id("a"), "the rerun of a task of a job is %s", show(t))
		e.succeed(n.ID)
	}},
	{"a rerun takes over so many steps, and no more", func(e *env) {
		old := e.one()
		c := e.a.take(old)
		var recs []store.Record
		for i := range task.MaxRerunSteps + 1 {
			recs = append(recs, indexed(step(c, fmt.Sprint("s", i), `1`), i))
		}
		for len(recs) > 0 {
			n := min(len(recs), 500)
			e.recordAll(recs[:n]...)
			recs = recs[n:]
		}
		e.finish(dead(c))
		e.contains("the refusal", e.commandRefused(store.RerunTask{Audit: admin, Task: old, New: e.draft(), StepsBelow: 5000}, store.ErrState), "1000", "not 1001", "earlier step")
		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: old, New: n, StepsBelow: task.MaxRerunSteps})
		e.remember(n.ID)
		e.equal("StepCount", e.task(n.ID).StepCount, task.MaxRerunSteps)
	}},
	{"a task that was rerun may be deleted, and its rerun goes on", func(e *env) {
		old := e.one()
		c := e.a.take(old)
		e.record(indexed(step(c, "a", `1`), 0))
		e.finish(dead(c))
		n := e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: old, New: n, StepsBelow: 1})
		e.remember(n.ID)
		e.operate(deleteOf(old))
		e.forget(old)
		e.equal("RerunOf", e.task(n.ID).RerunOf, old)
		e.equal("the value", e.steps(n.ID)[0].Value, json.RawMessage(`1`))
		e.succeed(n.ID)
	}},
}

// indexed sets the index of a record's step.
func indexed(r store.Record, index int) store.Record {
	r.Step.Index = index
	return r
}
