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
	if err := rules.CheckRetry(r.ID, r.State, o.needsOf(r)); err != nil {
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
			case rules.RevivesDependent(d.State, rules.KindOf(d.Error), o.needsOf(d)):
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

// reopen has a dependent wait for the end of a need that was retried, unless
// another one that went wrong lets it start.
func (o *op) reopen(r *row, e *store.EdgeRow) {
	e.Done = false
	r.RemainingDeps = rules.WaitsFor(o.needsOf(r), rules.Unmarked).Open
	if r.RemainingDeps > 0 {
		o.unschedule(r)
		o.move(r, task.Pending, task.WaitDeps, r.Error)
	}
}

// revive gives a task all its attempts back.
func (o *op) revive(r *row) {
	needs := o.needsOf(r)
	var limit time.Time
	if j, ok := o.jobs[r.JobID]; ok && rules.Past(r.DeadlineAt, o.now) {
		j.DeadlineAt = rules.ExtendedDeadline(j.Budget, j.DeadlineAt, o.now)
		limit = j.DeadlineAt
	}
	v := rules.Revive(needs, r.DeadlineAt, limit, o.now)
	r.AttemptCount, r.CrashCount, r.QuarantineLosses, r.InternalCount, r.RepairCount = 0, 0, 0, 0, 0
	r.CancelRequested, r.CancelKind, r.CancelBy, r.CancelReason = false, task.KindNone, "", ""
	r.FinishedAt, r.ReadyAt, r.DeadlineAt = time.Time{}, time.Time{}, v.Deadline
	o.watch(r)
	r.Epoch++
	r.RemainingDeps = v.Waits.Open
	for i, e := range o.needs[r.ID] {
		e.Done = needs[i].Ended()
	}
	if v.State == task.Ready {
		o.makeReady(r, o.now, task.WaitNone, nil)
		return
	}
	o.move(r, v.State, v.Waiting, nil)
}
