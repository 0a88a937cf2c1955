package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// sqlUndoneOf is sqlStepEnded for a step of a task that another task undoes.
	sqlUndoneOf = `
UPDATE weaver_tasks SET step_count = step_count + ?3, undo_open = undo_open - 1 WHERE namespace = ?1 AND task_id = ?2`
	sqlUndoOpen  = `SELECT undo_open FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlUndoPhase = `SELECT undo FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

	sqlRunningChild = `
SELECT d.depends_on_task_id FROM weaver_task_dependencies d JOIN weaver_tasks c ON c.namespace = d.namespace AND c.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2 AND d.step = ?3 AND c.state <> 'succeeded' AND c.state <> 'failed' AND c.state <> 'cancelled' LIMIT 1`
	sqlForgetCall = `DELETE FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND step = ?3`
	sqlCallOf     = `
SELECT step FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3`
)

// undoOpen returns the number of steps of a task to undo. It is 0 for a task that does not
// exist.
func (t *Tx) undoOpen(id *task.ID) (n int, err error) {
	st := t.stmt(sqlUndoOpen).Text(1, t.ns).ID(2, id)
	if st.One() {
		n = int(st.ColInt(0))
	}
	return n, st.Done()
}

// undoPhase returns the undo phase of a task, or nil.
func (t *Tx) undoPhase(id *task.ID) (p *task.UndoPhase, err error) {
	st := t.stmt(sqlUndoPhase).Text(1, t.ns).ID(2, id)
	if st.One() {
		p = st.Row().Phase(0)
	}
	return p, st.Done()
}

// recordUndo records that a step was undone, of the task itself or of the task that it undoes.
// The step counts as never run, and frees its name.
func (t *Tx) recordUndo(of task.ID, undo *task.Step, got *store.RecordResult) error {
	owner := undo.TaskID
	var stored *task.Step
	if !of.IsZero() {
		p, err := t.undoPhase(&undo.TaskID)
		if err != nil {
			return err
		}
		owner = p.Undoes()
	}
	if of.IsZero() || of == owner {
		var err error
		if stored, err = t.stored(&owner, undo.Name, 0, 0); err != nil {
			return err
		}
	}
	past := rules.PastKey(undo.Round)
	known, err := t.stored(&undo.TaskID, undo.Name, past, -1)
	if err != nil {
		return err
	}
	repeated := false
	if repeated, got.Err = rules.AcceptUndo(stored, known, undo); got.Err != nil || repeated {
		t.repeated = repeated
		if known != nil {
			got.Step = *known
		}
		return nil
	}
	if got.Err, err = t.callEnded(stored); err != nil || got.Err != nil {
		return err
	}
	if err := t.retire(stored, task.UndoUndone, owner != undo.TaskID); err != nil {
		return err
	}
	if undo.Index = stored.Index; owner == undo.TaskID {
		undo.UndoNo = stored.UndoNo
	} else if err := t.stepEnded(&undo.TaskID, 0, 0); err != nil { // it made progress
		return err
	}
	got.Step = *undo
	_, err = t.insertUndoable(undo, past, -1)
	return err
}

// callEnded refuses to let a call count as never run while a child of it has not ended.
func (t *Tx) callEnded(s *task.Step) (refused, err error) {
	if s.Kind != task.KindCall {
		return nil, nil
	}
	st := t.stmt(sqlRunningChild).Text(1, t.ns).ID(2, &s.TaskID).Text(3, s.Name)
	if st.One() {
		refused = rules.CallStands(s, st.ColID(0))
	}
	return refused, st.Done()
}

// retire makes a step count as never run. other reports that another task undoes it. The
// children of a call stay, but do not belong to its task any more.
func (t *Tx) retire(stored *task.Step, how task.UndoState, other bool) error {
	err := t.stmt(sqlPastStep).Text(1, t.ns).ID(2, &stored.TaskID).Text(3, stored.Name).Int(4, int64(rules.PastKey(stored.Round))).Undo(5, how).
		Text(6, string(rules.RetiredCall(stored.State))).Run()
	if err != nil {
		return err
	}
	if stored.Kind == task.KindCall {
		if err := t.stmt(sqlForgetCall).Text(1, t.ns).ID(2, &stored.TaskID).Text(3, stored.Name).Run(); err != nil {
			return err
		}
	}
	steps := 0
	if stored.State == task.StepCompleted {
		steps = -1
	}
	if other {
		return t.stmt(sqlUndoneOf).Text(1, t.ns).ID(2, &stored.TaskID).Int(3, int64(steps)).Run()
	}
	return t.stepEnded(&stored.TaskID, steps, 1)
}

// startUndo stores the task that undoes a child, once. It is in its undo phase from the
// beginning. Crash after the commit: the same record, also of a later attempt, finds the task
// by its key.
func (t *Tx) startUndo(rec *store.Record, got *store.RecordResult) error {
	id, n := &rec.Lease.Task, rec.Tasks[0]
	attempt, _, err := t.accept(sqlRecordGuard, &store.Record{Lease: rec.Lease})
	if err != nil {
		return err
	}
	if attempt == 0 {
		got.Err = rules.LeaseLost(&rec.Lease, rules.LostToAnother)
		return nil
	}
	m := moves{tx: t}
	in := insertion{tx: t}
	known, err := in.existing(&n)
	if err != nil {
		return err
	}
	if !known.ID.IsZero() {
		got.Enqueued = []store.Enqueued{known}
		return nil
	}
	row, err := m.taskRow(id)
	if err != nil || row == nil {
		return err
	}
	if got.Err, err = t.checkUndoOf(&m, row, rec); err != nil || got.Err != nil {
		return err
	}
	in = insertion{tx: t, job: row.job, limits: row.limits, parent: row.id, depth: row.depth + 1, dispatch: m.dispatchLater}
	m.countChildren(row.job, rec.Tasks)
	if known, err = in.task(&n); err != nil {
		return err
	}
	got.Enqueued = []store.Enqueued{known}
	undo, err := m.taskRow(&known.ID)
	if err != nil || undo == nil {
		return err
	}
	to := rules.BeginUndoOf(n.UndoOf, t.at)
	if err := m.end(undo, &to); err != nil {
		return err
	}
	return m.propagate()
}

func (t *Tx) checkUndoOf(m *moves, row *taskRow, rec *store.Record) (refused, err error) {
	child := rec.Tasks[0].UndoOf
	owner := row.undo.Undoes()
	if owner.IsZero() {
		owner = row.id
	}
	c := rules.UndoCaller{ID: row.id, Phase: row.undo}
	if c.Call, err = t.stored(&owner, rec.Step.Name, 0, 0); err != nil {
		return nil, err
	}
	st := t.stmt(sqlCallOf).Text(1, t.ns).ID(2, &owner).ID(3, &child)
	if st.One() {
		c.Step = st.ColText(0)
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	var state task.State
	of, err := m.taskRow(&child)
	if err != nil {
		return nil, err
	}
	if of != nil {
		state = of.contribution.State
	}
	return rules.CheckUndoOf(&c, child, state), nil
}

// parentOf returns the task that stored an undo task, or nil if it does not exist any more.
func (m *moves) parentOf(id *task.ID) (*taskRow, error) {
	st := m.tx.stmt(sqlParentOf).Text(1, m.tx.ns).ID(2, id)
	var parent task.ID
	if st.One() {
		parent = st.ColID(0)
	}
	if err := st.Done(); err != nil || parent.IsZero() {
		return nil, err
	}
	return m.taskRow(&parent)
}

// wakeUndo wakes the task that stored an ended undo task, so that it continues its undo now. A
// running task checks by itself.
func (m *moves) wakeUndo(id *task.ID) error {
	parent, err := m.parentOf(id)
	if err != nil || parent == nil || !rules.WaitsForUndo(parent.contribution.State, parent.undo) {
		return err
	}
	if due, err := m.tx.undispatch(&parent.id); err != nil || !due {
		return err
	}
	m.pending.Drop(parent.id)
	m.pending.Dispatch(parent.dispatchRow(rules.UndoDue(parent.undo, m.tx.at)))
	return nil
}

// retryParent retries the undo of a task that gave its own undo up because of a failed undo
// task.
func (o *operation) retryParent(row *taskRow, cmd *store.RetryTask) error {
	parent, err := o.moves.parentOf(&row.id)
	if err != nil || parent == nil {
		return err
	}
	if follows := rules.FollowsRetry(parent.id, parent.undo, cmd); follows != nil {
		return o.retryUndo(parent, follows, new(store.CommandResult))
	}
	return nil
}

const sqlParentOf = `SELECT parent_task_id FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
