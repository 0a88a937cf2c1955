package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlNeedsOthers = `SELECT 1 FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND awaited = 0 LIMIT 1`

	// The steps that a rerun takes over (rules.TakesOver).
	takenOver = `state = 'completed' AND step_index < ?3 AND kind <> 'cleanup' AND attempt_no = 0`

	sqlTaken = `
SELECT count(*), min(CASE WHEN kind = 'call' THEN name END), min(CASE WHEN undo = 1 THEN name END) FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND ` + takenOver
	sqlTakeSteps = `
INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, error_json,
  wake_at, started_at, completed_at, awaits, redact)
SELECT namespace, ?4, name, attempt_no, try, 0, by_try, step_index, kind, state, value, error_json, wake_at, started_at, completed_at, awaits, redact
FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND ` + takenOver
	sqlRerunOf = `UPDATE weaver_tasks SET rerun_of = ?3, step_count = ?4, plain = 0 WHERE namespace = ?1 AND task_id = ?2`
)

// rerun stores a new task that repeats another task. Crash after the commit: the same command
// finds the new task by its ID.
func (o *operation) rerun(cmd store.RerunTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	t := o.tx
	if again, err := o.moves.taskRow(&cmd.New.ID); err != nil || again != nil {
		if again != nil {
			got.State, got.ID = again.contribution.State, again.id
		}
		return err
	}
	old, err := retainedTaskColumns.One(t.stmt(sqlRetainedTask).Text(1, t.ns).ID(2, &row.id))
	if err != nil {
		return err
	}
	if got.Err = rules.CheckValues(&task.Task{ID: row.id, State: old.of.State, ValuesDropped: old.dropped, Forgotten: old.forgot}); got.Err != nil {
		return nil
	}
	st := t.stmt(sqlNeedsOthers).Text(1, t.ns).ID(2, &row.id)
	needs := st.One()
	if err := st.Done(); err != nil {
		return err
	}
	st = t.stmt(sqlTaken).Text(1, t.ns).ID(2, &row.id).Int(3, int64(cmd.StepsBelow))
	call, open, steps := "", "", 0
	if st.One() {
		steps, call, open = int(st.ColInt(0)), st.ColText(1), st.ColText(2)
	}
	if err := st.Done(); err != nil {
		return err
	}
	if got.Err = rules.CheckRerun(row.id, row.contribution.State, needs, call, open, steps); got.Err != nil {
		return nil
	}
	ran, err := t.cleanedUp(&row.id)
	if err != nil {
		return err
	}
	if steps == 0 {
		ran = nil // no step that it undid is taken over
	}
	if !cmd.KeepSteps {
		if got.Err = rules.CheckRerunCleanedUp(row.id, row.contribution.State, ran); got.Err != nil {
			return nil
		}
	}
	if got.Err, err = t.usable(rules.TaskBlobs([]task.New{cmd.New})); err != nil || got.Err != nil {
		return err
	}
	stored, err := t.enqueue(&store.Submission{Tasks: []task.New{cmd.New}}, task.ID{})
	if err != nil {
		return err
	}
	got.ID, got.Existing = stored[0].ID, stored[0].Disposition == store.DispositionExisting
	if !got.Existing {
		if err := o.link(row, &cmd, ran); err != nil {
			return err
		}
	}
	after, err := o.moves.taskRow(&got.ID)
	if after != nil {
		got.State = after.contribution.State
	}
	return err
}

// link records the task that the new task repeats, and copies that task's steps. ran is a
// cleanup that may have undone them.
func (o *operation) link(row *taskRow, cmd *store.RerunTask, ran *rules.CleanedUp) error {
	t, a := o.tx, cmd.Audit
	a.Reason = rules.RerunReason(cmd.New.ID, rules.KeepNote(row.id, ran, a.Reason))
	if err := o.note(a, "rerun", row.id.String()); err != nil {
		return err
	}
	taken := 0
	if cmd.StepsBelow > 0 {
		var err error
		if taken, err = t.stmt(sqlTakeSteps).Text(1, t.ns).ID(2, &row.id).Int(3, int64(cmd.StepsBelow)).ID(4, &cmd.New.ID).Exec(); err != nil {
			return err
		}
		if err := t.referSteps(&cmd.New.ID); err != nil {
			return err
		}
		if err := t.stmt(sqlTakeRefs).Text(1, t.ns).ID(2, &row.id).Int(3, int64(cmd.StepsBelow)).ID(4, &cmd.New.ID).Run(); err != nil {
			return err
		}
	}
	t.moved += taken
	return t.stmt(sqlRerunOf).Text(1, t.ns).ID(2, &cmd.New.ID).ID(3, &row.id).Int(4, int64(taken)).Run()
}
