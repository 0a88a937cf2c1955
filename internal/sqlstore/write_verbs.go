package sqlstore

import (
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
)

// The columns of a task's row that operators' verbs write, for the statements over one task
// and over arrays: see endSet.

var (
	// endedSet lists the columns that an end without an attempt writes.
	endedSet = []assignment{
		{column: "state", to: "{new_state}"},
		{column: "waiting_reason", to: "NULL"},
		{column: "last_error_kind", to: "{new_error_kind}"},
		{column: "last_error_json", to: "{new_error}"},
		{column: "updated_at", to: "{now}"},
		{column: "finished_at", to: "{now}"},
	}

	// cancelledSet lists the columns that a cancel writes in addition to the task's end, or
	// the begin of its undo.
	cancelledSet = []assignment{
		{column: "cancel_kind", to: "{new_cancel_kind}"},
		{column: "cancel_by", to: "{new_by}"},
		{column: "cancel_reason", to: "{new_reason}"},
		{column: "cancel_requested", when: "{undoes}", to: "1"},
	}

	// revivedSet lists the columns that a retry writes.
	revivedSet = []assignment{
		{column: "state", to: "{new_state}"},
		{column: "waiting_reason", to: "{new_waiting}"},
		{column: "ready_at", to: "NULL"},
		{column: "finished_at", to: "NULL"},
		{column: "updated_at", to: "{now}"},
		{column: "attempt_count", to: "0"},
		{column: "crash_count", to: "0"},
		{column: "quarantine_losses", to: "0"},
		{column: "internal_count", to: "0"},
		{column: "repair_count", to: "0"},
		{column: "idle_attempts", to: "0"},
		{column: "lease_epoch", to: "lease_epoch + 1"},
		{column: "last_error_kind", to: "NULL"},
		{column: "last_error_json", to: "NULL"},
		{column: "cancel_requested", to: "0"},
		{column: "cancel_kind", to: "NULL"},
		{column: "cancel_by", to: "NULL"},
		{column: "cancel_reason", to: "NULL"},
		{column: "undo", to: "NULL"},
		{column: "deadline_at", to: "{new_deadline}"},
		{column: "remaining_deps", to: "{new_needs}"},
		{column: "open_if_failed", to: "{new_if_failed}"},
		{column: "join_kind", to: "{new_join}"},
	}

	// unblockedSet lists the columns that an unblock writes.
	unblockedSet = []assignment{
		{column: "state", to: "'ready'"},
		{column: "waiting_reason", to: "NULL"},
		{column: "updated_at", to: "{now}"},
		{column: "attempt_count", to: "{new_attempts}"},
		{column: "repair_count", to: "{new_repairs}"},
		{column: "idle_attempts", to: "0"},
		{column: "has_payloads", when: "{answered}", to: "1"},
	}
)

var (
	sqlEnd = `
UPDATE weaver_tasks SET ` + set(endedSet, map[string]string{"new_state": "?3", "new_error_kind": "?4", "new_error": "?5", "now": "?6"}, nil) + `
WHERE namespace = ?1 AND task_id = ?2`

	sqlCancelledBy = `
UPDATE weaver_tasks SET ` + set(cancelledSet, map[string]string{
		"new_by": "?3", "new_reason": "?4", "new_cancel_kind": "?5", "undoes": "state = 'pending'",
	}, nil) + `
WHERE namespace = ?1 AND task_id = ?2`

	sqlRevive = `
UPDATE weaver_tasks SET ` + set(revivedSet, map[string]string{
		"new_state": "?3", "new_waiting": "?4", "now": "?5", "new_needs": "?6", "new_deadline": "?7", "new_if_failed": "?8", "new_join": "?9",
	}, nil) + `
WHERE namespace = ?1 AND task_id = ?2`

	sqlUnblock = `
UPDATE weaver_tasks SET ` + set(unblockedSet, map[string]string{"now": "?3", "answered": "?4", "new_attempts": "?5", "new_repairs": "?6"}, nil) + `
WHERE namespace = ?1 AND task_id = ?2`

	sqlAudit = `
INSERT INTO weaver_audit (namespace, audit_id, at, ` + NoteFields.Names() + `)
SELECT ?1, coalesce((SELECT audit_id FROM weaver_audit WHERE namespace = ?1 ORDER BY audit_id DESC LIMIT 1), 0) + 1, ?2, ` + NoteFields.Params(3)
)

// The columns of BulkVerbs: values of the sets above, and the IDs of the tasks.
var (
	CancelledFields = sqlstmt.Fields[CancelledTask]{
		{Name: "id", Type: "bytea", Put: func(c *CancelledTask, s sqlstmt.Sink) { s.Blob(c.ID[:]) }},
		{Name: "new_error_kind", Type: "text", Put: func(c *CancelledTask, s sqlstmt.Sink) { sqlstmt.PutText(s, string(rules.KindOf(c.Failure))) }},
		{Name: "new_error", Type: "text", Put: func(c *CancelledTask, s sqlstmt.Sink) { sqlstmt.PutJSON(s, c.Failure) }},
		{Name: "new_by", Type: "text", Put: func(c *CancelledTask, s sqlstmt.Sink) { sqlstmt.PutText(s, c.By) }},
		{Name: "new_reason", Type: "text", Put: func(c *CancelledTask, s sqlstmt.Sink) { sqlstmt.PutText(s, c.Reason) }},
	}
	RevivedFields = sqlstmt.Fields[RevivedTask]{
		{Name: "id", Type: "bytea", Put: func(r *RevivedTask, s sqlstmt.Sink) { s.Blob(r.ID[:]) }},
		{Name: "new_deadline", Type: "bigint", Put: func(r *RevivedTask, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.Deadline) }},
	}
	UnblockedFields = sqlstmt.Fields[UnblockedTask]{
		{Name: "id", Type: "bytea", Put: func(u *UnblockedTask, s sqlstmt.Sink) { s.Blob(u.ID[:]) }},
		{Name: "new_attempts", Type: "bigint", Put: func(u *UnblockedTask, s sqlstmt.Sink) { s.Int(int64(u.Attempts)) }},
		{Name: "new_repairs", Type: "bigint", Put: func(u *UnblockedTask, s sqlstmt.Sink) { s.Int(int64(u.Repairs)) }},
	}
)

// NoteFields are the columns of an audit entry, without its namespace, number and time.
var NoteFields = sqlstmt.Fields[AuditNote]{
	{Name: "actor", Type: "text", Put: func(n *AuditNote, s sqlstmt.Sink) { s.Text(n.By) }},
	{Name: "verb", Type: "text", Put: func(n *AuditNote, s sqlstmt.Sink) { s.Text(n.Verb) }},
	{Name: "target", Type: "text", Put: func(n *AuditNote, s sqlstmt.Sink) { s.Text(n.Target) }},
	{Name: "reason", Type: "text", Put: func(n *AuditNote, s sqlstmt.Sink) { s.Text(n.Reason) }},
}

// SetCancelled lists the columns that CancelEach writes, with the values of CancelledFields in
// the columns of a table alias. now is the parameter of the time.
func SetCancelled(alias, now string) string {
	known := map[string]string{"now": now, "new_state": "'cancelled'", "new_cancel_kind": "'cancelled'", "undoes": "0"}
	return set(slices.Concat(endedSet, cancelledSet), columnsOf(CancelledFields, alias, known), nil)
}

// SetRevived is SetCancelled for ReviveEach: the tasks have no needs and no children.
func SetRevived(alias, now string) string {
	known := map[string]string{"now": now, "new_state": "'ready'", "new_waiting": "NULL", "new_needs": "0", "new_if_failed": "NULL", "new_join": "NULL"}
	return set(revivedSet, columnsOf(RevivedFields, alias, known), nil)
}

// SetUnblocked is SetCancelled for UnblockEach, without an answer.
func SetUnblocked(alias, now string) string {
	return set(unblockedSet, columnsOf(UnblockedFields, alias, map[string]string{"now": now, "answered": "0"}), nil)
}

// columnsOf adds the columns of a table alias to values.
func columnsOf[T any](fields sqlstmt.Fields[T], alias string, values map[string]string) map[string]string {
	all := maps.Clone(values)
	for i := range fields {
		all[fields[i].Name] = alias + "." + fields[i].Name
	}
	return all
}
