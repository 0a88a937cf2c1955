package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// moves makes the moves of one batch and collects their consequences for propagate, which runs
// after all moves.
type moves struct {
	tx      *Tx
	pending propagate.Batch
	parents []endedParent // whose children will be cancelled
	left    *chore        // cancels further children, or nil

	jobs     []propagate.JobState // jobs with a new state, the latest last
	stored   int                  // children of decompositions
	unstored []task.ID            // tasks with children left to a chore
}

// propagate applies the consequences of the moves so far.
func (m *moves) propagate() error {
	for {
		if err := m.cancelChildren(); err != nil {
			return err
		}
		res, err := m.pending.Run(ops{m.tx}, m.tx.at, rules.MaxMoves-m.tx.moved)
		m.tx.moved += res.Marked
		m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, res.Ended...)
		for _, j := range res.Jobs {
			m.tx.fx.Notice.Jobs = append(m.tx.fx.Notice.Jobs, j.Job)
		}
		m.jobs = append(m.jobs, res.Jobs...)
		if err != nil || len(res.Callers) == 0 && len(res.Exhausted) == 0 {
			return err
		}
		for _, c := range res.Callers { // their children end in another round
			m.parents = append(m.parents, endedParent{c.ID, c.Job})
		}
		for _, job := range res.Exhausted {
			if err := m.exhaust(job); err != nil {
				return err
			}
		}
	}
}

var sqlTaskRow = `SELECT ` + taskRowSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// taskRow locks and reads a task to be changed without its lease, or returns nil.
func (m *moves) taskRow(id *task.ID) (*taskRow, error) {
	if _, err := m.tx.db.Tasks(m.tx, *id); err != nil {
		return nil, err
	}
	st := m.tx.stmt(sqlTaskRow).Text(1, m.tx.ns).ID(2, id)
	if !st.One() {
		return nil, st.Done()
	}
	row := new(taskRow)
	scanTaskRow(st.Row(), row)
	return row, st.Done()
}

// cancelRequest returns the task's cancel request.
func (l *leaseRow) cancelRequest() rules.CancelRequest {
	return rules.CancelRequest{Kind: l.cancelled, By: l.by, Reason: l.reason}
}

// undoable returns the facts for the end of a task without its handler.
func (w *taskRow) undoable() *rules.Undoable {
	c := &w.contribution
	return &rules.Undoable{
		Open: w.undoOpen, Began: rules.Began(c.State, c.Waiting, w.join, w.attemptNo), CleansUp: w.cleansUp, Unaware: true,
		Phase: w.undo, Key: c.State == task.Running && w.key != "",
	}
}

// deadlineAt returns the task's deadline; zero: no deadline.
func (l *leaseRow) deadlineAt() time.Time { return sqlstmt.Instant(l.deadline) }

// endOf returns the end of a task in a state with an error of a kind.
func (l *leaseRow) endOf(state task.State, kind task.ErrorKind) task.End {
	return task.End{State: state, Kind: kind, AllowFailure: l.mayFail}
}

// unschedule makes a task that does not run unclaimable, before any other change of it (R15).
func (m *moves) unschedule(row *taskRow) error {
	m.pending.Drop(row.id)
	_, err := m.tx.undispatch(&row.id)
	if err == nil {
		_, err = m.tx.park(&row.id, 0)
	}
	if err != nil || row.key == "" {
		return err
	}
	m.pending.FreeKey(row.key) // a waiter may take its place
	return m.tx.unawait(&row.id)
}

// writeEnd writes the terminal state of a task.
func (t *Tx) writeEnd(id *task.ID, state task.State, failure *task.Error) error {
	return t.stmt(sqlEnd).Text(1, t.ns).ID(2, id).Text(3, string(state)).OrNull(4, string(rules.KindOf(failure))).
		Error(5, failure).Int(6, t.mic).Run()
}

// end moves a task that does not run into a terminal state, or into its undo phase.
func (m *moves) end(row *taskRow, to *rules.Transition) error {
	if err := m.unschedule(row); err != nil {
		return err
	}
	if !to.State.Terminal() {
		return m.beginUndo(row, to)
	}
	if held := row.undo; held != nil && held.HoldsKey && row.key != "" {
		if err := m.tx.dropKey(row.key); err != nil {
			return err
		}
	}
	if err := m.tx.writeEnd(&row.id, to.State, to.Failure); err != nil {
		return err
	}
	if err := m.tx.setUndo(&row.id, to); err != nil {
		return err
	}
	end := row.endOf(to.State, to.EndKind())
	m.pending.Count(row.job, row.contribution, propagate.Contribution{End: end})
	return m.ended(&row.leaseRow, end)
}

const (
	// plain is cleared: a success in the phase must not end by a chunk.
	sqlSetUndo   = `UPDATE weaver_tasks SET undo = ?3, plain = 0 WHERE namespace = ?1 AND task_id = ?2`
	sqlBeginUndo = `
UPDATE weaver_tasks SET state = 'pending', waiting_reason = 'undo', ready_at = NULL, remaining_deps = 0, updated_at = ?3,
  last_error_kind = ?4, last_error_json = ?5
WHERE namespace = ?1 AND task_id = ?2`
)

// setUndo writes the undo phase of a task, or its end, if the transition sets it.
func (t *Tx) setUndo(id *task.ID, to *rules.Transition) error {
	if !to.SetUndo {
		return nil
	}
	st := t.stmt(sqlSetUndo).Text(1, t.ns).ID(2, id)
	if to.Undo == nil {
		return st.Null(3).Run()
	}
	return st.JSON(3, to.Undo).Run()
}

// beginUndo makes the undo of a task claimable. The task does not run.
func (m *moves) beginUndo(row *taskRow, to *rules.Transition) error {
	err := m.writeBegin(&row.id, to)
	if err == nil {
		err = m.undoBegan(&row.leaseRow)
	}
	if err != nil {
		return err
	}
	m.pending.Count(row.job, row.contribution, propagate.Unfinished(to.State, to.Waiting))
	m.pending.Dispatch(row.dispatchRow(to.ReadyAt))
	return nil
}

// writeBegin writes the begin of the undo phase of a task without a lease.
func (m *moves) writeBegin(id *task.ID, to *rules.Transition) error {
	failure := to.TaskError()
	err := m.tx.stmt(sqlBeginUndo).Text(1, m.tx.ns).ID(2, id).Int(3, m.tx.mic).OrNull(4, string(rules.KindOf(failure))).Error(5, failure).Run()
	if err != nil {
		return err
	}
	return m.tx.setUndo(id, to)
}

// undoBegan applies the consequences of a begun undo phase. The task's pause and deadline end,
// and its children are cancelled, as at its end.
func (m *moves) undoBegan(row *leaseRow) error {
	if _, err := m.tx.unpause(&row.id); err != nil {
		return err
	}
	m.endChildren(row)
	return m.tx.deleteTimer(&row.id, row.deadline)
}

const sqlRevoke = `
UPDATE weaver_tasks SET state = ?5, lease_epoch = lease_epoch + 1, lease_id = NULL, lease_expires_at = NULL, waiting_reason = ?7, updated_at = ?6
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

// revoke takes the lease of a running task and ends its attempt with an error. It does nothing
// if the lease changed since it was read. Crash after the commit: the holder learns of it with
// its next write or heartbeat.
func (m *moves) revoke(row *taskRow, t *rules.Transition, attempt *task.Error) error {
	n, err := m.tx.stmt(sqlRevoke).Text(1, m.tx.ns).ID(2, &row.id).Int(3, row.epoch).Lease(4, &row.leaseID).
		Text(5, string(t.State)).Int(6, m.tx.mic).OrNull(7, string(t.Waiting)).Exec()
	if err != nil || n == 0 {
		return err
	}
	e := lostEnd(&row.leaseRow, t, attempt)
	if err := m.tx.insertAttempt(&e); err != nil {
		return err
	}
	switch {
	case t.State.Terminal():
		if err = m.tx.writeEnd(&row.id, t.State, t.TaskError()); err == nil {
			err = m.tx.setUndo(&row.id, t)
		}
	case t.SetUndo && row.undo == nil:
		err = m.writeBegin(&row.id, t)
	default:
		err = m.tx.setUndo(&row.id, t)
	}
	if err != nil {
		return err
	}
	// The claim of a lease that delays the undo stays: a reaper finds the hold by it.
	if !t.SetUndo || !rules.Holds(t.Undo, row.leaseID, m.tx.at) {
		if err := m.tx.endLease(row.leaseID); err != nil {
			return err
		}
	}
	m.tx.fx.Notice.Cancels = append(m.tx.fx.Notice.Cancels, row.id)
	return m.afterRunning(&row.leaseRow, t)
}

// afterRunning applies the consequences of a task leaving the state running, after its row is
// written. Its key is free, and the task is claimable again, blocked or ended.
func (m *moves) afterRunning(row *leaseRow, t *rules.Transition) error {
	end := row.endOf(t.State, t.EndKind())
	m.pending.Count(row.job, propagate.Unfinished(task.Running, task.WaitNone), propagate.Contribution{End: end, Waiting: t.Waiting, Join: t.Join, Timed: t.Timed()})
	holds := t.State == task.Pending && t.SetUndo && t.Undo.HoldsKey
	if row.key != "" && !holds {
		if err := m.tx.dropKey(row.key); err != nil {
			return err
		}
		m.pending.FreeKey(row.key)
	}
	if row.undo == nil && t.SetUndo {
		if err := m.undoBegan(row); err != nil {
			return err
		}
	}
	switch {
	case t.State == task.Pending && !t.Claimable():
		return nil
	case t.Claimable():
		at := t.ReadyAt
		if at.Before(m.tx.at) && !t.Interrupted() {
			at = m.tx.at
		}
		d := row.dispatchRow(at)
		if holds {
			d.ConcurrencyKey = ""
		}
		m.pending.Dispatch(d)
		return nil
	case t.State == task.Blocked:
		m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, row.id)
		return nil
	}
	return m.ended(row, end)
}

const sqlDeleteTimer = `DELETE FROM weaver_timers WHERE namespace = ?1 AND due_at = ?2 AND task_id = ?3`

// ended applies the consequences of a task's end: its deadline is not watched any more, and
// the edges to it are marked.
func (m *moves) ended(row *leaseRow, end task.End) error {
	m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, row.id)
	m.pending.End(row.id, end, row.needed)
	if !row.undo.Undoes().IsZero() {
		if err := m.wakeUndo(&row.id); err != nil {
			return err
		}
	}
	m.endChildren(row)
	return m.tx.deleteTimer(&row.id, row.deadline)
}

// endChildren cancels the unfinished children of a task.
func (m *moves) endChildren(row *leaseRow) {
	if row.join != task.JoinNone || row.calls {
		m.parents = append(m.parents, endedParent{row.id, row.job})
	}
}

// deleteTimer ends the watch of a deadline; 0 means that there is no deadline.
func (t *Tx) deleteTimer(id *task.ID, deadline int64) error {
	if deadline == 0 {
		return nil
	}
	return t.stmt(sqlDeleteTimer).Text(1, t.ns).Int(2, deadline).ID(3, id).Run()
}

// dispatchRow returns the task's dispatch row for an instant. It leaves out the key if the
// task holds it already.
func (w *taskRow) dispatchRow(at time.Time) store.DispatchRow {
	d := w.dispatched.dispatchRow(at)
	if w.undo != nil && w.undo.HoldsKey && w.contribution.State == task.Pending {
		d.ConcurrencyKey = ""
	}
	return d
}

// dispatchRow returns the dispatch row for an instant, of a task that does not hold a key.
func (d *dispatched) dispatchRow(at time.Time) store.DispatchRow {
	return store.DispatchRow{
		Task: d.id, Queue: d.lane.Queue, Type: d.lane.Type, Group: d.lane.Group, Priority: int(d.lane.Priority), AvailableAt: at, ConcurrencyKey: d.key,
	}
}
