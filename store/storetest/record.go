package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var recordCases = []testCase{
	{"a completed step is stored once and handed out again", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.pass(time.Second)
		now := e.now()
		r := step(c, "charge", `{"id":"ch_1"}`)
		got := e.record(r).Step
		e.near("CompletedAt", got.CompletedAt, now)
		e.near("StartedAt", got.StartedAt, now.Add(-2*time.Second))
		want := task.Step{
			TaskID: id, Name: "charge", Kind: task.KindStep, State: task.StepCompleted, AttemptNo: 1, Try: 1,
			Value: json.RawMessage(`{"id":"ch_1"}`), StartedAt: got.StartedAt, CompletedAt: got.CompletedAt,
		}
		e.equal("the step answered", got, want)
		e.equal("the steps stored", e.steps(id), []task.Step{want})
		e.equal("StepCount", e.task(id).StepCount, 1)
		e.pass(time.Second)
		e.unchanged("the same record", func() { e.equal("the step", e.record(r).Step, want) })
		e.finish(retry(c, 0))
		again := e.b.take(id)
		e.equal("the steps of the next attempt", again.Steps, []task.Step{want})
	}},
	{"failed tries are kept and count for nothing", func(e *env) {
		id := e.one()
		e.crash(id, 1)
		c := e.a.take(id)
		for n := 1; n <= 3; n++ {
			e.record(try(c, "charge", n))
		}
		e.pass(time.Second)
		e.unchanged("the same failed try", func() {
			e.equal("the try", e.record(try(c, "charge", 2)).Step, e.steps(id)[1])
		})
		t := e.task(id)
		e.check(t.StepCount == 0 && t.CrashCount == 1, "after failed tries StepCount = %d and CrashCount = %d, want 0 and 1", t.StepCount, t.CrashCount)
		last := step(c, "charge", `1`)
		last.Step.Try = 4
		e.record(last)
		steps := e.steps(id)
		e.require(len(steps) == 4, "%d tries are stored, want 4", len(steps))
		for i, s := range steps[:3] {
			e.equal("the try", s.Try, i+1)
			e.equal("its state", s.State, task.StepFailed)
			e.equal("its error", s.Error, &task.Error{Kind: task.KindHandler, Message: fmt.Sprintf("try %d failed", i+1), Code: "E18", Step: "charge"})
		}
		e.equal("the last try", steps[3].State, task.StepCompleted)
		e.finish(retry(c, 0))
		e.equal("the tries that the next attempt gets, failed ones too", len(e.a.take(id).Steps), 4)
	}},
	{"tries differ by step, attempt and number", func(e *env) {
		id := e.one(attempts(5))
		c := e.a.take(id)
		e.record(try(c, "s", 1))
		e.record(try(c, "t", 1))
		e.record(try(c, "s", 2))
		e.record(try(c, "s", 1)) // once more
		e.finish(retry(c, 0))
		second := e.b.take(id)
		for range 2 {
			e.equal("the attempt of a try", e.record(try(second, "s", 1)).Step.AttemptNo, 2)
		}
		got := mapped(e.steps(id), func(s task.Step) string { return fmt.Sprint(s.Name, s.AttemptNo, s.Try) })
		slices.Sort(got)
		e.equal("the tries", got, []string{"s1 1", "s1 2", "s2 1", "t1 1"})
	}},
	{"a recorded error is a step's value", func(e *env) {
		id := e.one()
		r := step(e.a.take(id), "charge", "")
		r.Step.Value, r.Step.Error = nil, &task.Error{Kind: task.KindHandler, Message: "declined", Step: "charge"}
		e.equal("the error", e.record(r).Step.Error, r.Step.Error)
		got := e.steps(id)[0]
		e.equal("the state", got.State, task.StepCompleted)
		e.equal("the error", got.Error, r.Step.Error)
		e.equal("the value", got.Value, json.RawMessage(nil))
	}},
	{"indexes are kept and order the steps", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		failed := try(c, "b", 1)
		failed.Step.Index = 1
		e.record(failed)
		for index, name := range map[int]string{2: "c", 0: "a"} {
			r := step(c, name, `1`)
			r.Step.Index = index
			e.record(r)
		}
		e.finish(retry(c, 0))
		c = e.a.take(id)
		r := step(c, "b", `1`)
		r.Step.Index = 1
		e.record(r)
		got := mapped(e.steps(id), func(s task.Step) string { return fmt.Sprintf("%d %s %s", s.Index, s.Name, s.State) })
		e.equal("the steps", got, []string{"0 a completed", "1 b failed", "1 b completed", "2 c completed"})
	}},
	{"a sleep wakes by the store's clock, or at the instant given", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		r := sleep(c, "nap", 5*time.Second)
		now := e.now()
		got := e.record(r).Step
		e.equal("the kind", got.Kind, task.KindSleep)
		e.near("WakeAt", got.WakeAt, now.Add(5*time.Second))
		e.pass(time.Second)
		e.unchanged("the same sleep", func() {
			e.equal("WakeAt", e.record(r).Step.WakeAt, got.WakeAt)
		})
		e.finish(suspend(c, got.WakeAt))
		e.is(id, task.Pending, task.WaitSleep)
		e.dueAt(id, got.WakeAt)
		e.pass(5 * time.Second)
		steps := e.a.take(id).Steps
		e.equal("the steps of the next attempt", steps, []task.Step{got})
		r = sleep(e.a.take(e.one()), "until", time.Hour)
		r.Step.WakeAt = e.now().Add(9 * time.Second)
		e.equal("WakeAt as given", e.record(r).Step.WakeAt, r.Step.WakeAt)
	}},
	{"a start enqueues with its step", func(e *env) {
		parent := e.one()
		c := e.a.take(parent)
		now, later := e.draft(labels("a", "b")), e.draft(after(time.Minute), queue("slow"))
		got := e.record(start(c, "fan out", now, later))
		e.equal("the answers", got.Enqueued, []store.Enqueued{
			{ID: now.ID, Disposition: store.DispositionCreated}, {ID: later.ID, Disposition: store.DispositionCreated},
		})
		child := e.is(now.ID, task.Ready, task.WaitNone)
		e.equal("the parent", child.ParentID, parent)
		e.equal("the job", child.JobID, task.ID{})
		e.equal("the labels", child.Labels, now.Labels)
		e.is(later.ID, task.Pending, task.WaitDelay)
		e.equal("StepCount of the parent", e.task(parent).StepCount, 1)
		e.finish(success(c))
		e.succeed(now.ID)
	}},
	{"a start returns the task that its key names", func(e *env) {
		old := e.one(once("k"))
		c := e.a.take(e.one())
		drafts := e.drafts(2, once("k"))
		r := start(c, "s", drafts...)
		got := e.record(r)
		for _, q := range got.Enqueued {
			e.check(q.ID == old && q.Disposition == store.DispositionExisting, "the start answered %v, want the existing %v", q, old)
		}
		e.equal("the tasks stored", len(e.snap().Tasks), 2)
		e.equal("the parent of the existing task", e.task(old).ParentID, task.ID{})
		e.equal("the recorded id", string(got.Step.Value), fmt.Sprintf("%q", old))
		e.unchanged("the same start", func() { e.equal("the step", e.record(r).Step, got.Step) })
	}},
	{"the same start again starts nothing", func(e *env) {
		c := e.a.take(e.one())
		r := start(c, "s", e.draft(), e.draft())
		first := e.record(r)
		e.succeed(r.Tasks[0].ID)
		e.unchanged("the same start", func() {
			again := e.record(r)
			e.equal("the step", again.Step, first.Step)
			e.equal("the answers", again.Enqueued, first.Enqueued)
		})
	}},
	{"progress is kept until the next report", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		report := func(p task.Progress) { e.record(store.Record{Lease: c.Lease, Progress: &p}) }
		report(task.Progress{Current: 1.5, Total: 10, Message: "warming up"})
		e.equal("the progress", e.task(id).Progress, &task.Progress{Current: 1.5, Total: 10, Message: "warming up"})
		report(task.Progress{Current: 3})
		e.equal("the progress", e.task(id).Progress, &task.Progress{Current: 3})
		e.record(step(c, "s", `1`))
		e.equal("the progress after a step", e.task(id).Progress, &task.Progress{Current: 3})
		both := step(c, "s2", `1`)
		both.Progress = &task.Progress{Current: 4}
		e.record(both)
		e.equal("the progress given with a step", e.task(id).Progress, &task.Progress{Current: 4})
		e.finish(retry(c, 0))
		e.equal("the progress after a retry", e.task(id).Progress, &task.Progress{Current: 4})
		c = e.a.take(id)
		f := success(c)
		f.Progress = &task.Progress{Current: 5, Total: 5, Message: "all"}
		e.finish(f)
		e.equal("the progress given with the end", e.task(id).Progress, f.Progress)
	}},
	{"one task may record several steps in one batch", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.recordOK(step(c, "x", `1`), step(c, "y", `2`), try(c, "z", 1), step(c, "w", `4`))
		e.equal("StepCount", e.task(id).StepCount, 3)
		e.equal("the tries stored", len(e.steps(id)), 4)
	}},
	{"steps of the same name belong to their tasks", func(e *env) {
		cs := e.a.takeAll(e.many(3)...)
		var rs []store.Record
		for i, c := range cs {
			done := step(c, "s", fmt.Sprint(i))
			done.Step.Try = 2
			rs = append(rs, try(c, "s", 1), done)
		}
		first := e.recordAll(rs...)
		e.unchanged("the same records", func() {
			for i, r := range e.recordOK(rs...) {
				e.equal("the step", r.Step, first[i].Step)
			}
		})
		for i, c := range cs {
			e.equal("the value", string(e.steps(c.Task.ID)[1].Value), fmt.Sprint(i))
		}
	}},
	{"many sleeps, starts and reports keep what they are", func(e *env) {
		ids := e.many(10)
		cs := e.a.takeAll(ids...)
		var sleeps, starts, reports []store.Record
		var children []task.ID
		for _, c := range cs {
			child := e.draft()
			children = append(children, child.ID)
			sleeps = append(sleeps, sleep(c, "nap", time.Hour))
			starts = append(starts, start(c, "start", child))
			r := step(c, "report", `1`)
			r.Progress = &task.Progress{Current: 1, Total: 2}
			reports = append(reports, r)
		}
		for _, batch := range [][]store.Record{sleeps, starts, reports} {
			e.recordOK(batch...)
		}
		e.tasks(children...)
		for i, t := range e.tasks(ids...) {
			e.equal("the progress", t.Progress, &task.Progress{Current: 1, Total: 2})
			for _, s := range e.steps(ids[i]) {
				e.check((s.Name != "nap" || s.Kind == task.KindSleep && !s.WakeAt.IsZero()) && (s.Name != "start" || s.Kind == task.KindStart), "a step is recorded as %+v", s)
			}
		}
	}},
}

// step records a completed step.
func step(c store.Claimed, name, value string) store.Record {
	return store.Record{
		Lease:   c.Lease,
		Step:    &task.Step{Name: name, Kind: task.KindStep, State: task.StepCompleted, AttemptNo: c.Task.AttemptNo, Try: 1, Value: json.RawMessage(value)},
		Elapsed: 2 * time.Second,
	}
}

// try records a failed try of a step.
func try(c store.Claimed, name string, n int) store.Record {
	return store.Record{
		Lease: c.Lease,
		Step: &task.Step{
			Name: name, Kind: task.KindStep, State: task.StepFailed, AttemptNo: c.Task.AttemptNo, Try: n,
			Error: &task.Error{Kind: task.KindHandler, Message: fmt.Sprintf("try %d failed", n), Code: "E18", Step: name},
		},
	}
}

// sleep records a sleep step.
func sleep(c store.Claimed, name string, d time.Duration) store.Record {
	r := step(c, name, "")
	r.Step.Kind, r.Step.Value, r.Sleep = task.KindSleep, nil, d
	return r
}

// start records a step that enqueues tasks.
func start(c store.Claimed, name string, drafts ...task.New) store.Record {
	r := step(c, name, fmt.Sprintf("%q", drafts[0].ID))
	r.Step.Kind, r.Tasks = task.KindStart, drafts
	return r
}

// recordAll writes records in one batch.
func (e *env) recordAll(rs ...store.Record) []store.RecordResult {
	e.Helper()
	got, err := e.s.Record(e.Context(), e.ns, rs...)
	e.require(err == nil, "Record of %d: %v", len(rs), err)
	e.require(len(got) == len(rs), "Record of %d answered %d", len(rs), len(got))
	return got
}

// recordOK writes records in one batch, all of which must be accepted.
func (e *env) recordOK(rs ...store.Record) []store.RecordResult {
	e.Helper()
	got := e.recordAll(rs...)
	for _, r := range got {
		e.require(r.Err == nil, "Record: %v", r.Err)
		for _, q := range r.Enqueued {
			e.remember(q.ID)
		}
	}
	return got
}

// record writes a record, which must be accepted.
func (e *env) record(r store.Record) store.RecordResult {
	e.Helper()
	return e.recordOK(r)[0]
}

// steps reads the recorded tries of a task.
func (e *env) steps(id task.ID) []task.Step {
	e.Helper()
	return e.history(id).Steps
}
