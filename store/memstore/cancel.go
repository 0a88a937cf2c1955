package memstore

import (
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
	if r.State == task.Running && !cmd.Force {
		o.ask(r, cmd.Audit)
		return store.CommandResult{State: r.State, Asked: true}
	}
	o.cancelNow(r, cmd.Audit)
	return store.CommandResult{State: r.State}
}

// ask asks a running task to end. The first request stays on record.
func (o *op) ask(r *row, a store.Audit) {
	o.notice.Cancels = append(o.notice.Cancels, r.ID)
	if r.CancelRequested {
		return
	}
	r.CancelRequested, r.CancelKind = true, task.KindCancelled
	r.CancelBy, r.CancelReason = a.By, a.Reason
}

// cancelNow ends a task as cancelled, revoking its lease if it runs.
func (o *op) cancelNow(r *row, a store.Audit) {
	r.CancelKind, r.CancelBy, r.CancelReason = task.KindCancelled, a.By, a.Reason
	err := rules.CancelFailure(rules.CancelRequest{Kind: task.KindCancelled, By: a.By, Reason: a.Reason}, r.DeadlineAt)
	if r.State == task.Running {
		o.recordAttempt(r.attempt(), task.OutcomeCancelled, err)
		r.Epoch++
		o.endLease(r)
		o.notice.Cancels = append(o.notice.Cancels, r.ID)
	}
	o.end(r, task.Cancelled, err)
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
		case r.State == task.Running:
			o.ask(r, cmd.Audit)
			res.AskedTasks++
		default:
			o.cancelNow(r, cmd.Audit)
			res.Cancelled++
		}
	}
	o.resolveJob(j)
	return res
}
