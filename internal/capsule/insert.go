package capsule

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlCreateBlobs creates the table with the bytes of artifacts, which only a capsule has.
const sqlCreateBlobs = `CREATE TABLE weaver_capsule_blobs (blob_id BLOB PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID`

// Insert writes the content into an empty, migrated database of store/sqlite. No task in it can be claimed, reaped
// or collected: it has no dispatch rows, claims, timers and expiries. Unfinished tasks keep their state.
func Insert(ctx context.Context, tx *sql.Tx, c *Content) error {
	w := writer{ctx: ctx, tx: tx, cache: sqlstmt.NewCache(), known: make(map[task.ID]bool, len(c.Tasks)), audited: map[int64]bool{}}
	for i := range c.Tasks {
		w.known[c.Tasks[i].Task.ID] = true
	}
	for i := range c.Jobs {
		w.job(&c.Jobs[i])
	}
	for i := range c.Tasks {
		w.task(&c.Tasks[i].Task)
		w.records(&c.Tasks[i])
	}
	for i := range c.Types {
		w.typ(&c.Types[i])
	}
	w.exec(sqlCreateBlobs)
	for i := range c.Blobs {
		w.exec(`INSERT INTO weaver_capsule_blobs (blob_id, data) VALUES (?, ?)`, c.Blobs[i].ID[:], c.Blobs[i].Data)
	}
	return w.err
}

// Mark makes the database a capsule: no later write succeeds.
func Mark(ctx context.Context, tx *sql.Tx, info *Info) error {
	mark, err := json.Marshal(info)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO weaver_store_meta (namespace, key, value) VALUES ('', 'capsule', ?)`, string(mark))
	return err
}

// writer writes rows until the first error.
type writer struct {
	ctx     context.Context
	tx      *sql.Tx
	cache   *sqlstmt.Cache
	known   map[task.ID]bool // tasks of the content
	audited map[int64]bool
	err     error
}

func (w *writer) exec(query string, args ...any) {
	if w.err == nil {
		_, w.err = w.tx.ExecContext(w.ctx, query, args...)
	}
}

// column is a column with its value.
type column struct {
	name  string
	value any
}

// insert writes a row of the namespace.
func (w *writer) insert(table string, row ...column) {
	names, args := []string{"namespace"}, []any{Namespace}
	for _, c := range row {
		names, args = append(names, c.name), append(args, c.value)
	}
	w.exec(`INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) VALUES (?`+strings.Repeat(", ?", len(row))+`)`, args...)
	if w.err != nil && !strings.Contains(w.err.Error(), table) {
		w.err = fmt.Errorf("write into %s: %w", table, w.err)
	}
}

func (w *writer) task(t *task.Task) {
	options, err := w.cache.PackOptions(&task.New{
		Backoff: t.Backoff, BackoffMax: t.BackoffMax, Timeout: t.Timeout, ConcurrencyLimit: t.ConcurrencyLimit, Options: t.Options,
		MaxCost: t.MaxCost, MaxNoProgress: t.MaxNoProgress, Node: t.Node, Labels: t.Labels, Metadata: t.Metadata, Redact: t.Redact,
		Expire: t.Expire, UndoOf: t.UndoOf,
	})
	if err != nil && w.err == nil {
		w.err = err
	}
	dropped := 0
	switch {
	case t.Forgotten:
		dropped = forgotten
	case t.ValuesDropped:
		dropped = 1
	}
	answered := len(t.UnblockInput) > 0 || t.UnblockFor != ""
	w.insert("weaver_tasks",
		column{"task_id", t.ID[:]}, column{"task_type", t.Type}, column{"queue", t.Queue}, column{"priority", t.Priority},
		column{"state", string(t.State)}, column{"waiting_reason", text(string(t.Waiting))}, column{"ready_at", at(t.ReadyAt)},
		column{"remaining_deps", t.RemainingDeps}, column{"has_payloads", answered},
		column{"lease_epoch", t.Epoch}, column{"lease_id", lease(t)}, column{"leased_by", text(t.LeasedBy)}, column{"lease_expires_at", at(t.LeaseExpiresAt)},
		column{"attempt_no", t.AttemptNo}, column{"attempt_count", t.AttemptCount}, column{"step_count", t.StepCount}, column{"wake_seq", t.WakeSeq},
		column{"crash_count", t.CrashCount}, column{"quarantine_losses", t.QuarantineLosses}, column{"internal_count", t.InternalCount},
		column{"repair_count", t.RepairCount}, column{"idle_attempts", t.IdleAttempts}, column{"cost", t.Cost}, column{"started_version", t.StartedVersion},
		column{"input", raw(t.Input)}, column{"schema_version", t.SchemaVersion}, column{"values_dropped", dropped}, column{"output", raw(t.Output)},
		column{"last_error_kind", errorKind(t.Error)}, column{"last_error_json", w.json(t.Error)}, column{"progress", w.json(t.Progress)},
		column{"max_attempts", t.MaxAttempts}, column{"max_repairs", t.MaxRepairs}, column{"options_json", text(options)}, column{"allow_failure", t.AllowFailure},
		column{"job_id", id(t.JobID)}, column{"parent_task_id", id(t.ParentID)}, column{"rerun_of", id(t.RerunOf)}, column{"depth", t.Depth}, column{"join_kind", text(string(t.Join))},
		column{"idempotency_key", text(t.IdempotencyKey)}, column{"concurrency_key", text(t.ConcurrencyKey)},
		column{"cancel_requested", t.CancelRequested}, column{"cancel_kind", text(string(t.CancelKind))}, column{"cancel_by", text(t.CancelBy)}, column{"cancel_reason", text(t.CancelReason)},
		column{"undo_open", t.UndoOpen}, column{"undo_no", t.UndoNo}, column{"undo", w.json(t.Undo)}, column{"deadline_at", at(t.DeadlineAt)},
		column{"created_at", micros(t.CreatedAt)}, column{"updated_at", micros(t.UpdatedAt)}, column{"started_at", at(t.StartedAt)}, column{"finished_at", at(t.FinishedAt)},
	)
	if answered {
		w.insert("weaver_payloads", column{"task_id", t.ID[:]}, column{"kind", "unblock_input"}, column{"data", string(t.UnblockInput)})
		w.insert("weaver_payloads", column{"task_id", t.ID[:]}, column{"kind", "unblock_for"}, column{"data", t.UnblockFor})
	}
	for k, v := range t.Labels {
		w.insert("weaver_task_labels", column{"key", k}, column{"value", v}, column{"task_id", t.ID[:]})
	}
}

// forgotten is the value of values_dropped for a task whose content was erased.
const forgotten = 2

// records writes the rows of a task besides its own.
func (w *writer) records(t *Task) {
	of := t.Task.ID
	for i := range t.Needs {
		n := &t.Needs[i]
		if !w.known[n.ID] {
			continue
		}
		row := []column{{"task_id", of[:]}, {"depends_on_task_id", n.ID[:]}, {"kind", string(n.Kind)}, {"done", n.Done}, {"awaited", n.Awaited}, {"ended_state", text(string(n.EndedState))}, {"step", text(n.Step)}}
		if e := n.EndedError; e != nil {
			row = append(row, column{"ended_kind", text(string(e.Kind))}, column{"ended_code", text(e.Code)}, column{"ended_message", text(e.Message)})
		}
		w.insert("weaver_task_dependencies", row...)
	}
	for i := range t.Attempts {
		if a := &t.Attempts[i]; !a.FinishedAt.IsZero() {
			w.attempt(a)
		}
	}
	for i := range t.Decisions {
		d := &t.Decisions[i]
		var children any
		if len(d.ChildIDs) > 0 {
			children = w.json(&d.ChildIDs)
		}
		w.insert("weaver_decisions", column{"task_id", of[:]}, column{"attempt_no", d.AttemptNo}, column{"decided_at", micros(d.At)}, column{"decision_kind", string(d.Kind)},
			column{"next_ready_at", at(d.NextReadyAt)}, column{"child_task_ids", children}, column{"reason_json", w.json(&d.Reason)})
	}
	w.steps(t)
	for i := range t.Signals {
		g := &t.Signals[i]
		w.insert("weaver_signals", column{"task_id", of[:]}, column{"seq", g.Seq}, column{"name", g.Name}, column{"key", g.Key}, column{"payload", string(g.Payload)},
			column{"sent_at", micros(g.SentAt)}, column{"actor", g.Actor}, column{"step", text(g.Step)})
	}
	for i := range t.Checkpoints {
		k := &t.Checkpoints[i]
		w.insert("weaver_checkpoints", column{"task_id", of[:]}, column{"name", k.Name}, column{"value", string(k.Value)}, column{"attempt_no", k.AttemptNo}, column{"saved_at", micros(k.SavedAt)})
	}
	for i := range t.Artifacts {
		w.artifact(&t.Artifacts[i])
	}
	for i := range t.Audit {
		e := &t.Audit[i]
		if w.audited[e.ID] || e.ID == 0 {
			continue
		}
		w.audited[e.ID] = true
		w.insert("weaver_audit", column{"audit_id", e.ID}, column{"at", micros(e.At)}, column{"actor", e.Actor}, column{"verb", e.Verb}, column{"target", e.Target}, column{"reason", e.Reason})
	}
	for i := range t.Events {
		e, table := &t.Events[i], "weaver_events"
		if e.Log {
			table = "weaver_logs"
		}
		w.insert(table, column{"task_id", of[:]}, column{"seq", e.Seq}, column{"type", e.Type}, column{"at", micros(e.At)}, column{"body", string(e.Body)})
	}
}

func (w *writer) attempt(a *task.Attempt) {
	type action struct {
		Steps     []string `json:"steps,omitempty"`
		Unreached []string `json:"unreached,omitempty"`
		Route     string   `json:"route,omitempty"`
	}
	outcome := struct {
		Action action            `json:"action"`
		Notes  map[string]string `json:"notes,omitempty"`
	}{action{a.StepsRun, a.StepsUnreached, a.RouteReason}, a.Notes}
	w.insert("weaver_attempts", column{"task_id", a.TaskID[:]}, column{"attempt_no", a.No}, column{"lease_epoch", a.Epoch}, column{"lease_id", a.LeaseID[:]}, column{"worker", text(a.Worker)},
		column{"code_version", a.CodeVersion}, column{"started_at", micros(a.StartedAt)}, column{"finished_at", micros(a.FinishedAt)}, column{"outcome_kind", string(a.Outcome)},
		column{"error_kind", errorKind(a.Error)}, column{"error_json", w.json(a.Error)}, column{"outcome_json", w.json(&outcome)}, column{"outcome_hash", text(a.OutcomeHash)}, column{"handler", text(a.Handler)})
}

// steps writes the steps of a task under the keys that a store gives them: 0, 0 for the row that counts, and others by
// the number of their attempt and try.
func (w *writer) steps(t *Task) {
	type key struct {
		name         string
		attempt, try int
	}
	taken := map[key]bool{}
	for i := range t.Steps {
		s := &t.Steps[i]
		k := key{name: s.Name}
		if s.State == task.StepFailed || s.Past() || s.Kind == task.KindUndo || taken[k] {
			k.attempt, k.try = s.AttemptNo, s.Try
		}
		for taken[k] {
			k.try++
		}
		taken[k] = true
		row := []column{
			{"task_id", t.Task.ID[:]},
			{"name", s.Name},
			{"attempt_no", k.attempt},
			{"try", k.try},
			{"by_attempt", s.AttemptNo},
			{"by_try", s.Try},
			{"step_index", s.Index},
			{"kind", string(s.Kind)},
			{"state", string(s.State)},
			{"value", raw(s.Value)},
			{"error_json", w.json(s.Error)},
			{"wake_at", at(s.WakeAt)},
			{"started_at", micros(s.StartedAt)},
			{"completed_at", micros(s.CompletedAt)},
			{"awaits", text(s.Signal)},
			{"cost", s.Cost},
			{"undo", slices.Index(task.UndoStates(), s.Undo) + 1},
			{"undo_no", s.UndoNo},
			{"round", s.Round},
		}
		if len(s.Redact) > 0 {
			row = append(row, column{"redact", w.json(&s.Redact)})
		}
		if s.Kind == task.KindCall {
			row = append(row, column{"children", s.Children}, column{"children_left", s.ChildrenLeft}, column{"children_stored", s.ChildrenStored})
		}
		w.insert("weaver_steps", row...)
	}
}

func (w *writer) artifact(a *task.Artifact) {
	var link any
	if len(a.LinkValue) > 0 {
		link = string(a.LinkValue)
	} else {
		w.exec(`INSERT INTO weaver_blobs (namespace, blob_id, sha256, size_bytes, state, touched_at, task_id) VALUES (?, ?, ?, ?, 'live', ?, ?) ON CONFLICT DO NOTHING`,
			Namespace, a.Blob.ID[:], a.Blob.SHA256, a.Blob.Size, micros(a.CreatedAt), a.TaskID[:])
	}
	w.insert("weaver_artifacts", column{"task_id", a.TaskID[:]}, column{"kind", "artifact"}, column{"artifact_id", a.ID[:]}, column{"blob_id", a.Blob.ID[:]}, column{"step", text(a.Step)},
		column{"attempt_no", a.AttemptNo}, column{"name", text(a.Name)}, column{"content_type", text(a.ContentType)}, column{"created_at", micros(a.CreatedAt)}, column{"expires_at", at(a.ExpiresAt)}, column{"link", link})
}

func (w *writer) job(j *task.Job) {
	var meta, based any
	if len(j.Meta) > 0 {
		meta = w.json(&j.Meta)
	}
	if len(j.BasedOn) > 0 {
		based = w.json(&j.BasedOn)
	}
	n := &j.Counters
	w.insert("weaver_jobs", column{"job_id", j.ID[:]}, column{"name", j.Name}, column{"state", string(j.State)}, column{"budget_json", w.json(&j.Budget)}, column{"meta", meta}, column{"based_on", based},
		column{"total", n.Total}, column{"unfinished", n.Unfinished}, column{"movable", n.Movable}, column{"failed", n.Failed}, column{"allowed", n.Allowed}, column{"succeeded", n.Succeeded},
		column{"attempts_used", j.AttemptsUsed}, column{"cost", j.Cost}, column{"exhausted_at", at(j.ExhaustedAt)},
		column{"cancel_requested", j.CancelRequested}, column{"cancel_by", text(j.CancelBy)}, column{"cancel_reason", text(j.CancelReason)}, column{"idempotency_key", text(j.IdempotencyKey)},
		column{"deadline_at", at(j.DeadlineAt)}, column{"created_at", micros(j.CreatedAt)}, column{"updated_at", micros(j.UpdatedAt)}, column{"finished_at", at(j.FinishedAt)})
}

func (w *writer) typ(t *store.AnnouncedType) {
	kept := *t
	kept.AnnouncedAt, kept.AnnouncedBy = time.Time{}, ""
	body, digest, err := rules.TypeBody(kept)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.insert("weaver_types", column{"task_type", t.Name}, column{"schema_version", t.SchemaVersion}, column{"code_version", t.CodeVersion}, column{"digest", digest},
		column{"announced_at", micros(t.AnnouncedAt)}, column{"announced_by", t.AnnouncedBy}, column{"body", string(body)})
}

// json returns the JSON of a value, or nil for a nil pointer.
func (w *writer) json(v any) any {
	b, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	if string(b) == "null" {
		return nil
	}
	return string(b)
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func raw(v json.RawMessage) any { return text(string(v)) }

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func at(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

func id(v task.ID) any {
	if v.IsZero() {
		return nil
	}
	return v[:]
}

func lease(t *task.Task) any {
	if t.State != task.Running {
		return nil
	}
	return t.LeaseID[:]
}

func errorKind(e *task.Error) any {
	if e == nil {
		return nil
	}
	return text(string(e.Kind))
}
