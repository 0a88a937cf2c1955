package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// begin records the beginning of a step with an undo.
func begin(c store.Claimed, name string, index int) store.Record {
	r := undoable(indexed(step(c, name, ""), index))
	r.Step.State, r.Step.Value, r.Elapsed = task.StepBegun, nil, 0
	return r
}

// undoable makes r a record of a step with an undo.
func undoable(r store.Record) store.Record {
	r.Step.Undo = task.UndoOpen
	return r
}

// inRound sets the round of a record: the number of earlier undos of its step.
func inRound(r store.Record, round int) store.Record {
	r.Step.Round = round
	return r
}

// undo records the undo of a step in a round.
func undo(c store.Claimed, name string, round int) store.Record {
	r := inRound(step(c, name, ""), round)
	r.Step.Kind, r.Step.Value = task.KindUndo, nil
	return r
}

// point records a point of no return.
func point(c store.Claimed, name string, index int) store.Record {
	r := indexed(step(c, name, ""), index)
	r.Step.Kind, r.Step.Value = task.KindPoint, nil
	return r
}

// charged claims a task and runs two steps with an undo: "charge", and "ship", whose end is not recorded.
func (e *env) charged(id task.ID) store.Claimed {
	e.Helper()
	c := e.a.take(id)
	e.record(begin(c, "charge", 0))
	e.record(undoable(indexed(step(c, "charge", `{"id":1}`), 0)))
	e.record(begin(c, "ship", 1))
	return c
}

// stands lists the steps of a task that count as run, each with its state and undo state.
func (e *env) stands(id task.ID) (list []string) {
	e.Helper()
	for _, s := range e.steps(id) {
		if s.State != task.StepFailed && s.Kind != task.KindUndo && !s.Past() {
			list = append(list, fmt.Sprintf("%s/%d %s %s", s.Name, s.Round, s.State, s.Undo))
		}
	}
	return list
}

var undoCases = []testCase{
	{"the beginning of a step is stored once, and gets its value in whichever attempt", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		got := e.record(begin(c, "charge", 0)).Step
		e.check(got.State == task.StepBegun && got.UndoNo == 1 && got.CompletedAt.IsZero(), "it began as %+v", got)
		e.equal("recorded again", e.record(begin(c, "charge", 0)).Step, got)
		e.record(begin(c, "ship", 1))
		e.record(try(c, "charge", 1))
		e.pass(time.Second)
		e.finish(retry(c, 0))
		c = e.a.take(id)
		e.check(c.Task.UndoOpen == 2 && c.Task.StepCount == 0, "it is claimed as %s", show(c.Task))
		e.equal("its steps", e.stands(id), []string{"charge/0 begun open", "ship/0 begun open"})
		e.equal("begun by another attempt", e.record(begin(c, "charge", 0)).Step, got)
		end := e.record(undoable(step(c, "charge", `1`))).Step
		e.check(end.State == task.StepCompleted && end.UndoNo == 1 && end.AttemptNo == 2 && end.StartedAt.Equal(got.StartedAt) && string(end.Value) == `1`, "it ended as %+v", end)
		e.equal("recorded again", e.record(undoable(step(c, "charge", `1`))).Step, end)
		e.recordRefused(undoable(step(c, "charge", `2`)), store.ErrStepConflict)
		e.recordRefused(begin(c, "charge", 0), store.ErrStepConflict)
		e.equal("StepCount", e.task(id).StepCount, 1)
		e.finish(success(c))
		t := e.ended(id, task.Succeeded, task.KindNone)
		e.check(t.UndoOpen == 2 && t.Undo == nil, "a success has %s", show(t))
	}},
	{"several tasks of one claim begin steps and succeed", func(e *env) {
		var ids []task.ID
		for range 3 {
			ids = append(ids, e.one())
		}
		var begins, ends []store.Record
		var fins []store.Finish
		for _, c := range e.a.takeAll(ids...) {
			begins = append(begins, begin(c, "charge", 0))
			ends = append(ends, undoable(step(c, "charge", `1`)), step(c, "plain", `1`))
			fins = append(fins, success(c))
		}
		e.recordOK(begins...)
		e.recordOK(ends...)
		e.finishOK(fins...)
		for _, t := range e.tasks(ids...) {
			e.check(t.State == task.Succeeded && t.UndoOpen == 1 && t.StepCount == 2, "one ended as %s", show(t))
		}
	}},
	{"code that declares no undo any more gives a step that began its value", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		e.record(begin(c, "charge", 0))
		e.record(step(c, "charge", `1`))
		e.equal("its steps", e.stands(id), []string{"charge/0 completed open"})
		e.equal("StepCount", e.task(id).StepCount, 1)
		e.finish(unclean(c))
		e.isUndoing("a failure", id, task.Failed, task.KindHandler)
	}},
	{"after a cancel no step begins, and one that began gets its value", func(e *env) {
		id := e.one()
		c := e.charged(id)
		e.operate(store.CancelTask{Audit: admin, Task: id})
		e.recordRefused(begin(c, "wrap", 2), store.ErrCancelRequested)
		e.recordRefused(undoable(step(c, "wrap", `1`)), store.ErrCancelRequested)
		e.recordRefused(point(c, "shipped", 2), store.ErrCancelRequested)
		e.record(undoable(step(c, "ship", `2`)))
		e.equal("its steps", e.stands(id), []string{"charge/0 completed open", "ship/0 completed open"})
		e.finish(cancelled(c))
		e.isUndoing("a cancel", id, task.Cancelled, task.KindCancelled)
	}},
	{"a task with steps to undo is undone before it ends, however it ends", func(e *env) {
		for what, end := range map[string]struct {
			end   func(c store.Claimed)
			state task.State
			kind  task.ErrorKind
		}{
			"failure": {func(c store.Claimed) { e.finish(dead(c)) }, task.Failed, task.KindHandler},
			"cancel": {func(c store.Claimed) {
				e.operate(store.CancelTask{Audit: admin, Task: c.Task.ID})
				e.finish(cancelled(c))
			}, task.Cancelled, task.KindCancelled},
			"cancel between attempts": {func(c store.Claimed) {
				e.finish(retry(c, time.Hour))
				e.operate(store.CancelTask{Audit: admin, Task: c.Task.ID})
			}, task.Cancelled, task.KindCancelled},
			"cancel while blocked": {func(c store.Claimed) { e.finish(block(c)); e.operate(store.CancelTask{Audit: admin, Task: c.Task.ID}) }, task.Cancelled, task.KindCancelled},
			"poison":               {func(c store.Claimed) { e.expire(c); e.expireAll(c.Task.ID, 2) }, task.Failed, task.KindPoison},
		} {
			id := e.one()
			end.end(e.charged(id))
			t := e.isUndoing(what, id, end.state, end.kind)
			e.equal(what+": to undo", t.UndoOpen, 2)
			c := e.a.take(id)
			e.record(undo(c, "ship", 0))
			e.record(undo(c, "charge", 0))
			e.equal(what+": what stands", len(e.stands(id)), 0)
			e.finish(undone(c))
			t = e.ended(id, end.state, end.kind)
			e.check(t.UndoOpen == 0 && t.StepCount == 0 && t.Undo == nil, "%s: it ended as %s", what, show(t))
		}
	}},
	{"R8 the finish that begins a phase is answered with that while it lasts", func(e *env) {
		id := e.one()
		f := dead(e.charged(id))
		begun := store.FinishResult{State: task.Pending, Waiting: task.WaitUndo}
		e.equal("the answer", e.finish(f), begun)
		e.equal("the answer once more", e.finish(f), begun)
		c := e.a.take(id)
		e.equal("the answer while an attempt of the phase runs", e.finish(f), begun)
		e.record(undo(c, "ship", 0))
		e.record(undo(c, "charge", 0))
		e.finish(undone(c))
		e.equal("the answer after its end", e.finish(f), store.FinishResult{State: task.Failed})
	}},
	{"no phase ends while a step is to be undone", func(e *env) {
		id := e.one()
		e.finish(dead(e.charged(id)))
		c := e.a.take(id)
		e.record(undo(c, "ship", 0))
		e.equal("the answer", e.finish(undone(c)), store.FinishResult{State: task.Pending, Waiting: task.WaitUndo})
		e.equal("the outcome", e.lastAttempt(id).Outcome, task.OutcomeUndoFailed)
		e.pass(time.Second)
		c = e.a.take(id)
		e.record(undo(c, "charge", 0))
		e.finish(undone(c))
		e.ended(id, task.Failed, task.KindHandler)
	}},
	{"a step is undone once in a round", func(e *env) {
		id := e.one()
		e.finish(dead(e.charged(id)))
		c := e.a.take(id)
		e.recordRefused(undo(c, "other", 0), store.ErrStepConflict)
		e.recordRefused(undo(c, "ship", 1), store.ErrStepConflict)
		got := e.record(undo(c, "ship", 0)).Step
		e.check(got.Kind == task.KindUndo && got.Index == 1 && got.UndoNo == 2 && got.AttemptNo == 2, "it was undone as %+v", got)
		e.equal("recorded again", e.record(undo(c, "ship", 0)).Step, got)
		e.equal("to undo", e.task(id).UndoOpen, 1)
		failed := undo(c, "charge", 0)
		failed.Step.State, failed.Step.Error = task.StepFailed, &task.Error{Kind: task.KindHandler, Message: "psp 503"}
		e.equal("the failed try", e.record(failed).Step.Kind, task.KindUndo)
		e.finish(undoFails(c, 0))
		stale := c
		c = e.a.take(id)
		e.recordRefused(undo(stale, "charge", 0), store.ErrLeaseLost)
		e.recordRefused(undo(c, "ship", 0), store.ErrStepConflict)
		e.record(undo(c, "charge", 0))
		e.finish(undone(c))
	}},
	{"an undone step runs anew in its next round, and is undone in that", func(e *env) {
		id := e.one()
		for round := range 3 {
			c := e.a.take(id)
			e.record(inRound(begin(c, "charge", 0), round))
			e.record(inRound(try(c, "charge", 1), round))
			e.record(inRound(undoable(step(c, "charge", fmt.Sprint(round))), round))
			e.record(indexed(step(c, fmt.Sprint("plain", round), `1`), 1))
			e.equal("the step in its round", e.stands(id)[0], fmt.Sprintf("charge/%d completed open", round))
			e.finish(dead(c))
			c = e.a.take(id)
			e.record(undo(c, "charge", round))
			e.finish(undone(c))
			e.ended(id, task.Failed, task.KindHandler)
			e.operate(store.RetryTask{Audit: admin, Task: id})
		}
		c := e.a.take(id)
		e.record(inRound(step(c, "charge", `"without"`), 3))
		e.finish(success(c))
		e.equal("StepCount", e.task(id).StepCount, 4)
	}},
	{"what began before a point of no return is not undone", func(e *env) {
		id := e.one()
		c := e.charged(id)
		got := e.record(point(c, "shipped", 2)).Step
		e.check(got.Kind == task.KindPoint && got.UndoNo == 2, "the point is %+v", got)
		e.equal("recorded again", e.record(point(c, "shipped", 2)).Step, got)
		e.record(begin(c, "mail", 3))
		e.equal("what stands", e.stands(id), []string{"charge/0 completed kept", "ship/0 begun kept", "shipped/0 completed ", "mail/0 begun open"})
		e.finish(dead(c))
		c = e.a.take(id)
		e.recordRefused(undo(c, "charge", 0), store.ErrStepConflict)
		e.record(undo(c, "mail", 0))
		e.finish(undone(c))
		e.ended(id, task.Failed, task.KindHandler)
		e.operate(store.RetryTask{Audit: admin, Task: id})
		c = e.a.take(id)
		e.record(step(c, "ship", `2`)) // it may have run, and runs again
		e.equal("what stands", e.stands(id), []string{"charge/0 completed kept", "ship/0 completed kept", "shipped/0 completed "})
		e.finish(dead(c))
		e.ended(id, task.Failed, task.KindHandler)
	}},
	{"a rerun from a step takes no undo over, and none of what was undone", func(e *env) {
		id := e.one()
		c := e.charged(id)
		e.finish(block(c))
		again := e.draft()
		e.commandRefused(store.RerunTask{Audit: admin, Task: id, New: again, StepsBelow: 1}, store.ErrState)
		e.operate(store.CancelTask{Audit: admin, Task: id})
		c = e.a.take(id)
		e.record(undo(c, "ship", 0))
		e.record(undo(c, "charge", 0))
		e.finish(undone(c))
		e.operate(store.RerunTask{Audit: admin, Task: id, New: again, StepsBelow: 9})
		e.remember(again.ID)
		e.equal("the steps taken over", len(e.steps(again.ID)), 0)
		e.a.take(again.ID)

		id = e.one()
		c = e.a.take(id)
		e.record(begin(c, "charge", 0))
		e.record(undoable(step(c, "charge", `1`)))
		e.finish(success(c))
		again = e.draft()
		e.operate(store.RerunTask{Audit: admin, Task: id, New: again, StepsBelow: 1})
		e.remember(again.ID)
		e.equal("the steps taken over", e.stands(again.ID), []string{"charge/0 completed "})
		e.finish(dead(e.a.take(again.ID)))
		e.ended(again.ID, task.Failed, task.KindHandler)
	}},
	{"an operator skips the undo of a step, and what began before it is undone", func(e *env) {
		id := e.one()
		e.finish(dead(e.charged(id)))
		cmd := store.RetryTask{Audit: admin, Task: id, Cleanup: true, Skip: []string{"ship"}}
		cmd.Reason = ""
		e.commandRefused(cmd, store.ErrState)
		cmd.Reason = "it went by post"
		none := cmd
		none.Skip = []string{"ship", "mail"}
		text := e.commandRefused(none, store.ErrState)
		e.check(strings.Contains(text, `"mail" is not to be undone`) && strings.Contains(text, `["charge"]`), "the answer is %q", text)
		e.operate(cmd)
		e.equal("the audit", e.lastReason(), "skips the undo of ship: it went by post")
		t := e.isUndoing("skipped", id, task.Failed, task.KindHandler)
		e.equal("to undo", t.UndoOpen, 1)
		e.commandRefused(cmd, store.ErrState)
		c := e.a.take(id)
		e.recordRefused(undo(c, "ship", 0), store.ErrStepConflict)
		e.record(undo(c, "charge", 0))
		e.finish(undone(c))
		e.ended(id, task.Failed, task.KindHandler)
		e.operate(store.RetryTask{Audit: admin, Task: id})
		c = e.a.take(id)
		e.record(inRound(begin(c, "ship", 1), 1))
		e.equal("what stands", e.stands(id), []string{"ship/1 begun open"})
		e.finish(success(c))
	}},
	{"a record that no engine sends is refused", func(e *env) {
		c := e.a.take(e.one())
		for what, r := range map[string]store.Record{
			"a beginning with a value": func() store.Record { r := begin(c, "a", 0); r.Step.Value = json.RawMessage(`1`); return r }(),
			"a beginning without undo": func() store.Record { r := begin(c, "a", 0); r.Step.Undo = task.UndoNone; return r }(),
			"a step that was undone":   func() store.Record { r := step(c, "a", `1`); r.Step.Undo = task.UndoUndone; return r }(),
			"a cleanup with an undo":   undoable(refund(c)),
			"a negative round":         inRound(step(c, "a", `1`), -1),
			"a point with a value":     func() store.Record { r := point(c, "a", 0); r.Step.Value = json.RawMessage(`1`); return r }(),
		} {
			got := e.recordAll(r)
			e.check(got[0].Err != nil, "%s was recorded", what)
		}
		e.equal("the steps", len(e.steps(c.Task.ID)), 0)
	}},
}

// undoTxCases are for stores that run steps in their transactions.
var undoTxCases = []testCase{
	{"the value of a step in a transaction is to be undone, without a beginning", func(e *env) {
		id := e.one()
		c := e.a.take(id)
		tx := e.s
		got, err := tx.StepTx(e.Context(), e.ns, undoable(step(c, "charge", "")), time.Second, func(context.Context, store.Tx) (json.RawMessage, error) {
			return json.RawMessage(`7`), nil
		})
		e.require(err == nil && got.Err == nil && got.Step.UndoNo == 1, "StepTx = %+v, %v", got, err)
		e.finish(dead(c))
		e.isUndoing("a failure", id, task.Failed, task.KindHandler)
		c = e.a.take(id)
		got, err = tx.StepTx(e.Context(), e.ns, undo(c, "charge", 0), time.Second, func(context.Context, store.Tx) (json.RawMessage, error) { return nil, nil })
		e.require(err == nil && got.Err == nil, "StepTx of the undo = %+v, %v", got, err)
		e.finish(undone(c))
		e.equal("to undo", e.ended(id, task.Failed, task.KindHandler).UndoOpen, 0)
	}},
}
