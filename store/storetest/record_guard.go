package storetest

import (
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var recordGuardScenes = []scene{
	{"R-09 A writes a step after B claimed: the lease is lost", recordAfterClaim},
	{"R10 another value under a recorded name is a conflict", stepConflict},
	{"R10 a later attempt does not overwrite a step", stepConflictLater},
	{"I6 a completed step is never changed", completedStays},
	{"a step after a cancel was asked is not stored", recordCancelled},
	{"one loser does not cost the winners", recordOneLoser},
	{"a refused start enqueues nothing", refusedStart},
	{"a record of a task that ended", recordAfterEnd},
	{"a step tried again after its lease was lost is not written twice", recordAgainAfterLoss},
}

// notRecorded expects a record to be refused, with nothing written.
func (e *env) notRecorded(r store.Record, want error) {
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

func recordAfterClaim(e *env) {
	c := e.a.take(e.one())
	e.record(step(c, "one", `1`))
	e.expire(c)
	for _, r := range e.kinds(c) {
		e.notRecorded(r, store.ErrLeaseLost)
	}
	b := e.b.take(c.Task.ID)
	for _, r := range e.kinds(c) {
		e.notRecorded(r, store.ErrLeaseLost)
	}
	e.equal("what B was handed", len(b.Steps), 1)
	e.record(step(b, "two", `2`))
	e.notRecorded(step(c, "two", `2`), store.ErrLeaseLost)
	e.finish(success(b))
}

func stepConflict(e *env) {
	c := e.a.take(e.one())
	first := step(c, "charge", `1`)
	e.record(first)
	e.notRecorded(step(c, "charge", `2`), store.ErrStepConflict)
	e.record(first)
	e.equal("the value", string(e.steps(c.Task.ID)[0].Value), `1`)
}

func stepConflictLater(e *env) {
	id := e.one()
	c := e.a.take(id)
	e.record(step(c, "charge", `1`))
	e.finish(retry(c, 0))
	c = e.b.take(id)
	e.notRecorded(step(c, "charge", `1`), store.ErrStepConflict)
	e.notRecorded(step(c, "charge", `2`), store.ErrStepConflict)
	e.record(step(c, "mail", `3`))
}

func completedStays(e *env) {
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
}

func recordCancelled(e *env) {
	id := e.one()
	c := e.a.take(id)
	e.record(step(c, "before", `1`))
	e.operate(cancelOf(id))
	e.notRecorded(step(c, "after", `2`), store.ErrCancelRequested)
	e.notRecorded(sleep(c, "nap", time.Second), store.ErrCancelRequested)
	e.notRecorded(start(c, "child", e.draft()), store.ErrCancelRequested)
	e.record(try(c, "after", 1))
	e.record(store.Record{Lease: c.Lease, Progress: &task.Progress{Current: 2}})
	t := e.task(id)
	e.equal("StepCount", t.StepCount, 1)
	e.equal("the progress", t.Progress, &task.Progress{Current: 2})
	e.equal("the tries", len(e.steps(id)), 2)
	e.finish(cancelled(c))
}

func recordOneLoser(e *env) {
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
	for _, r := range e.kinds(cs[1]) {
		e.notRecorded(r, store.ErrLeaseLost)
	}
	if got := e.recordAll(); len(got) != 0 {
		e.Errorf("an empty batch answered %v", got)
	}
}

func refusedStart(e *env) {
	c := e.a.take(e.one())
	e.record(step(c, "taken", `1`))
	e.notRecorded(start(c, "taken", e.draft()), store.ErrStepConflict)
	e.expire(c)
	e.notRecorded(start(c, "fresh", e.draft()), store.ErrLeaseLost)
}

func recordAfterEnd(e *env) {
	for _, o := range outcomes {
		c := e.a.take(e.one())
		e.finish(o.end(c))
		for _, r := range e.kinds(c) {
			e.notRecorded(r, store.ErrLeaseLost)
		}
	}
}

func recordAgainAfterLoss(e *env) {
	c := e.a.take(e.one())
	r := step(c, "charge", `1`)
	e.record(r)
	e.expire(c)
	// Its first try succeeded and its lease is gone: both answers are true.
	e.unchanged("a record tried again", func() {
		if err := e.recordAll(r)[0].Err; err != nil {
			e.wantErr("Record", err, store.ErrLeaseLost)
		}
	})
}
