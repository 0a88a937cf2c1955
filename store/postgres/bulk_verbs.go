package postgres

import (
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/task"
)

// Statements of operators' verbs over sets of tasks, which sqlTargets locks. They find each row by
// its key, for the reason given at the statements over edges.

var sqlTargets = `
SELECT ` + sqlstore.TargetSelect + ` FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT * FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1 FOR UPDATE) t`

const (
	// sqlBesideAny matches the tasks that a set verb leaves to the single-task verb.
	sqlBesideAny = `
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = u.id LIMIT 1) x
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_task_dependencies WHERE namespace = ?1 AND depends_on_task_id = u.id LIMIT 1) x
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1) x`

	// A retry also leaves out tasks whose cleanups must run again.
	sqlBesideRetry = sqlBesideAny + `
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT 1 FROM weaver_steps WHERE namespace = ?1 AND task_id = u.id AND kind = 'cleanup' AND state = 'completed' AND attempt_no = 0 LIMIT 1) x`

	sqlBesideDelete = sqlBesideAny + `
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_artifacts WHERE namespace = ?1 AND task_id = u.id LIMIT 1) x
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_signals WHERE namespace = ?1 AND task_id = u.id LIMIT 1) x
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (SELECT 1 FROM weaver_drafts WHERE namespace = ?1 AND task_id = u.id LIMIT 1) x
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT 1 FROM weaver_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1 OFFSET CAST(?3 AS bigint)) x
UNION ALL
SELECT u.id FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT 1 FROM weaver_logs WHERE namespace = ?1 AND task_id = u.id LIMIT 1 OFFSET CAST(?3 AS bigint)) x`

	sqlUndispatchAll = `
DELETE FROM weaver_outbox_events WHERE ctid = ANY(ARRAY(
  SELECT o.ctid FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
    SELECT ctid FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1) o))`
)

// valuesOfTasks is the set of locked rows of a table of values.
const valuesOfTasks = `, LATERAL (
    SELECT ctid AS place FROM weaver_tasks WHERE namespace = ?1 AND task_id = v.id LIMIT 1) p) u
WHERE t.ctid = u.place`

var (
	sqlCancelAll = `
UPDATE weaver_tasks t SET ` + sqlstore.SetCancelled("u", "?2") + `
FROM (
  SELECT p.place, v.* FROM unnest(` + sqlstore.CancelledFields.Arrays(3) + `) AS v(` + sqlstore.CancelledFields.Names() + `)` + valuesOfTasks

	sqlReviveAll = `
UPDATE weaver_tasks t SET ` + sqlstore.SetRevived("u", "?2") + `
FROM (
  SELECT p.place, v.* FROM unnest(` + sqlstore.RevivedFields.Arrays(3) + `) AS v(` + sqlstore.RevivedFields.Names() + `)` + valuesOfTasks

	sqlUnblockAll = `
UPDATE weaver_tasks t SET ` + sqlstore.SetUnblocked("u", "?2") + `
FROM (
  SELECT p.place, v.* FROM unnest(` + sqlstore.UnblockedFields.Arrays(3) + `) AS v(` + sqlstore.UnblockedFields.Names() + `)` + valuesOfTasks

	// sqlAuditAll is sqlAudit of sqlstore for many tasks.
	sqlAuditAll = `
INSERT INTO weaver_audit (namespace, audit_id, at, ` + sqlstore.NoteFields.Names() + `)
SELECT CAST(?1 AS text), newest.id + u.place, CAST(?2 AS bigint), ` + sqlstore.NoteFields.Names() + `
FROM (SELECT coalesce((SELECT audit_id FROM weaver_audit WHERE namespace = ?1 ORDER BY audit_id DESC LIMIT 1), 0) AS id) newest,
  unnest(` + sqlstore.NoteFields.Arrays(3) + `) WITH ORDINALITY AS u(` + sqlstore.NoteFields.Names() + `, place)`
)

// Targets implements sqlstore.BulkVerbs.
func (d database) Targets(t *sqlstore.Tx, ids []task.ID) *sqlstmt.Stmt {
	for _, id := range ids {
		d.locked[id] = true
	}
	if err := d.lock(t, ids, false); err != nil {
		return sqlstmt.Failed(err)
	}
	return d.c.StmtIDs(sqlTargets, 2, ids).Text(1, t.Namespace())
}

// Beside implements sqlstore.BulkVerbs.
func (d database) Beside(t *sqlstore.Tx, verb sqlstore.SetVerb, ids []task.ID, events int) *sqlstmt.Stmt {
	sql := sqlBesideAny
	switch verb {
	case sqlstore.SetRetry:
		sql = sqlBesideRetry
	case sqlstore.SetDelete:
		return d.c.StmtIDs(sqlBesideDelete, 2, ids).Text(1, t.Namespace()).Int(3, int64(events-1))
	}
	return d.c.StmtIDs(sql, 2, ids).Text(1, t.Namespace())
}

// Undispatch implements sqlstore.BulkVerbs.
func (d database) Undispatch(t *sqlstore.Tx, ids []task.ID) error {
	return d.c.StmtIDs(sqlUndispatchAll, 2, ids).Text(1, t.Namespace()).Run()
}

// CancelEach implements sqlstore.BulkVerbs.
func (d database) CancelEach(t *sqlstore.Tx, tasks []sqlstore.CancelledTask) error {
	return writeEach(d, t, sqlCancelAll, sqlstore.CancelledFields, tasks)
}

// ReviveEach implements sqlstore.BulkVerbs.
func (d database) ReviveEach(t *sqlstore.Tx, tasks []sqlstore.RevivedTask) error {
	return writeEach(d, t, sqlReviveAll, sqlstore.RevivedFields, tasks)
}

// UnblockEach implements sqlstore.BulkVerbs.
func (d database) UnblockEach(t *sqlstore.Tx, tasks []sqlstore.UnblockedTask) error {
	return writeEach(d, t, sqlUnblockAll, sqlstore.UnblockedFields, tasks)
}

// NoteEach implements sqlstore.BulkVerbs.
func (d database) NoteEach(t *sqlstore.Tx, notes []sqlstore.AuditNote) error {
	return writeEach(d, t, sqlAuditAll, sqlstore.NoteFields, notes)
}

// writeEach runs a statement over arrays with rows.
func writeEach[T any](d database, t *sqlstore.Tx, sql string, fields sqlstmt.Fields[T], rows []T) error {
	st, err := d.c.Statement(sql)
	if err != nil {
		return err
	}
	bindArrays(st, 3, fields, len(rows), func(i int) *T { return &rows[i] })
	b := binder{st: st}
	return b.text(1, t.Namespace()).int(2, t.Now().UnixMicro()).exec()
}
