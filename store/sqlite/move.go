package sqlite

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// where is where a task stands, for those who move it without its lease:
// operators, the reaper, and the ends of its needs.
type where struct {
	held     // of the lease, if it runs
	standing standing
	node     string
	asked    bool // to cancel
}

const sqlLook = `
SELECT attempt_no, leased_by, started_at, job_id, concurrency_key, needed, deadline_at, queue, task_type, priority,
  state, waiting_reason, last_error_kind, lease_epoch, lease_id, cancel_requested, options_json
FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// look returns nil when there is no such task.
func (m *moves) look(id *task.ID) (*where, error) {
	st := m.stmt(sqlLook).text(1, m.ns).id(2, id)
	if !st.one() {
		return nil, st.done()
	}
	r := st.row()
	w := &where{
		held: held{
			id: *id, attemptNo: int(r.int(0)), worker: r.name(1), startedAt: r.int(2), job: r.id(3), key: r.text(4),
			needed: r.int(5) != 0, deadline: r.int(6), lane: laneKey{r.name(7), r.name(8), r.int(9)}, epoch: r.int(13),
		},
		standing: standing{task.State(r.name(10)), task.Waiting(r.name(11)), task.ErrorKind(r.name(12))},
		asked:    r.int(15) != 0,
	}
	copy(w.leaseID[:], r.raw(14))
	var t task.Task
	r.options(16, &t)
	w.node = t.Node
	st.err = r.err
	return w, st.done()
}

// called names a task for people: by its node, if it has one.
func (w *where) called() string { return store.TaskName(w.node, w.id) }

func (w *where) dispatched() *dispatched { return &dispatched{w.id, w.lane, w.key} }

// withdraw makes a task that does not run unclaimable, before anything else
// touches it (R15).
func (m *moves) withdraw(w *where) error {
	if _, err := m.undispatch(&w.id); err != nil || w.key == "" {
		return err
	}
	m.freed(w.key) // a waiter may take its place
	return m.unawait(&w.id)
}

const sqlEnd = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = NULL, last_error_kind = ?4, last_error_json = ?5, updated_at = ?6, finished_at = ?6
WHERE namespace = ?1 AND task_id = ?2`

// end moves a task that does not run into a terminal state.
func (m *moves) end(w *where, state task.State, failure *task.Error) error {
	if err := m.withdraw(w); err != nil {
		return err
	}
	err := m.stmt(sqlEnd).text(1, m.ns).id(2, &w.id).text(3, string(state)).orNull(4, string(kindOf(failure))).error(5, failure).int(6, m.mic).run()
	if err != nil {
		return err
	}
	m.counted(w.job, w.standing, standing{state: state, kind: kindOf(failure)})
	return m.terminal(&w.held, state)
}

const sqlRevoke = `
UPDATE weaver_tasks SET state = ?5, lease_epoch = lease_epoch + 1, lease_id = NULL, lease_expires_at = NULL, waiting_reason = NULL, updated_at = ?6
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

// revoke takes the lease of a running task and ends its attempt; what becomes
// of the task is e. It does nothing and reports false when the lease is not
// the one that was looked at.
// Crash after the commit: its holder hears of it with its next write or beat.
func (m *moves) revoke(w *where, e *ending, attempt *task.Error) (bool, error) {
	n, err := m.stmt(sqlRevoke).text(1, m.ns).id(2, &w.id).int(3, w.epoch).lease(4, &w.leaseID).text(5, string(e.state)).int(6, m.mic).exec()
	if err != nil || n == 0 {
		return false, err
	}
	if err := m.insertAttempt(&w.held, 0, e.outcome, attempt, nil, ""); err != nil {
		return false, err
	}
	if e.state.Terminal() {
		err := m.stmt(sqlEnd).text(1, m.ns).id(2, &w.id).text(3, string(e.state)).orNull(4, string(kindOf(e.failure))).error(5, e.failure).int(6, m.mic).run()
		if err != nil {
			return false, err
		}
	}
	if err := m.endLease(w.leaseID); err != nil {
		return false, err
	}
	m.fx.notice.Cancels = append(m.fx.notice.Cancels, w.id)
	return true, m.left(&w.held, e)
}
