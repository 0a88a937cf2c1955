package memstore

import (
	"context"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Operate implements store.Ops.
func (s *Store) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	out := make([]store.CommandResult, len(cmds))
	err := s.do(ctx, ns, func(o *op) {
		for i, cmd := range cmds {
			out[i] = o.operate(cmd)
			o.notice.Changed = o.notice.Changed || rules.Changes(cmd, &out[i])
			o.propagate()
		}
	})
	return out, err
}

// operate applies one command.
func (o *op) operate(cmd store.Command) store.CommandResult {
	if err := rules.CheckCommand(cmd); err != nil {
		return store.CommandResult{Err: err}
	}
	switch cmd := cmd.(type) {
	case store.CancelTask:
		return o.cancel(cmd)
	case store.CancelJob:
		return o.cancelJob(cmd)
	case store.RetryTask:
		return o.retry(cmd)
	case store.UnblockTask:
		return o.unblock(cmd)
	case store.ReplaceInput:
		return o.replaceInput(cmd)
	case store.RescheduleTask:
		return o.reschedule(cmd)
	case store.SendSignal:
		return o.sendSignal(cmd)
	case store.DeleteTask:
		return o.delete(cmd)
	case store.DeleteJob:
		return o.deleteJob(cmd)
	case store.RaiseBudget:
		return o.raiseBudget(cmd)
	case store.RerunTask:
		return o.rerun(cmd)
	case store.PauseTask:
		return o.pauseTask(cmd)
	case store.ResumeTask:
		return o.resumeTask(cmd)
	case store.PauseType:
		o.pauseLanes(o.pausedType, cmd.Audit, "pause_type", cmd.Type, func(d store.DispatchRow) bool { return d.Type == cmd.Type })
		return store.CommandResult{}
	case store.ResumeType:
		o.resumeLanes(o.pausedType, cmd.Audit, "resume_type", cmd.Type)
		return store.CommandResult{}
	case store.PauseQueue:
		o.pauseLanes(o.paused, cmd.Audit, "pause", cmd.Queue, func(d store.DispatchRow) bool { return d.Queue == cmd.Queue })
		return store.CommandResult{}
	case store.ResumeQueue:
		o.resumeLanes(o.paused, cmd.Audit, "resume", cmd.Queue)
		return store.CommandResult{}
	case store.Upload:
		if err := rules.CheckBucket(o.bucket, cmd.Bucket); err != nil {
			return store.CommandResult{Err: err}
		}
		if o.bucket.ID == "" {
			o.bucket = cmd.Bucket
		}
		return store.CommandResult{Uploaded: o.upload(cmd)}
	case store.AcceptBucket:
		if cmd.Check {
			return store.CommandResult{Err: rules.CheckBucket(o.bucket, cmd.Bucket)}
		}
		o.note(cmd.Audit, rules.BucketVerb, "")
		o.bucket = cmd.Bucket
		return store.CommandResult{}
	case store.ForgetTask:
		return o.forgetTask(cmd)
	case store.ExpireInput:
		return o.expireInput(cmd)
	case store.AnnounceTypes:
		return o.announce(cmd)
	case store.KeepFeed:
		o.feed.keepFor(cmd.Keep)
		return store.CommandResult{}
	case store.WriteSchedule:
		return o.writeSchedule(cmd)
	case store.SetLimit:
		return o.setLimit(cmd)
	case store.Rest:
		return o.rest(cmd)
	case store.Restored:
		return store.CommandResult{Leases: o.restored(cmd)}
	}
	return store.CommandResult{Err: rules.UnknownCommand(cmd)}
}

// note writes the audit entry of a verb, and returns it in the form that a pause stores.
func (o *op) note(a store.Audit, verb, target string) store.AuditEntry {
	e := store.AuditEntry{At: o.now, Actor: a.By, Verb: verb, Target: target, Reason: a.Reason}
	entry := e
	if entry.ID = 1; len(o.audit) > 0 {
		entry.ID = o.audit[len(o.audit)-1].ID + 1
	}
	o.audit = append(o.audit, entry)
	return e
}

// find returns the task of a command, if it is unchanged since the caller read it.
func (o *op) find(id task.ID, seen store.Seen) (*row, store.CommandResult) {
	r, ok := o.tasks[id]
	if !ok {
		return nil, store.CommandResult{Err: rules.NotFound(id)}
	}
	return r, store.CommandResult{State: r.State, Err: rules.CheckSeen(id, seen, r.Epoch, r.UpdatedAt)}
}

// unblock lets a blocked task continue with at least one attempt.
func (o *op) unblock(cmd store.UnblockTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckUnblock(&cmd, r.State, r.Waiting, r.Error); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if r.Undo != nil {
		to := rules.ResumeUndo(r.Undo, r.AttemptNo, o.now)
		o.leave(r, &to)
		o.note(cmd.Audit, "unblock", r.ID.String())
		return store.CommandResult{State: r.State}
	}
	r.AttemptCount = rules.UnblockedAttempts(r.AttemptCount, r.MaxAttempts)
	r.UnblockInput, r.UnblockFor = copyRaw(cmd.Input), rules.UnblockFor(&cmd, r.Error)
	r.RepairCount = rules.UnblockedRepairs(r.RepairCount, r.MaxRepairs)
	r.IdleAttempts = 0
	o.makeReady(r, o.now, task.WaitNone, r.Error)
	o.note(cmd.Audit, "unblock", r.ID.String())
	return store.CommandResult{State: r.State}
}

// delete removes a task and all its records, except the audit log.
func (o *op) delete(cmd store.DeleteTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckStands(r.ID, r.State, r.Undo); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	var waiting, child task.ID
	var by rules.Awaiter
	for _, e := range o.dependents[r.ID] {
		if !e.Done && (waiting.IsZero() || e.Task.Compare(waiting) < 0) {
			waiting = e.Task
		}
		if s := o.tasks[e.Task].State; e.Awaited > 0 && s != task.Succeeded && (by.ID.IsZero() || e.Task.Compare(by.ID) < 0) {
			by = rules.Awaiter{ID: e.Task, State: s}
		}
	}
	for _, e := range o.children(r) {
		if !e.Done {
			child = e.Needs
			break
		}
	}
	if err := rules.CheckDelete(r.ID, r.State, r.JobID, waiting, by, child); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	o.remove(r)
	o.note(cmd.Audit, "delete", r.ID.String())
	return store.CommandResult{}
}

// remove removes a task and all its records, except the audit log.
func (o *op) remove(r *row) {
	o.unlink(r.ID)
	delete(o.tasks, r.ID)
	delete(o.pausedTask, r.ID)
	if r.IdempotencyKey != "" {
		delete(o.idempotent, idempotency{r.Type, r.IdempotencyKey})
	}
	delete(o.attempts, r.ID)
	delete(o.decisions, r.ID)
	delete(o.steps, r.ID)
	delete(o.signals, r.ID)
	delete(o.artifacts, r.ID)
	delete(o.expiries, r.ID)
	delete(o.refs, r.ID)
	delete(o.checkpoints, r.ID)
	delete(o.events, r.ID)
}

// unlink removes the edges on both sides of a task.
func (sp *space) unlink(id task.ID) {
	touches := func(e *store.EdgeRow) bool { return e.Task == id || e.Needs == id }
	for _, e := range sp.needs[id] {
		sp.dependents[e.Needs] = slices.DeleteFunc(sp.dependents[e.Needs], touches)
	}
	for _, e := range sp.dependents[id] {
		sp.needs[e.Task] = slices.DeleteFunc(sp.needs[e.Task], touches)
	}
	delete(sp.needs, id)
	delete(sp.dependents, id)
}

// restored begins a new generation of the store: all earlier leases are invalid. Their
// tasks become available when the leases expire, or now. It returns the number of these
// tasks.
func (o *op) restored(cmd store.Restored) (ended int) {
	o.note(cmd.Audit, "restored", "")
	o.generation = newGeneration()
	for _, r := range o.sorted(func(r *row) bool { return r.State == task.Running }) {
		o.notice.Cancels = append(o.notice.Cancels, r.ID)
		if cmd.EndLeases {
			ended++
			o.take(r, false, -1, rules.RestoredFailure(r.LeasedBy), held{r.LeaseID, r.LeaseExpiresAt})
		}
	}
	return ended
}
