package memstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// retry revives a failed or cancelled task and those that ended because of it.
func (o *op) retry(cmd store.RetryTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckRetry(r.ID, r.State, o.retryNeeds(r)); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	o.note(cmd.Audit, "retry", r.ID.String())
	o.revive(r)
	// A dependent is looked at again each time that one of its needs revives, so
	// the last of them brings it back.
	for revived := []*row{r}; len(revived) > 0; revived = revived[1:] {
		for _, e := range o.dependents[revived[0].ID] {
			d := o.tasks[e.Task]
			switch {
			case e.Done && rules.ReopensEdge(d.State, d.Waiting, d.AttemptNo):
				o.reopen(d, e)
			case rules.RevivesDependent(d.State, rules.KindOf(d.Error), o.retryNeeds(d)):
				o.revive(d)
				revived = append(revived, d)
			}
		}
	}
	if j, ok := o.jobs[r.JobID]; ok {
		j.CancelRequested, j.CancelBy, j.CancelReason = false, "", ""
		o.resolveJob(j)
	}
	return store.CommandResult{State: r.State}
}

// retryNeeds returns the needs of a task as a retry sees them.
func (o *op) retryNeeds(r *row) []rules.RetryNeed {
	var needs []rules.RetryNeed
	for _, e := range o.needs[r.ID] {
		need := o.tasks[e.Needs]
		needs = append(needs, rules.RetryNeed{Need: need.ID, Name: need.name(), Kind: e.Kind, State: need.State})
	}
	return needs
}

// reopen has a dependent wait for the end of a need that was retried.
func (o *op) reopen(r *row, e *store.EdgeRow) {
	e.Done = false
	r.RemainingDeps++
	o.unschedule(r)
	o.move(r, task.Pending, task.WaitDeps, r.Error)
}

// revive gives a task all its attempts back.
func (o *op) revive(r *row) {
	needs := o.retryNeeds(r)
	v := rules.Revive(needs, r.DeadlineAt, o.now)
	r.AttemptCount, r.CrashCount, r.QuarantineLosses, r.InternalCount, r.RepairCount = 0, 0, 0, 0, 0
	r.CancelRequested, r.CancelKind, r.CancelBy, r.CancelReason = false, task.KindNone, "", ""
	r.FinishedAt, r.ReadyAt, r.DeadlineAt = time.Time{}, time.Time{}, v.Deadline
	o.watch(r)
	r.Epoch++
	r.RemainingDeps = v.Open
	for i, e := range o.needs[r.ID] {
		e.Done = needs[i].Done()
	}
	if v.State == task.Ready {
		o.makeReady(r, o.now, task.WaitNone, nil)
		return
	}
	o.move(r, v.State, v.Waiting, nil)
}
