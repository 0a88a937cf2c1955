package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// moves makes the moves of one batch, and gathers what follows from them for
// propagate, which runs when all of them are made.
type moves struct {
	tx      *Tx
	pending propagate.Batch
	parents []endedParent // whose children are to be cancelled
	left    *chore        // that cancels more of them; nil: none

	jobs     []propagate.JobState // that got another state, the last last
	stored   int                  // children of decompositions
	unstored []task.ID            // tasks of whose children some are left to a chore
}

// propagate does what follows from the moves so far.
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

// taskRow reads a task that is to be changed without its lease; nil if there is
// none.
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

// cancelRequest is the cancel that the task was asked for.
func (l *leaseRow) cancelRequest() rules.CancelRequest {
	return rules.CancelRequest{Kind: l.cancelled, By: l.by, Reason: l.reason, CleansUp: l.cleansUp, Before: l.asked == askedBefore}
}

// unfinished is the task as a cancel or its deadline meets it.
func (w *taskRow) unfinished(force bool) *rules.Unfinished {
	return &rules.Unfinished{
		State: w.contribution.State, Waiting: w.contribution.Waiting, Join: w.join, Attempts: w.attemptNo,
		CleansUp: w.cleansUp, Asked: w.asked != notAsked, Force: force,
	}
}

// deadlineAt is the task's deadline; zero: none.
func (l *leaseRow) deadlineAt() time.Time { return sqlstmt.Instant(l.deadline) }

// endOf is how a task that gets into a state with an error ends there, if it does.
func (l *leaseRow) endOf(state task.State, failure *task.Error) task.End {
	return task.End{State: state, Kind: rules.KindOf(failure), AllowFailure: l.mayFail}
}

// unschedule makes a task that does not run unclaimable, before anything else
// of it is touched (R15).
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

const sqlEnd = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = NULL, last_error_kind = ?4, last_error_json = ?5, updated_at = ?6, finished_at = ?6
WHERE namespace = ?1 AND task_id = ?2`

// writeEnd writes the terminal state of a task.
func (t *Tx) writeEnd(id *task.ID, state task.State, failure *task.Error) error {
	return t.stmt(sqlEnd).Text(1, t.ns).ID(2, id).Text(3, string(state)).OrNull(4, string(rules.KindOf(failure))).
		Error(5, failure).Int(6, t.mic).Run()
}

// end moves a task that does not run into a terminal state.
func (m *moves) end(row *taskRow, state task.State, failure *task.Error) error {
	if err := m.unschedule(row); err != nil {
		return err
	}
	if err := m.tx.writeEnd(&row.id, state, failure); err != nil {
		return err
	}
	end := row.endOf(state, failure)
	m.pending.Count(row.job, row.contribution, propagate.Contribution{End: end})
	return m.ended(&row.leaseRow, end)
}

const sqlCleanUp = `
UPDATE weaver_tasks SET state = 'ready', waiting_reason = NULL, ready_at = NULL, remaining_deps = 0, updated_at = ?6,
  cancel_requested = 1, cancel_kind = ?3, cancel_by = ?4, cancel_reason = ?5
WHERE namespace = ?1 AND task_id = ?2`

// cleanUp makes a task that does not run claimable for its cleanup. The deadline
// need not be watched any more.
func (m *moves) cleanUp(row *taskRow, kind task.ErrorKind, a store.Audit) error {
	if err := m.unschedule(row); err != nil {
		return err
	}
	if _, err := m.tx.unpause(&row.id); err != nil {
		return err
	}
	if err := m.tx.deleteTimer(&row.id, row.deadline); err != nil {
		return err
	}
	err := m.tx.stmt(sqlCleanUp).Text(1, m.tx.ns).ID(2, &row.id).Text(3, string(kind)).OrNull(4, a.By).OrNull(5, a.Reason).Int(6, m.tx.mic).Run()
	if err != nil {
		return err
	}
	m.pending.Count(row.job, row.contribution, propagate.Unfinished(task.Ready, task.WaitNone))
	m.pending.Dispatch(row.dispatchRow(m.tx.at))
	return nil
}

const sqlRevoke = `
UPDATE weaver_tasks SET state = ?5, lease_epoch = lease_epoch + 1, lease_id = NULL, lease_expires_at = NULL, waiting_reason = NULL, updated_at = ?6
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

// revoke takes the lease of a running task and ends its attempt with an error.
// It does nothing if the lease is not the one that was read.
// Crash after the commit: the holder learns of it with its next write or
// heartbeat.
func (m *moves) revoke(row *taskRow, t *rules.Transition, attempt *task.Error) error {
	n, err := m.tx.stmt(sqlRevoke).Text(1, m.tx.ns).ID(2, &row.id).Int(3, row.epoch).Lease(4, &row.leaseID).
		Text(5, string(t.State)).Int(6, m.tx.mic).Exec()
	if err != nil || n == 0 {
		return err
	}
	if err := m.tx.insertAttempt(&row.leaseRow, 0, "", t.Outcome, attempt, nil, ""); err != nil {
		return err
	}
	if t.State.Terminal() {
		if err := m.tx.writeEnd(&row.id, t.State, t.TaskError()); err != nil {
			return err
		}
	}
	if err := m.tx.endLease(row.leaseID); err != nil {
		return err
	}
	m.tx.fx.Notice.Cancels = append(m.tx.fx.Notice.Cancels, row.id)
	return m.afterRunning(&row.leaseRow, t)
}

// afterRunning notes what follows when a task, whose row is written, has left
// running: its key is free, and it is claimable again, or blocked, or has ended.
func (m *moves) afterRunning(row *leaseRow, t *rules.Transition) error {
	end := row.endOf(t.State, t.TaskError())
	m.pending.Count(row.job, propagate.Unfinished(task.Running, task.WaitNone), propagate.Contribution{End: end, Waiting: t.Waiting, Join: t.Join, Timed: t.Timed()})
	if row.key != "" {
		if err := m.tx.dropKey(row.key); err != nil {
			return err
		}
		m.pending.FreeKey(row.key)
	}
	switch {
	case t.State == task.Pending && !t.Claimable():
		return nil
	case t.Claimable():
		at := t.ReadyAt
		if at.Before(m.tx.at) {
			at = m.tx.at
		}
		m.pending.Dispatch(row.dispatchRow(at))
		return nil
	case t.State == task.Blocked:
		m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, row.id)
		return nil
	}
	return m.ended(row, end)
}

const sqlDeleteTimer = `DELETE FROM weaver_timers WHERE namespace = ?1 AND due_at = ?2 AND task_id = ?3`

// ended notes the end of a task: its deadline is not watched any more, and the
// edges that lead to it are marked.
func (m *moves) ended(row *leaseRow, end task.End) error {
	m.tx.fx.Notice.Tasks = append(m.tx.fx.Notice.Tasks, row.id)
	m.pending.End(row.id, end, row.needed)
	if row.join != task.JoinNone || row.calls {
		m.parents = append(m.parents, endedParent{row.id, row.job})
	}
	return m.tx.deleteTimer(&row.id, row.deadline)
}

// deleteTimer ends the watch of a deadline; 0: there is none.
func (t *Tx) deleteTimer(id *task.ID, deadline int64) error {
	if deadline == 0 {
		return nil
	}
	return t.stmt(sqlDeleteTimer).Text(1, t.ns).Int(2, deadline).ID(3, id).Run()
}

// dispatchRow is the row by which the task is claimable from an instant on.
func (d *dispatched) dispatchRow(at time.Time) store.DispatchRow {
	return store.DispatchRow{
		Task: d.id, Queue: d.lane.Queue, Type: d.lane.Type, Priority: int(d.lane.Priority), AvailableAt: at, ConcurrencyKey: d.key,
	}
}
