package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlReplaced = `
UPDATE weaver_tasks SET idle_attempts = 0, repair_count = CASE WHEN ?3 THEN 0 ELSE repair_count END WHERE namespace = ?1 AND task_id = ?2`
	sqlGoOn = `
UPDATE weaver_tasks SET state = 'ready', waiting_reason = NULL, updated_at = ?3, attempt_count = ?4 WHERE namespace = ?1 AND task_id = ?2`

	sqlOpenRepair = `
SELECT depends_on_task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_open
WHERE namespace = ?1 AND task_id = ?2 AND done = 0 AND awaited > 0 AND kind = 'done' AND step IS NULL ORDER BY depends_on_task_id`
)

// replaceInput replaces the input of a task. Crash after the commit: a repair asks again, and
// gets the same answer.
func (o *operation) replaceInput(cmd store.ReplaceInput, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	t, of := o.tx, new(task.Task)
	st := t.stmt(sqlTask).Text(1, t.ns).ID(2, &row.id)
	payloads := st.One() && scanTask(st.Row(), of)
	if err := st.Done(); err != nil {
		return err
	}
	if err := t.fetchPayload(of, payloads); err != nil {
		return err
	}
	was := rules.Holder{State: of.State, Waiting: of.Waiting, Hash: task.PayloadHash(of.Input), Schema: of.SchemaVersion}
	if got.Existing, got.Err = rules.CheckReplace(&cmd, was); got.Existing || got.Err != nil {
		return nil
	}
	if got.Err, err = t.usable(rules.ReplaceBlobs(&cmd)); err != nil || got.Err != nil {
		return err
	}
	if err := t.setInput(&row.id, cmd.Input, cmd.SchemaVersion); err != nil {
		return err
	}
	if err := t.watchExpiry(&row.id, of.Expire, t.at); err != nil {
		return err
	}
	byHand := cmd.Repair.IsZero()
	if err := t.stmt(sqlReplaced).Text(1, t.ns).ID(2, &row.id).Bool(3, byHand).Run(); err != nil {
		return err
	}
	if err := o.note(rules.RepairNote(&cmd, was), rules.RepairVerb, row.id.String()); err != nil || !byHand {
		return err
	}
	if of.State == task.Blocked {
		attempts := rules.UnblockedAttempts(of.AttemptCount, of.MaxAttempts)
		if err := t.stmt(sqlGoOn).Text(1, t.ns).ID(2, &row.id).Int(3, t.mic).Int(4, int64(attempts)).Run(); err != nil {
			return err
		}
		return o.unblocked(row, got)
	}
	return o.cancelRepair(row, got)
}

// cancelRepair ends the repair that a task waits for, or asks it to end.
func (o *operation) cancelRepair(row *taskRow, got *store.CommandResult) error {
	open, err := ids(o.tx.stmt(sqlOpenRepair).Text(1, o.tx.ns).ID(2, &row.id))
	if err != nil {
		return err
	}
	for i := range open {
		if err := o.endRepair(&open[i]); err != nil {
			return err
		}
	}
	if err := o.moves.propagate(); err != nil {
		return err
	}
	now, err := o.moves.taskRow(&row.id)
	if now != nil {
		got.State = now.contribution.State
	}
	return err
}

func (o *operation) endRepair(id *task.ID) error {
	row, err := o.moves.taskRow(id)
	switch {
	case err != nil || row == nil || row.contribution.State.Terminal() || row.undo != nil:
		return err
	case row.contribution.State == task.Running:
		return o.moves.ask(row, task.KindCancelled, store.Audit{Reason: rules.RepairNotNeeded().Message})
	}
	to := rules.Transition{State: task.Cancelled, Failure: rules.RepairNotNeeded()}
	to.BeginUndo(row.undoable(), time.Time{}, o.tx.at)
	return o.moves.end(row, &to)
}
