package memstore

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// retry revives a failed or cancelled task and those that ended because of it.
func (o *op) retry(cmd store.RetryTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	switch {
	case res.Err != nil:
		return res
	case r.State != task.Failed && r.State != task.Cancelled:
		return refuse(r, "only failed and cancelled tasks can be retried")
	}
	if need := o.deadNeed(r); need != nil {
		return refuse(r, fmt.Sprintf("and needs task %s, which is %s: retry that one first", need.name(), need.State))
	}
	o.note(cmd.Audit, "retry", r.ID.String())
	o.revive(r)
	// Whoever ended because of a revived one is looked at once more each time
	// that one of its needs revives, so the last of them brings it back.
	for revived := []*row{r}; len(revived) > 0; revived = revived[1:] {
		for _, e := range o.dependents[revived[0].ID] {
			d := o.tasks[e.Task]
			if d.State == task.Cancelled && kindOf(d.Error) == task.KindDependencyFailed && o.deadNeed(d) == nil {
				o.revive(d)
				revived = append(revived, d)
			}
		}
	}
	if j, ok := o.jobs[r.JobID]; ok {
		j.CancelRequested, j.CancelBy, j.CancelReason = false, "", ""
		o.judge(j)
	}
	return store.CommandResult{State: r.State}
}

// deadNeed returns a need of a task that ended other than well, or nil.
func (o *op) deadNeed(r *row) *row {
	for _, e := range o.needs[r.ID] {
		if need := o.tasks[e.Needs]; need.State.Terminal() && need.State != task.Succeeded {
			return need
		}
	}
	return nil
}

// revive gives a task all its attempts back. What it did stays: its history,
// its completed steps, and its number of attempts.
func (o *op) revive(r *row) {
	r.AttemptCount, r.CrashCount, r.QuarantineLosses, r.InternalCount, r.RepairCount = 0, 0, 0, 0, 0
	r.CancelRequested, r.CancelKind, r.CancelBy, r.CancelReason = false, task.KindNone, "", ""
	r.FinishedAt, r.ReadyAt = time.Time{}, time.Time{}
	if !r.DeadlineAt.After(o.now) {
		r.DeadlineAt = time.Time{}
	}
	r.Epoch++
	r.RemainingDeps = 0
	for _, e := range o.needs[r.ID] {
		e.Done = o.tasks[e.Needs].State == task.Succeeded
		if !e.Done {
			r.RemainingDeps++
		}
	}
	if r.RemainingDeps == 0 {
		o.offer(r, o.now, task.WaitNone, nil)
		return
	}
	o.move(r, task.Pending, task.WaitDeps, nil)
}
