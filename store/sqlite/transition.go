package sqlite

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var sqlTaskRow = `SELECT ` + taskRowSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// look returns nil when there is no such task.
func (m *moves) look(id *task.ID) (*taskRow, error) {
	st := m.tx.stmt(sqlTaskRow).Text(1, m.tx.ns).ID(2, id)
	if !st.One() {
		return nil, st.Done()
	}
	w := new(taskRow)
	scanTaskRow(st.Row(), w)
	return w, st.Done()
}

// called returns the task's name in messages: its node's, if it has one.
func (w *taskRow) called() string { return store.TaskName(w.node, w.id) }

func (w *taskRow) dispatched() *dispatched { return &dispatched{w.id, w.lane, w.key} }

// unschedule makes a task that does not run unclaimable, before anything else
// touches it (R15).
func (m *moves) unschedule(w *taskRow) error {
	if _, err := m.tx.undispatch(&w.id); err != nil || w.key == "" {
		return err
	}
	m.freed(w.key) // a waiter may take its place
	return m.tx.unawait(&w.id)
}

const sqlEnd = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = NULL, last_error_kind = ?4, last_error_json = ?5, updated_at = ?6, finished_at = ?6
WHERE namespace = ?1 AND task_id = ?2`

// end moves a task that does not run into a terminal state.
func (m *moves) end(w *taskRow, state task.State, failure *task.Error) error {
	if err := m.unschedule(w); err != nil {
		return err
	}
	err := m.tx.stmt(sqlEnd).Text(1, m.tx.ns).ID(2, &w.id).Text(3, string(state)).OrNull(4, string(kindOf(failure))).Error(5, failure).Int(6, m.tx.mic).Run()
	if err != nil {
		return err
	}
	m.counted(w.job, w.contribution, jobContribution{state: state, kind: kindOf(failure)})
	return m.terminal(&w.leaseRow, state)
}

const sqlRevoke = `
UPDATE weaver_tasks SET state = ?5, lease_epoch = lease_epoch + 1, lease_id = NULL, lease_expires_at = NULL, waiting_reason = NULL, updated_at = ?6
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

// revoke takes the lease of a running task and ends its attempt; what becomes
// of the task is e. It does nothing and reports false when the lease is not
// the one that was looked at.
// Crash after the commit: its worker observes it with its next write or heartbeat.
func (m *moves) revoke(w *taskRow, e *transition, attempt *task.Error) (bool, error) {
	n, err := m.tx.stmt(sqlRevoke).Text(1, m.tx.ns).ID(2, &w.id).Int(3, w.epoch).Lease(4, &w.leaseID).Text(5, string(e.state)).Int(6, m.tx.mic).Exec()
	if err != nil || n == 0 {
		return false, err
	}
	if err := m.tx.insertAttempt(&w.leaseRow, 0, e.outcome, attempt, nil, ""); err != nil {
		return false, err
	}
	if e.state.Terminal() {
		err := m.tx.stmt(sqlEnd).Text(1, m.tx.ns).ID(2, &w.id).Text(3, string(e.state)).OrNull(4, string(kindOf(e.failure))).Error(5, e.failure).Int(6, m.tx.mic).Run()
		if err != nil {
			return false, err
		}
	}
	if err := m.tx.endLease(w.leaseID); err != nil {
		return false, err
	}
	m.tx.fx.Notice.Cancels = append(m.tx.fx.Notice.Cancels, w.id)
	return true, m.afterRunning(&w.leaseRow, e)
}
