package sqlstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Bits of weaver_tasks.job_limits: the limits of the job's budget that concern a task. Tasks
// of jobs without a budget do not read the job.
const (
	limitsTasks    = 1 << iota // limits of each task, inherited by its children
	limitsAttempts             // the total of attempts
	limitsCost                 // the total cost
)

func limitsOf(b *task.Budget) (limits int64) {
	if b.MaxAttemptsPerTask > 0 || b.MaxRepairs > 0 || b.MaxNoProgress > 0 {
		limits |= limitsTasks
	}
	if b.MaxTotalAttempts > 0 {
		limits |= limitsAttempts
	}
	if b.MaxCost > 0 {
		limits |= limitsCost
	}
	return limits
}

// tightening returns the budget whose limits per task the children of this task inherit.
func (t *Tx) tightening(row *leaseRow) (*task.Budget, error) {
	if row.limits&limitsTasks == 0 {
		return new(task.Budget), nil
	}
	job, err := t.job(&row.job)
	if job == nil {
		return new(task.Budget), err
	}
	return &job.Budget, err
}

// usage returns a task's job with the usage of this batch added, or nil if the limit does not
// apply to the task.
func (m *moves) usage(row *leaseRow, limit int64) (*task.Job, error) {
	if row.limits&limit == 0 {
		return nil, nil
	}
	job, err := m.tx.job(&row.job)
	if job != nil {
		attempts, cost := m.pending.Used(row.job)
		job.AttemptsUsed += attempts
		job.Cost += cost
	}
	return job, err
}

// draw counts an attempt for its job. The job's row changes once for each batch, together with
// its counters (CountJobs).
func (m *moves) draw(row *leaseRow, to *rules.Transition) {
	if row.limits&limitsAttempts != 0 && to.CountsAttempt() {
		m.pending.Use(row.job, 1, 0)
	}
}

// drawn is a retry that its job's budget may overrule.
type drawn struct {
	report *report
	row    *leaseRow
	to     resolved
}

// endDrawn ends attempts with retries that draw from budgets, once every attempt of the batch
// is counted.
func (f *finishing) endDrawn() error {
	for i := range f.drawn {
		d := &f.drawn[i]
		job, err := f.moves.usage(d.row, limitsAttempts)
		if err != nil {
			return err
		}
		if job != nil {
			d.to.Overrule(job)
		}
		if err := f.write(d.report, d.row, &d.to); err != nil {
			return err
		}
	}
	f.drawn = nil
	for _, r := range f.again {
		if err := f.finishAgain(r); err != nil {
			return err
		}
	}
	return f.flush()
}

// waits reports whether a pending retry has the lease of this report. Then the report repeats
// or contradicts the retry.
func (f *finishing) waits(r *report) bool {
	return slices.ContainsFunc(f.drawn, func(d drawn) bool { return d.report.fin.Lease == r.fin.Lease })
}

const sqlSpend = `UPDATE weaver_tasks SET cost = cost + ?3 WHERE namespace = ?1 AND task_id = ?2`

// spend adds the cost of a recorded step to its task, and asks the task to end if it exceeds
// the limit. The job's cost is counted when the batch is written (settleCosts).
func (t *Tx) spend(got *store.RecordResult) error {
	step := &got.Step
	if step.Cost == 0 {
		return nil
	}
	if t.costs == nil {
		t.costs = &moves{tx: t}
	}
	if err := t.stmt(sqlSpend).Text(1, t.ns).ID(2, &step.TaskID).Int(3, step.Cost).Run(); err != nil {
		return err
	}
	row, err := t.costs.taskRow(&step.TaskID)
	if err != nil || row == nil {
		return err
	}
	job, err := t.costs.usage(&row.leaseRow, limitsCost)
	if err != nil {
		return err
	}
	if job != nil {
		job.Cost += step.Cost
		t.costs.pending.Use(row.job, 0, step.Cost)
	}
	if got.Asked = rules.Spent(row.cost, row.maxCost, job); got.Asked != "" {
		return t.costs.ask(row, task.KindBudget, store.Audit{Reason: got.Asked})
	}
	return nil
}

// settleCosts adds the costs of a batch's steps to their jobs.
func (t *Tx) settleCosts() error {
	if t.costs == nil {
		return nil
	}
	return t.costs.propagate()
}

const (
	sqlAnyEarlierChore = `
SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind IN ('cancel_job', 'children', 'edges', 'raise_budget', 'revive', 'revive_children') LIMIT 1`
	sqlExhaust = `UPDATE weaver_jobs SET exhausted_at = ?3 WHERE namespace = ?1 AND job_id = ?2`
)

// exhausts reports whether a job ends now because its budget is used up. If earlier chores
// remain that may end its tasks in another way, exhausts leaves it to a chore behind them.
func (t *Tx) exhausts(j *task.Job) (now bool, err error) {
	if !rules.Exhausts(j) {
		return false, nil
	}
	st := t.stmt(sqlAnyEarlierChore).Text(1, t.ns)
	later := st.One()
	if err := st.Done(); err != nil || !later {
		return err == nil, err
	}
	return false, t.putChore(&chore{kind: store.ChoreSpent, id: j.ID})
}

// exhaust ends the remaining tasks of a job whose budget is used up, up to the move limit of
// the transaction. Crash after the commit: a chore does the rest, and no task of the job is
// claimed.
func (m *moves) exhaust(id task.ID) error {
	job, err := m.tx.job(&id)
	if err != nil || job == nil {
		return err
	}
	c := chore{kind: store.ChoreSpent, id: id, why: rules.JobSpent(job)}
	more, err := m.endSpent(&c)
	if err != nil || !more {
		return err
	}
	return m.tx.putChore(&c)
}

// spentSome does a bite of a chore that ends a job whose budget is used up. The first bite
// checks that work is left.
func (m *moves) spentSome(c *chore) (more bool, err error) {
	if c.at == "" {
		job, err := m.tx.job(&c.id)
		if err != nil || job == nil || !rules.Exhausts(job) {
			return false, err
		}
		if err := m.tx.stmt(sqlExhaust).Text(1, m.tx.ns).ID(2, &c.id).Int(3, m.tx.mic).Run(); err != nil {
			return false, err
		}
		c.why = rules.JobSpent(job)
	}
	return m.endSpent(c)
}

// endSpent ends the next tasks of the job that do not run, and asks running tasks to end.
func (m *moves) endSpent(c *chore) (more bool, err error) {
	t := m.tx
	limit := max(1, rules.MaxMoves-t.moved)
	list, err := ids(t.stmt(sqlNextJobTasks).Text(1, t.ns).ID(2, &c.id).Blob(3, []byte(c.at)).Int(4, int64(limit)))
	if err != nil {
		return false, err
	}
	t.moved += len(list)
	if err := m.endEach(list, task.KindJobBudget, c.why); err != nil {
		return false, err
	}
	m.pending.Recount(c.id)
	if len(list) > 0 {
		c.at = string(list[len(list)-1][:])
	}
	return len(list) == limit, nil
}

const sqlRaiseBudget = `
UPDATE weaver_jobs SET budget_json = ?3, exhausted_at = CASE WHEN ?4 THEN NULL ELSE exhausted_at END
WHERE namespace = ?1 AND job_id = ?2`

// raiseBudget adds to a job's budget and revives the tasks that ended for it.
func (o *operation) raiseBudget(cmd store.RaiseBudget, got *store.CommandResult) error {
	t := o.tx
	job, err := t.job(&cmd.Job)
	if err != nil {
		return err
	}
	if job != nil {
		leaving, err := t.leaving(&task.ID{}, &cmd.Job)
		if err != nil {
			return err
		}
		if leaving {
			job = nil
		}
	}
	if job == nil {
		got.Err = rules.JobNotFound(cmd.Job)
		return nil
	}
	budget, refused := rules.RaisedBudget(&cmd, job)
	if got.Err = refused; refused != nil {
		return nil
	}
	if err := o.note(store.Audit{By: cmd.By, Reason: rules.RaiseNote(&cmd)}, "raise_budget", cmd.Job.String()); err != nil {
		return err
	}
	spent := rules.JobSpent(job) != ""
	if err := t.stmt(sqlRaiseBudget).Text(1, t.ns).ID(2, &cmd.Job).JSON(3, budget).Bool(4, spent).Run(); err != nil {
		return err
	}
	o.moves.pending.Recount(cmd.Job)
	if !spent || job.CancelRequested { // tasks that an operator cancelled need a retry
		return nil
	}
	c := chore{kind: store.ChoreRaise, id: cmd.Job, by: actorOf(cmd.KeepSteps)}
	more, err := o.raiseSome(&c)
	if err == nil && more {
		err = t.putChore(&c)
	}
	o.rest = func(t *Tx) (*chore, error) {
		return choreColumns.One(t.stmt(sqlChoreOfRaise).Text(1, t.ns).ID(2, &c.id))
	}
	return err
}

// The remaining work of a raised budget: its own chore, and the chores that revive dependents
// and children of the job's tasks.
var sqlChoreOfRaise = `
SELECT ` + choreColumns.List() + ` FROM weaver_chores c WHERE c.namespace = ?1 AND (kind = 'raise_budget' AND subject = ?2 OR (kind = 'revive' OR kind = 'revive_children')
  AND (SELECT t.job_id FROM weaver_tasks t WHERE t.namespace = ?1 AND t.task_id = c.root) = ?2) ORDER BY kind LIMIT 1`

// raiseSome revives the next tasks of a job that ended for its budget. No task of the job is
// claimed before all are revived. raiseSome does nothing if the job was cancelled meanwhile.
func (o *operation) raiseSome(c *chore) (more bool, err error) {
	t := o.tx
	job, err := t.job(&c.id)
	if err != nil || job == nil || job.CancelRequested {
		return false, err
	}
	limit := max(1, rules.MaxMoves-t.moved)
	list, err := ids(t.stmt(sqlNextJobTasks).Text(1, t.ns).ID(2, &c.id).Blob(3, []byte(c.at)).Int(4, int64(limit)))
	if err != nil {
		return false, err
	}
	if _, err := t.db.Tasks(t, list...); err != nil {
		return false, err
	}
	for i := range list {
		if i > 0 && t.moved >= rules.MaxMoves {
			return true, nil
		}
		t.moved++
		if err := o.reviveSpent(&list[i], c.by); err != nil {
			return false, err
		}
		c.at = string(list[i][:])
	}
	return len(list) == limit, nil
}

// reviveSpent revives a task that ended for its job's budget, unless a cleanup completed and
// its steps are not kept (by).
func (o *operation) reviveSpent(id *task.ID, by string) error {
	row, err := o.moves.taskRow(id)
	if err != nil || row == nil || row.contribution.Kind != task.KindBudget {
		return err
	}
	needs, err := o.tx.retryNeeds(id)
	if err != nil || !rules.RevivesSpent(row.contribution.State, row.contribution.Kind, needs) {
		return err
	}
	if gaveUp, err := o.tx.givenUpWith(row); err != nil || !gaveUp.IsZero() {
		return err
	}
	if by != keptSteps {
		if ran, err := o.tx.cleanedUpWith(row); err != nil || ran != nil {
			return err
		}
	}
	root := chore{root: row.id, epoch: row.epoch + 1, by: by}
	if _, err := o.revive(row, needs, &root); err != nil {
		return err
	}
	c := chore{kind: store.ChoreRevive, id: row.id, root: row.id, epoch: row.epoch + 1, by: by}
	more, err := o.reviveSome(&c)
	if err == nil && more {
		err = o.tx.putChore(&c)
	}
	if err != nil {
		return err
	}
	return o.releaseRoot(&c)
}

const sqlUnclaimable = `SELECT subject FROM weaver_chores WHERE namespace = ?1 AND kind IN ('cancel_job', 'enqueue', 'raise_budget', 'spent_job')`

// unclaimable returns the jobs whose tasks may not be claimed before a chore is done, or nil.
func (v *View) unclaimable() (map[task.ID]bool, error) { return v.jobsOf(sqlUnclaimable) }

const (
	sqlLimits = `
SELECT max_attempts, coalesce(json_extract(options_json, '$.max_cost'), 0) FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

	sqlRaiseLimits = `
UPDATE weaver_tasks SET max_attempts = ?3, options_json = CASE WHEN CAST(?4 AS bigint) > 0 THEN json_set(options_json, '$.max_cost', CAST(?4 AS bigint)) ELSE options_json END
WHERE namespace = ?1 AND task_id = ?2`
)

// raiseLimits raises the task's own limits if the retry asks for it.
func (o *operation) raiseLimits(cmd *store.RetryTask) (refused, err error) {
	if cmd.AddAttempts == 0 && cmd.AddCost == 0 {
		return nil, nil
	}
	t := o.tx
	var attempts int
	var cost int64
	st := t.stmt(sqlLimits).Text(1, t.ns).ID(2, &cmd.Task)
	if st.One() {
		attempts, cost = int(st.ColInt(0)), st.ColInt(1)
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	if attempts, cost, refused = rules.RaisedLimits(cmd, attempts, cost); refused != nil {
		return refused, nil
	}
	return nil, t.stmt(sqlRaiseLimits).Text(1, t.ns).ID(2, &cmd.Task).Int(3, int64(attempts)).Int(4, cost).Run()
}
