package memstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// cancel ends a task, or requests its end from the worker.
func (o *op) cancel(cmd store.CancelTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckCancel(&cmd, r.State, r.Undo); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	ending := rules.ResolveEnd(&rules.Unfinished{State: r.State, Phase: r.Undo, Force: cmd.Force, Abandon: cmd.Abandon})
	o.note(cmd.Audit, rules.CancelVerb(&cmd, ending), r.ID.String())
	switch ending {
	case rules.ForcesUndo:
		o.forceUndo(r, cmd.Audit)
	case rules.AbandonsUndo:
		o.abandonUndo(r, cmd.Audit)
	default:
		o.endBy(r, task.KindCancelled, cmd.Audit, cmd.Force)
	}
	return store.CommandResult{State: r.State, Asked: !r.State.Terminal()}
}

// forceUndo takes the lease of the attempt that undoes a task, if there is one.
func (o *op) forceUndo(r *row, a store.Audit) {
	failure := rules.CancelFailure(rules.CancelRequest{Kind: task.KindCancelled, By: a.By, Reason: a.Reason}, r.DeadlineAt)
	to := rules.ForceUndo(r.Undo, r.revoked(), failure, o.now)
	if r.State != task.Running {
		r.Undo = to.Undo
		return
	}
	o.revoke(r, failure)
	o.leave(r, &to)
}

// abandonUndo gives up the undo of a task, or accepts an earlier failure of it.
func (o *op) abandonUndo(r *row, a store.Audit) {
	if r.State.Terminal() {
		r.Undo = rules.AcceptGivenUp(r.Undo)
		return
	}
	to := rules.AbandonUndo(r.Undo, r.revoked(), a, o.now)
	if r.State == task.Running {
		o.revoke(r, to.Failure)
	}
	o.leave(r, &to)
}

// revoked returns the lease that an operator takes from a task, if it runs.
func (r *row) revoked() *rules.Revoked {
	if r.State != task.Running {
		return new(rules.Revoked)
	}
	return &rules.Revoked{Lease: r.LeaseID, Until: r.LeaseExpiresAt, Key: r.ConcurrencyKey != ""}
}

// revoke takes the lease of a running task and ends its attempt with an error.
func (o *op) revoke(r *row, attempt *task.Error) {
	o.recordAttempt(r.attempt(), task.OutcomeCancelled, attempt)
	r.Epoch++
	o.endLease(r)
	o.notice.Cancels = append(o.notice.Cancels, r.ID)
}

// endBy ends a task, begins its undo, or requests its end. The cause is an operator's
// cancel or the end of the parent (kind).
func (o *op) endBy(r *row, kind task.ErrorKind, a store.Audit, force bool) (asked bool) {
	switch rules.ResolveEnd(&rules.Unfinished{State: r.State, Phase: r.Undo, Force: force}) {
	case rules.EndAsked:
		o.ask(r, kind, a)
	case rules.EndsNow:
		o.cancelNow(r, kind, a, force)
	}
	return r.State != task.Cancelled
}

// ask requests the end of a running task. The first request stays on record.
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
	to := rules.Transition{State: task.Cancelled, Failure: failure}
	u, lease := r.undoable(), r.revoked()
	u.Forced, u.Hold = force, lease.Lease
	if to.BeginUndo(u, lease.Until, o.now) {
		r.CancelRequested = true
	}
	r.CancelKind, r.CancelBy, r.CancelReason = kind, a.By, a.Reason
	if r.State == task.Running {
		o.revoke(r, failure)
	}
	o.leave(r, &to)
}

// cancelJob ends the tasks of a job that do not run, and requests the end of the others.
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
	// All of them end before their dependents are resolved. Otherwise the end of one could
	// start another, or end it because of a dependency.
	var res store.CommandResult
	for _, r := range o.sorted(func(r *row) bool { return r.JobID == j.ID }) {
		switch {
		case r.State.Terminal():
			res.AlreadyDone++
		case r.Undo.Runs(): // it waits for the others
		case o.endBy(r, rules.CancelJobKind(r.Depth), cmd.Audit, false):
			res.AskedTasks++
		default:
			res.Cancelled++
		}
	}
	o.resolveJob(j)
	return res
}
