package memstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// cancel ends a task, or asks its worker to.
func (o *op) cancel(cmd store.CancelTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckCancel(r.ID, r.State); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	o.note(cmd.Audit, rules.CancelVerb(cmd.Force), r.ID.String())
	asked := o.endBy(r, task.KindCancelled, cmd.Audit, cmd.Force)
	return store.CommandResult{State: r.State, Asked: asked}
}

// endBy ends a task, or begins its undo, or asks it to end, by an operator's cancel or
// because its parent ended (kind).
func (o *op) endBy(r *row, kind task.ErrorKind, a store.Audit, force bool) (asked bool) {
	switch rules.ResolveEnd(r.unfinished(force)) {
	case rules.EndAsked:
		o.ask(r, kind, a)
	case rules.InPhase:
	case rules.EndsNow:
		o.cancelNow(r, kind, a, force)
		return r.State != task.Cancelled
	}
	return true
}

// unfinished is a task as a cancel or its deadline meets it.
func (r *row) unfinished(force bool) *rules.Unfinished {
	return &rules.Unfinished{State: r.State, InPhase: r.Undo != nil, Force: force}
}

// ask asks a running task to end. The first request stays on record.
func (o *op) ask(r *row, kind task.ErrorKind, a store.Audit) {
	o.notice.Cancels = append(o.notice.Cancels, r.ID)
	if r.CancelRequested {
		return
	}
	r.CancelRequested, r.CancelKind = true, kind
	r.CancelBy, r.CancelReason = a.By, a.Reason
}

// cancelNow ends a task as cancelled, revoking its lease if it runs, or begins its undo.
func (o *op) cancelNow(r *row, kind task.ErrorKind, a store.Audit, force bool) {
	failure := rules.CancelFailure(rules.CancelRequest{Kind: kind, By: a.By, Reason: a.Reason}, r.DeadlineAt)
	to := rules.Transition{State: task.Cancelled, Failure: failure, SetUndo: r.Undo != nil}
	if !force {
		r.CancelRequested = to.BeginUndo(r.undoable(), time.Time{}, o.now)
	}
	r.CancelKind, r.CancelBy, r.CancelReason = kind, a.By, a.Reason
	if r.State == task.Running {
		o.recordAttempt(r.attempt(), task.OutcomeCancelled, failure)
		r.Epoch++
		o.endLease(r)
		o.notice.Cancels = append(o.notice.Cancels, r.ID)
	}
	o.leave(r, &to)
}

// cancelJob ends the tasks of a job that do not run and asks the others to.
func (o *op) cancelJob(cmd store.CancelJob) store.CommandResult {
	j, ok := o.jobs[cmd.Job]
	if !ok {
		return store.CommandResult{Err: rules.JobNotFound(cmd.Job)}
	}
	if j.State.Terminal() {
		return store.CommandResult{AlreadyDone: j.Counters.Total}
	}
	o.note(cmd.Audit, "cancel_job", j.ID.String())
	if !j.CancelRequested {
		j.CancelRequested, j.CancelBy, j.CancelReason = true, cmd.By, cmd.Reason
	}
	// All of them end before their dependents are looked at: none of them may
	// start, or end for a need, because another one ended a moment before.
	var res store.CommandResult
	for _, r := range o.sorted(func(r *row) bool { return r.JobID == j.ID }) {
		switch {
		case r.State.Terminal():
			res.AlreadyDone++
		case o.endBy(r, rules.CancelJobKind(r.Depth), cmd.Audit, false):
			res.AskedTasks++
		default:
			res.Cancelled++
		}
	}
	o.resolveJob(j)
	return res
}
