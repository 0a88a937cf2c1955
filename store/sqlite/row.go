package sqlite

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// taskColumns are the columns that scanTask reads, in its order.
const taskColumns = `task_id, task_type, queue, priority, state, waiting_reason, ready_at, remaining_deps, has_payloads,
  lease_epoch, lease_id, leased_by, lease_expires_at, attempt_no, attempt_count, step_count, crash_count, quarantine_losses,
  internal_count, repair_count, started_version, input, schema_version, output, last_error_json, progress, max_attempts,
  max_repairs, options_json, job_id, parent_task_id, idempotency_key, concurrency_key, cancel_requested, cancel_kind,
  cancel_by, cancel_reason, deadline_at, created_at, updated_at, started_at, finished_at`

// taskColumnCount is where the columns after taskColumns begin.
const taskColumnCount = 42

// rowValues reads a whole row in one call into the driver, which is cheaper
// than a call per column when there are many. The bytes in it belong to SQLite
// and live until the statement moves.
type rowValues struct {
	c    *conn
	vals []any
	err  error
}

// row loads the current row.
func (s *stmt) row() *rowValues {
	if s.values == nil {
		s.values = &rowValues{c: s.c, vals: make([]any, s.raw.ColumnCount())}
	}
	s.values.err = s.raw.ColumnsRaw(s.values.vals...)
	return s.values
}

func (r *rowValues) int(i int) int64 {
	v, _ := r.vals[i].(int64)
	return v
}

func (r *rowValues) raw(i int) []byte {
	v, _ := r.vals[i].([]byte)
	return v
}

func (r *rowValues) text(i int) string { return string(r.raw(i)) }
func (r *rowValues) name(i int) string { return r.c.intern(r.raw(i)) }

func (r *rowValues) time(i int) time.Time { return timeCol(r.int(i)).time() }

func (r *rowValues) id(i int) (id task.ID) {
	copy(id[:], r.raw(i))
	return id
}

// bytes copies a text; nil for NULL.
func (r *rowValues) bytes(i int) json.RawMessage { return append(json.RawMessage(nil), r.raw(i)...) }

func (r *rowValues) json(i int, v any) {
	if err := json.Unmarshal(r.raw(i), v); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *rowValues) failure(i int) *task.Error {
	if len(r.raw(i)) == 0 {
		return nil
	}
	var e task.Error
	r.json(i, &e)
	return &e
}

func (r *rowValues) progress(i int) *task.Progress {
	if len(r.raw(i)) == 0 {
		return nil
	}
	var p task.Progress
	r.json(i, &p)
	return &p
}

// scanTask reads taskColumns. It reports whether the task may have payloads.
func (r *rowValues) scanTask(t *task.Task) (payloads bool) {
	t.ID = r.id(0)
	t.Type = r.name(1)
	t.Queue = r.name(2)
	t.Priority = int(r.int(3))
	t.State = task.State(r.name(4))
	t.Waiting = task.Waiting(r.name(5))
	t.ReadyAt = r.time(6)
	t.RemainingDeps = int(r.int(7))
	payloads = r.int(8) != 0
	t.Epoch = r.int(9)
	if lease := r.raw(10); lease != nil {
		copy(t.LeaseID[:], lease)
		t.LeasedBy = r.name(11) // the column outlives the lease
	}
	t.LeaseExpiresAt = r.time(12)
	t.AttemptNo = int(r.int(13))
	t.AttemptCount = int(r.int(14))
	t.StepCount = int(r.int(15))
	t.CrashCount = int(r.int(16))
	t.QuarantineLosses = int(r.int(17))
	t.InternalCount = int(r.int(18))
	t.RepairCount = int(r.int(19))
	t.StartedVersion = int(r.int(20))
	t.Input = r.bytes(21)
	t.SchemaVersion = int(r.int(22))
	t.Output = r.bytes(23)
	t.Error = r.failure(24)
	t.Progress = r.progress(25)
	t.MaxAttempts = int(r.int(26))
	t.MaxRepairs = int(r.int(27))
	r.options(28, t)
	t.JobID = r.id(29)
	t.ParentID = r.id(30)
	t.IdempotencyKey = r.text(31)
	t.ConcurrencyKey = r.text(32)
	t.CancelRequested = r.int(33) != 0
	t.CancelKind = task.ErrorKind(r.name(34))
	t.CancelBy = r.text(35)
	t.CancelReason = r.text(36)
	t.DeadlineAt = r.time(37)
	t.CreatedAt = r.time(38)
	t.UpdatedAt = r.time(39)
	t.StartedAt = r.time(40)
	t.FinishedAt = r.time(41)
	return payloads
}

func (r *rowValues) options(i int, t *task.Task) {
	if err := r.c.unpackOptions(r.raw(i), t); err != nil && r.err == nil {
		r.err = err
	}
}

const sqlPayloads = `SELECT kind, data FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2`

// fetchPayloads adds the out-of-line texts of a task that may have any.
func (c *conn) fetchPayloads(ns string, t *task.Task, payloads bool) error {
	if !payloads {
		return nil
	}
	st := c.stmt(sqlPayloads).text(1, ns).id(2, &t.ID)
	for st.next() {
		switch st.colName(0) {
		case kindInput:
			t.Input = st.colBytes(1)
		case kindOutput:
			t.Output = st.colBytes(1)
		case kindUnblock:
			t.UnblockInput = st.colBytes(1)
		}
	}
	return st.done()
}

const stepColumns = `name, step_index, kind, state, by_attempt, by_try, value, error_json, wake_at, started_at, completed_at`

const sqlSteps = `
SELECT ` + stepColumns + ` FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2
ORDER BY step_index, by_attempt, by_try, name`

// steps returns everything a task's attempts recorded, by index.
func (c *conn) steps(ns string, id *task.ID) ([]task.Step, error) {
	var list []task.Step
	st := c.stmt(sqlSteps).text(1, ns).id(2, id)
	for st.next() {
		list = append(list, st.scanStep(*id))
	}
	return list, st.done()
}

// scanStep reads stepColumns.
func (s *stmt) scanStep(id task.ID) task.Step {
	step := task.Step{
		TaskID: id, Name: s.colText(0), Index: int(s.colInt(1)), Kind: task.StepKind(s.colName(2)), State: task.StepState(s.colName(3)),
		AttemptNo: int(s.colInt(4)), Try: int(s.colInt(5)), Error: s.colError(7),
		WakeAt: s.colTime(8), StartedAt: s.colTime(9), CompletedAt: s.colTime(10),
	}
	if !s.isNull(6) {
		step.Value = s.colBytes(6)
	}
	return step
}
