package task

import "time"

// DefaultMaxNoProgress is the default limit of consecutive attempts of a task that record nothing new.
const DefaultMaxNoProgress = 50

// MaxSpend is the largest cost of one try of a step, in micro-units.
const MaxSpend = 1_000_000_000_000_000

// Budget limits a job. Zero fields set no limit.
//
// MaxTotalAttempts and MaxCost are totals over all tasks of the job, children included. Attempts count as they do for
// MaxAttempts of a task ([Counts]). When a total is used up, tasks that do not run end with the error kind budget.
// Running tasks are asked to end, and their failed attempts are not retried.
type Budget struct {
	MaxAttemptsPerTask int           `json:"max_attempts_per_task,omitempty"` // per task, unless the task has a lower limit
	MaxTotalAttempts   int           `json:"max_total_attempts,omitempty"`
	MaxDuration        time.Duration `json:"max_duration_ns,omitempty"`
	MaxCost            int64         `json:"max_cost,omitempty"`        // micro-units that all steps may spend
	MaxRepairs         int           `json:"max_repairs,omitempty"`     // per task, unless the task has a lower limit
	MaxNoProgress      int           `json:"max_no_progress,omitempty"` // consecutive attempts of one task without a new record; default [DefaultMaxNoProgress]
}

// HasTotals reports whether the budget limits a total over all tasks of the job.
func (b *Budget) HasTotals() bool { return b.MaxTotalAttempts > 0 || b.MaxCost > 0 }

// Tighten lowers the limits of a task of the job to the per-task limits of the budget.
func (b *Budget) Tighten(n *New) {
	if b.MaxAttemptsPerTask > 0 {
		n.MaxAttempts = min(n.MaxAttempts, b.MaxAttemptsPerTask)
	}
	if b.MaxRepairs > 0 {
		n.MaxRepairs = min(n.MaxRepairs, b.MaxRepairs)
	}
	if b.MaxNoProgress > 0 && (n.MaxNoProgress == 0 || n.MaxNoProgress > b.MaxNoProgress) {
		n.MaxNoProgress = b.MaxNoProgress
	}
}

// KindJobBudget is the [Task.CancelKind] of a task that is cancelled because another task used up the budget of their
// job. Its error has the kind [KindBudget]. KindBudget is also the cancel kind of a task that used up the budget
// itself and failed.
const KindJobBudget ErrorKind = "job_budget"

// AttemptsUsedUp reports whether the job has no attempts left.
func (j *Job) AttemptsUsedUp() bool {
	return j.Budget.MaxTotalAttempts > 0 && j.AttemptsUsed >= j.Budget.MaxTotalAttempts
}

// CostUsedUp reports whether the tasks of the job have spent more than MaxCost.
func (j *Job) CostUsedUp() bool { return j.Budget.MaxCost > 0 && j.Cost > j.Budget.MaxCost }

// BudgetUsedUp reports whether a total of the job's budget is used up.
func (j *Job) BudgetUsedUp() bool { return j.AttemptsUsedUp() || j.CostUsedUp() }
