package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const day = 24 * time.Hour

// afterDays is a retention of n days.
func afterDays(n int) store.Retention { return store.Retention{Age: time.Duration(n) * day} }

// valuesAfter drops values after n days.
func valuesAfter(n int) store.Retention {
	return store.Retention{Age: time.Duration(n) * day, Values: true}
}

// collect runs a collector over the whole range of IDs, and the chores that it left.
func (e *env) collect(retain ...store.Retention) store.CollectResult {
	e.Helper()
	return e.collectWith(store.CollectRequest{Retain: retain})
}

func (e *env) collectWith(req store.CollectRequest) (all store.CollectResult) {
	e.Helper()
	for range 1000 {
		got, err := e.s.Collect(e.Context(), e.ns, req)
		e.require(err == nil, "Collect: %v", err)
		all.Add(got)
		if got.Done() {
			e.finishChores()
			return all
		}
		req.After = got.Next
	}
	e.Fatalf("Collect comes to no end, at %q", req.After)
	return all
}

// collected expects tasks and all their rows to be deleted.
func (e *env) collected(ids ...task.ID) {
	e.Helper()
	snap := e.snap()
	for _, id := range ids {
		e.forget(id)
		e.check(len(e.found(id)) == 0, "task %v is still there", id)
		n := len(of(snap.Attempts, func(a task.Attempt) bool { return a.TaskID == id })) +
			len(of(snap.Decisions, func(d task.Decision) bool { return d.TaskID == id })) +
			len(of(snap.Steps, func(s task.Step) bool { return s.TaskID == id })) +
			len(of(snap.Signals, func(s task.Signal) bool { return s.TaskID == id })) +
			len(of(snap.Artifacts, func(a task.Artifact) bool { return a.TaskID == id })) +
			len(of(snap.Checkpoints, func(c task.Checkpoint) bool { return c.TaskID == id })) +
			len(e.events(id, 0, 0)) +
			len(of(snap.Edges, func(r store.EdgeRow) bool { return r.Task == id || r.Needs == id })) +
			len(of(snap.PausedTasks, func(p store.PausedTask) bool { return p.Task == id })) +
			len(of(snap.Audit, func(a store.AuditEntry) bool { return a.Target == id.String() }))
		e.check(n == 0, "task %v left %d rows", id, n)
	}
}

// live returns the number of referenced blobs.
func (e *env) live() int {
	return len(of(e.snap().Blobs, func(b store.BlobRow) bool { return b.State == task.BlobLive }))
}

// noneGoes expects a collector to have deleted no task and no value.
func (e *env) noneGoes(got store.CollectResult) {
	e.Helper()
	e.check(got.Tasks+got.Jobs+got.Dropped+len(got.Gone) == 0, "a collector did %+v, want nothing", got)
}

func (e *env) found(ids ...task.ID) []task.Task {
	e.Helper()
	list, err := e.s.Tasks(e.Context(), e.ns, ids...)
	e.require(err == nil, "Tasks: %v", err)
	return list
}

// kept expects tasks to exist.
func (e *env) kept(ids ...task.ID) {
	e.Helper()
	e.equal("the tasks that are kept", mapped(e.found(ids...), idOf), ids)
}

// rich returns an ended task with a row in every table.
func (e *env) rich(opts ...opt) task.ID {
	e.Helper()
	id := e.one(append([]opt{labels("team", "red"), input(`"` + fmt.Sprintf("%0*d", 100<<10, 7) + `"`)}, opts...)...)
	e.operate(pauseTaskOf(id))
	e.operate(resumeTaskOf(id))
	e.operate(signalOf(id, "unheard", "k", `"signal"`))
	c := e.a.take(id)
	one := step(c, "one", string(e.blob("value of "+id.String()).Value()))
	one.Artifacts = []store.NewArtifact{artifact(e, "report.csv", e.blob("report of "+id.String()), 0)}
	one.Events = eventRows(e, 1, 2, 3)
	e.record(one)
	e.record(checkpoint(c, "cursor", `7`))
	e.record(try(c, "two", 1))
	e.finish(retry(c, 0))
	e.succeed(id)
	return id
}

var retainCases = []testCase{
	{"what is old enough goes, with everything recorded about it", func(e *env) {
		old := e.rich()
		e.silence(10 * day)
		young, open := e.one(), e.one()
		e.succeed(young)
		got := e.collect(afterDays(7))
		e.check(got.Tasks == 1 && got.Jobs == 0 && got.Dropped == 0 && len(got.Gone) == 1 && got.Gone[0] == old, "the answer is %+v, want one task", got)
		e.collected(old)
		e.equal("the blobs in use", e.live(), 0)
		e.kept(young, open)
		again := e.collect(afterDays(7))
		e.check(again.Tasks == 0, "a second time %d tasks go", again.Tasks)
	}},
	{"among tasks that go together are some that must stay", func(e *env) {
		before, needed, between, paused, heard := e.one(), e.one(), e.one(labels("team", "red")), e.one(), e.one()
		parent, after := e.one(), e.one(input(`{"n":1}`))
		e.succeed(before, needed, between, after)
		e.operate(pauseTaskOf(paused))
		e.operate(resumeTaskOf(paused))
		e.operate(signalOf(heard, "unheard", "k", `1`))
		e.succeed(paused, heard)
		children := e.decomposed(parent, task.JoinComplete, 2)
		e.asksFor(e.one(), needed)
		e.silence(2 * day)
		got := e.collect(afterDays(1))
		e.equal("the tasks that go", got.Tasks, 5)
		e.collected(before, between, paused, heard, after)
		e.kept(append([]task.ID{needed, parent}, children...)...)
	}},
	{"tasks with artifacts go together, and their blobs with them", func(e *env) {
		ids := e.many(3)
		for i, id := range ids {
			c := e.a.take(id)
			made := step(c, "made", `1`)
			made.Artifacts = []store.NewArtifact{artifact(e, "report.csv", e.blob(fmt.Sprint("report ", i)), 0)}
			e.record(made)
			e.finish(success(c))
		}
		e.equal("the blobs in use", e.live(), 3)
		e.silence(2 * day)
		e.equal("the tasks that go", e.collect(afterDays(1)).Tasks, 3)
		e.collected(ids...)
		e.equal("the blobs in use then", e.live(), 0)
	}},
	{"it is the end that counts", func(e *env) {
		id := e.one()
		e.silence(10 * day)
		e.succeed(id)
		e.collect(afterDays(7))
		e.kept(id)
		e.silence(7 * day)
		e.collect(afterDays(7))
		e.collected(id)
	}},
	{"what has not ended stays", func(e *env) {
		ready, running, blocked, paused, later := e.one(), e.one(), e.one(), e.one(), e.one(after(1000*day))
		e.blockTask(blocked)
		e.operate(pauseTaskOf(paused))
		g := e.job("a", "b: a")
		e.succeed(g.id("a"))
		e.a.claim(only(running), claimTTL(1000*day))
		e.silence(100 * day)
		e.noneGoes(e.collect(afterDays(0)))
		e.kept(ready, running, blocked, paused, later, g.id("a"), g.id("b"))
	}},
	{"the first rule that matches decides", func(e *env) {
		ok, bad, other, gone := e.one(), e.one(), e.one(typed(beta)), e.one()
		e.succeed(ok)
		e.fail(bad)
		e.finish(success(e.a.claim(only(other), types(map[string]int{beta: 1})).Tasks[0]))
		e.operate(cancelOf(gone))
		e.silence(10 * day)
		retain := []store.Retention{
			{States: []task.State{task.Failed}, Age: -1},
			{Types: []string{beta}, Age: 30 * day},
			afterDays(7),
		}
		e.equal("the tasks that go", e.collect(retain...).Tasks, 2)
		e.collected(ok, gone)
		e.kept(bad, other)
		e.silence(20 * day)
		e.collect(retain...)
		e.collected(other)
		e.kept(bad)
		e.noneGoes(e.collect())
		e.noneGoes(e.collect(store.Retention{Age: -1}))
	}},
	{"a key is free again", func(e *env) {
		id := e.one(once("k"))
		e.succeed(id)
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.collected(id)
		e.one(once("k"))
	}},
	{"a dry run counts and changes nothing", func(e *env) {
		ids := e.many(5)
		e.succeed(ids...)
		g := e.job("a", "b: a")
		e.succeed(g.id("a"), g.id("b"))
		e.silence(2 * day)
		e.unchanged("a dry run", func() {
			got := e.collectWith(store.CollectRequest{Retain: []store.Retention{valuesAfter(3), afterDays(1)}, DryRun: true})
			e.check(got.Tasks == 5 && got.Jobs == 1, "the answer is %+v, want 5 tasks and a job", got)
		})
	}},
	{"a small bite says where it stopped", func(e *env) {
		ids := e.many(7)
		e.succeed(ids...)
		e.silence(2 * day)
		got := e.collectWith(store.CollectRequest{Retain: []store.Retention{afterDays(1)}, Limit: 3})
		e.equal("the tasks that go", got.Tasks, 7)
		e.collected(ids...)
		_, err := e.s.Collect(e.Context(), e.ns, store.CollectRequest{After: "nowhere"})
		e.wantErr("a cursor of something else", err, store.ErrBadCursor)
	}},
	{"a namespace is collected by itself", func(e *env) {
		other := e.in(otherNamespace)
		id, its := e.one(), other.one()
		e.succeed(id)
		other.succeed(its)
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.collected(id)
		other.kept(its)
	}},
	{"a task with more rows than a transaction moves goes", func(e *env) {
		id := e.one()
		c := e.a.claim(only(id), claimTTL(time.Hour)).Tasks[0]
		for i := range fanned {
			e.record(indexed(step(c, fmt.Sprint("s", i), `1`), i))
		}
		e.finish(success(c))
		e.silence(2 * day)
		e.equal("the tasks that go", e.collect(afterDays(1)).Tasks, 1)
		e.collected(id)
	}},
}

var retainEdgeCases = []testCase{
	{"a job goes whole, by its own end", func(e *env) {
		g := e.job("a", "b: a", "c: !a")
		e.operate(pauseTaskOf(g.id("b")))
		e.operate(resumeTaskOf(g.id("b")))
		e.succeed(g.id("a"))
		e.silence(10 * day)
		e.collect(afterDays(1))
		e.kept(g.all("a", "b", "c")...)
		e.succeed(g.id("b"))
		e.silence(2 * day)
		got := e.collect(store.Retention{States: []task.State{task.Failed}}, store.Retention{Types: []string{alpha}, Age: 0})
		e.check(got.Tasks == 0 && got.Jobs == 0, "rules for another state, and for a type, take %+v", got)
		got = e.collect(store.Retention{States: []task.State{task.Succeeded}, Age: day})
		e.check(got.Tasks == 0 && got.Jobs == 1, "the answer is %+v, want a job", got)
		e.collected(g.all("a", "b", "c")...)
		_, err := store.JobOf(e.Context(), e.s, e.ns, g.sub.Job.ID)
		e.wantErr("the job", err, store.ErrNotFound)
	}},
	{"a large job goes whole", func(e *env) {
		g := e.job(fan("need", "d: need")...)
		e.fail(g.id("need"))
		e.finishChores()
		e.silence(2 * day)
		e.equal("the jobs that go", e.collect(afterDays(1)).Jobs, 1)
		e.collected(mapped(g.sub.Tasks, draftID)...)
		e.equal("what is left", len(e.snap().Jobs), 0)
	}},
	{"children go with their parent", func(e *env) {
		parent := e.one()
		children := e.decomposed(parent, task.JoinRerun, 3)
		grand := e.decomposed(children[0], task.JoinComplete, 2)
		e.succeed(grand...)
		e.succeed(children[1:]...)
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.kept(append(children, grand...)...)
		e.succeed(parent)
		e.silence(2 * day)
		e.equal("the tasks that go", e.collect(afterDays(1)).Tasks, 6)
		e.collected(append(append(children, grand...), parent)...)
	}},
	{"many children go with their parent", func(e *env) {
		parent := e.one()
		children := e.decomposed(parent, task.JoinComplete, fanned)
		e.operate(cancelOf(parent))
		e.finishChores()
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.collected(append(children, parent)...)
	}},
	{"what another one asked for stays until that is gone", func(e *env) {
		b, a := e.one(), e.one()
		e.succeed(b)
		e.asksFor(a, b)
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.kept(b, a)
		e.fail(a)
		e.collect(afterDays(1))
		e.kept(b, a)
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.collected(a)
		e.collect(afterDays(1))
		e.collected(b)
	}},
	{"a job of which another task needs one stays until that is gone", func(e *env) {
		g := e.job("x", "y")
		a := e.one()
		e.succeed(g.id("x"), g.id("y"))
		e.asksFor(a, g.id("x"))
		e.silence(2 * day)
		e.equal("the jobs that go", e.collect(afterDays(1)).Jobs, 0)
		e.commandRefused(store.DeleteJob{Audit: admin, Job: g.sub.Job.ID}, store.ErrState)
		e.kept(g.all("x", "y")...)
		e.succeed(a)
		e.silence(2 * day)
		e.collect(afterDays(1))
		e.collected(a)
		e.equal("the jobs that go then", e.collect(afterDays(1)).Jobs, 1)
		e.collected(g.all("x", "y")...)
	}},
	{"a job that a later one is based on stays until that is gone", func(e *env) {
		first := e.job("x")
		e.succeed(first.id("x"))
		second := e.graph("y")
		second.sub.Job.BasedOn = []task.ID{first.sub.Job.ID}
		second.submit()
		e.equal("the bases of the second job", second.read().BasedOn, second.sub.Job.BasedOn)
		e.submit(second.sub) // the reply was lost
		e.silence(2 * day)
		e.collect(valuesAfter(1))
		e.check(e.values(first.id("x")) > 0, "the values of a job that a running one is based on went")
		e.equal("the jobs that go", e.collect(afterDays(1)).Jobs, 0)
		refused := e.commandRefused(store.DeleteJob{Audit: admin, Job: first.sub.Job.ID}, store.ErrState)
		e.contains("the refusal", refused, "a later job is based on it")
		e.succeed(second.id("y"))
		e.equal("the jobs that go", e.collect(afterDays(1)).Jobs, 0)
		e.silence(2 * day)
		e.equal("the jobs that go when the later one is old", e.collect(afterDays(1)).Jobs, 1)
		e.collected(second.id("y"))
		e.kept(first.id("x"))
		missing := e.graph("z")
		missing.sub.Job.BasedOn = []task.ID{first.sub.Job.ID, second.sub.Job.ID}
		_, err := e.s.Enqueue(e.Context(), e.ns, nil, missing.sub)
		e.check(errors.Is(err, store.ErrNotFound), "a job based on one that is gone: %v, want ErrNotFound", err)
		e.equal("the jobs that go then", e.collect(afterDays(1)).Jobs, 1)
		e.collected(first.id("x"))
	}},
	{"a deleted task holds a job no longer", func(e *env) {
		g := e.job("x")
		a := e.one()
		e.succeed(g.id("x"))
		e.asksFor(a, g.id("x"))
		e.succeed(a)
		e.operate(deleteOf(a))
		e.forget(a)
		e.silence(2 * day)
		e.equal("the jobs that go", e.collect(afterDays(1)).Jobs, 1)
		e.collected(g.id("x"))
	}},
}

// values counts the values of a task.
func (e *env) values(id task.ID) (n int) {
	e.Helper()
	h := e.history(id)
	for _, s := range h.Steps {
		n += len(s.Value)
	}
	for _, s := range h.Signals {
		n += len(s.Payload)
	}
	n += len(h.Task.Input) + len(h.Task.Output) + len(h.Checkpoints) + len(e.events(id, 0, 0))
	if h.Task.Progress != nil {
		n++
	}
	return n
}

var retainValueCases = []testCase{
	{"values go earlier than the task", func(e *env) {
		id := e.rich()
		before := e.history(id)
		e.silence(2 * day)
		got := e.collect(valuesAfter(1), afterDays(30))
		e.check(got.Dropped == 1 && got.Tasks == 0, "the answer is %+v, want one task whose values were dropped", got)
		e.equal("the size of its values", e.values(id), 0)
		e.equal("the blobs in use: its artifact's", e.live(), 1)
		h := e.history(id)
		e.check(h.Task.ValuesDropped && h.Task.State == task.Succeeded && h.Task.StepCount == 1, "the task is %s", show(h.Task))
		e.check(len(h.Attempts) == len(before.Attempts) && len(h.Steps) == len(before.Steps) && len(h.Audit) == len(before.Audit), "its history is not whole")
		e.equal("the tasks of a second pass", e.collect(valuesAfter(1), afterDays(30)).Dropped, 0)
		e.silence(30 * day)
		e.collect(valuesAfter(1), afterDays(30))
		e.collected(id)
	}},
	{"a task without its values is not repeated", func(e *env) {
		id := e.rich()
		e.silence(2 * day)
		e.collect(valuesAfter(1))
		e.contains("the refusal", e.commandRefused(store.RerunTask{Audit: admin, Task: id, New: e.draft()}, store.ErrState), "dropped")
	}},
	{"what may run again keeps its values", func(e *env) {
		bad, gone := e.one(input(`{"n":1}`)), e.one(input(`{"n":2}`))
		e.fail(bad)
		e.operate(cancelOf(gone))
		g := e.job("a", "b: a")
		e.succeed(g.id("a"))
		e.fail(g.id("b"))
		need, asker := e.one(), e.one()
		e.succeed(need)
		e.asksFor(asker, need)
		e.fail(asker)
		e.silence(2 * day)
		e.noneGoes(e.collect(valuesAfter(1)))
		e.operate(retryOf(g.id("b")))
		e.operate(retryOf(asker))
		e.succeed(g.id("b"), asker)
		e.equal("the tasks whose values go", e.collect(valuesAfter(1)).Dropped, 1) // needed task
		e.check(e.values(g.id("a")) > 0, "the values of a job went before its own end was old enough")
		e.silence(2 * day)
		e.equal("the tasks whose values go then", e.collect(valuesAfter(1)).Dropped, 3)
	}},
	{"the values of a child's children stay while a parent above may undo them", func(e *env) {
		root := e.one()
		kids := e.decomposed(root, task.JoinRerun, 2)
		nested := e.decomposed(kids[0], task.JoinComplete, 1)[0]
		e.succeed(nested)
		e.is(kids[0], task.Succeeded, task.WaitNone)
		e.silence(2 * day)
		e.equal("the tasks whose values go", e.collect(valuesAfter(1)).Dropped, 0)
		e.succeed(kids[1], root)
		e.silence(2 * day)
		e.equal("the tasks whose values go then", e.collect(valuesAfter(1)).Dropped, 4)
	}},
	{"the values of more steps than a transaction moves go", func(e *env) {
		id := e.one()
		c := e.a.claim(only(id), claimTTL(time.Hour)).Tasks[0]
		for i := range fanned {
			e.record(indexed(step(c, fmt.Sprint("s", i), `1`), i))
		}
		e.finish(success(c))
		e.silence(2 * day)
		e.collect(valuesAfter(1))
		e.equal("the size of its values", e.values(id), 0)
		e.equal("the steps", len(e.steps(id)), fanned)
	}},
}

var deleteJobCases = []testCase{
	{"a job that ended is deleted whole", func(e *env) {
		g := e.job(append(fan("need", "d: need"), "other")...)
		refused := e.commandRefused(store.DeleteJob{Audit: admin, Job: g.sub.Job.ID}, store.ErrState)
		e.contains("the refusal", refused, "running", "cancel it first")
		e.fail(g.id("need"))
		e.succeed(g.id("other"))
		e.finishChores()
		got := e.operate(store.DeleteJob{Audit: admin, Job: g.sub.Job.ID})
		e.equal("the answer", got, store.CommandResult{Deleted: fanned + 2})
		e.collected(mapped(g.sub.Tasks, draftID)...)
		snap := e.snap()
		e.check(len(snap.Jobs) == 0 && len(snap.Chores) == 0, "%d jobs and %d chores are left", len(snap.Jobs), len(snap.Chores))
		last := snap.Audit[len(snap.Audit)-1]
		e.check(last.Verb == "delete_job" && last.Target == g.sub.Job.ID.String() && last.Actor == admin.By, "the audit ends with %+v", last)
		e.commandRefused(store.DeleteJob{Audit: admin, Job: g.sub.Job.ID}, store.ErrNotFound)
	}},
}
