package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var sqlDependents = `
SELECT ` + dependentEdges.List() + ` FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND task_id > ?3 ORDER BY task_id LIMIT ?4`

const sqlReviveJob = `
UPDATE weaver_jobs SET cancel_requested = 0, cancel_by = NULL, cancel_reason = NULL WHERE namespace = ?1 AND job_id = ?2`

// retry revives a failed or cancelled task and the tasks that ended because of it.
func (o *operation) retry(cmd store.RetryTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	forgotten, err := o.tx.forgotten(&row.id)
	if err != nil {
		return err
	}
	if got.Err = rules.CheckForgotten(row.id, row.contribution.State, forgotten); got.Err != nil {
		return nil
	}
	if cmd.Cleanup {
		return o.retryUndo(row, &cmd, got)
	}
	if got.Err = rules.CheckUndone(row.id, row.contribution.State, row.undo); got.Err != nil {
		return nil
	}
	needs, err := o.tx.retryNeeds(&row.id)
	if err != nil {
		return err
	}
	check := func() error {
		return rules.CheckRetry(row.id, row.contribution.State, row.contribution.Kind, row.join, needs)
	}
	if check() != nil {
		err := o.tx.nameNeeds(needs)
		got.Err = check()
		return err
	}
	job, err := o.moves.usage(&row.leaseRow, limitsAttempts|limitsCost)
	if err != nil {
		return err
	}
	if got.Err = rules.CheckJobBudget(row.id, row.contribution.State, job); got.Err != nil {
		return nil
	}
	cancelling, err := o.tx.cancelling()
	if err != nil {
		return err
	}
	if cancelling[row.job] {
		got.Err = rules.JobBeingCancelled(row.id, row.job)
		return nil
	}
	gaveUp, err := o.tx.givenUpWith(row)
	if err != nil {
		return err
	}
	if got.Err = rules.CheckChildUndone(row.id, row.contribution.State, gaveUp); got.Err != nil {
		return nil
	}
	ran, err := o.tx.cleanedUpWith(row)
	if err != nil {
		return err
	}
	if !cmd.KeepSteps {
		if got.Err = rules.CheckCleanedUp(row.id, row.contribution.State, needs, ran); got.Err != nil {
			return nil
		}
	}
	if got.Err, err = o.raiseLimits(&cmd); got.Err != nil || err != nil {
		return err
	}
	if err := o.note(store.Audit{By: cmd.By, Reason: rules.KeepNote(row.id, ran, rules.RetryNote(&cmd))}, rules.RetryVerb(&cmd), row.id.String()); err != nil {
		return err
	}
	root := chore{root: row.id, epoch: row.epoch + 1, by: actorOf(cmd.KeepSteps)}
	if got.State, err = o.revive(row, needs, &root); err != nil {
		return err
	}
	if err := o.reviveJob(row.job); err != nil {
		return err
	}
	return o.reviveRest(&chore{kind: store.ChoreRevive, id: row.id, root: row.id, epoch: row.epoch + 1, by: root.by})
}

// reviveRest revives the tasks that ended because of a retried task, and then makes the
// retried task claimable.
func (o *operation) reviveRest(c *chore) error {
	more, err := o.reviveSome(c)
	if err == nil && more {
		err = o.tx.putChore(c)
	}
	if err != nil {
		return err
	}
	o.rest = func(t *Tx) (*chore, error) {
		return choreColumns.One(t.stmt(sqlChoreOfRoot).Text(1, t.ns).ID(2, &c.root))
	}
	return o.releaseRoot(c)
}

func (o *operation) reviveJob(job task.ID) error {
	if job.IsZero() {
		return nil
	}
	o.moves.pending.Recount(job)
	return o.tx.stmt(sqlReviveJob).Text(1, o.tx.ns).ID(2, &job).Run()
}

// reviveSome revives the tasks that ended because of a revived task, and makes unstarted
// dependents wait for it again. It handles the dependents behind the chore's position, then
// their dependents. A dependent with several such needs is checked again with each of them, so
// that the last one revives it. Work beyond the transaction's limit is left to chores; c is
// one of them if more is true.
func (o *operation) reviveSome(c *chore) (more bool, err error) {
	list := []*chore{c}
	for len(list) > 0 && o.tx.moved < rules.MaxMoves {
		again, revived, err := o.reviveDependents(list[0])
		if err != nil {
			return false, err
		}
		if !again {
			list = list[1:]
		}
		for i := range revived {
			list = append(list, &chore{kind: store.ChoreRevive, id: revived[i], root: c.root, epoch: c.epoch, by: c.by})
		}
	}
	for _, l := range list {
		if l == c {
			more = true
		} else if err := o.tx.putChore(l); err != nil {
			return false, err
		}
	}
	return more, nil
}

// reviveDependents handles the next dependents of a revived task. It returns the dependents
// that it revived and that have dependents themselves.
func (o *operation) reviveDependents(c *chore) (more bool, revived []task.ID, err error) {
	limit := max(1, rules.MaxMoves-o.tx.moved)
	edges, err := dependentEdges.All(o.tx.stmt(sqlDependents).Text(1, o.tx.ns).ID(2, &c.id).Blob(3, []byte(c.at)).Int(4, int64(limit)))
	if err != nil {
		return false, nil, err
	}
	for i := range edges {
		o.tx.moved++
		came, err := o.reviveDependent(&edges[i], c)
		if err != nil {
			return false, nil, err
		}
		if came {
			revived = append(revived, edges[i].Task)
		}
	}
	if len(edges) > 0 {
		c.at = string(edges[len(edges)-1].Task[:])
	}
	return len(edges) == limit, revived, nil
}

const sqlReviving = `SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'revive' AND root = ?2 LIMIT 1`

// releaseRoot makes a retried task claimable once every task to be revived with it is back,
// because it must not end before. It does nothing if the task was cancelled meanwhile.
func (o *operation) releaseRoot(c *chore) error {
	st := o.tx.stmt(sqlReviving).Text(1, o.tx.ns).ID(2, &c.root)
	reviving := st.One()
	if err := st.Done(); err != nil || reviving {
		return err
	}
	if !o.revives {
		o.rest = nil
	}
	row, err := o.moves.taskRow(&c.root)
	if err != nil || row == nil || row.epoch != c.epoch {
		return err
	}
	if at := row.contribution; at.State == task.Ready || at.State == task.Pending && at.Waiting == task.WaitUndo {
		err = o.redispatch(row)
	}
	return err
}

// reviveDependent revives a dependent that ended because of a revived task, or makes an
// unstarted dependent wait again. It reports whether it revived the dependent and the
// dependent has dependents itself.
func (o *operation) reviveDependent(e *store.EdgeRow, c *chore) (came bool, err error) {
	row, err := o.moves.taskRow(&e.Task)
	if err != nil || row == nil {
		return false, err
	}
	at := row.contribution
	if e.Step != "" {
		return false, o.reopenCall(e, &c.id)
	}
	if e.Done && rules.ReopensEdge(at.State, at.Waiting, row.attemptNo, row.join, e.Awaited > 0) {
		return false, o.reopen(row, &c.id)
	}
	heldUp := rules.HeldUp(at.State, at.Kind)
	if !at.State.Terminal() || c.by == undoAgain && !heldUp {
		return false, nil
	}
	job, err := o.moves.usage(&row.leaseRow, limitsAttempts|limitsCost)
	if err != nil || rules.SpentUp(job) && !heldUp {
		return false, err
	}
	needs, err := o.tx.retryNeeds(&row.id)
	if err != nil || !rules.RevivesDependent(at.State, at.Kind, row.join, needs) {
		return false, err
	}
	if c.by != keptSteps && row.attemptNo > 0 { // it has ended since the retry was accepted
		if ran, err := o.tx.cleanedUp(&row.id); err != nil || ran != nil {
			return false, err
		}
	}
	state, err := o.revive(row, needs, c)
	if err == nil && state == task.Ready {
		err = o.redispatch(row)
	}
	return err == nil && row.needed, err
}

const sqlSetRemaining = `UPDATE weaver_tasks SET remaining_deps = ?3 WHERE namespace = ?1 AND task_id = ?2`

const sqlReopen = `
UPDATE weaver_tasks SET state = 'pending', waiting_reason = 'deps', remaining_deps = ?4, open_if_failed = ?5, updated_at = ?3
WHERE namespace = ?1 AND task_id = ?2`

// reopen makes a dependent wait for the end of a retried need, unless another need that went
// wrong lets it start.
func (o *operation) reopen(row *taskRow, need *task.ID) error {
	t := o.tx
	if err := t.openEdge(&row.id, need, row.epoch); err != nil {
		return err
	}
	needs, err := t.retryNeeds(&row.id)
	if err != nil {
		return err
	}
	coming, err := t.comingBack(&row.id, row.join)
	if err != nil {
		return err
	}
	waits := rules.TaskWaits(row.join, needs, coming)
	if row.join != task.JoinNone {
		more, err := t.unstored(&row.id)
		if err != nil {
			return err
		}
		waits.Open += more
	}
	if waits.Open == 0 {
		return nil
	}
	if row.join != task.JoinNone {
		return t.stmt(sqlSetRemaining).Text(1, t.ns).ID(2, &row.id).Int(3, int64(waits.Open)).Run()
	}
	if err := o.moves.unschedule(row); err != nil {
		return err
	}
	o.moves.pending.Count(row.job, row.contribution, propagate.Unfinished(task.Pending, task.WaitDeps))
	st := t.stmt(sqlReopen).Text(1, t.ns).ID(2, &row.id).Int(3, t.mic).Int(4, int64(waits.Open))
	return st.Put(5, func(s sqlstmt.Sink) { putIfFailed(s, waits.IfFailed) }).Run()
}

// comingBack returns which edges of a task count as open: unmarked edges and, while a chore
// revives its children, edges to children still to be revived. The task waits for these
// already.
func (t *Tx) comingBack(id *task.ID, join task.Join) (open func(*rules.Need) bool, err error) {
	c, err := t.chore(&chore{kind: store.ChoreReviveChildren, id: *id})
	if err != nil || c == nil {
		return rules.Unmarked, err
	}
	return func(n *rules.Need) bool { return rules.Unmarked(n) || n.RevivesChild(join, task.ErrorKind(c.why)) }, nil
}

// dependentEdges are the columns of sqlDependents.
var dependentEdges = sqlstmt.Columns[store.EdgeRow]{
	sqlstmt.Col("task_id", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Task = r.ID(i) }),
	sqlstmt.Col("done", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Done = r.Bool(i) }),
	sqlstmt.Col("awaited", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Awaited = int(r.Int(i)) }),
	sqlstmt.Col("step", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Step = r.Text(i) }),
}

// retryNeedColumns are the columns of a need that a retry reads. There may be thousands of
// children, so their names are read only for a refusal ([tx.nameNeeds]).
var retryNeedColumns = sqlstmt.Columns[rules.Need]{
	sqlstmt.Col("d.depends_on_task_id", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Need = r.ID(i) }),
	sqlstmt.Col("d.kind", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Kind = task.EdgeKind(r.Name(i)) }),
	sqlstmt.Col("d.done", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Marked = r.Bool(i) }),
	sqlstmt.Col("d.awaited", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Awaited = int(r.Int(i)) }),
	sqlstmt.Col("d.step", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Step = r.Name(i) }),
	sqlstmt.Col("d.ended_state", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Recorded = task.State(r.Name(i)) }),
	sqlstmt.Col("d.opened_epoch", func(n *rules.Need, r *sqlstmt.Row, i int) { n.Opened = r.Int(i) }),
	sqlstmt.Col("n.cancel_kind", func(n *rules.Need, r *sqlstmt.Row, i int) { n.CancelKind = task.ErrorKind(r.Name(i)) }),
	sqlstmt.Col("n.state", func(n *rules.Need, r *sqlstmt.Row, i int) { n.End.State = task.State(r.Name(i)) }),
	sqlstmt.Col("n.last_error_kind", func(n *rules.Need, r *sqlstmt.Row, i int) { n.End.Kind = task.ErrorKind(r.Name(i)) }),
	sqlstmt.Col("n.allow_failure", func(n *rules.Need, r *sqlstmt.Row, i int) { n.End.AllowFailure = r.Bool(i) }),
}

// CROSS JOIN and the order follow the edges. SQLite would otherwise walk all tasks of the
// namespace in the requested order and look each up among the edges. Succeeded children of
// calls stay as they are.
var sqlRetryNeeds = `
SELECT ` + retryNeedColumns.List() + ` FROM weaver_task_dependencies d
CROSS JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2 AND (d.step IS NULL OR d.done = 0 OR d.ended_state <> 'succeeded') ORDER BY d.depends_on_task_id`

// retryNeeds returns the needs of a task for a retry, sorted by ID, without names. For a
// parent of thousands of children the reading alone takes the time of a transaction; chores
// then revive the children.
func (t *Tx) retryNeeds(id *task.ID) ([]rules.Need, error) {
	read := func() ([]rules.Need, error) {
		return retryNeedColumns.All(t.stmt(sqlRetryNeeds).Text(1, t.ns).ID(2, id))
	}
	needs, err := read()
	if err != nil {
		return nil, err
	}
	// A need that ends right now would find the edge in its old state and lower nothing.
	var open []task.ID
	for i := range needs {
		if !needs[i].End.State.Terminal() {
			open = append(open, needs[i].Need)
		}
	}
	fresh, err := t.db.Tasks(t, open...)
	if err == nil && fresh {
		needs, err = read()
	}
	if len(needs) > rules.MaxMoves {
		t.moved = max(t.moved, rules.MaxMoves)
	}
	return needs, err
}

// nameNeeds reads the names of needs.
func (t *Tx) nameNeeds(needs []rules.Need) error {
	for i := range needs {
		of, err := t.options(&needs[i].Need)
		if err != nil {
			return err
		}
		needs[i].Name = rules.TaskName(of.Node, needs[i].Need)
	}
	return nil
}

// setEdges updates the edges of a revived task to the states of its needs. Edges to children
// of a decomposition matter only if the task waits for them. Edges that are correct are not
// written.
func (o *operation) setEdges(row *taskRow, needs []rules.Need, v *rules.Revival) (err error) {
	for i := range needs {
		n := &needs[i]
		switch {
		case n.Awaited > 0 && n.Step == "" && v.Join == task.JoinNone,
			n.RevivesChild(v.Join, row.contribution.Kind): // opened when the child is revived
		case !n.Ended() && (n.Marked || n.Step != ""):
			err = o.tx.openEdge(&row.id, &n.Need, row.epoch+1)
		case n.Ended() && (!n.Marked || n.Awaited > 0 && n.Recorded != n.End.State):
			err = o.tx.markEdge(&row.id, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// revive gives a task all its attempts back. If the task is ready afterwards, the caller makes
// it claimable. Its children are revived with it, some of them by a chore of the retried task
// (root).
func (o *operation) revive(row *taskRow, needs []rules.Need, root *chore) (task.State, error) {
	t := o.tx
	limit, err := o.extendJob(row)
	if err != nil {
		return "", err
	}
	unstored := 0
	if row.join != task.JoinNone {
		if unstored, err = t.unstored(&row.id); err != nil {
			return "", err
		}
	}
	v := rules.Revive(&rules.Revived{
		Needs: needs, End: row.contribution.Kind, Join: row.join, Unstored: unstored, Deadline: row.deadlineAt(), Job: limit,
	}, t.at)
	if err := o.setEdges(row, needs, &v); err != nil {
		return "", err
	}
	if err := t.recountCalls(row, needs); err != nil {
		return "", err
	}
	if err := t.putAside(row); err != nil {
		return "", err
	}
	st := t.stmt(sqlRevive).Text(1, t.ns).ID(2, &row.id).Text(3, string(v.State)).OrNull(4, string(v.Waiting)).
		Int(5, t.mic).Int(6, int64(v.Waits.Open)).Time(7, v.Deadline).OrNull(9, string(v.Join))
	if err := st.Put(8, func(s sqlstmt.Sink) { putIfFailed(s, v.Waits.IfFailed) }).Run(); err != nil {
		return "", err
	}
	if p := rules.RevivedPhase(needs, t.at); p != nil {
		if err := t.setUndo(&row.id, &rules.Transition{SetUndo: true, Undo: p}); err != nil {
			return "", err
		}
	}
	o.moves.pending.Count(row.job, row.contribution, propagate.Contribution{End: task.End{State: v.State}, Waiting: v.Waiting, Join: v.Join})
	if !v.Deadline.IsZero() {
		if err := t.insertTimer(&row.id, v.Deadline); err != nil {
			return "", err
		}
	}
	if v.Join == task.JoinNone && !rules.RevivesCalls(needs) {
		return v.State, nil
	}
	return v.State, o.reviveChildren(&chore{
		kind: store.ChoreReviveChildren, id: row.id, root: root.root, epoch: row.epoch + 1, by: root.by, why: string(row.contribution.Kind),
	})
}

const sqlExtendJob = `UPDATE weaver_jobs SET deadline_at = ?3 WHERE namespace = ?1 AND job_id = ?2`

// extendJob restarts the deadline of a task's job if it has passed, and returns the job's
// deadline; zero: never.
func (o *operation) extendJob(row *taskRow) (time.Time, error) {
	t := o.tx
	if row.job.IsZero() || !rules.Past(row.deadlineAt(), t.at) {
		return time.Time{}, nil
	}
	j, err := t.job(&row.job)
	if j == nil || err != nil {
		return time.Time{}, err
	}
	limit := rules.ExtendedDeadline(j.Budget, j.DeadlineAt, t.at)
	if limit.Equal(j.DeadlineAt) {
		return limit, nil
	}
	return limit, t.stmt(sqlExtendJob).Text(1, t.ns).ID(2, &row.job).Time(3, limit).Run()
}

// redispatch makes a task claimable now. W1: it does not rely on the absence of an old row.
func (o *operation) redispatch(row *taskRow) error {
	if _, err := o.tx.undispatch(&row.id); err != nil {
		return err
	}
	at := o.tx.at
	if p := row.undo; p != nil && p.NotBefore.After(at) {
		at = p.NotBefore
	}
	return ops{o.tx}.InsertDispatch([]store.DispatchRow{row.dispatchRow(at)})
}
