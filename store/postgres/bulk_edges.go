package postgres

import (
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/task"
)

// Statements over arrays for the effects of a batch. A subquery of its own finds each row by its
// key: without statistics the planner prefers a scan of the whole namespace to a few lookups. A
// statement before the update locks the rows that are updated by their ctid, so that no other
// transaction moves them.
const (
	sqlOpenEdgesAll = `
SELECT u.need, e.task_id, e.kind, e.step, e.awaited
FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bytea[])) WITH ORDINALITY AS u(need, after, at), LATERAL (
  SELECT task_id, kind, step, awaited FROM weaver_task_dependencies
  WHERE namespace = ?1 AND depends_on_task_id = u.need AND task_id > u.after AND done = 0 OFFSET 0) e
ORDER BY u.at, e.task_id LIMIT CAST(?4 AS bigint)`

	sqlPinEdges = `
SELECT 1 FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bytea[])) AS u(id, need), LATERAL (
  SELECT 1 FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = u.id AND depends_on_task_id = u.need LIMIT 1 FOR UPDATE) e`

	sqlMarkEdgesAll = `
UPDATE weaver_task_dependencies e SET done = 1, ended_state = u.state, ended_kind = u.ended_kind, ended_code = u.code, ended_message = u.message
FROM (
  SELECT p.place, u.* FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bytea[]), CAST(?4 AS text[]), CAST(?5 AS text[]), CAST(?6 AS text[]), CAST(?7 AS text[]))
    AS u(id, need, state, ended_kind, code, message), LATERAL (
    SELECT ctid AS place FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = u.id AND depends_on_task_id = u.need LIMIT 1) p) u
WHERE e.ctid = u.place`

	sqlMakeReadyAll = `
UPDATE weaver_tasks t SET state = u.becomes, waiting_reason = u.waits, join_kind = NULL, updated_at = ?5
FROM (
  SELECT p.place, u.* FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS text[]), CAST(?4 AS text[])) AS u(id, becomes, waits), LATERAL (
    SELECT ctid AS place FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1) p) u
WHERE t.ctid = u.place`
)

var sqlLowerNeedsAll = `
UPDATE weaver_tasks t SET
  remaining_deps = remaining_deps - u.of_all - CASE WHEN open_if_failed IS NULL THEN 0 WHEN u.wrong = 1 THEN open_if_failed ELSE u.failed END,
  open_if_failed = CASE WHEN u.wrong = 1 THEN NULL ELSE open_if_failed - u.failed END
FROM (
  SELECT p.place, u.* FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bigint[]), CAST(?5 AS bigint[])) AS u(id, of_all, failed, wrong), LATERAL (
    SELECT ctid AS place FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1) p) u
WHERE t.ctid = u.place AND ` + sqlstore.WaitsForTasks + `
RETURNING ` + sqlstore.DependentColumns.List()

// OpenEdges implements sqlstore.BulkOps.
func (d database) OpenEdges(t *sqlstore.Tx, ended []propagate.Ended, n int) *sqlstmt.Stmt {
	st, arrays := d.c.StmtArrays(sqlOpenEdgesAll)
	if arrays == nil {
		return st
	}
	needs, after := arrays.Array(2), arrays.Array(3)
	for i := range ended {
		needs.Bytes(ended[i].ID[:])
		after.Bytes(ended[i].After[:])
	}
	return st.Text(1, t.Namespace()).Int(4, int64(n))
}

// MarkEdges implements sqlstore.BulkOps.
func (d database) MarkEdges(t *sqlstore.Tx, edges []sqlstore.MarkedEdge) error {
	pin, pinned := d.c.StmtArrays(sqlPinEdges)
	if pinned != nil {
		of, needs := pinned.Array(2), pinned.Array(3)
		for i := range edges {
			of.Bytes(edges[i].Dependent[:])
			needs.Bytes(edges[i].Need[:])
		}
	}
	if err := pin.Text(1, t.Namespace()).Run(); err != nil {
		return err
	}
	st, arrays := d.c.StmtArrays(sqlMarkEdgesAll)
	if arrays == nil {
		return st.Run()
	}
	ids, needs, states := arrays.Array(2), arrays.Array(3), arrays.Array(4)
	kinds, codes, messages := arrays.Array(5), arrays.Array(6), arrays.Array(7)
	for i := range edges {
		e, kept := &edges[i], edges[i].Kept
		ids.Bytes(e.Dependent[:])
		needs.Bytes(e.Need[:])
		sqlstmt.PutText(states, string(e.State))
		if kept == nil {
			kept = &task.Error{}
		}
		sqlstmt.PutText(kinds, string(kept.Kind))
		sqlstmt.PutText(codes, string(kept.Code))
		sqlstmt.PutText(messages, string(kept.Message))
	}
	return st.Text(1, t.Namespace()).Run()
}

// LowerNeeds implements sqlstore.BulkOps.
func (d database) LowerNeeds(t *sqlstore.Tx, marked []propagate.Marked) *sqlstmt.Stmt {
	pinned := make([]task.ID, len(marked))
	for i := range marked {
		pinned[i] = marked[i].ID
	}
	if err := d.c.StmtIDs(sqlLockTasks, 2, pinned).Text(1, t.Namespace()).Run(); err != nil {
		return sqlstmt.Failed(err)
	}
	st, arrays := d.c.StmtArrays(sqlLowerNeedsAll)
	if arrays == nil {
		return st
	}
	ids, all, failed, wrong := arrays.Array(2), arrays.Array(3), arrays.Array(4), arrays.Array(5)
	for i := range marked {
		m := &marked[i]
		ids.Bytes(m.ID[:])
		all.Int(int64(m.All))
		failed.Int(int64(m.IfFailed))
		sqlstmt.PutBool(wrong, m.Wrong)
	}
	return st.Text(1, t.Namespace())
}

// MakeReady implements sqlstore.BulkOps. The transaction has already written the task rows.
func (d database) MakeReady(t *sqlstore.Tx, tasks []propagate.Ready) error {
	st, arrays := d.c.StmtArrays(sqlMakeReadyAll)
	if arrays == nil {
		return st.Run()
	}
	ids, states, reasons := arrays.Array(2), arrays.Array(3), arrays.Array(4)
	for i := range tasks {
		ids.Bytes(tasks[i].ID[:])
		states.Text(string(tasks[i].State))
		sqlstmt.PutText(reasons, string(tasks[i].Waiting))
	}
	return st.Text(1, t.Namespace()).Int(5, t.Now().UnixMicro()).Run()
}
