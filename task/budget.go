package task

import "time"

// DefaultMaxNoProgress is how many attempts in a row of a task may record nothing
// new, if neither the task nor its job says how many.
const DefaultMaxNoProgress = 50

// MaxSpend is the largest cost of one try of a step, in micro-units.
const MaxSpend = 1_000_000_000_000_000

// Budget limits a job. Zero fields set no limit.
//
// MaxTotalAttempts and MaxCost are totals: all tasks of the job draw from them,
// children too. Attempts count as they do for MaxAttempts of a task ([Counts]). When
// one of them is used up, the tasks that do not run end, with the error kind budget,
// those that run are asked to end, and an attempt that fails is not repeated.
type Budget struct {
	MaxAttemptsPerTask int           `json:"max_attempts_per_task,omitempty"` // of each task, if it has no lower limit
	MaxTotalAttempts   int           `json:"max_total_attempts,omitempty"`
	MaxDuration        time.Duration `json:"max_duration_ns,omitempty"`
	MaxCost            int64         `json:"max_cost,omitempty"`        // micro-units: what steps spend
	MaxRepairs         int           `json:"max_repairs,omitempty"`     // of each task, if it has no lower limit
	MaxNoProgress      int           `json:"max_no_progress,omitempty"` // attempts in a row of one task that record nothing new; the default is [DefaultMaxNoProgress]
}

// HasTotals reports whether all tasks of a job draw from one of its limits.
func (b *Budget) HasTotals() bool { return b.MaxTotalAttempts > 0 || b.MaxCost > 0 }

// Tighten gives a task of the job the limits of each task that are lower than its
// own.
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

// KindJobBudget is the [Task.CancelKind] of a task that is cancelled because another
// one used its job's budget up. Its error has the kind [KindBudget], which is the
// cancel kind of a task that used it up itself and failed.
const KindJobBudget ErrorKind = "job_budget"

// AttemptsUsedUp reports whether the tasks of the job have no attempt left.
func (j *Job) AttemptsUsedUp() bool {
	return j.Budget.MaxTotalAttempts > 0 && j.AttemptsUsed >= j.Budget.MaxTotalAttempts
}

// CostUsedUp reports whether the tasks of the job have spent more than they may.
func (j *Job) CostUsedUp() bool { return j.Budget.MaxCost > 0 && j.Cost > j.Budget.MaxCost }

// BudgetUsedUp reports whether a total of the job's budget is used up.
func (j *Job) BudgetUsedUp() bool { return j.AttemptsUsedUp() || j.CostUsedUp() }
