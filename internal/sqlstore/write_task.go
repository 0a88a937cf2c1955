package sqlstore

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The columns of a task's row that a claim and the end of an attempt write. The statements for
// one task, for a chunk, and over arrays are generated from them.

// assignment is an assignment of an UPDATE of weaver_tasks. In its texts {name} is a value: a
// column of EndFields, or {now}.
type assignment struct {
	column string
	when   string // the condition, a value; "": always
	to     string
	orElse string // "": the column stays unchanged
}

// endSet lists the columns that the end of an attempt writes.
var endSet = []assignment{
	{column: "state", to: "{new_state}"},
	{column: "waiting_reason", to: "{new_waiting}"},
	{column: "ready_at", when: "{sets_ready}", to: "{new_ready}"},
	{column: "output", to: "{new_output}"},
	{column: "has_payloads", when: "{long_output}", to: "1"},
	{column: "last_error_kind", when: "{sets_error}", to: "{new_error_kind}"},
	{column: "last_error_json", when: "{sets_error}", to: "{new_error}"},
	{column: "attempt_count", when: "{counts}", to: "attempt_count + 1"},
	{column: "crash_count", when: "{resets}", to: "0"},
	{column: "quarantine_losses", when: "{resets}", to: "0"},
	{column: "internal_count", when: "{counts_internal}", to: "internal_count + 1", orElse: "0"},
	{column: "idle_attempts", to: "{new_idle}"},
	{column: "repair_count", when: "{counts_repair}", to: "repair_count + 1"},
	{column: "lease_epoch", when: "{raises_epoch}", to: "lease_epoch + 1"},
	{column: "lease_id", to: "NULL"},
	{column: "lease_expires_at", to: "NULL"},
	{column: "updated_at", to: "{now}"},
	{column: "finished_at", when: "{ends}", to: "CAST({now} AS bigint)", orElse: "NULL"},
}

// EndFields are the values of endSet, after the ID of the task.
var EndFields = sqlstmt.Fields[End]{
	{Name: "id", Type: "bytea", Put: func(e *End, s sqlstmt.Sink) { s.Blob(e.Task[:]) }},
	{Name: "new_state", Type: "text", Put: func(e *End, s sqlstmt.Sink) { s.Text(string(e.To.State)) }},
	{Name: "new_waiting", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutText(s, string(e.To.Waiting)) }},
	{Name: "sets_ready", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { _, set := e.To.NotBefore(); sqlstmt.PutBool(s, set) }},
	{Name: "new_ready", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { at, _ := e.To.NotBefore(); sqlstmt.PutTime(s, at) }},
	{Name: "new_output", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutRaw(s, e.Output) }},
	{Name: "long_output", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.Long) }},
	{Name: "sets_error", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, !e.To.KeepError) }},
	{Name: "new_error_kind", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutText(s, string(rules.KindOf(e.To.TaskError()))) }},
	{Name: "new_error", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutJSON(s, e.To.TaskError()) }},
	{Name: "counts", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.To.CountsAttempt()) }},
	{Name: "resets", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.To.ResetCrashes) }},
	{Name: "counts_internal", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.To.CountsInternal) }},
	{Name: "new_idle", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { s.Int(int64(e.To.Idle)) }},
	{Name: "counts_repair", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.To.CountsRepair) }},
	{Name: "raises_epoch", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.To.RaiseEpoch) }},
	{Name: "ends", Type: "boolean", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.To.State.Terminal()) }},
}

// AttemptFields are the columns of an ended attempt, without its namespace and the time.
var AttemptFields = sqlstmt.Fields[End]{
	{Name: "task_id", Type: "bytea", Put: func(e *End, s sqlstmt.Sink) { s.Blob(e.Task[:]) }},
	{Name: "attempt_no", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { s.Int(int64(e.AttemptNo)) }},
	{Name: "lease_epoch", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { s.Int(e.Epoch) }},
	{Name: "lease_id", Type: "bytea", Put: func(e *End, s sqlstmt.Sink) { s.Blob(e.Lease[:]) }},
	{Name: "worker", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutText(s, e.Worker) }},
	{Name: "code_version", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { s.Int(int64(e.Version)) }},
	{Name: "started_at", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { s.Int(e.StartedAt) }},
	{Name: "outcome_kind", Type: "text", Put: func(e *End, s sqlstmt.Sink) { s.Text(string(e.To.Outcome)) }},
	{Name: "error_kind", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutText(s, string(rules.KindOf(e.Failure))) }},
	{Name: "error_json", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutJSON(s, e.Failure) }},
	{Name: "outcome_json", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutRaw(s, e.Steps) }},
	{Name: "outcome_hash", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutText(s, e.Hash) }},
	{Name: "handler", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutText(s, e.Handler) }},
}

// DecisionFields are the columns of an attempt's decision, without its namespace and the time.
var DecisionFields = sqlstmt.Fields[End]{
	{Name: "task_id", Type: "bytea", Put: func(e *End, s sqlstmt.Sink) { s.Blob(e.Task[:]) }},
	{Name: "attempt_no", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { s.Int(int64(e.AttemptNo)) }},
	{Name: "decision_kind", Type: "text", Put: func(e *End, s sqlstmt.Sink) { s.Text(string(e.To.Decision.Kind)) }},
	{Name: "next_ready_at", Type: "bigint", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutTime(s, e.To.Decision.NextReadyAt) }},
	{Name: "child_task_ids", Type: "text", Put: func(e *End, s sqlstmt.Sink) {
		if ids := &e.To.Decision.ChildIDs; len(*ids) > 0 {
			sqlstmt.PutJSON(s, ids)
		} else {
			s.Null()
		}
	}},
	{Name: "reason_json", Type: "text", Put: func(e *End, s sqlstmt.Sink) { sqlstmt.PutJSON(s, &e.To.Decision.Reason) }},
}

// DispatchFields are the columns of a dispatch row, without its namespace.
var DispatchFields = sqlstmt.Fields[store.DispatchRow]{
	{Name: "task_id", Type: "bytea", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { s.Blob(d.Task[:]) }},
	{Name: "queue", Type: "text", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { s.Text(d.Queue) }},
	{Name: "task_type", Type: "text", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { s.Text(d.Type) }},
	{Name: "priority", Type: "bigint", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { s.Int(int64(d.Priority)) }},
	{Name: "available_at", Type: "bigint", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { s.Int(d.AvailableAt.UnixMicro()) }},
	{Name: "concurrency_key", Type: "text", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { sqlstmt.PutText(s, d.ConcurrencyKey) }},
	{Name: "lane_group", Type: "text", Put: func(d *store.DispatchRow, s sqlstmt.Sink) { s.Text(d.Group) }},
}

// SetEnd is endSet for values in the columns of a table alias. now is the parameter of the
// time.
func SetEnd(alias, now string) string {
	values := map[string]string{"now": now}
	for i := range EndFields {
		values[EndFields[i].Name] = alias + "." + EndFields[i].Name
	}
	return set(endSet, values, nil)
}

// setEnd is endSet for parameters: the parameters of EndFields from ?2 on.
func setEnd(now string) string {
	values := map[string]string{"now": now}
	for i, p := range strings.Split(EndFields.Params(2), ", ") {
		values[EndFields[i].Name] = p
	}
	return set(endSet, values, nil)
}

// SetGoodEnd is endSet for a success with a short output, as rules.ResolveFinish decides it.
// Only its output and the time vary.
func SetGoodEnd(output, now string) string { return set(endSet, goodEnd(output, now), nil) }

// SetPlainGoodEnd is SetGoodEnd for the first attempt of a plain task, whose row has most of
// these values already.
func SetPlainGoodEnd(output, now string) string {
	return set(endSet, goodEnd(output, now), plainRunning)
}

// plainRunning lists the values of a plain task's row in its first attempt, for columns of
// endSet.
var plainRunning = map[string]string{
	"waiting_reason": "NULL", "has_payloads": "0", "last_error_kind": "NULL", "last_error_json": "NULL",
	"crash_count": "0", "quarantine_losses": "0", "internal_count": "0", "idle_attempts": "0", "repair_count": "0",
}

// goodEnd returns the values of endSet for a success.
func goodEnd(output, now string) map[string]string {
	values := literals(EndFields, &End{To: goodTransition()})
	values["new_output"], values["now"] = output, now
	return values
}

// goodTransition returns the transition of every success.
func goodTransition() *rules.Transition {
	to := rules.ResolveFinish(&store.Finish{Outcome: task.OutcomeSuccess}, rules.CancelRequest{}, time.Time{}, time.Time{})
	return &to
}

// literals returns the values of a constant end.
func literals(fields sqlstmt.Fields[End], e *End) map[string]string {
	values, err := fields.Literals(e)
	if err != nil {
		panic(err) // it has only values that can be encoded
	}
	return values
}

// The row of the first attempt of a plain task that succeeded: the columns from its claim, its
// own columns, and the constant rest.
var (
	ClaimedAttempt = AttemptFields.Of("lease_id", "worker", "started_at")
	PlainAttempt   = AttemptFields.Of("task_id", "code_version", "outcome_json", "outcome_hash")

	knownAttempt = func() map[string]string {
		known := literals(AttemptFields, &End{AttemptNo: 1, Epoch: 1, To: goodTransition()})
		for _, f := range append(slices.Clone(ClaimedAttempt), PlainAttempt...) {
			delete(known, f.Name)
		}
		maps.DeleteFunc(known, func(_, v string) bool { return v == "NULL" })
		return known
	}()
)

// KnownAttempt returns, as SQL lists, the columns that are equal for the first attempts of all plain
// tasks that succeeded, and their values.
func KnownAttempt() (columns, values string) {
	names := slices.Sorted(maps.Keys(knownAttempt))
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = knownAttempt[n]
	}
	return strings.Join(names, ", "), strings.Join(texts, ", ")
}

// SetLease returns the assignments of a claim to the row of a task.
func SetLease(lease, worker, expires, now, version string) string {
	return set([]assignment{
		{column: "state", to: "'running'"},
		{column: "waiting_reason", to: "NULL"},
		{column: "attempt_no", to: "attempt_no + 1"},
		{column: "lease_epoch", to: "lease_epoch + 1"},
		{column: "lease_id", to: lease},
		{column: "leased_by", to: worker},
		{column: "lease_expires_at", to: expires},
		{column: "started_at", to: now},
		{column: "updated_at", to: now},
		{column: "started_version", to: version},
	}, nil, nil)
}

// set renders assignments with the values of a statement: parameters, columns or literals. It
// leaves out conditions that a literal decides, and assignments of values that the row has
// already.
func set(assignments []assignment, values, has map[string]string) string {
	parts := make([]string, 0, len(assignments))
	for _, a := range assignments {
		text := a.to
		switch condition := fill(a.when, values); {
		case condition == "" || condition == "1":
		case condition == "0" && a.orElse == "":
			continue
		case condition == "0":
			text = a.orElse
		default:
			text = "CASE WHEN " + condition + " THEN " + a.to + " ELSE " + cmp.Or(a.orElse, a.column) + " END"
		}
		text = fill(text, values)
		if was, ok := has[a.column]; ok && text == was {
			continue
		}
		parts = append(parts, a.column+" = "+text)
	}
	return strings.Join(parts, ", ")
}

// fill replaces each {name} of a text.
func fill(text string, values map[string]string) string {
	for {
		before, rest, ok := strings.Cut(text, "{")
		if !ok {
			return text
		}
		name, after, _ := strings.Cut(rest, "}")
		v, ok := values[name]
		if !ok {
			panic("sqlstore: unknown value " + name)
		}
		text = before + v + after
	}
}
