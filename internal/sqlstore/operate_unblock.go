package sqlstore

import (
	"github.com/goweaver/weaver/internal/sqlstmt"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlAttemptsLeft  = `SELECT attempt_count, max_attempts, last_error_json, repair_count, max_repairs FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlDeletePayload = `DELETE FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2 AND kind = ?3`
)

// unblock makes a blocked task continue, with at least one attempt.
func (o *operation) unblock(cmd store.UnblockTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	t := o.tx
	attempts, repairs, failure := 0, 0, (*task.Error)(nil)
	st := t.stmt(sqlAttemptsLeft).Text(1, t.ns).ID(2, &row.id)
	if st.One() {
		attempts = rules.UnblockedAttempts(int(st.ColInt(0)), int(st.ColInt(1)))
		failure = st.Row().Error(2)
		repairs = rules.UnblockedRepairs(int(st.ColInt(3)), int(st.ColInt(4)))
	}
	if err := st.Done(); err != nil {
		return err
	}
	if got.Err = rules.CheckUnblock(&cmd, row.contribution.State, row.contribution.Waiting, failure); got.Err != nil {
		return nil
	}
	if err := o.note(cmd.Audit, "unblock", row.id.String()); err != nil {
		return err
	}
	if row.undo != nil {
		got.State = task.Pending
		return o.resumeUndo(row)
	}
	for kind, data := range map[string][]byte{kindUnblock: cmd.Input, kindFor: []byte(rules.UnblockFor(&cmd, failure))} {
		if err := t.replacePayload(&row.id, kind, data); err != nil {
			return err
		}
	}
	err = t.stmt(sqlUnblock).Text(1, t.ns).ID(2, &row.id).Int(3, t.mic).Bool(4, len(cmd.Input) > 0).Int(5, int64(attempts)).Int(6, int64(repairs)).Run()
	if err != nil {
		return err
	}
	return o.unblocked(row, got)
}

// resumeUndo makes the undo of a task claimable if the task does not run.
func (o *operation) resumeUndo(row *taskRow) error {
	to := rules.ResumeUndo(row.undo, row.attemptNo, o.tx.at)
	if err := o.moves.writeBegin(&row.id, &to); err != nil {
		return err
	}
	o.moves.pending.Count(row.job, row.contribution, propagate.Unfinished(to.State, to.Waiting))
	o.moves.pending.Dispatch(row.dispatchRow(to.ReadyAt))
	return nil
}

// unblocked makes a task claimable whose row is ready.
func (o *operation) unblocked(row *taskRow, got *store.CommandResult) error {
	got.State = task.Ready
	o.moves.pending.Count(row.job, row.contribution, propagate.Unfinished(task.Ready, task.WaitNone))
	return o.redispatch(row)
}

// replacePayload replaces a stored text. An empty text deletes it.
func (t *Tx) replacePayload(id *task.ID, kind string, data []byte) error {
	err := t.stmt(sqlDeletePayload).Text(1, t.ns).ID(2, id).Text(3, kind).Run()
	if err != nil || len(data) == 0 {
		return err
	}
	return t.stmt(sqlInsertPayload).Text(1, t.ns).ID(2, id).Text(3, kind).Bytes(4, data).Run()
}

// sqlDelete removes all rows of a task except its audit.
var sqlDelete = []string{
	`DELETE FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_checkpoints WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 AND seq > 0`,
	`DELETE FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need WHERE namespace = ?1 AND depends_on_task_id = ?2`,
}

const (
	sqlWaitsForIt = `
SELECT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND done = 0 ORDER BY task_id LIMIT 1`
	sqlAwaiter = `
SELECT d.task_id, p.state FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need
CROSS JOIN weaver_tasks p ON p.namespace = d.namespace AND p.task_id = d.task_id
WHERE d.namespace = ?1 AND d.depends_on_task_id = ?2 AND d.awaited > 0 AND p.state <> 'succeeded' ORDER BY d.task_id LIMIT 1`
	sqlDeleteLabel = `DELETE FROM weaver_task_labels WHERE namespace = ?1 AND key = ?2 AND value = ?3 AND task_id = ?4`
)

// delete removes a finished task outside of jobs.
func (o *operation) delete(cmd store.DeleteTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	if got.Err = rules.CheckStands(row.id, row.contribution.State, row.undo); got.Err != nil {
		return nil
	}
	t := o.tx
	dependent, err := t.firstID(t.stmt(sqlWaitsForIt).Text(1, t.ns).ID(2, &row.id))
	if err != nil {
		return err
	}
	var by rules.Awaiter
	st := t.stmt(sqlAwaiter).Text(1, t.ns).ID(2, &row.id)
	if st.One() {
		by = rules.Awaiter{ID: st.ColID(0), State: task.State(st.ColName(1))}
	}
	if err := st.Done(); err != nil {
		return err
	}
	child, err := t.firstID(t.stmt(sqlOpenChildren).Text(1, t.ns).ID(2, &row.id).Blob(3, nil).Int(4, 1))
	if err != nil {
		return err
	}
	if child.IsZero() { // otherwise a child that is not stored yet
		list, _, _, err := t.nextDrafts(&row.id)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			child = list[0].ID
		}
	}
	if got.Err = rules.CheckDelete(row.id, row.contribution.State, row.job, dependent, by, child); got.Err != nil {
		return nil
	}
	got.State = ""
	if err := t.deleteLabels(&row.id); err != nil {
		return err
	}
	if err := t.forgetBlobs(&row.id); err != nil {
		return err
	}
	if err := t.uncountOutside(&row.id); err != nil {
		return err
	}
	for _, sql := range sqlDelete {
		if err := t.stmt(sql).Text(1, t.ns).ID(2, &row.id).Run(); err != nil {
			return err
		}
	}
	more, err := t.dropEvents(&row.id)
	if err == nil && more {
		err = t.putChore(&chore{kind: store.ChoreEvents, id: row.id})
	}
	if err != nil {
		return err
	}
	return o.note(cmd.Audit, "delete", row.id.String())
}

// firstID returns the first ID of a list, or zero.
func (t *Tx) firstID(st *sqlstmt.Stmt) (id task.ID, err error) {
	list, err := ids(st)
	if len(list) > 0 {
		id = list[0]
	}
	return id, err
}

func (t *Tx) deleteLabels(id *task.ID) error {
	of, err := t.options(id)
	if err != nil {
		return err
	}
	return t.deleteLabelsOf(id, of.Labels)
}

func (t *Tx) deleteLabelsOf(id *task.ID, labels map[string]string) error {
	for k, v := range labels {
		if err := t.stmt(sqlDeleteLabel).Text(1, t.ns).Text(2, k).Text(3, v).ID(4, id).Run(); err != nil {
			return err
		}
	}
	return nil
}
