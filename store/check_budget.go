package store

import "github.com/goweaver/weaver/task"

// budget checks the budget in a job's row (I13): the used attempts and cost are the sums of its tasks,
// and no work is left once a total is used up, except tasks asked to end. A job whose budget has no
// total counts nothing.
func (c *checker) budget(j *task.Job, tasks []*task.Task) {
	id := j.ID.String()
	var least, most int
	var cost int64
	unfinished := 0
	for _, t := range tasks {
		counted := 0
		for _, a := range c.attemptsOf[t.ID] {
			if countsFor(&a) {
				counted++
			}
		}
		most += counted
		if !t.CleanupWhenCancelled { // the attempt for its cleanup does not count
			least += counted
		}
		cost += t.Cost
		if !t.State.Terminal() && !t.CancelRequested && t.Undo == nil {
			unfinished++
		}
	}
	if j.Budget.MaxTotalAttempts == 0 {
		least, most = 0, 0
	}
	if j.Budget.MaxCost == 0 {
		cost = 0
	}
	if j.AttemptsUsed < least || j.AttemptsUsed > most {
		c.report("I13", id, "job %s used %d attempts, and its tasks %d to %d", id, j.AttemptsUsed, least, most)
	}
	if j.Cost != cost {
		c.report("I13", id, "job %s spent %d, and its tasks %d", id, j.Cost, cost)
	}
	over := j.BudgetUsedUp()
	ending := c.pending[ChoreRow{Kind: ChoreSpent, Subject: id}] || c.pending[ChoreRow{Kind: ChoreRaise, Subject: id}]
	switch {
	case over && unfinished > 0 && !ending:
		c.report("I13", id, "job %s has used its budget up, and %d of its tasks have not ended and were not asked to", id, unfinished)
	case !over && !j.ExhaustedAt.IsZero():
		c.report("I13", id, "job %s has exhausted_at %v, and has not used its budget up", id, j.ExhaustedAt)
	}
}

// countsFor reports whether an attempt counts against MaxAttempts, unless it ran a cleanup: a worker
// reported it, and its outcome was not that a requested task had ended.
func countsFor(a *task.Attempt) bool {
	kind := task.KindNone
	if a.Error != nil {
		kind = a.Error.Kind
	}
	depends := a.Outcome == task.OutcomeCancelled && kind == task.KindDependencyFailed
	return a.OutcomeHash != "" && !depends && task.Counts(a.Outcome, kind)
}

// costs checks that a task's cost is the sum of its steps' costs (I13).
func (c *checker) costs(t *task.Task) {
	var sum int64
	for i := range c.stepsOf[t.ID] {
		sum += c.stepsOf[t.ID][i].Cost
	}
	if sum != t.Cost {
		c.task("I13", t, "spent %d, and its steps %d", t.Cost, sum)
	}
}
