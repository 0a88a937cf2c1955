package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
)

// AlikeFields are the shared columns of new tasks, without their namespace and the time.
var AlikeFields = sqlstmt.Fields[Alike]{
	{Name: "task_type", Type: "text", Put: func(a *Alike, s sqlstmt.Sink) { s.Text(a.Type) }},
	{Name: "queue", Type: "text", Put: func(a *Alike, s sqlstmt.Sink) { s.Text(a.Queue) }},
	{Name: "priority", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { s.Int(a.Priority) }},
	{Name: "concurrency_key", Type: "text", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutText(s, a.Key) }},
	{Name: "state", Type: "text", Put: func(a *Alike, s sqlstmt.Sink) { s.Text(a.State) }},
	{Name: "waiting_reason", Type: "text", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutText(s, a.Waiting) }},
	{Name: "ready_at", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { putNot0(s, a.ReadyAt) }},
	{Name: "deadline_at", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { putNot0(s, a.Deadline) }},
	{Name: "plain", Type: "smallint", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutBool(s, a.Plain) }},
	{Name: "needed", Type: "smallint", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutBool(s, a.Needed) }},
	{Name: "has_payloads", Type: "smallint", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutBool(s, a.Long) }},
	{Name: "allow_failure", Type: "smallint", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutBool(s, a.AllowFailure) }},
	{Name: "schema_version", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { s.Int(a.SchemaVersion) }},
	{Name: "max_attempts", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { s.Int(a.MaxAttempts) }},
	{Name: "max_repairs", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { s.Int(a.MaxRepairs) }},
	{Name: "job_id", Type: "bytea", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutID(s, &a.Job) }},
	{Name: "parent_task_id", Type: "bytea", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutID(s, &a.Parent) }},
	{Name: "depth", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { s.Int(a.Depth) }},
	{Name: "job_limits", Type: "bigint", Put: func(a *Alike, s sqlstmt.Sink) { s.Int(a.Limits) }},
}

// AlikeOptions is a column that most tasks share. Varied tasks have it in VariedFields.
var AlikeOptions = sqlstmt.Fields[Alike]{
	{Name: "options_json", Type: "text", Put: func(a *Alike, s sqlstmt.Sink) { sqlstmt.PutText(s, a.Options) }},
}

// OwnFields are the columns that differ between new tasks.
var OwnFields = sqlstmt.Fields[AlikeTask]{
	{Name: "task_id", Type: "bytea", Put: func(r *AlikeTask, s sqlstmt.Sink) { s.Blob(r.ID[:]) }},
	{Name: "input", Type: "text", Put: func(r *AlikeTask, s sqlstmt.Sink) { sqlstmt.PutRaw(s, r.Input) }},
	{Name: "created_at", Type: "bigint", Put: func(r *AlikeTask, s sqlstmt.Sink) { s.Int(r.ID.Time().UnixMicro()) }},
}

// VariedFields are the further columns that differ between varied tasks.
var VariedFields = sqlstmt.Fields[AlikeTask]{
	{Name: "options_json", Type: "text", Put: func(r *AlikeTask, s sqlstmt.Sink) { sqlstmt.PutText(s, r.Options) }},
	{Name: "idempotency_key", Type: "text", Put: func(r *AlikeTask, s sqlstmt.Sink) { sqlstmt.PutText(s, r.Key) }},
	{Name: "lane_group", Type: "text", Put: func(r *AlikeTask, s sqlstmt.Sink) { sqlstmt.PutText(s, r.Group) }},
	{Name: "remaining_deps", Type: "bigint", Put: func(r *AlikeTask, s sqlstmt.Sink) { s.Int(int64(len(r.Needs))) }},
	{Name: "open_if_failed", Type: "bigint", Put: func(r *AlikeTask, s sqlstmt.Sink) { putIfFailed(s, r.IfFailed) }},
}

func putIfFailed(s sqlstmt.Sink, n int) {
	if n == rules.NoIfFailed {
		s.Null()
	} else {
		s.Int(int64(n))
	}
}

func putNot0(s sqlstmt.Sink, v int64) {
	if v == 0 {
		s.Null()
	} else {
		s.Int(v)
	}
}

// The parameters of sqlInsertTask after the namespace and the time.
var (
	ownAt    = 3
	variedAt = ownAt + len(OwnFields)
	alikeAt  = variedAt + len(VariedFields)
)

var sqlInsertTask = `
INSERT INTO weaver_tasks (namespace, updated_at, ` + OwnFields.Names() + `, ` + VariedFields.Names() + `, ` + AlikeFields.Names() + `)
VALUES (?1, ?2, ` + OwnFields.Params(ownAt) + `, ` + VariedFields.Params(variedAt) + `, ` + AlikeFields.Params(alikeAt) + `)
ON CONFLICT DO NOTHING`

// insertTask stores one new task, unless its ID or its key exists.
func (t *Tx) insertTask(a *Alike, row *AlikeTask) (stored bool, err error) {
	st := t.stmt(sqlInsertTask).Text(1, t.ns).Int(2, t.mic)
	OwnFields.Bind(st, ownAt, row)
	VariedFields.Bind(st, variedAt, row)
	n, err := AlikeFields.Bind(st, alikeAt, a).Exec()
	return n > 0, err
}
