package rules

import (
	"fmt"
	"math"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The totals of a job's budget are counted on its row, in the transaction of the finish or
// record that spends them (ADR 0024). The attempts are used up when no further attempt may
// begin. The cost is used up when it exceeds the limit, because the cost of a step is known
// only after it was spent.

// Exhausts reports whether a job ends because a total of its budget is used up. Its counters
// include the current batch. The job must have unfinished tasks and must not have been ended
// for its budget before.
func Exhausts(j *task.Job) bool {
	return j.ExhaustedAt.IsZero() && j.Counters.Unfinished > 0 && SpentUp(j)
}

// SpentUp reports whether a total of a job's budget is used up. Then a retry does not revive
// the job's dependents. j is nil for a task without a job.
func SpentUp(j *task.Job) bool { return j != nil && j.BudgetUsedUp() }

// JobSpent names the used-up totals of a job's budget, with the amounts used and allowed. It
// returns "" if every total has room.
func JobSpent(j *task.Job) string {
	text := ""
	if j.AttemptsUsedUp() {
		text = fmt.Sprintf("its job used %d of %d attempts (budget.max_total_attempts)", j.AttemptsUsed, j.Budget.MaxTotalAttempts)
	}
	if j.CostUsedUp() {
		cost := fmt.Sprintf("spent %d of %d micro-units (budget.max_cost)", j.Cost, j.Budget.MaxCost)
		if text == "" {
			return "its job " + cost
		}
		text += " and " + cost
	}
	return text
}

// Spent returns the reason why a task with this cost, or its job, is over budget. It returns
// "" if the task may continue. j is nil for a task without a job.
func Spent(cost, limit int64, j *task.Job) string {
	if limit > 0 && cost > limit {
		return fmt.Sprintf("it spent %d of %d micro-units (its max_cost)", cost, limit)
	}
	if j != nil && j.CostUsedUp() {
		return JobSpent(j)
	}
	return ""
}

// BudgetFailure returns the failure of a task that a budget ends. last is the error of its
// last attempt, or nil.
func BudgetFailure(why string, last *task.Error) *task.Error {
	failure := task.Error{Kind: task.KindBudget, Message: "the budget is used up: " + why}
	if last != nil && last.Kind != task.KindCancelled && last.Kind != task.KindBudget {
		failure.Message += "; the last error: " + last.Message
		failure.Code, failure.Step, failure.Stack = last.Code, last.Step, last.Stack
	}
	return &failure
}

// failForBudget replaces the transition by a failure for the budget.
func (t *Transition) failForBudget(why string) {
	*t = Transition{State: task.Failed, Outcome: task.OutcomeFailure, Failure: BudgetFailure(why, t.Failure), Unaware: t.Unaware}
	t.Decision = &task.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{Policy: "budget", Version: 1, Text: "the budget is used up: " + why}}
}

// Draws reports whether the transition is a retry after a counted attempt.
// [Transition.Overrule] fails it if the job has no attempt left. All attempts that end in one
// batch are counted first, so that their order does not matter.
func (t *Transition) Draws() bool {
	return t.Decision != nil && t.Decision.Kind == task.DecideRetry && t.CountsAttempt()
}

// Overrule fails the task instead of a retry that [Transition.Draws] if its job has no attempt
// left. The job's counters include the whole batch.
func (t *Transition) Overrule(j *task.Job) {
	if t.Draws() && j.AttemptsUsedUp() {
		t.failForBudget(JobSpent(j))
	}
}

// IdleAttempts returns the number of consecutive attempts without a new record, after an
// attempt that led to t. Released attempts and internal errors leave the number as it was.
func IdleAttempts(f *store.Finish, t *Transition, before int) int {
	switch {
	case t.SetUndo:
		return before
	case t.State == task.Succeeded, f.Outcome == task.OutcomeDecompose, f.Outcome == task.OutcomeAddDependency:
		return 0
	case f.Outcome == task.OutcomeReleased, KindOf(f.Error) == task.KindInternal, f.Idle && (f.Waiting == task.WaitSignal || f.Waiting == task.WaitChildren):
		return before
	case f.Idle:
		return before + 1
	}
	return 0
}

// CheckJobBudget refuses to retry a task of a job whose budget is used up. j is nil for a task
// without a job.
func CheckJobBudget(id task.ID, s task.State, j *task.Job) error {
	if !SpentUp(j) {
		return nil
	}
	return refuse(id, s, fmt.Sprintf("and %s: raise that with the retry of job %v, which brings back what ended for it: %s", JobSpent(j), j.ID, toAdd(j)))
}

// toAdd returns the smallest raise with which a job can continue, as flags.
func toAdd(j *task.Job) string {
	text := ""
	if j.AttemptsUsedUp() {
		text = fmt.Sprintf("--add-attempts %d or more (AddAttempts)", j.AttemptsUsed-j.Budget.MaxTotalAttempts+1)
	}
	if j.CostUsedUp() {
		if text != "" {
			text += " and "
		}
		text += fmt.Sprintf("--add-cost %d or more (AddCost)", j.Cost-j.Budget.MaxCost)
	}
	return text
}

// RaisedBudget returns the budget of a job after a command. It refuses ([store.ErrState]) an
// empty raise, a raise below the job's need, and a raise of a limit that the budget does not
// have. It also refuses while tasks of the job are still ending.
func RaisedBudget(cmd *store.RaiseBudget, j *task.Job) (task.Budget, error) {
	refused := func(format string, args ...any) (task.Budget, error) {
		return task.Budget{}, &refusal{fmt.Sprintf("job %v: ", j.ID) + fmt.Sprintf(format, args...)}
	}
	b := j.Budget
	switch {
	case j.State == task.JobSucceeded:
		return refused("it has succeeded: there is nothing to retry, and its budget stays as it is")
	case cmd.AddAttempts < 0 || cmd.AddCost < 0 || cmd.AddAttempts == 0 && cmd.AddCost == 0:
		return refused("a budget is raised by 1 or more, not by %d attempts and a cost of %d", cmd.AddAttempts, cmd.AddCost)
	case cmd.AddAttempts > 0 && b.MaxTotalAttempts == 0:
		return refused("its budget does not limit the attempts of all tasks (max_total_attempts): there is nothing to add to")
	case cmd.AddCost > 0 && b.MaxCost == 0:
		return refused("its budget does not limit the cost (max_cost): there is nothing to add to")
	case !j.ExhaustedAt.IsZero() && !j.State.Terminal():
		return refused("its budget is used up, and %d of its tasks have not ended yet: try again in a moment", j.Counters.Unfinished)
	}
	b.MaxTotalAttempts += min(cmd.AddAttempts, math.MaxInt32-min(b.MaxTotalAttempts, math.MaxInt32))
	b.MaxCost += min(cmd.AddCost, math.MaxInt64-b.MaxCost)
	raised := *j
	if raised.Budget = b; SpentUp(&raised) {
		return refused("that is not enough, %s: %s", JobSpent(j), toAdd(j))
	}
	return b, nil
}

// RaisedLimits returns a task's own limits after a retry that raises them, or refuses the
// raise ([store.ErrState]).
func RaisedLimits(cmd *store.RetryTask, maxAttempts int, maxCost int64) (attempts int, cost int64, err error) {
	switch {
	case cmd.AddAttempts < 0 || cmd.AddCost < 0:
		return 0, 0, &refusal{fmt.Sprintf("task %v: its limits are raised by 1 or more, not by %d attempts and a cost of %d", cmd.Task, cmd.AddAttempts, cmd.AddCost)}
	case cmd.AddCost > 0 && maxCost == 0:
		return 0, 0, &refusal{fmt.Sprintf("task %v: it has no limit of its cost of its own (MaxCost): there is nothing to add to", cmd.Task)}
	}
	attempts = maxAttempts + min(cmd.AddAttempts, math.MaxInt32-min(maxAttempts, math.MaxInt32))
	return attempts, maxCost + min(cmd.AddCost, math.MaxInt64-maxCost), nil
}

// RetryNote returns the audit reason of a retry.
func RetryNote(cmd *store.RetryTask) string {
	if cmd.AddAttempts == 0 && cmd.AddCost == 0 {
		return cmd.Reason
	}
	return RaiseNote(&store.RaiseBudget{Audit: cmd.Audit, AddAttempts: cmd.AddAttempts, AddCost: cmd.AddCost})
}

// RaiseNote returns the audit reason of a raised budget.
func RaiseNote(cmd *store.RaiseBudget) string {
	text := fmt.Sprintf("%d attempts and a cost of %d more", cmd.AddAttempts, cmd.AddCost)
	if cmd.KeepSteps {
		text += ", steps kept though cleanups ran"
	}
	if cmd.Reason != "" {
		text += ": " + cmd.Reason
	}
	return text
}

// RevivesSpent reports whether a raised budget revives a task that ended in state s with an
// error of this kind. The task must have ended for the budget, and its needs must let it run
// or wait.
func RevivesSpent(s task.State, kind task.ErrorKind, needs []Need) bool {
	if s != task.Failed && s != task.Cancelled || kind != task.KindBudget {
		return false
	}
	w := WaitsFor(needs, unfinished)
	return unmetNeed(needs) == nil && (w.Open > 0 || !w.NotNeeded())
}
