package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The columns of each row type, with the destinations of their values. Statements select the
// list of a table and scan with the same table, so that no statement counts columns by hand.

// taskColumns are the columns of a task; taskSelect has one more.
var taskColumns = sqlstmt.Columns[task.Task]{
	sqlstmt.Col("task_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.ID = r.ID(i) }),
	sqlstmt.Col("task_type", func(t *task.Task, r *sqlstmt.Row, i int) { t.Type = r.Name(i) }),
	sqlstmt.Col("queue", func(t *task.Task, r *sqlstmt.Row, i int) { t.Queue = r.Name(i) }),
	sqlstmt.Col("priority", func(t *task.Task, r *sqlstmt.Row, i int) { t.Priority = int(r.Int(i)) }),
	sqlstmt.Col("state", func(t *task.Task, r *sqlstmt.Row, i int) { t.State = task.State(r.Name(i)) }),
	sqlstmt.Col("waiting_reason", func(t *task.Task, r *sqlstmt.Row, i int) { t.Waiting = task.Waiting(r.Name(i)) }),
	sqlstmt.Col("ready_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.ReadyAt = r.Time(i) }),
	sqlstmt.Col("remaining_deps", func(t *task.Task, r *sqlstmt.Row, i int) { t.RemainingDeps = int(r.Int(i)) }),
	sqlstmt.Col("lease_epoch", func(t *task.Task, r *sqlstmt.Row, i int) { t.Epoch = r.Int(i) }),
	sqlstmt.Col("lease_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.LeaseID = r.Lease(i) }),
	sqlstmt.Col("CASE WHEN lease_id IS NOT NULL THEN leased_by END", func(t *task.Task, r *sqlstmt.Row, i int) { t.LeasedBy = r.Name(i) }),
	sqlstmt.Col("lease_expires_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.LeaseExpiresAt = r.Time(i) }),
	sqlstmt.Col("attempt_no", func(t *task.Task, r *sqlstmt.Row, i int) { t.AttemptNo = int(r.Int(i)) }),
	sqlstmt.Col("attempt_count", func(t *task.Task, r *sqlstmt.Row, i int) { t.AttemptCount = int(r.Int(i)) }),
	sqlstmt.Col("step_count", func(t *task.Task, r *sqlstmt.Row, i int) { t.StepCount = int(r.Int(i)) }),
	sqlstmt.Col("wake_seq", func(t *task.Task, r *sqlstmt.Row, i int) { t.WakeSeq = int(r.Int(i)) }),
	sqlstmt.Col("crash_count", func(t *task.Task, r *sqlstmt.Row, i int) { t.CrashCount = int(r.Int(i)) }),
	sqlstmt.Col("quarantine_losses", func(t *task.Task, r *sqlstmt.Row, i int) { t.QuarantineLosses = int(r.Int(i)) }),
	sqlstmt.Col("internal_count", func(t *task.Task, r *sqlstmt.Row, i int) { t.InternalCount = int(r.Int(i)) }),
	sqlstmt.Col("repair_count", func(t *task.Task, r *sqlstmt.Row, i int) { t.RepairCount = int(r.Int(i)) }),
	sqlstmt.Col("idle_attempts", func(t *task.Task, r *sqlstmt.Row, i int) { t.IdleAttempts = int(r.Int(i)) }),
	sqlstmt.Col("cost", func(t *task.Task, r *sqlstmt.Row, i int) { t.Cost = r.Int(i) }),
	sqlstmt.Col("started_version", func(t *task.Task, r *sqlstmt.Row, i int) { t.StartedVersion = int(r.Int(i)) }),
	sqlstmt.Col("input", func(t *task.Task, r *sqlstmt.Row, i int) { t.Input = r.Bytes(i) }),
	sqlstmt.Col("schema_version", func(t *task.Task, r *sqlstmt.Row, i int) { t.SchemaVersion = int(r.Int(i)) }),
	sqlstmt.Col("values_dropped", func(t *task.Task, r *sqlstmt.Row, i int) {
		t.ValuesDropped, t.Forgotten = r.Bool(i), r.Int(i) == forgottenValues
	}),
	sqlstmt.Col("output", func(t *task.Task, r *sqlstmt.Row, i int) { t.Output = r.Bytes(i) }),
	sqlstmt.Col("last_error_json", func(t *task.Task, r *sqlstmt.Row, i int) { t.Error = r.Error(i) }),
	sqlstmt.Col("progress", func(t *task.Task, r *sqlstmt.Row, i int) { t.Progress = r.Progress(i) }),
	sqlstmt.Col("max_attempts", func(t *task.Task, r *sqlstmt.Row, i int) { t.MaxAttempts = int(r.Int(i)) }),
	sqlstmt.Col("max_repairs", func(t *task.Task, r *sqlstmt.Row, i int) { t.MaxRepairs = int(r.Int(i)) }),
	sqlstmt.Col("options_json", func(t *task.Task, r *sqlstmt.Row, i int) { r.Options(i, t) }),
	sqlstmt.Col("allow_failure", func(t *task.Task, r *sqlstmt.Row, i int) { t.AllowFailure = r.Bool(i) }),
	sqlstmt.Col("job_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.JobID = r.ID(i) }),
	sqlstmt.Col("parent_task_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.ParentID = r.ID(i) }),
	sqlstmt.Col("rerun_of", func(t *task.Task, r *sqlstmt.Row, i int) { t.RerunOf = r.ID(i) }),
	sqlstmt.Col("depth", func(t *task.Task, r *sqlstmt.Row, i int) { t.Depth = int(r.Int(i)) }),
	sqlstmt.Col("join_kind", func(t *task.Task, r *sqlstmt.Row, i int) { t.Join = task.Join(r.Name(i)) }),
	sqlstmt.Col("idempotency_key", func(t *task.Task, r *sqlstmt.Row, i int) { t.IdempotencyKey = r.Text(i) }),
	sqlstmt.Col("concurrency_key", func(t *task.Task, r *sqlstmt.Row, i int) { t.ConcurrencyKey = r.Text(i) }),
	sqlstmt.Col("cancel_requested", func(t *task.Task, r *sqlstmt.Row, i int) { t.CancelRequested = r.Bool(i) }),
	sqlstmt.Col("cancel_kind", func(t *task.Task, r *sqlstmt.Row, i int) { t.CancelKind = task.ErrorKind(r.Name(i)) }),
	sqlstmt.Col("cancel_by", func(t *task.Task, r *sqlstmt.Row, i int) { t.CancelBy = r.Text(i) }),
	sqlstmt.Col("cancel_reason", func(t *task.Task, r *sqlstmt.Row, i int) { t.CancelReason = r.Text(i) }),
	sqlstmt.Col("undo_open", func(t *task.Task, r *sqlstmt.Row, i int) { t.UndoOpen = int(r.Int(i)) }),
	sqlstmt.Col("undo_no", func(t *task.Task, r *sqlstmt.Row, i int) { t.UndoNo = int(r.Int(i)) }),
	sqlstmt.Col("undo", func(t *task.Task, r *sqlstmt.Row, i int) { t.Undo = r.Phase(i) }),
	sqlstmt.Col("deadline_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.DeadlineAt = r.Time(i) }),
	sqlstmt.Col("created_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.CreatedAt = r.Time(i) }),
	sqlstmt.Col("updated_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.UpdatedAt = r.Time(i) }),
	sqlstmt.Col("started_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.StartedAt = r.Time(i) }),
	sqlstmt.Col("finished_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.FinishedAt = r.Time(i) }),
}

// The columns that a Bulk reads of tasks, steps and dispatch rows.
var (
	HintedSelect = candidateSelect + ", t.schema_version"
	TaskSelect   = taskSelect
	StepSelect   = stepColumns.List()
)

// taskSelect is the column list for scanTask.
var taskSelect = taskColumns.List() + ", has_payloads"

// taskSelected is the number of columns in taskSelect.
var taskSelected = len(taskColumns) + 1

// scanTask reads taskSelect. It reports whether the task may have payloads.
func scanTask(r *sqlstmt.Row, t *task.Task) (payloads bool) {
	taskColumns.Scan(r, 0, t)
	return r.Bool(len(taskColumns))
}

// candidate is one due dispatch row with its task.
type candidate struct {
	dispatched
	due      int64
	fresh    bool // plain and never claimed: every other column is zero
	read     bool // the rest of the task was read together with others
	task     *task.Task
	payloads bool // weaver_payloads may have rows of it
	open     bool // stored as claimable
	newer    bool // of a newer schema than the worker reads
}

// A claim reads a chunk of dispatch rows with the needed columns of their tasks in one
// statement. RETURNING would cost SQLite a temporary table for each updated task. For a plain,
// never claimed task freshColumns are complete; for other tasks the claim reads the row again.
var (
	candidateColumns = sqlstmt.Columns[candidate]{
		sqlstmt.Col("o.available_at", func(d *candidate, r *sqlstmt.Row, i int) { d.due = r.Int(i) }),
		sqlstmt.Col("o.task_id", func(d *candidate, r *sqlstmt.Row, i int) { d.id = r.ID(i) }),
		sqlstmt.Col("t.plain = 1 AND t.lease_epoch = 0", func(d *candidate, r *sqlstmt.Row, i int) { d.fresh = r.Bool(i) }),
		sqlstmt.Col("o.queue", func(d *candidate, r *sqlstmt.Row, i int) { d.lane.Queue = r.Name(i) }),
		sqlstmt.Col("o.task_type", func(d *candidate, r *sqlstmt.Row, i int) { d.lane.Type = r.Name(i) }),
		sqlstmt.Col("o.priority", func(d *candidate, r *sqlstmt.Row, i int) { d.lane.Priority = r.Int(i) }),
		sqlstmt.Col("o.concurrency_key", func(d *candidate, r *sqlstmt.Row, i int) { d.key = r.Text(i) }),
		sqlstmt.Col("o.lane_group", func(d *candidate, r *sqlstmt.Row, i int) { d.lane.Group = r.Name(i) }),
	}

	freshColumns = sqlstmt.Columns[task.Task]{
		sqlstmt.Col("t.input", func(t *task.Task, r *sqlstmt.Row, i int) { t.Input = r.Bytes(i) }),
		sqlstmt.Col("t.schema_version", func(t *task.Task, r *sqlstmt.Row, i int) { t.SchemaVersion = int(r.Int(i)) }),
		sqlstmt.Col("t.max_attempts", func(t *task.Task, r *sqlstmt.Row, i int) { t.MaxAttempts = int(r.Int(i)) }),
		sqlstmt.Col("t.max_repairs", func(t *task.Task, r *sqlstmt.Row, i int) { t.MaxRepairs = int(r.Int(i)) }),
		sqlstmt.Col("t.options_json", func(t *task.Task, r *sqlstmt.Row, i int) { r.Options(i, t) }),
		sqlstmt.Col("t.created_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.CreatedAt = r.Time(i) }),
		sqlstmt.Col("t.idempotency_key", func(t *task.Task, r *sqlstmt.Row, i int) { t.IdempotencyKey = r.Text(i) }),
	}

	candidateSelect = candidateColumns.List() + ", " + freshColumns.List()
)

// scanCandidate reads candidateSelect.
func scanCandidate(r *sqlstmt.Row, d *candidate) {
	candidateColumns.Scan(r, 0, d)
	if d.open = d.fresh; d.fresh {
		t := d.task
		t.ID, t.Type, t.Queue, t.Priority = d.id, d.lane.Type, d.lane.Queue, int(d.lane.Priority)
		freshColumns.Scan(r, len(candidateColumns), t)
	}
}

// scanRest reads taskSelect.
func (d *candidate) scanRest(r *sqlstmt.Row) {
	t := d.task
	d.payloads = scanTask(r, t)
	d.open = (t.State == task.Pending || t.State == task.Ready) && t.RemainingDeps == 0 && (!t.CancelRequested || t.Undo != nil)
}

// leaseRow is a task as read by operations that end its attempt. For a task that does not run
// it has the last lease.
type leaseRow struct {
	dispatched
	attemptNo int
	epoch     int64
	leaseID   task.LeaseID
	worker    string
	startedAt int64
	job       task.ID
	needed    bool // other tasks depend on it
	calls     bool // it has children of a call
	wakeSeq   int
	join      task.Join
	mayFail   bool // its job allows its failure
	deadline  int64
	limits    int64 // of its job's budget
	idle      int   // consecutive attempts without a new record

	asked     bool           // it was asked to end
	cancelled task.ErrorKind // reason for the request, or ""
	by        string
	reason    string

	undoOpen int             // steps to undo
	undo     *task.UndoPhase // nil: it is not being undone
}

var leaseColumns = sqlstmt.Columns[leaseRow]{
	sqlstmt.Col("task_id", func(l *leaseRow, r *sqlstmt.Row, i int) { l.id = r.ID(i) }),
	sqlstmt.Col("queue", func(l *leaseRow, r *sqlstmt.Row, i int) { l.lane.Queue = r.Name(i) }),
	sqlstmt.Col("task_type", func(l *leaseRow, r *sqlstmt.Row, i int) { l.lane.Type = r.Name(i) }),
	sqlstmt.Col("priority", func(l *leaseRow, r *sqlstmt.Row, i int) { l.lane.Priority = r.Int(i) }),
	sqlstmt.Col("concurrency_key", func(l *leaseRow, r *sqlstmt.Row, i int) { l.key = r.Text(i) }),
	sqlstmt.Col("lane_group", func(l *leaseRow, r *sqlstmt.Row, i int) { l.lane.Group = r.Name(i) }),
	sqlstmt.Col("attempt_no", func(l *leaseRow, r *sqlstmt.Row, i int) { l.attemptNo = int(r.Int(i)) }),
	sqlstmt.Col("lease_epoch", func(l *leaseRow, r *sqlstmt.Row, i int) { l.epoch = r.Int(i) }),
	sqlstmt.Col("lease_id", func(l *leaseRow, r *sqlstmt.Row, i int) { l.leaseID = r.Lease(i) }),
	sqlstmt.Col("leased_by", func(l *leaseRow, r *sqlstmt.Row, i int) { l.worker = r.Name(i) }),
	sqlstmt.Col("started_at", func(l *leaseRow, r *sqlstmt.Row, i int) { l.startedAt = r.Int(i) }),
	sqlstmt.Col("job_id", func(l *leaseRow, r *sqlstmt.Row, i int) { l.job = r.ID(i) }),
	sqlstmt.Col("needed", func(l *leaseRow, r *sqlstmt.Row, i int) { l.needed = r.Bool(i) }),
	sqlstmt.Col("calls", func(l *leaseRow, r *sqlstmt.Row, i int) { l.calls = r.Bool(i) }),
	sqlstmt.Col("wake_seq", func(l *leaseRow, r *sqlstmt.Row, i int) { l.wakeSeq = int(r.Int(i)) }),
	sqlstmt.Col("join_kind", func(l *leaseRow, r *sqlstmt.Row, i int) { l.join = task.Join(r.Name(i)) }),
	sqlstmt.Col("allow_failure", func(l *leaseRow, r *sqlstmt.Row, i int) { l.mayFail = r.Bool(i) }),
	sqlstmt.Col("deadline_at", func(l *leaseRow, r *sqlstmt.Row, i int) { l.deadline = r.Int(i) }),
	sqlstmt.Col("job_limits", func(l *leaseRow, r *sqlstmt.Row, i int) { l.limits = r.Int(i) }),
	sqlstmt.Col("idle_attempts", func(l *leaseRow, r *sqlstmt.Row, i int) { l.idle = int(r.Int(i)) }),
	sqlstmt.Col("cancel_requested", func(l *leaseRow, r *sqlstmt.Row, i int) { l.asked = r.Bool(i) }),
	sqlstmt.Col("CASE WHEN cancel_requested <> 0 THEN cancel_kind END", func(l *leaseRow, r *sqlstmt.Row, i int) { l.cancelled = task.ErrorKind(r.Name(i)) }),
	sqlstmt.Col("cancel_by", func(l *leaseRow, r *sqlstmt.Row, i int) { l.by = r.Text(i) }),
	sqlstmt.Col("cancel_reason", func(l *leaseRow, r *sqlstmt.Row, i int) { l.reason = r.Text(i) }),
	sqlstmt.Col("undo_open", func(l *leaseRow, r *sqlstmt.Row, i int) { l.undoOpen = int(r.Int(i)) }),
	sqlstmt.Col("undo", func(l *leaseRow, r *sqlstmt.Row, i int) { l.undo = r.Phase(i) }),
}

// LeaseColumns are the columns of the rows that Bulk.Guard returns.
var LeaseColumns interface{ List() string } = leaseColumns

// taskRow is a task as read by operations that change it without its lease: operators'
// commands, the reaper, and ends of its needs.
type taskRow struct {
	leaseRow      // of the lease, if it runs
	contribution  propagate.Contribution
	cleansUp      bool // it cleans up when it ends without its handler
	crashes       int
	depth         int
	isolated      bool
	node          string
	cost, maxCost int64
	updatedAt     int64
	createdAt     time.Time
	leaseEnd      int64
}

// taskRowColumns follow leaseColumns.
var (
	taskRowColumns = sqlstmt.Columns[taskRow]{
		sqlstmt.Col("state", func(w *taskRow, r *sqlstmt.Row, i int) { w.contribution.State = task.State(r.Name(i)) }),
		sqlstmt.Col("waiting_reason", func(w *taskRow, r *sqlstmt.Row, i int) { w.contribution.Waiting = task.Waiting(r.Name(i)) }),
		sqlstmt.Col("ready_at", func(w *taskRow, r *sqlstmt.Row, i int) { w.contribution.Timed = r.Int(i) != 0 }),
		sqlstmt.Col("last_error_kind", func(w *taskRow, r *sqlstmt.Row, i int) { w.contribution.Kind = task.ErrorKind(r.Name(i)) }),
		sqlstmt.Col("allow_failure", func(w *taskRow, r *sqlstmt.Row, i int) { w.contribution.AllowFailure = r.Bool(i) }),
		sqlstmt.Col("crash_count", func(w *taskRow, r *sqlstmt.Row, i int) { w.crashes = int(r.Int(i)) }),
		sqlstmt.Col("depth", func(w *taskRow, r *sqlstmt.Row, i int) { w.depth = int(r.Int(i)) }),
		sqlstmt.Col("cost", func(w *taskRow, r *sqlstmt.Row, i int) { w.cost = r.Int(i) }),
		sqlstmt.Col("updated_at", func(w *taskRow, r *sqlstmt.Row, i int) { w.updatedAt = r.Int(i) }),
		sqlstmt.Col("created_at", func(w *taskRow, r *sqlstmt.Row, i int) { w.createdAt = r.Time(i) }),
		sqlstmt.Col("lease_expires_at", func(w *taskRow, r *sqlstmt.Row, i int) { w.leaseEnd = r.Int(i) }),
		sqlstmt.Col("isolated", func(w *taskRow, r *sqlstmt.Row, i int) { w.isolated = r.Bool(i) }),
		sqlstmt.Col("options_json", func(w *taskRow, r *sqlstmt.Row, i int) {
			var t task.Task
			r.Options(i, &t)
			w.node, w.cleansUp, w.maxCost = t.Node, t.CleanupWhenCancelled, t.MaxCost
		}),
	}

	taskRowSelect = leaseColumns.List() + ", " + taskRowColumns.List()
)

// scanTaskRow reads taskRowSelect.
func scanTaskRow(r *sqlstmt.Row, w *taskRow) {
	leaseColumns.Scan(r, 0, &w.leaseRow)
	taskRowColumns.Scan(r, len(leaseColumns), w)
	w.contribution.Join = w.join
}

var jobColumns = sqlstmt.Columns[task.Job]{
	sqlstmt.Col("job_id", func(j *task.Job, r *sqlstmt.Row, i int) { j.ID = r.ID(i) }),
	sqlstmt.Col("name", func(j *task.Job, r *sqlstmt.Row, i int) { j.Name = r.Text(i) }),
	sqlstmt.Col("state", func(j *task.Job, r *sqlstmt.Row, i int) { j.State = task.JobState(r.Name(i)) }),
	sqlstmt.Col("budget_json", func(j *task.Job, r *sqlstmt.Row, i int) { r.JSON(i, &j.Budget) }),
	sqlstmt.Col("idempotency_key", func(j *task.Job, r *sqlstmt.Row, i int) { j.IdempotencyKey = r.Text(i) }),
	sqlstmt.Col("meta", func(j *task.Job, r *sqlstmt.Row, i int) { j.Meta = r.Map(i) }),
	sqlstmt.Col("based_on", func(j *task.Job, r *sqlstmt.Row, i int) { r.JSON(i, &j.BasedOn) }),
	sqlstmt.Col("total", func(j *task.Job, r *sqlstmt.Row, i int) { j.Counters.Total = int(r.Int(i)) }),
	sqlstmt.Col("unfinished", func(j *task.Job, r *sqlstmt.Row, i int) { j.Counters.Unfinished = int(r.Int(i)) }),
	sqlstmt.Col("movable", func(j *task.Job, r *sqlstmt.Row, i int) { j.Counters.Movable = int(r.Int(i)) }),
	sqlstmt.Col("failed", func(j *task.Job, r *sqlstmt.Row, i int) { j.Counters.Failed = int(r.Int(i)) }),
	sqlstmt.Col("allowed", func(j *task.Job, r *sqlstmt.Row, i int) { j.Counters.Allowed = int(r.Int(i)) }),
	sqlstmt.Col("succeeded", func(j *task.Job, r *sqlstmt.Row, i int) { j.Counters.Succeeded = int(r.Int(i)) }),
	sqlstmt.Col("attempts_used", func(j *task.Job, r *sqlstmt.Row, i int) { j.AttemptsUsed = int(r.Int(i)) }),
	sqlstmt.Col("cost", func(j *task.Job, r *sqlstmt.Row, i int) { j.Cost = r.Int(i) }),
	sqlstmt.Col("exhausted_at", func(j *task.Job, r *sqlstmt.Row, i int) { j.ExhaustedAt = r.Time(i) }),
	sqlstmt.Col("cancel_requested", func(j *task.Job, r *sqlstmt.Row, i int) { j.CancelRequested = r.Bool(i) }),
	sqlstmt.Col("cancel_by", func(j *task.Job, r *sqlstmt.Row, i int) { j.CancelBy = r.Text(i) }),
	sqlstmt.Col("cancel_reason", func(j *task.Job, r *sqlstmt.Row, i int) { j.CancelReason = r.Text(i) }),
	sqlstmt.Col("deadline_at", func(j *task.Job, r *sqlstmt.Row, i int) { j.DeadlineAt = r.Time(i) }),
	sqlstmt.Col("created_at", func(j *task.Job, r *sqlstmt.Row, i int) { j.CreatedAt = r.Time(i) }),
	sqlstmt.Col("updated_at", func(j *task.Job, r *sqlstmt.Row, i int) { j.UpdatedAt = r.Time(i) }),
	sqlstmt.Col("finished_at", func(j *task.Job, r *sqlstmt.Row, i int) { j.FinishedAt = r.Time(i) }),
}

var stepColumns = sqlstmt.Columns[task.Step]{
	sqlstmt.Col("task_id", func(s *task.Step, r *sqlstmt.Row, i int) { s.TaskID = r.ID(i) }),
	sqlstmt.Col("name", func(s *task.Step, r *sqlstmt.Row, i int) { s.Name = r.Text(i) }),
	sqlstmt.Col("step_index", func(s *task.Step, r *sqlstmt.Row, i int) { s.Index = int(r.Int(i)) }),
	sqlstmt.Col("kind", func(s *task.Step, r *sqlstmt.Row, i int) { s.Kind = task.StepKind(r.Name(i)) }),
	sqlstmt.Col("state", func(s *task.Step, r *sqlstmt.Row, i int) { s.State = task.StepState(r.Name(i)) }),
	sqlstmt.Col("by_attempt", func(s *task.Step, r *sqlstmt.Row, i int) { s.AttemptNo = int(r.Int(i)) }),
	sqlstmt.Col("by_try", func(s *task.Step, r *sqlstmt.Row, i int) { s.Try = int(r.Int(i)) }),
	sqlstmt.Col("value", func(s *task.Step, r *sqlstmt.Row, i int) { s.Value = r.Bytes(i) }),
	sqlstmt.Col("error_json", func(s *task.Step, r *sqlstmt.Row, i int) { s.Error = r.Error(i) }),
	sqlstmt.Col("wake_at", func(s *task.Step, r *sqlstmt.Row, i int) { s.WakeAt = r.Time(i) }),
	sqlstmt.Col("started_at", func(s *task.Step, r *sqlstmt.Row, i int) { s.StartedAt = r.Time(i) }),
	sqlstmt.Col("completed_at", func(s *task.Step, r *sqlstmt.Row, i int) { s.CompletedAt = r.Time(i) }),
	sqlstmt.Col("cost", func(s *task.Step, r *sqlstmt.Row, i int) { s.Cost = r.Int(i) }),
	sqlstmt.Col("redact", func(s *task.Step, r *sqlstmt.Row, i int) { r.JSON(i, &s.Redact) }),
	sqlstmt.Col("awaits", func(s *task.Step, r *sqlstmt.Row, i int) { s.Signal = r.Text(i) }),
	sqlstmt.Col("children", func(s *task.Step, r *sqlstmt.Row, i int) { s.Children = int(r.Int(i)) }),
	sqlstmt.Col("children_left", func(s *task.Step, r *sqlstmt.Row, i int) { s.ChildrenLeft = int(r.Int(i)) }),
	sqlstmt.Col("children_stored", func(s *task.Step, r *sqlstmt.Row, i int) { s.ChildrenStored = int(r.Int(i)) }),
	sqlstmt.Col("undo", func(s *task.Step, r *sqlstmt.Row, i int) { s.Undo = r.Undo(i) }),
	sqlstmt.Col("undo_no", func(s *task.Step, r *sqlstmt.Row, i int) { s.UndoNo = int(r.Int(i)) }),
	sqlstmt.Col("round", func(s *task.Step, r *sqlstmt.Row, i int) { s.Round = int(r.Int(i)) }),
}

var attemptColumns = sqlstmt.Columns[task.Attempt]{
	sqlstmt.Col("task_id", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.TaskID = r.ID(i) }),
	sqlstmt.Col("attempt_no", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.No = int(r.Int(i)) }),
	sqlstmt.Col("lease_epoch", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.Epoch = r.Int(i) }),
	sqlstmt.Col("lease_id", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.LeaseID = r.Lease(i) }),
	sqlstmt.Col("worker", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.Worker = r.Name(i) }),
	sqlstmt.Col("code_version", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.CodeVersion = int(r.Int(i)) }),
	sqlstmt.Col("started_at", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.StartedAt = r.Time(i) }),
	sqlstmt.Col("finished_at", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.FinishedAt = r.Time(i) }),
	sqlstmt.Col("outcome_kind", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.Outcome = task.Outcome(r.Name(i)) }),
	sqlstmt.Col("error_json", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.Error = r.Error(i) }),
	sqlstmt.Col("outcome_json", func(a *task.Attempt, r *sqlstmt.Row, i int) {
		var o outcomeJSON
		r.JSON(i, &o)
		a.StepsRun, a.StepsUnreached, a.RouteReason = o.Action.Steps, o.Action.Unreached, o.Action.Route
		a.Notes = o.Notes
	}),
	sqlstmt.Col("handler", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.Handler = r.Name(i) }),
	sqlstmt.Col("outcome_hash", func(a *task.Attempt, r *sqlstmt.Row, i int) { a.OutcomeHash = r.Text(i) }),
}

var decisionColumns = sqlstmt.Columns[task.Decision]{
	sqlstmt.Col("task_id", func(d *task.Decision, r *sqlstmt.Row, i int) { d.TaskID = r.ID(i) }),
	sqlstmt.Col("attempt_no", func(d *task.Decision, r *sqlstmt.Row, i int) { d.AttemptNo = int(r.Int(i)) }),
	sqlstmt.Col("decided_at", func(d *task.Decision, r *sqlstmt.Row, i int) { d.At = r.Time(i) }),
	sqlstmt.Col("decision_kind", func(d *task.Decision, r *sqlstmt.Row, i int) { d.Kind = task.DecisionKind(r.Name(i)) }),
	sqlstmt.Col("next_ready_at", func(d *task.Decision, r *sqlstmt.Row, i int) { d.NextReadyAt = r.Time(i) }),
	sqlstmt.Col("child_task_ids", func(d *task.Decision, r *sqlstmt.Row, i int) { r.JSON(i, &d.ChildIDs) }),
	sqlstmt.Col("reason_json", func(d *task.Decision, r *sqlstmt.Row, i int) { d.Reason = r.Reason(i) }),
}

var auditColumns = sqlstmt.Columns[store.AuditEntry]{
	sqlstmt.Col("audit_id", func(e *store.AuditEntry, r *sqlstmt.Row, i int) { e.ID = r.Int(i) }),
	sqlstmt.Col("at", func(e *store.AuditEntry, r *sqlstmt.Row, i int) { e.At = r.Time(i) }),
	sqlstmt.Col("actor", func(e *store.AuditEntry, r *sqlstmt.Row, i int) { e.Actor = r.Text(i) }),
	sqlstmt.Col("verb", func(e *store.AuditEntry, r *sqlstmt.Row, i int) { e.Verb = r.Text(i) }),
	sqlstmt.Col("target", func(e *store.AuditEntry, r *sqlstmt.Row, i int) { e.Target = r.Text(i) }),
	sqlstmt.Col("reason", func(e *store.AuditEntry, r *sqlstmt.Row, i int) { e.Reason = r.Text(i) }),
}

// claimRow is one claim call as read by the reaper.
type claimRow struct {
	lease  task.LeaseID
	worker string
	ids    []task.ID
}

var claimColumns = sqlstmt.Columns[claimRow]{
	sqlstmt.Col("lease_id", func(c *claimRow, r *sqlstmt.Row, i int) { c.lease = r.Lease(i) }),
	sqlstmt.Col("worker_id", func(c *claimRow, r *sqlstmt.Row, i int) { c.worker = r.Text(i) }),
	sqlstmt.Col("task_ids", func(c *claimRow, r *sqlstmt.Row, i int) { c.ids = r.IDs(i) }),
}

// The rows of a snapshot.
var (
	edgeColumns = sqlstmt.Columns[store.EdgeRow]{
		sqlstmt.Col("task_id", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Task = r.ID(i) }),
		sqlstmt.Col("depends_on_task_id", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Needs = r.ID(i) }),
		sqlstmt.Col("kind", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Kind = task.EdgeKind(r.Name(i)) }),
		sqlstmt.Col("done", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Done = r.Bool(i) }),
		sqlstmt.Col("step", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Step = r.Text(i) }),
		sqlstmt.Col("awaited", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.Awaited = int(r.Int(i)) }),
		sqlstmt.Col("ended_state", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.EndedState = task.State(r.Name(i)) }),
		sqlstmt.Col("ended_kind, ended_code, ended_message", func(e *store.EdgeRow, r *sqlstmt.Row, i int) { e.EndedError = scanEndedError(r, i) }), // must be last: it selects three columns
	}

	dispatchColumns = sqlstmt.Columns[store.DispatchRow]{
		sqlstmt.Col("task_id", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.Task = r.ID(i) }),
		sqlstmt.Col("queue", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.Queue = r.Name(i) }),
		sqlstmt.Col("task_type", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.Type = r.Name(i) }),
		sqlstmt.Col("priority", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.Priority = int(r.Int(i)) }),
		sqlstmt.Col("available_at", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.AvailableAt = r.Time(i) }),
		sqlstmt.Col("concurrency_key", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.ConcurrencyKey = r.Text(i) }),
		sqlstmt.Col("lane_group", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.Group = r.Name(i) }),
		sqlstmt.Col("sent_until", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.SentUntil = r.Time(i) }),
		sqlstmt.Col("attempts", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.Attempts = int(r.Int(i)) }),
		sqlstmt.Col("last_error", func(d *store.DispatchRow, r *sqlstmt.Row, i int) { d.LastError = r.Text(i) }),
	}

	keyColumns = sqlstmt.Columns[store.KeyRow]{
		sqlstmt.Col("key", func(k *store.KeyRow, r *sqlstmt.Row, i int) { k.Key = r.Text(i) }),
		sqlstmt.Col("held", func(k *store.KeyRow, r *sqlstmt.Row, i int) { k.Held = int(r.Int(i)) }),
		sqlstmt.Col("cap", func(k *store.KeyRow, r *sqlstmt.Row, i int) { k.Cap = int(r.Int(i)) }),
	}

	waiterColumns = sqlstmt.Columns[store.WaiterRow]{
		sqlstmt.Col("key", func(w *store.WaiterRow, r *sqlstmt.Row, i int) { w.Key = r.Text(i) }),
		sqlstmt.Col("due_at", func(w *store.WaiterRow, r *sqlstmt.Row, i int) { w.DueAt = r.Time(i) }),
		sqlstmt.Col("task_id", func(w *store.WaiterRow, r *sqlstmt.Row, i int) { w.Task = r.ID(i) }),
		sqlstmt.Col("queue", func(w *store.WaiterRow, r *sqlstmt.Row, i int) { w.Queue = r.Name(i) }),
		sqlstmt.Col("task_type", func(w *store.WaiterRow, r *sqlstmt.Row, i int) { w.Type = r.Name(i) }),
		sqlstmt.Col("lane_group", func(w *store.WaiterRow, r *sqlstmt.Row, i int) { w.Group = r.Name(i) }),
	}
)
