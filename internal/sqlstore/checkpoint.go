package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var checkpointColumns = sqlstmt.Columns[task.Checkpoint]{
	sqlstmt.Col("task_id", func(c *task.Checkpoint, r *sqlstmt.Row, i int) { c.TaskID = r.ID(i) }),
	sqlstmt.Col("name", func(c *task.Checkpoint, r *sqlstmt.Row, i int) { c.Name = r.Text(i) }),
	sqlstmt.Col("value", func(c *task.Checkpoint, r *sqlstmt.Row, i int) { c.Value = r.Bytes(i) }),
	sqlstmt.Col("attempt_no", func(c *task.Checkpoint, r *sqlstmt.Row, i int) { c.AttemptNo = int(r.Int(i)) }),
	sqlstmt.Col("saved_at", func(c *task.Checkpoint, r *sqlstmt.Row, i int) { c.SavedAt = r.Time(i) }),
}

var (
	sqlCheckpoints = `SELECT ` + checkpointColumns.List() + ` FROM weaver_checkpoints WHERE namespace = ?1 AND task_id = ?2 ORDER BY name`
	sqlCheckpoint  = `SELECT ` + checkpointColumns.List() + ` FROM weaver_checkpoints WHERE namespace = ?1 AND task_id = ?2 AND name = ?3`
)

const sqlSaveCheckpoint = `
INSERT INTO weaver_checkpoints (namespace, task_id, name, value, attempt_no, saved_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (namespace, task_id, name) DO UPDATE SET value = excluded.value, attempt_no = excluded.attempt_no, saved_at = excluded.saved_at`

// recordCheckpoint replaces the task's checkpoint of a name, after the guard. Crash after the
// commit: the same record finds its value stored.
func (t *Tx) recordCheckpoint(rec *store.Record, got *store.RecordResult) error {
	l := &rec.Lease
	attempt, _, err := t.accept(sqlRecordGuard, rec)
	if err != nil {
		return err
	}
	if attempt == 0 {
		got.Err = rules.LeaseLost(l, rules.LostToAnother)
		return nil
	}
	stood, err := checkpointColumns.One(t.stmt(sqlCheckpoint).Text(1, t.ns).ID(2, &l.Task).Text(3, rec.Checkpoint.Name))
	if err != nil {
		return err
	}
	cp, same := rules.AcceptCheckpoint(stood, rec, attempt, t.at)
	if got.Same = same; same {
		return nil
	}
	if err := t.stmt(sqlWaitRecorded).Text(1, t.ns).ID(2, &l.Task).Int(3, 0).Run(); err != nil {
		return err
	}
	return t.stmt(sqlSaveCheckpoint).Text(1, t.ns).ID(2, &l.Task).Text(3, cp.Name).Bytes(4, cp.Value).Int(5, int64(cp.AttemptNo)).Time(6, cp.SavedAt).Run()
}
