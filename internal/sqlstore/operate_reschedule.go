package sqlstore

import (
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlDueAt = `
SELECT coalesce((SELECT available_at FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = ?2),
  (SELECT due_at FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task WHERE namespace = ?1 AND task_id = ?2),
  (SELECT due_at FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2), 0)`

	sqlMoveSleep = `
UPDATE weaver_steps SET wake_at = ?3 WHERE namespace = ?1 AND task_id = ?2 AND kind = 'sleep' AND state = 'completed'
  AND wake_at = (SELECT ready_at FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2)`

	sqlReschedule = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = ?4, ready_at = ?5, updated_at = ?6 WHERE namespace = ?1 AND task_id = ?2`
)

// reschedule makes a task due at another instant.
func (o *operation) reschedule(cmd store.RescheduleTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	why := row.contribution.Waiting
	if got.Err = rules.CheckReschedule(row.id, row.contribution.State, why, row.undo != nil); got.Err != nil {
		return nil
	}
	t := o.tx
	if err := o.note(cmd.Audit, "reschedule", row.id.String()); err != nil {
		return err
	}
	due, err := t.dueAt(&row.id)
	if err != nil {
		return err
	}
	v, ok := rules.Reschedule(why, sqlstmt.Instant(due), cmd.At, t.at)
	if !ok {
		return nil
	}
	if why == task.WaitSleep {
		if err := t.stmt(sqlMoveSleep).Text(1, t.ns).ID(2, &row.id).Time(3, v.Due).Run(); err != nil {
			return err
		}
	}
	if err := o.moves.unschedule(row); err != nil {
		return err
	}
	err = t.stmt(sqlReschedule).Text(1, t.ns).ID(2, &row.id).Text(3, string(v.State)).OrNull(4, string(v.Waiting)).Time(5, v.NotBefore).Int(6, t.mic).Run()
	if err != nil {
		return err
	}
	got.State = v.State
	o.moves.pending.Count(row.job, row.contribution, propagate.Unfinished(v.State, v.Waiting))
	o.moves.pending.Dispatch(row.dispatchRow(v.Due))
	return nil
}

// dueAt returns the due time of a task that is claimable, waits for its key, or would be
// claimable without a pause. It returns 0 for any other task.
func (t *Tx) dueAt(id *task.ID) (due int64, err error) {
	st := t.stmt(sqlDueAt).Text(1, t.ns).ID(2, id)
	if st.One() {
		due = st.ColInt(0)
	}
	return due, st.Done()
}
