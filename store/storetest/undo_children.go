package storetest

import (
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// calledToUndo is called for a call whose children are undone with its task.
func calledToUndo(c store.Claimed, name string, total int, kids ...task.New) store.Record {
	r := called(c, name, total, 0, kids...)
	r.Step.Undo = task.UndoOpen
	return r
}

// tour makes a task call n children, which succeed with one undoable step each.
func (e *env) tour(id task.ID, round, n int) []task.ID {
	e.Helper()
	c := e.a.take(id)
	drafts := e.drafts(n)
	got := e.record(inRound(calledToUndo(c, "tour", n, drafts...), round)).Step
	e.check(got.Undo == task.UndoOpen && got.Round == round && got.UndoNo > 0, "the call is %+v", got)
	e.finish(suspended(c, task.WaitChildren, time.Time{}))
	kids := mapped(drafts, draftID)
	for _, kid := range kids {
		c := e.a.take(kid)
		e.record(begin(c, "book", 0))
		e.record(undoable(step(c, "book", `"ref"`)))
		e.record(indexed(step(c, "label", `1`), 1))
		e.finish(success(c))
	}
	return kids
}

// toured begins the undo phase of a task that has called children, and claims the task.
func (e *env) toured(n int) (c store.Claimed, kids []task.ID) {
	e.Helper()
	id := e.one()
	kids = e.tour(id, 0, n)
	e.finish(dead(e.a.take(id)))
	e.isUndoing("the caller", id, task.Failed, task.KindHandler)
	return e.a.take(id), kids
}

// undoOf records the undo of a call's child by a new task.
func (e *env) undoOf(c store.Claimed, call string, child task.ID) store.Record {
	e.Helper()
	of := e.task(child)
	n := of.UndoTask()
	n.ID = e.ids.New()
	r := undo(c, call, 0)
	r.Step.State, r.Tasks, r.UndoOf = task.StepWaiting, []task.New{n}, c.Task.UndoOf
	return r
}

// undoChild starts the undo of a child and returns the undo task.
func (e *env) undoChild(c store.Claimed, call string, child task.ID) task.ID {
	e.Helper()
	got := e.record(e.undoOf(c, call, child))
	e.require(len(got.Enqueued) == 1 && got.Enqueued[0].Disposition == store.DispositionCreated, "the answer is %+v", got)
	e.remember(got.Enqueued[0].ID)
	return got.Enqueued[0].ID
}

// edges returns the edges of a task to its needs and children.
func (e *env) edges(id task.ID) []store.EdgeRow {
	e.Helper()
	return of(e.snap().Edges, func(r store.EdgeRow) bool { return r.Task == id })
}

// lastReasonOf returns the reason of the last audit entry about a task.
func (e *env) lastReasonOf(id task.ID) string {
	e.Helper()
	list := of(e.snap().Audit, func(a store.AuditEntry) bool { return a.Target == id.String() })
	e.require(len(list) > 0, "nothing is audited of %v", id)
	return list[len(list)-1].Reason
}

// undid records, in an undo task, the undo of a child's step.
func undid(c store.Claimed, name string) store.Record {
	r := undo(c, name, 0)
	r.UndoOf = c.Task.UndoOf
	return r
}

var undoChildrenCases = []testCase{
	{"a child is undone by a task of its own, and stays succeeded", func(e *env) {
		c, kids := e.toured(2)
		e.equal("to undo", c.Task.UndoOpen, 1)
		id := e.undoChild(c, "tour", kids[1])
		u := e.is(id, task.Pending, task.WaitUndo)
		e.check(u.UndoOf == kids[1] && u.Undo != nil && u.Undo.Of == kids[1] && u.Undo.EndsAs == task.Succeeded && u.Error == nil, "it is %s, %+v", show(u), u.Undo)
		e.check(u.ParentID == c.Task.ID && u.Depth == c.Task.Depth+1 && u.Type == e.task(kids[1]).Type, "it is %s", show(u))
		e.equal("its dispatch rows", len(e.dispatch(id)), 1)
		again := e.record(e.undoOf(c, "tour", kids[1]))
		e.check(again.Enqueued[0].ID == id && again.Enqueued[0].Disposition == store.DispositionExisting, "recorded again: %+v", again)

		uc := e.a.take(id)
		e.check(len(uc.Steps) == 0 && uc.Task.UndoOf == kids[1], "it is claimed as %s with %+v", show(uc.Task), uc.Steps)
		e.equal("too early", e.finish(undone(uc)), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		e.pass(time.Second)
		uc = e.a.take(id)
		e.recordRefused(undo(uc, "book", 0), store.ErrStepConflict) // it has no steps of its own
		e.recordRefused(undid(uc, "label"), store.ErrStepConflict)
		foreign := undid(uc, "book")
		foreign.UndoOf = kids[0]
		e.recordRefused(foreign, store.ErrStepConflict)
		failed := undid(uc, "book")
		failed.Step.State, failed.Step.Error = task.StepFailed, &task.Error{Kind: task.KindHandler, Message: "503"}
		e.record(failed)
		got := e.record(undid(uc, "book")).Step
		e.check(got.TaskID == id && got.Kind == task.KindUndo, "it was undone as %+v", got)
		e.equal("recorded again", e.record(undid(uc, "book")).Step, got)
		e.equal("the answer", e.finish(undone(uc)).State, task.Succeeded)
		e.equal("what stands of the child", e.stands(kids[1]), []string{"label/0 completed "})
		child := e.ended(kids[1], task.Succeeded, task.KindNone)
		e.check(child.UndoOpen == 0 && child.StepCount == 1 && child.Undo == nil, "the child is %s", show(child))
		u = e.ended(id, task.Succeeded, task.KindNone)
		e.check(u.Undo == nil && u.UndoOf == kids[1] && u.StepCount == 0, "it ended as %s", show(u))

		id = e.undoChild(c, "tour", kids[0])
		uc = e.a.take(id)
		e.record(undid(uc, "book"))
		e.finish(undone(uc))
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
		t := e.ended(c.Task.ID, task.Failed, task.KindHandler)
		e.check(t.UndoOpen == 0 && t.StepCount == 0, "the caller ended as %s", show(t))
		e.equal("its children", len(e.edges(t.ID)), 0)
	}},
	{"a caller that waits is woken when the undo of a child ends", func(e *env) {
		c, kids := e.toured(1)
		id := e.undoChild(c, "tour", kids[0])
		e.finish(inPhase(c, store.Finish{Outcome: task.OutcomeSuspended, Waiting: task.WaitUndo, Delay: time.Minute}))
		e.dueAt(c.Task.ID, e.now().Add(time.Minute))
		e.operate(pauseTaskOf(c.Task.ID))
		uc := e.a.take(id)
		f := undoFails(uc, -1)
		f.Error = &task.Error{Kind: task.KindUndoFailed, Message: "undo given up"}
		e.finish(f)
		e.notDispatched(c.Task.ID)
		e.operate(resumeTaskOf(c.Task.ID))
		e.dueAt(c.Task.ID, e.now().Add(time.Minute))
		e.operate(store.RetryTask{Audit: admin, Task: id, Cleanup: true})
		uc = e.a.take(id)
		e.record(undid(uc, "book"))
		e.finish(undone(uc))
		e.dueAt(c.Task.ID, e.now())
		c = e.a.take(c.Task.ID)
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
	}},
	{"children of a job are undone in it", func(e *env) {
		g := e.graph("saga", "next: saga").submit()
		kids := e.tour(g.id("saga"), 0, 1)
		e.finish(dead(e.a.take(g.id("saga"))))
		c := e.a.take(g.id("saga"))
		id := e.undoChild(c, "tour", kids[0])
		g.counts(task.JobRunning, 4, 3, 2, 0, 1)
		e.equal("its job", e.task(id).JobID, c.Task.JobID)
		e.equal("a cancel", e.operate(cancelOf(id)), store.CommandResult{State: task.Pending, Asked: true})
		uc := e.a.take(id)
		e.record(undid(uc, "book"))
		e.finish(undone(uc))
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
		g.counts(task.JobFailed, 4, 0, 0, 2, 2)
	}},
	{"a retry of the caller calls new children", func(e *env) {
		c, kids := e.toured(1)
		id := e.undoChild(c, "tour", kids[0])
		uc := e.a.take(id)
		e.record(undid(uc, "book"))
		e.finish(undone(uc))
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
		e.operate(store.RetryTask{Audit: admin, Task: c.Task.ID})
		again := e.tour(c.Task.ID, 1, 2)
		e.equal("the name of the first", e.task(again[0]).Node, "tour#1[0]")
		e.equal("the children", len(e.edges(c.Task.ID)), 2)
		e.finish(success(e.a.take(c.Task.ID)))
		e.ended(kids[0], task.Succeeded, task.KindNone)
	}},
	{"a call that waits is undone when its children have ended", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		drafts := e.drafts(3)
		e.record(calledToUndo(c, "tour", 3, drafts...))
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		done, runs := e.a.take(drafts[0].ID), e.a.take(drafts[1].ID)
		e.record(undoable(step(done, "book", `1`)))
		e.finish(success(done))
		e.operate(cancelOf(id))
		e.isUndoing("the caller", id, task.Cancelled, task.KindCancelled)
		skip := store.RetryTask{Audit: admin, Task: id, Cleanup: true, Skip: []string{"tour"}}
		skip.Reason = "by hand"
		e.contains("the refusal", e.commandRefused(skip, store.ErrState), `"tour" have not all ended`)
		c = e.a.take(id)
		e.recordRefused(undo(c, "tour", 0), store.ErrStepConflict)
		e.recordRefused(e.undoOf(c, "tour", drafts[1].ID), store.ErrStepConflict)
		e.recordRefused(e.undoOf(c, "tour", drafts[2].ID), store.ErrStepConflict)
		e.finish(cancelled(runs))
		u := e.a.take(e.undoChild(c, "tour", drafts[0].ID))
		e.record(undid(u, "book"))
		e.finish(undone(u))
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
		e.ended(id, task.Cancelled, task.KindCancelled)
		e.operate(store.RetryTask{Audit: admin, Task: id})
		c = e.a.take(id)
		e.record(inRound(called(c, "tour", 1, 0, e.drafts(1)...), 1)) // no longer with an undo
		e.ended(drafts[1].ID, task.Cancelled, task.KindCancelled)
	}},
	{"only a task in its phase has its own children undone", func(e *env) {
		c, kids := e.toured(1)
		other, theirs := e.toured(1)
		e.recordRefused(e.undoOf(c, "tour", theirs[0]), store.ErrStepConflict)
		e.recordRefused(e.undoOf(c, "other", kids[0]), store.ErrStepConflict)
		running := e.a.take(e.one())
		e.recordRefused(e.undoOf(running, "tour", kids[0]), store.ErrStepConflict)
		e.finish(undoFails(other, 0))
		e.recordRefused(e.undoOf(other, "tour", theirs[0]), store.ErrLeaseLost)
	}},
	{"the undo of a caller is tried again with that of its child", func(e *env) {
		c, kids := e.toured(1)
		id := e.undoChild(c, "tour", kids[0])
		gaveUp := func(c store.Claimed) {
			f := undoFails(c, -1)
			f.Error = &task.Error{Kind: task.KindUndoFailed, Message: "undo given up"}
			e.finish(f)
			e.ended(c.Task.ID, task.Failed, task.KindUndoFailed)
		}
		gaveUp(e.a.take(id))
		gaveUp(c)
		e.commandRefused(retryOf(id), store.ErrState)
		e.operate(store.RetryTask{Audit: admin, Task: id, Cleanup: true})
		e.contains("the audit of the caller", e.lastReasonOf(c.Task.ID), id.String())
		e.is(id, task.Pending, task.WaitUndo)
		t := e.isUndoing("the caller", c.Task.ID, task.Failed, task.KindHandler)
		e.check(t.Undo.Since == t.AttemptNo && !t.Undo.Resumed.IsZero(), "the phase is %+v", t.Undo)

		gaveUp(e.a.take(id))
		c = e.a.take(c.Task.ID)
		e.operate(store.RetryTask{Audit: admin, Task: id, Cleanup: true}) // while the caller runs
		skip := store.RetryTask{Audit: admin, Task: id, Cleanup: true, Skip: []string{"book"}}
		skip.Reason = "by hand"
		e.operate(skip)
		e.equal("what stands of the child", e.stands(kids[0]), []string{"label/0 completed "})
		e.finish(undone(e.a.take(id)))
		e.ended(id, task.Succeeded, task.KindNone)
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
	}},
	{"what a child called is undone by the task that undoes the child", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		middle := e.drafts(1)
		e.record(calledToUndo(c, "tour", 1, middle...))
		e.finish(suspended(c, task.WaitChildren, time.Time{}))
		low := e.tour(middle[0].ID, 0, 1)
		e.finish(success(e.a.take(middle[0].ID)))
		e.finish(dead(e.a.take(id)))
		c = e.a.take(id)
		u := e.a.take(e.undoChild(c, "tour", middle[0].ID))
		lower := e.a.take(e.undoChild(u, "tour", low[0]))
		e.equal("who called it", lower.Task.ParentID, u.Task.ID)
		e.record(undid(lower, "book"))
		e.finish(undone(lower))
		e.record(undid(u, "tour"))
		e.equal("the children of the child", len(e.edges(middle[0].ID)), 0)
		e.finish(undone(u))
		e.record(undo(c, "tour", 0))
		e.finish(undone(c))
		e.ended(id, task.Failed, task.KindHandler)
	}},
	{"a record of an undo task that no engine sends is refused", func(e *env) {
		c, kids := e.toured(1)
		fine := func() store.Record { return e.undoOf(c, "tour", kids[0]) }
		for what, wrong := range map[string]func(r *store.Record){
			"without a task":  func(r *store.Record) { r.Tasks = nil },
			"without a child": func(r *store.Record) { r.Tasks[0].UndoOf = task.ID{} },
			"without a key":   func(r *store.Record) { r.Tasks[0].IdempotencyKey = "" },
			"a call of one":   func(r *store.Record) { r.Step.Kind, r.Step.ChildrenLeft = task.KindCall, 1 },
			"a step of another": func(r *store.Record) {
				r.Tasks, r.Step.Kind, r.Step.State, r.UndoOf = nil, task.KindStep, task.StepCompleted, kids[0]
			},
			"a signal with undo": func(r *store.Record) { *r = wait(c, "w", "s", time.Hour); r.Step.Undo = task.UndoOpen },
		} {
			r := fine()
			wrong(&r)
			got := e.recordAll(r)
			e.check(got[0].Err != nil && !strings.Contains(got[0].Err.Error(), "panic"), "%s was recorded", what)
		}
	}},
}
