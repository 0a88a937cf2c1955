package memstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// limited returns the job of a task if it limits the attempts of all its tasks, else nil.
func (o *op) limited(r *row) *task.Job {
	if j, ok := o.jobs[r.JobID]; ok && j.Budget.MaxTotalAttempts > 0 {
		return j
	}
	return nil
}

// draw counts the attempt that transition t starts for the task's job.
func (o *op) draw(r *row, t *rules.Transition) {
	if j := o.limited(r); j != nil && t.CountsAttempt() {
		j.AttemptsUsed++
		o.resolveJob(j)
	}
}

// spend adds the cost of a recorded step. If the task exceeds a limit, spend requests its
// end and returns the reason.
func (o *op) spend(r *row, cost int64) (asked string) {
	if cost == 0 {
		return ""
	}
	r.Cost += cost
	j := o.jobs[r.JobID]
	if j != nil && j.Budget.MaxCost > 0 {
		j.Cost += cost
		o.resolveJob(j)
	}
	why := rules.Spent(r.Cost, r.MaxCost, j)
	if why != "" {
		o.ask(r, task.KindBudget, store.Audit{Reason: why})
	}
	return why
}

// exhaust ends the jobs of this operation that have unfinished tasks and no budget left.
// It reports whether there were any.
func (o *op) exhaust() bool {
	some := false
	for ; len(o.counted) > 0; o.counted = o.counted[1:] {
		j := o.counted[0]
		if !rules.Exhausts(j) {
			continue
		}
		some = true
		j.ExhaustedAt = o.now
		why := rules.JobSpent(j)
		for _, r := range o.sorted(func(r *row) bool { return r.JobID == j.ID && !r.State.Terminal() }) {
			o.endBy(r, task.KindJobBudget, store.Audit{Reason: why}, false)
		}
	}
	return some
}

// raiseBudget adds to a job's budget and revives the tasks that ended because of it.
func (o *op) raiseBudget(cmd store.RaiseBudget) store.CommandResult {
	j, ok := o.jobs[cmd.Job]
	if !ok {
		return store.CommandResult{Err: rules.JobNotFound(cmd.Job)}
	}
	budget, err := rules.RaisedBudget(&cmd, j)
	if err != nil {
		return store.CommandResult{Err: err}
	}
	o.note(store.Audit{By: cmd.By, Reason: rules.RaiseNote(&cmd)}, "raise_budget", j.ID.String())
	spent := rules.JobSpent(j) != ""
	j.Budget = budget
	if spent {
		j.ExhaustedAt = time.Time{}
	}
	for _, r := range o.sorted(func(r *row) bool { return spent && !j.CancelRequested && r.JobID == j.ID }) {
		if rules.RevivesSpent(r.State, rules.KindOf(r.Error), o.needsOf(r)) {
			if o.givenUpWith(r).IsZero() && (cmd.KeepSteps || o.cleanedUpWith(r) == nil) {
				o.bringBack(r, cmd.KeepSteps)
			}
		}
	}
	o.resolveJob(j)
	return store.CommandResult{}
}
