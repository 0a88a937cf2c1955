package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// Budget lists the limits of a job, with the usage of each total: "attempts 3 of 50, duration 1h". It returns "" for
// a job without limits.
func Budget(j *task.Job) string {
	b := &j.Budget
	var parts []string
	add := func(set bool, format string, args ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(b.MaxAttemptsPerTask > 0, "attempts per task %d", b.MaxAttemptsPerTask)
	add(b.MaxTotalAttempts > 0, "attempts %d of %d used", j.AttemptsUsed, b.MaxTotalAttempts)
	add(b.MaxDuration > 0, "duration %s", text.Setting(b.MaxDuration))
	add(b.MaxCost > 0, "cost %d of %d micro-units", j.Cost, b.MaxCost)
	add(b.MaxRepairs > 0, "repairs per task %d", b.MaxRepairs)
	add(b.MaxNoProgress > 0, "attempts without progress %d", b.MaxNoProgress)
	return strings.Join(parts, ", ")
}

// Cost returns the cost that the steps of a task have spent and its limit, or "" if both are zero.
func Cost(t *task.Task) string {
	switch {
	case t.MaxCost > 0:
		return fmt.Sprintf("%d of %d micro-units", t.Cost, t.MaxCost)
	case t.Cost > 0:
		return fmt.Sprintf("%d micro-units", t.Cost)
	}
	return ""
}

// budgetNote describes the usage of a job's totals.
func (c Clock) budgetNote(j *task.Job) string {
	var parts []string
	if b := &j.Budget; b.MaxTotalAttempts > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d attempts (max_total_attempts)", j.AttemptsUsed, b.MaxTotalAttempts))
	}
	if b := &j.Budget; b.MaxCost > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d micro-units (max_cost)", j.Cost, b.MaxCost))
	}
	if len(parts) == 0 {
		return ""
	}
	said := "Of its budget it has used " + strings.Join(parts, " and ")
	switch {
	case !j.ExhaustedAt.IsZero():
		return said + ": that was all " + c.When(j.ExhaustedAt) + ", and what had not begun ended."
	case j.BudgetUsedUp() && j.State != task.JobSucceeded:
		return said + ": no failed task is tried again."
	}
	return said + "."
}

// RaiseArgs returns the arguments of the command that raises a job's budget far enough to continue. It returns nil if
// no limit is used up.
func RaiseArgs(j *task.Job) []string {
	if a := raise(j, ""); a.Args != (Args{}) {
		return a.CLI()
	}
	return nil
}

// raise returns the action that raises a job's budget far enough to continue.
func raise(j *task.Job, effect string) Action {
	a := Action{Verb: VerbRetry, Target: Target{TargetJob, j.ID.String()}, Effect: effect}
	if j.AttemptsUsedUp() {
		a.Args.AddAttempts = max(1, int64(j.AttemptsUsed-j.Budget.MaxTotalAttempts+1), int64(j.Counters.Total-j.Counters.Succeeded))
	}
	if j.CostUsedUp() {
		a.Args.AddCost = j.Cost - j.Budget.MaxCost + max(j.Budget.MaxCost/2, 1)
	}
	return a
}

// retryArgs returns the arguments for retrying a task: more cost for a task that exceeded its own limit.
func retryArgs(t *task.Task) (args Args) {
	if kindOf(t) == task.KindBudget && t.MaxCost > 0 && t.Cost > t.MaxCost {
		args.AddCost = t.Cost - t.MaxCost + max(t.MaxCost/2, 1)
	}
	return args
}

// spentByJob reports whether a task ended because the budget of its job, not its own, is used up.
func spentByJob(t *task.Task) bool {
	return kindOf(t) == task.KindBudget && !t.JobID.IsZero() && !(t.MaxCost > 0 && t.Cost > t.MaxCost)
}

// idle describes a task that is blocked because its attempts made no progress.
func idle(t *task.Task) string {
	return fmt.Sprintf(": %s in a row recorded nothing new (max_no_progress %d). The last error",
		text.Plural(t.IdleAttempts, "attempt"), cmp.Or(t.MaxNoProgress, task.DefaultMaxNoProgress))
}
