package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/task"
)

// Budget lists the limits of a job, the totals with what is used of them: "attempts 3
// of 50, duration 1h"; "" without any.
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

// Cost is what the steps of a task have spent, and may; "" if neither.
func Cost(t *task.Task) string {
	switch {
	case t.MaxCost > 0:
		return fmt.Sprintf("%d of %d micro-units", t.Cost, t.MaxCost)
	case t.Cost > 0:
		return fmt.Sprintf("%d micro-units", t.Cost)
	}
	return ""
}

// budgetNote says what a job has used of its totals.
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

// RaiseArgs are the arguments of the command that raises the budget of a job by what
// it needs to go on; nil: it lacks nothing.
func RaiseArgs(j *task.Job) []string {
	if a := raise(j, ""); a.Args != (Args{}) {
		return a.CLI()
	}
	return nil
}

// raise is the action that raises the budget of a job by what it needs to go on.
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

// retryArgs are what the retry of a task is given: more cost for one that spent more
// than its own limit.
func retryArgs(t *task.Task) (args Args) {
	if kindOf(t) == task.KindBudget && t.MaxCost > 0 && t.Cost > t.MaxCost {
		args.AddCost = t.Cost - t.MaxCost + max(t.MaxCost/2, 1)
	}
	return args
}

// spentByJob reports whether a task ended because its job's budget is used up, and not
// its own.
func spentByJob(t *task.Task) bool {
	return kindOf(t) == task.KindBudget && !t.JobID.IsZero() && !(t.MaxCost > 0 && t.Cost > t.MaxCost)
}

// idle says that a task that is blocked for its budget has made no progress.
func idle(t *task.Task) string {
	return fmt.Sprintf(": %s in a row recorded nothing new (max_no_progress %d). The last error",
		text.Plural(t.IdleAttempts, "attempt"), cmp.Or(t.MaxNoProgress, task.DefaultMaxNoProgress))
}
