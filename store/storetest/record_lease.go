package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var recordLeaseCases = []testCase{
	{"steps under lost leases are answered by the error alone", func(e *env) {
		cs := e.a.takeAll(e.many(3)...)
		for _, c := range cs {
			e.operate(forceOf(c.Task.ID))
		}
		got, err := e.s.Record(e.Context(), e.ns, step(cs[0], "s", `1`), step(cs[1], "s", `1`), try(cs[2], "s", 1))
		e.require(err == nil, "Record: %v", err)
		for i := range got {
			e.wantErr("a step under a lost lease", got[i].Err, store.ErrLeaseLost)
			e.equal("the step answered", got[i].Step, task.Step{})
		}
	}},
	{"R-09 a record after another worker claimed finds the lease lost", func(e *env) {
		c := e.a.take(e.one())
		e.record(step(c, "one", `1`))
		e.expire(c)
		e.recordsRefused(c)
		b := e.b.take(c.Task.ID)
		e.recordsRefused(c)
		e.equal("what B was handed", len(b.Steps), 1)
		e.record(step(b, "two", `2`))
		e.recordRefused(step(c, "two", `2`), store.ErrLeaseLost)
		e.finish(success(b))
	}},
	{"a record of a task that ended finds the lease lost", func(e *env) {
		for _, o := range outcomes {
			c := e.a.take(e.one())
			e.finish(o.end(c))
			e.recordsRefused(c)
		}
	}},
	{"the same record after its lease was lost is not written twice", func(e *env) {
		c := e.a.take(e.one())
		r := step(c, "charge", `1`)
		e.record(r)
		e.expire(c)
		// The first try succeeded and the lease is gone: both answers are valid.
		e.unchanged("a record tried again", func() {
			if err := e.recordAll(r)[0].Err; err != nil {
				e.wantErr("Record", err, store.ErrLeaseLost)
			}
		})
	}},
	{"R10 another value, kind or error under a recorded name is a conflict", func(e *env) {
		failed := func(c store.Claimed, message string) store.Record {
			r := step(c, "s", "")
			r.Step.Value, r.Step.Error = nil, &task.Error{Kind: task.KindHandler, Message: message, Step: "s"}
			return r
		}
		empty := func(c store.Claimed) store.Record {
			r := step(c, "s", "")
			r.Step.Value = nil
			return r
		}
		for what, pair := range map[string][2]func(c store.Claimed) store.Record{
			"value": {func(c store.Claimed) store.Record { return step(c, "s", `1`) }, func(c store.Claimed) store.Record { return step(c, "s", `2`) }},
			"kind":  {func(c store.Claimed) store.Record { return sleep(c, "s", time.Minute) }, empty},
			"error": {func(c store.Claimed) store.Record { return failed(c, "no") }, func(c store.Claimed) store.Record { return failed(c, "never") }},
		} {
			c := e.a.take(e.one())
			first, other := pair[0](c), pair[1](c)
			e.record(first)
			other.Progress = &task.Progress{Current: 1, Total: 2}
			e.unchanged("a record with another "+what, func() {
				e.wantErr("a record with another "+what, e.recordAll(other)[0].Err, store.ErrStepConflict)
				e.record(first)
			})
		}
	}},
	{"R10 a later attempt does not overwrite a step", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(step(c, "charge", `1`))
		e.finish(retry(c, 0))
		c = e.b.take(id)
		e.recordRefused(step(c, "charge", `1`), store.ErrStepConflict)
		e.recordRefused(step(c, "charge", `2`), store.ErrStepConflict)
		e.record(step(c, "mail", `3`))
	}},
	{"I6 a completed step never changes", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		stored := e.record(step(c, "charge", `1`)).Step
		e.finish(dead(c))
		e.operate(retryOf(id))
		e.crash(id, 1)
		c = e.a.take(id)
		e.equal("the steps handed out", c.Steps, []task.Step{stored})
		e.finish(success(c))
		e.equal("the steps stored", e.steps(id), []task.Step{stored})
	}},
	{"a cleanup after a cancel request is stored, as under the lease alone", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.operate(cancelOf(id))
		undo := step(c, "undo", `1`)
		undo.Step.Kind = task.KindCleanup
		got := e.record(undo).Step
		e.check(got.Kind == task.KindCleanup && got.State == task.StepCompleted, "the step answered is %+v", got)
		e.unchanged("the same cleanup", func() { e.equal("the step", e.record(undo).Step, got) })
		other := step(c, "undo", `2`)
		other.Step.Kind = task.KindCleanup
		e.recordRefused(other, store.ErrStepConflict)
		e.equal("StepCount", e.task(id).StepCount, 1)
		e.operate(forceOf(id))
		undo.Step.Name = "more"
		e.recordRefused(undo, store.ErrLeaseLost)
		e.endsCancelled("the task", id, task.KindCancelled)
	}},
	{"a step after a cancel request is not stored", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(step(c, "before", `1`))
		e.operate(cancelOf(id))
		e.recordRefused(step(c, "after", `2`), store.ErrCancelRequested)
		e.recordRefused(sleep(c, "nap", time.Second), store.ErrCancelRequested)
		e.recordRefused(start(c, "child", e.draft()), store.ErrCancelRequested)
		e.record(try(c, "after", 1))
		e.record(store.Record{Lease: c.Lease, Progress: &task.Progress{Current: 2}})
		t := e.task(id)
		e.equal("StepCount", t.StepCount, 1)
		e.equal("the progress", t.Progress, &task.Progress{Current: 2})
		e.equal("the tries", len(e.steps(id)), 2)
		e.finish(cancelled(c))
	}},
	{"one refused element does not cost the others", func(e *env) {
		ids := e.many(3)
		cs := e.a.takeAll(ids...)
		e.operate(forceOf(ids[1]))
		e.record(step(cs[2], "taken", `1`))
		got := e.recordAll(step(cs[0], "s", `1`), step(cs[1], "s", `1`), step(cs[2], "taken", `2`), step(cs[2], "s", `1`))
		for i, want := range []error{nil, store.ErrLeaseLost, store.ErrStepConflict, nil} {
			e.wantErr("an element of the batch", got[i].Err, want)
		}
		for i, want := range []int{1, 0, 2} {
			e.equal("StepCount", e.task(ids[i]).StepCount, want)
			e.equal("the steps", len(e.steps(ids[i])), want)
		}
		got = e.recordAll(step(cs[0], "t", `1`), step(cs[1], "t", `1`)) // steps of different tasks may be in one batch
		e.wantErr("the first of two tasks", got[0].Err, nil)
		e.wantErr("the second of two tasks", got[1].Err, store.ErrLeaseLost)
		e.equal("the steps of the first", len(e.steps(ids[0])), 2)
		e.recordsRefused(cs[1])
		e.equal("the answers to an empty batch", len(e.recordAll()), 0)
	}},
	{"a refused start enqueues nothing", func(e *env) {
		c := e.a.take(e.one())
		e.record(step(c, "taken", `1`))
		e.recordRefused(start(c, "taken", e.draft()), store.ErrStepConflict)
		e.expire(c)
		e.recordRefused(start(c, "fresh", e.draft()), store.ErrLeaseLost)
	}},
	{"a start without a step and a step that has not ended are refused", func(e *env) {
		c := e.a.take(e.one())
		odd := step(c, "s", `1`)
		odd.Step.State = "begun"
		for what, r := range map[string]store.Record{"a start without a step": {Lease: c.Lease, Tasks: e.drafts(1)}, "a step that neither failed nor completed": odd} {
			e.unchanged(what, func() { e.check(e.recordAll(r)[0].Err != nil, "%s was accepted", what) })
		}
	}},
}

// recordsRefused expects every kind of record to find its lease lost.
func (e *env) recordsRefused(c store.Claimed) {
	e.Helper()
	for _, r := range e.kinds(c) {
		e.recordRefused(r, store.ErrLeaseLost)
	}
}

// recordRefused expects a record to be refused without a write.
func (e *env) recordRefused(r store.Record, want error) {
	e.Helper()
	e.unchanged("a refused record", func() {
		e.wantErr("Record", e.recordAll(r)[0].Err, want)
	})
}

// kinds returns one record of every kind under a lease.
func (e *env) kinds(c store.Claimed) []store.Record {
	return []store.Record{
		step(c, "fresh", `1`), try(c, "fresh", 1), sleep(c, "fresh", time.Second), start(c, "fresh", e.draft()),
		{Lease: c.Lease, Progress: &task.Progress{Current: 1}},
	}
}
