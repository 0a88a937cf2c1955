package memstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// drawn returns a task's job as it is when an attempt that leads to t has been
// counted, if the attempt counts; nil: the job, if there is one, limits no attempts.
func (o *op) drawn(r *row, t *rules.Transition) *task.Job {
	j, ok := o.jobs[r.JobID]
	if !ok || j.Budget.MaxTotalAttempts == 0 {
		return nil
	}
	after := *j
	if t.CountsAttempt() {
		after.AttemptsUsed++
	}
	return &after
}

// draw counts the attempt.
func (o *op) draw(after *task.Job) {
	if j := o.jobs[after.ID]; j.AttemptsUsed != after.AttemptsUsed {
		j.AttemptsUsed = after.AttemptsUsed
		o.resolveJob(j)
	}
}

// spend adds what a step cost, once it is recorded, and asks a task to end that is
// over a limit.
func (o *op) spend(r *row, cost int64) {
	if cost == 0 {
		return
	}
	r.Cost += cost
	j := o.jobs[r.JobID]
	if j != nil && j.Budget.MaxCost > 0 {
		j.Cost += cost
		o.resolveJob(j)
	}
	if why := rules.Spent(r.Cost, r.MaxCost, j); why != "" {
		o.ask(r, task.KindBudget, store.Audit{Reason: why})
	}
}

// exhaust ends the jobs of this operation whose budgets are used up while they have
// work left. It reports whether there were any.
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

// raiseBudget adds to a job's budget and brings back what ended for it.
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
		j.ExhaustedAt, j.CancelRequested, j.CancelBy, j.CancelReason = time.Time{}, false, "", ""
	}
	for _, r := range o.sorted(func(r *row) bool { return spent && r.JobID == j.ID }) {
		if rules.RevivesSpent(r.State, rules.KindOf(r.Error), o.needsOf(r)) {
			o.bringBack(r)
		}
	}
	o.resolveJob(j)
	return store.CommandResult{}
}
