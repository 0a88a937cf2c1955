package sqlstore

import (
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlCallStored = `
UPDATE weaver_steps SET children_stored = ?4 WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0`

	// plain was set by the enqueue. It is cleared because the end of the task must now look
	// for children.
	sqlCalls = `
UPDATE weaver_tasks SET calls = 1, plain = 0, crash_count = 0, quarantine_losses = 0 WHERE namespace = ?1 AND task_id = ?2`

	sqlInsertCallEdge = `
INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind, awaited, step, opened_epoch) VALUES (?1, ?2, ?3, 'done', ?4, ?5, ?6)`
)

// recordCall stores the next children of a call, after the guard.
func (t *Tx) recordCall(rec *store.Record, stored, step *task.Step, got *store.RecordResult) error {
	id := &rec.Lease.Task
	p, err := t.parent(id)
	if err != nil {
		return err
	}
	first := step.ChildrenStored
	add := false
	add, got.Err = rules.ResolveCall(stored, step, len(rec.Tasks), p.Parent)
	if got.Err != nil || !add {
		if stored != nil {
			got.Step = *stored
		}
		return nil
	}
	got.Step = *step
	if stored == nil {
		if step.Undo == task.UndoOpen {
			if step.UndoNo, err = t.undoNo(sqlBegan, id); err != nil {
				return err
			}
			got.Step = *step
		}
		err = t.insertWait(step)
	} else {
		err = t.stmt(sqlCallStored).Text(1, t.ns).ID(2, id).Text(3, step.Name).Int(4, int64(step.ChildrenStored)).Run()
	}
	if err != nil {
		return err
	}
	if err := t.stmt(sqlCalls).Text(1, t.ns).ID(2, id).Run(); err != nil {
		return err
	}
	row, err := leaseColumns.One(t.stmt(sqlLeaseRow).Text(1, t.ns).ID(2, id))
	if err != nil || row == nil {
		return err
	}
	m := moves{tx: t}
	m.countChildren(row.job, rec.Tasks)
	err = m.addChildren(row, p, rec.Tasks, func(n task.New, i int) (task.New, error) {
		n = rules.CallChild(n, p.node, step, first+i, row.mayFail)
		got.Enqueued = append(got.Enqueued, store.Enqueued{ID: n.ID, Disposition: store.DispositionCreated})
		return n, t.stmt(sqlInsertCallEdge).Text(1, t.ns).ID(2, id).ID(3, &n.ID).Int(4, int64(row.attemptNo)).Text(5, step.Name).
			Int(6, rec.Lease.Epoch).Run()
	})
	if err != nil {
		return err
	}
	return m.propagate()
}

// A task that has ended, was asked to end, or is being undone does not count ends of children
// for its calls (rules.CountsCalls).
const sqlCounts = `EXISTS (SELECT 1 FROM weaver_tasks t WHERE t.namespace = ?1 AND t.task_id = ?2
  AND t.state <> 'succeeded' AND t.state <> 'failed' AND t.state <> 'cancelled' AND t.cancel_requested = 0 AND t.undo IS NULL)`

const sqlLowerCall = `
UPDATE weaver_steps SET children_left = children_left - ?4,
  state = CASE WHEN children_left = ?4 THEN 'completed' ELSE 'waiting' END, completed_at = CASE WHEN children_left = ?4 THEN CAST(?5 AS bigint) ELSE 0 END
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0 AND state = 'waiting' AND ` + sqlCounts + `
RETURNING state`

// LowerCalls implements propagate.Ops.
func (o ops) LowerCalls(ended []propagate.CallEnds) (woken []propagate.Woken, err error) {
	t := o.tx
	callers := make([]task.ID, len(ended))
	for i := range ended {
		callers[i] = ended[i].Task
	}
	if _, err := t.db.Tasks(t, callers...); err != nil { // locks the tasks: a task that is being cancelled counts no more
		return nil, err
	}
	for i := range ended {
		c := &ended[i]
		st := t.stmt(sqlLowerCall).Text(1, t.ns).ID(2, &c.Task).Text(3, c.Step).Int(4, int64(c.Children)).Int(5, t.mic)
		over := st.One() && task.StepState(st.ColName(0)) == task.StepCompleted
		if err := st.Done(); err != nil {
			return nil, err
		}
		if !over {
			continue
		}
		row, err := (&moves{tx: t}).taskRow(&c.Task)
		if err != nil || row == nil {
			return nil, err
		}
		wakes, err := t.waitEnded(row)
		if err != nil {
			return nil, err
		}
		if wakes {
			woken = append(woken, propagate.Woken{Job: row.job, Was: row.contribution, Dispatch: row.dispatchRow(t.at)})
		}
	}
	return woken, nil
}

var sqlWaitingCalls = `
SELECT ` + stepColumns.List() + ` FROM weaver_steps INDEXED BY weaver_steps_waiting
WHERE namespace = ?1 AND task_id = ?2 AND state = 'waiting' AND awaits IS NULL`

const (
	sqlSetCall = `
UPDATE weaver_steps SET children_left = ?4, state = CASE WHEN CAST(?4 AS bigint) = 0 THEN 'completed' ELSE 'waiting' END, completed_at = CASE WHEN CAST(?4 AS bigint) = 0 THEN CAST(?5 AS bigint) ELSE 0 END
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0`
	sqlCountSteps = `
UPDATE weaver_tasks SET step_count = step_count + ?3, wake_seq = CASE WHEN ?3 >= 0 THEN wake_seq WHEN wake_seq + ?3 > 0 THEN wake_seq + ?3 ELSE 0 END WHERE namespace = ?1 AND task_id = ?2`
)

// recountCalls makes the calls of a retried task count their children anew
// (rules.RecountCall): waiting calls, and calls with children that will end again. The task
// runs again in any case.
func (t *Tx) recountCalls(row *taskRow, needs []rules.Need) error {
	if !row.calls {
		return nil
	}
	calls, err := stepColumns.All(t.stmt(sqlWaitingCalls).Text(1, t.ns).ID(2, &row.id))
	if err != nil {
		return err
	}
	left := rules.CallsLeft(needs)
	for i := range calls {
		if err := t.recountCall(&calls[i], left[calls[i].Name]); err != nil {
			return err
		}
		delete(left, calls[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		call, err := t.stored(&row.id, name, 0, 0)
		if err != nil {
			return err
		}
		if call == nil {
			continue
		}
		if err := t.recountCall(call, left[name]); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) recountCall(call *task.Step, left int) error {
	steps := rules.RecountCall(call, left, t.at)
	err := t.stmt(sqlSetCall).Text(1, t.ns).ID(2, &call.TaskID).Text(3, call.Name).Int(4, int64(call.ChildrenLeft)).Int(5, t.mic).Run()
	if err != nil || steps == 0 {
		return err
	}
	return t.stmt(sqlCountSteps).Text(1, t.ns).ID(2, &call.TaskID).Int(3, int64(steps)).Run()
}

// sqlReopenCall is rules.ReopensCall.
const sqlReopenCall = `
UPDATE weaver_steps SET children_left = children_left + 1
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0 AND state = 'waiting' AND ` + sqlCounts

// reopenCall makes a call wait again for a retried child.
func (o *operation) reopenCall(e *store.EdgeRow, child *task.ID) error {
	if !e.Done {
		return nil
	}
	t := o.tx
	n, err := t.stmt(sqlReopenCall).Text(1, t.ns).ID(2, &e.Task).Text(3, e.Step).Exec()
	if err != nil || n == 0 {
		return err
	}
	parent, err := o.moves.taskRow(&e.Task)
	if err != nil || parent == nil {
		return err
	}
	if err := t.openEdge(&e.Task, child, parent.epoch); err != nil {
		return err
	}
	c, err := t.chore(&chore{kind: store.ChoreReviveChildren, id: e.Task})
	if err != nil || c == nil {
		return err
	}
	return o.recountOpen(e, c.epoch)
}

// recountOpen counts the children of a call while a chore revives those that had not succeeded
// before the retry with this epoch. The call waits for them already.
func (o *operation) recountOpen(e *store.EdgeRow, epoch int64) error {
	t := o.tx
	needs, err := t.retryNeeds(&e.Task)
	if err != nil {
		return err
	}
	calls, err := stepColumns.All(t.stmt(sqlWaitingCalls).Text(1, t.ns).ID(2, &e.Task))
	if err != nil {
		return err
	}
	for i := range calls {
		if calls[i].Name == e.Step {
			left := rules.CallOpen(&calls[i], needs, epoch)
			return t.stmt(sqlSetCall).Text(1, t.ns).ID(2, &e.Task).Text(3, e.Step).Int(4, int64(left)).Int(5, t.mic).Run()
		}
	}
	return nil
}
