package sqlite

import (
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
	"github.com/goweaver/weaver/task"
)

// The columns of each row type, with where their values go. Statements select
// the list of a table and scan with the same table; no statement counts
// columns by hand.

// taskColumns are those of a task; taskSelect has one more.
var taskColumns = conn.Columns[task.Task]{
	conn.Col("task_id", func(t *task.Task, r *conn.Row, i int) { t.ID = r.ID(i) }),
	conn.Col("task_type", func(t *task.Task, r *conn.Row, i int) { t.Type = r.Name(i) }),
	conn.Col("queue", func(t *task.Task, r *conn.Row, i int) { t.Queue = r.Name(i) }),
	conn.Col("priority", func(t *task.Task, r *conn.Row, i int) { t.Priority = int(r.Int(i)) }),
	conn.Col("state", func(t *task.Task, r *conn.Row, i int) { t.State = task.State(r.Name(i)) }),
	conn.Col("waiting_reason", func(t *task.Task, r *conn.Row, i int) { t.Waiting = task.Waiting(r.Name(i)) }),
	conn.Col("ready_at", func(t *task.Task, r *conn.Row, i int) { t.ReadyAt = r.Time(i) }),
	conn.Col("remaining_deps", func(t *task.Task, r *conn.Row, i int) { t.RemainingDeps = int(r.Int(i)) }),
	conn.Col("lease_epoch", func(t *task.Task, r *conn.Row, i int) { t.Epoch = r.Int(i) }),
	conn.Col("lease_id", func(t *task.Task, r *conn.Row, i int) { t.LeaseID = r.Lease(i) }),
	conn.Col("CASE WHEN lease_id IS NOT NULL THEN leased_by END", func(t *task.Task, r *conn.Row, i int) { t.LeasedBy = r.Name(i) }),
	conn.Col("lease_expires_at", func(t *task.Task, r *conn.Row, i int) { t.LeaseExpiresAt = r.Time(i) }),
	conn.Col("attempt_no", func(t *task.Task, r *conn.Row, i int) { t.AttemptNo = int(r.Int(i)) }),
	conn.Col("attempt_count", func(t *task.Task, r *conn.Row, i int) { t.AttemptCount = int(r.Int(i)) }),
	conn.Col("step_count", func(t *task.Task, r *conn.Row, i int) { t.StepCount = int(r.Int(i)) }),
	conn.Col("wake_seq", func(t *task.Task, r *conn.Row, i int) { t.WakeSeq = int(r.Int(i)) }),
	conn.Col("crash_count", func(t *task.Task, r *conn.Row, i int) { t.CrashCount = int(r.Int(i)) }),
	conn.Col("quarantine_losses", func(t *task.Task, r *conn.Row, i int) { t.QuarantineLosses = int(r.Int(i)) }),
	conn.Col("internal_count", func(t *task.Task, r *conn.Row, i int) { t.InternalCount = int(r.Int(i)) }),
	conn.Col("repair_count", func(t *task.Task, r *conn.Row, i int) { t.RepairCount = int(r.Int(i)) }),
	conn.Col("idle_attempts", func(t *task.Task, r *conn.Row, i int) { t.IdleAttempts = int(r.Int(i)) }),
	conn.Col("cost", func(t *task.Task, r *conn.Row, i int) { t.Cost = r.Int(i) }),
	conn.Col("started_version", func(t *task.Task, r *conn.Row, i int) { t.StartedVersion = int(r.Int(i)) }),
	conn.Col("input", func(t *task.Task, r *conn.Row, i int) { t.Input = r.Bytes(i) }),
	conn.Col("schema_version", func(t *task.Task, r *conn.Row, i int) { t.SchemaVersion = int(r.Int(i)) }),
	conn.Col("values_dropped", func(t *task.Task, r *conn.Row, i int) {
		t.ValuesDropped, t.Forgotten = r.Bool(i), r.Int(i) == forgottenValues
	}),
	conn.Col("output", func(t *task.Task, r *conn.Row, i int) { t.Output = r.Bytes(i) }),
	conn.Col("last_error_json", func(t *task.Task, r *conn.Row, i int) { t.Error = r.Error(i) }),
	conn.Col("progress", func(t *task.Task, r *conn.Row, i int) { t.Progress = r.Progress(i) }),
	conn.Col("max_attempts", func(t *task.Task, r *conn.Row, i int) { t.MaxAttempts = int(r.Int(i)) }),
	conn.Col("max_repairs", func(t *task.Task, r *conn.Row, i int) { t.MaxRepairs = int(r.Int(i)) }),
	conn.Col("options_json", func(t *task.Task, r *conn.Row, i int) { r.Options(i, t) }),
	conn.Col("allow_failure", func(t *task.Task, r *conn.Row, i int) { t.AllowFailure = r.Bool(i) }),
	conn.Col("job_id", func(t *task.Task, r *conn.Row, i int) { t.JobID = r.ID(i) }),
	conn.Col("parent_task_id", func(t *task.Task, r *conn.Row, i int) { t.ParentID = r.ID(i) }),
	conn.Col("rerun_of", func(t *task.Task, r *conn.Row, i int) { t.RerunOf = r.ID(i) }),
	conn.Col("depth", func(t *task.Task, r *conn.Row, i int) { t.Depth = int(r.Int(i)) }),
	conn.Col("join_kind", func(t *task.Task, r *conn.Row, i int) { t.Join = task.Join(r.Name(i)) }),
	conn.Col("idempotency_key", func(t *task.Task, r *conn.Row, i int) { t.IdempotencyKey = r.Text(i) }),
	conn.Col("concurrency_key", func(t *task.Task, r *conn.Row, i int) { t.ConcurrencyKey = r.Text(i) }),
	conn.Col("cancel_requested", func(t *task.Task, r *conn.Row, i int) { t.CancelRequested = r.Bool(i) }),
	conn.Col("cancel_kind", func(t *task.Task, r *conn.Row, i int) { t.CancelKind = task.ErrorKind(r.Name(i)) }),
	conn.Col("cancel_by", func(t *task.Task, r *conn.Row, i int) { t.CancelBy = r.Text(i) }),
	conn.Col("cancel_reason", func(t *task.Task, r *conn.Row, i int) { t.CancelReason = r.Text(i) }),
	conn.Col("deadline_at", func(t *task.Task, r *conn.Row, i int) { t.DeadlineAt = r.Time(i) }),
	conn.Col("created_at", func(t *task.Task, r *conn.Row, i int) { t.CreatedAt = r.Time(i) }),
	conn.Col("updated_at", func(t *task.Task, r *conn.Row, i int) { t.UpdatedAt = r.Time(i) }),
	conn.Col("started_at", func(t *task.Task, r *conn.Row, i int) { t.StartedAt = r.Time(i) }),
	conn.Col("finished_at", func(t *task.Task, r *conn.Row, i int) { t.FinishedAt = r.Time(i) }),
}

// taskSelect is what scanTask scans.
var taskSelect = taskColumns.List() + ", has_payloads"

// taskSelected is how many columns taskSelect has.
var taskSelected = len(taskColumns) + 1

// scanTask reads taskSelect. It reports whether the task may have payloads.
func scanTask(r *conn.Row, t *task.Task) (payloads bool) {
	taskColumns.Scan(r, 0, t)
	return r.Bool(len(taskColumns))
}

// candidate is one due dispatch row with its task.
type candidate struct {
	dispatched
	due      int64
	fresh    bool // plain and never claimed: everything not in it is zero
	task     *task.Task
	payloads bool // weaver_payloads may have rows of it
	open     bool // stored as claimable
}

// A claim reads dispatch rows together with what it needs of their tasks, in
// one statement for a whole chunk: RETURNING would cost SQLite a temporary
// table for each task updated. Of a plain task that was never claimed
// freshColumns are all there is to know more; of
// the others claims read the row once more.
var (
	candidateColumns = conn.Columns[candidate]{
		conn.Col("o.available_at", func(d *candidate, r *conn.Row, i int) { d.due = r.Int(i) }),
		conn.Col("o.task_id", func(d *candidate, r *conn.Row, i int) { d.id = r.ID(i) }),
		conn.Col("t.plain AND t.lease_epoch = 0", func(d *candidate, r *conn.Row, i int) { d.fresh = r.Bool(i) }),
		conn.Col("o.queue", func(d *candidate, r *conn.Row, i int) { d.lane.Queue = r.Name(i) }),
		conn.Col("o.task_type", func(d *candidate, r *conn.Row, i int) { d.lane.Type = r.Name(i) }),
		conn.Col("o.priority", func(d *candidate, r *conn.Row, i int) { d.lane.Priority = r.Int(i) }),
		conn.Col("o.concurrency_key", func(d *candidate, r *conn.Row, i int) { d.key = r.Text(i) }),
	}

	freshColumns = conn.Columns[task.Task]{
		conn.Col("t.input", func(t *task.Task, r *conn.Row, i int) { t.Input = r.Bytes(i) }),
		conn.Col("t.schema_version", func(t *task.Task, r *conn.Row, i int) { t.SchemaVersion = int(r.Int(i)) }),
		conn.Col("t.max_attempts", func(t *task.Task, r *conn.Row, i int) { t.MaxAttempts = int(r.Int(i)) }),
		conn.Col("t.max_repairs", func(t *task.Task, r *conn.Row, i int) { t.MaxRepairs = int(r.Int(i)) }),
		conn.Col("t.options_json", func(t *task.Task, r *conn.Row, i int) { r.Options(i, t) }),
		conn.Col("t.created_at", func(t *task.Task, r *conn.Row, i int) { t.CreatedAt = r.Time(i) }),
	}

	candidateSelect = candidateColumns.List() + ", " + freshColumns.List()
)

// scanCandidate reads candidateSelect.
func scanCandidate(r *conn.Row, d *candidate) {
	candidateColumns.Scan(r, 0, d)
	if d.open = d.fresh; d.fresh {
		t := d.task
		t.ID, t.Type, t.Queue, t.Priority = d.id, d.lane.Type, d.lane.Queue, int(d.lane.Priority)
		freshColumns.Scan(r, len(candidateColumns), t)
	}
}

// leaseRow is a task as seen by operations that end its attempt. Of a task
// that does not run the lease is its last one.
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
	mayFail   bool // its job allows it
	deadline  int64
	limits    int64 // of its job's budget
	idle      int   // attempts

	asked     cancelRequested
	cancelled task.ErrorKind // why it was asked to end; "" when it was not
	by        string
	reason    string
	cleansUp  bool // when it is cancelled; of a leaseRow only if it was asked to end
}

// cancelRequested is what weaver_tasks.cancel_requested holds.
type cancelRequested int

const (
	notAsked    cancelRequested = iota
	asked                       // to end; also while a cleanup is due
	askedBefore                 // the attempt that runs, or was the last, was claimed
)

var leaseColumns = conn.Columns[leaseRow]{
	conn.Col("task_id", func(l *leaseRow, r *conn.Row, i int) { l.id = r.ID(i) }),
	conn.Col("queue", func(l *leaseRow, r *conn.Row, i int) { l.lane.Queue = r.Name(i) }),
	conn.Col("task_type", func(l *leaseRow, r *conn.Row, i int) { l.lane.Type = r.Name(i) }),
	conn.Col("priority", func(l *leaseRow, r *conn.Row, i int) { l.lane.Priority = r.Int(i) }),
	conn.Col("concurrency_key", func(l *leaseRow, r *conn.Row, i int) { l.key = r.Text(i) }),
	conn.Col("attempt_no", func(l *leaseRow, r *conn.Row, i int) { l.attemptNo = int(r.Int(i)) }),
	conn.Col("lease_epoch", func(l *leaseRow, r *conn.Row, i int) { l.epoch = r.Int(i) }),
	conn.Col("lease_id", func(l *leaseRow, r *conn.Row, i int) { l.leaseID = r.Lease(i) }),
	conn.Col("leased_by", func(l *leaseRow, r *conn.Row, i int) { l.worker = r.Name(i) }),
	conn.Col("started_at", func(l *leaseRow, r *conn.Row, i int) { l.startedAt = r.Int(i) }),
	conn.Col("job_id", func(l *leaseRow, r *conn.Row, i int) { l.job = r.ID(i) }),
	conn.Col("needed", func(l *leaseRow, r *conn.Row, i int) { l.needed = r.Bool(i) }),
	conn.Col("calls", func(l *leaseRow, r *conn.Row, i int) { l.calls = r.Bool(i) }),
	conn.Col("wake_seq", func(l *leaseRow, r *conn.Row, i int) { l.wakeSeq = int(r.Int(i)) }),
	conn.Col("join_kind", func(l *leaseRow, r *conn.Row, i int) { l.join = task.Join(r.Name(i)) }),
	conn.Col("allow_failure", func(l *leaseRow, r *conn.Row, i int) { l.mayFail = r.Bool(i) }),
	conn.Col("deadline_at", func(l *leaseRow, r *conn.Row, i int) { l.deadline = r.Int(i) }),
	conn.Col("job_limits", func(l *leaseRow, r *conn.Row, i int) { l.limits = r.Int(i) }),
	conn.Col("idle_attempts", func(l *leaseRow, r *conn.Row, i int) { l.idle = int(r.Int(i)) }),
	conn.Col("cancel_requested", func(l *leaseRow, r *conn.Row, i int) { l.asked = cancelRequested(r.Int(i)) }),
	conn.Col("CASE WHEN cancel_requested THEN cancel_kind END", func(l *leaseRow, r *conn.Row, i int) { l.cancelled = task.ErrorKind(r.Name(i)) }),
	conn.Col("cancel_by", func(l *leaseRow, r *conn.Row, i int) { l.by = r.Text(i) }),
	conn.Col("cancel_reason", func(l *leaseRow, r *conn.Row, i int) { l.reason = r.Text(i) }),
	conn.Col("CASE WHEN cancel_requested THEN options_json END", func(l *leaseRow, r *conn.Row, i int) {
		var t task.Task
		r.Options(i, &t)
		l.cleansUp = t.CleanupWhenCancelled
	}),
}

// taskRow is a task as seen by operations that change it without its lease:
// operator commands, the reaper, and the ends of its needs.
type taskRow struct {
	leaseRow      // of the lease, if it runs
	contribution  propagate.Contribution
	crashes       int
	depth         int
	isolated      bool
	node          string
	cost, maxCost int64
}

// taskRowColumns follow leaseColumns.
var (
	taskRowColumns = conn.Columns[taskRow]{
		conn.Col("state", func(w *taskRow, r *conn.Row, i int) { w.contribution.State = task.State(r.Name(i)) }),
		conn.Col("waiting_reason", func(w *taskRow, r *conn.Row, i int) { w.contribution.Waiting = task.Waiting(r.Name(i)) }),
		conn.Col("ready_at", func(w *taskRow, r *conn.Row, i int) { w.contribution.Timed = r.Int(i) != 0 }),
		conn.Col("last_error_kind", func(w *taskRow, r *conn.Row, i int) { w.contribution.Kind = task.ErrorKind(r.Name(i)) }),
		conn.Col("allow_failure", func(w *taskRow, r *conn.Row, i int) { w.contribution.AllowFailure = r.Bool(i) }),
		conn.Col("crash_count", func(w *taskRow, r *conn.Row, i int) { w.crashes = int(r.Int(i)) }),
		conn.Col("depth", func(w *taskRow, r *conn.Row, i int) { w.depth = int(r.Int(i)) }),
		conn.Col("cost", func(w *taskRow, r *conn.Row, i int) { w.cost = r.Int(i) }),
		conn.Col("isolated", func(w *taskRow, r *conn.Row, i int) { w.isolated = r.Bool(i) }),
		conn.Col("options_json", func(w *taskRow, r *conn.Row, i int) {
			var t task.Task
			r.Options(i, &t)
			w.node, w.cleansUp, w.maxCost = t.Node, t.CleanupWhenCancelled, t.MaxCost
		}),
	}

	taskRowSelect = leaseColumns.List() + ", " + taskRowColumns.List()
)

// scanTaskRow reads taskRowSelect.
func scanTaskRow(r *conn.Row, w *taskRow) {
	leaseColumns.Scan(r, 0, &w.leaseRow)
	taskRowColumns.Scan(r, len(leaseColumns), w)
	w.contribution.Join = w.join
}

var jobColumns = conn.Columns[task.Job]{
	conn.Col("job_id", func(j *task.Job, r *conn.Row, i int) { j.ID = r.ID(i) }),
	conn.Col("name", func(j *task.Job, r *conn.Row, i int) { j.Name = r.Text(i) }),
	conn.Col("state", func(j *task.Job, r *conn.Row, i int) { j.State = task.JobState(r.Name(i)) }),
	conn.Col("budget_json", func(j *task.Job, r *conn.Row, i int) { r.JSON(i, &j.Budget) }),
	conn.Col("idempotency_key", func(j *task.Job, r *conn.Row, i int) { j.IdempotencyKey = r.Text(i) }),
	conn.Col("meta", func(j *task.Job, r *conn.Row, i int) { j.Meta = r.Map(i) }),
	conn.Col("total", func(j *task.Job, r *conn.Row, i int) { j.Counters.Total = int(r.Int(i)) }),
	conn.Col("unfinished", func(j *task.Job, r *conn.Row, i int) { j.Counters.Unfinished = int(r.Int(i)) }),
	conn.Col("movable", func(j *task.Job, r *conn.Row, i int) { j.Counters.Movable = int(r.Int(i)) }),
	conn.Col("failed", func(j *task.Job, r *conn.Row, i int) { j.Counters.Failed = int(r.Int(i)) }),
	conn.Col("allowed", func(j *task.Job, r *conn.Row, i int) { j.Counters.Allowed = int(r.Int(i)) }),
	conn.Col("succeeded", func(j *task.Job, r *conn.Row, i int) { j.Counters.Succeeded = int(r.Int(i)) }),
	conn.Col("attempts_used", func(j *task.Job, r *conn.Row, i int) { j.AttemptsUsed = int(r.Int(i)) }),
	conn.Col("cost", func(j *task.Job, r *conn.Row, i int) { j.Cost = r.Int(i) }),
	conn.Col("exhausted_at", func(j *task.Job, r *conn.Row, i int) { j.ExhaustedAt = r.Time(i) }),
	conn.Col("cancel_requested", func(j *task.Job, r *conn.Row, i int) { j.CancelRequested = r.Bool(i) }),
	conn.Col("cancel_by", func(j *task.Job, r *conn.Row, i int) { j.CancelBy = r.Text(i) }),
	conn.Col("cancel_reason", func(j *task.Job, r *conn.Row, i int) { j.CancelReason = r.Text(i) }),
	conn.Col("deadline_at", func(j *task.Job, r *conn.Row, i int) { j.DeadlineAt = r.Time(i) }),
	conn.Col("created_at", func(j *task.Job, r *conn.Row, i int) { j.CreatedAt = r.Time(i) }),
	conn.Col("updated_at", func(j *task.Job, r *conn.Row, i int) { j.UpdatedAt = r.Time(i) }),
	conn.Col("finished_at", func(j *task.Job, r *conn.Row, i int) { j.FinishedAt = r.Time(i) }),
}

var stepColumns = conn.Columns[task.Step]{
	conn.Col("task_id", func(s *task.Step, r *conn.Row, i int) { s.TaskID = r.ID(i) }),
	conn.Col("name", func(s *task.Step, r *conn.Row, i int) { s.Name = r.Text(i) }),
	conn.Col("step_index", func(s *task.Step, r *conn.Row, i int) { s.Index = int(r.Int(i)) }),
	conn.Col("kind", func(s *task.Step, r *conn.Row, i int) { s.Kind = task.StepKind(r.Name(i)) }),
	conn.Col("state", func(s *task.Step, r *conn.Row, i int) { s.State = task.StepState(r.Name(i)) }),
	conn.Col("by_attempt", func(s *task.Step, r *conn.Row, i int) { s.AttemptNo = int(r.Int(i)) }),
	conn.Col("by_try", func(s *task.Step, r *conn.Row, i int) { s.Try = int(r.Int(i)) }),
	conn.Col("value", func(s *task.Step, r *conn.Row, i int) { s.Value = r.Bytes(i) }),
	conn.Col("error_json", func(s *task.Step, r *conn.Row, i int) { s.Error = r.Error(i) }),
	conn.Col("wake_at", func(s *task.Step, r *conn.Row, i int) { s.WakeAt = r.Time(i) }),
	conn.Col("started_at", func(s *task.Step, r *conn.Row, i int) { s.StartedAt = r.Time(i) }),
	conn.Col("completed_at", func(s *task.Step, r *conn.Row, i int) { s.CompletedAt = r.Time(i) }),
	conn.Col("cost", func(s *task.Step, r *conn.Row, i int) { s.Cost = r.Int(i) }),
	conn.Col("redact", func(s *task.Step, r *conn.Row, i int) { r.JSON(i, &s.Redact) }),
	conn.Col("awaits", func(s *task.Step, r *conn.Row, i int) { s.Signal = r.Text(i) }),
	conn.Col("children", func(s *task.Step, r *conn.Row, i int) { s.Children = int(r.Int(i)) }),
	conn.Col("children_left", func(s *task.Step, r *conn.Row, i int) { s.ChildrenLeft = int(r.Int(i)) }),
	conn.Col("children_stored", func(s *task.Step, r *conn.Row, i int) { s.ChildrenStored = int(r.Int(i)) }),
}

var attemptColumns = conn.Columns[task.Attempt]{
	conn.Col("task_id", func(a *task.Attempt, r *conn.Row, i int) { a.TaskID = r.ID(i) }),
	conn.Col("attempt_no", func(a *task.Attempt, r *conn.Row, i int) { a.No = int(r.Int(i)) }),
	conn.Col("lease_epoch", func(a *task.Attempt, r *conn.Row, i int) { a.Epoch = r.Int(i) }),
	conn.Col("lease_id", func(a *task.Attempt, r *conn.Row, i int) { a.LeaseID = r.Lease(i) }),
	conn.Col("worker", func(a *task.Attempt, r *conn.Row, i int) { a.Worker = r.Name(i) }),
	conn.Col("code_version", func(a *task.Attempt, r *conn.Row, i int) { a.CodeVersion = int(r.Int(i)) }),
	conn.Col("started_at", func(a *task.Attempt, r *conn.Row, i int) { a.StartedAt = r.Time(i) }),
	conn.Col("finished_at", func(a *task.Attempt, r *conn.Row, i int) { a.FinishedAt = r.Time(i) }),
	conn.Col("outcome_kind", func(a *task.Attempt, r *conn.Row, i int) { a.Outcome = task.Outcome(r.Name(i)) }),
	conn.Col("error_json", func(a *task.Attempt, r *conn.Row, i int) { a.Error = r.Error(i) }),
	conn.Col("outcome_json", func(a *task.Attempt, r *conn.Row, i int) {
		var o outcomeJSON
		r.JSON(i, &o)
		a.StepsRun, a.StepsUnreached, a.RouteReason = o.Action.Steps, o.Action.Unreached, o.Action.Route
	}),
	conn.Col("handler", func(a *task.Attempt, r *conn.Row, i int) { a.Handler = r.Name(i) }),
	conn.Col("outcome_hash", func(a *task.Attempt, r *conn.Row, i int) { a.OutcomeHash = r.Text(i) }),
}

var decisionColumns = conn.Columns[task.Decision]{
	conn.Col("task_id", func(d *task.Decision, r *conn.Row, i int) { d.TaskID = r.ID(i) }),
	conn.Col("attempt_no", func(d *task.Decision, r *conn.Row, i int) { d.AttemptNo = int(r.Int(i)) }),
	conn.Col("decided_at", func(d *task.Decision, r *conn.Row, i int) { d.At = r.Time(i) }),
	conn.Col("decision_kind", func(d *task.Decision, r *conn.Row, i int) { d.Kind = task.DecisionKind(r.Name(i)) }),
	conn.Col("next_ready_at", func(d *task.Decision, r *conn.Row, i int) { d.NextReadyAt = r.Time(i) }),
	conn.Col("child_task_ids", func(d *task.Decision, r *conn.Row, i int) { r.JSON(i, &d.ChildIDs) }),
	conn.Col("reason_json", func(d *task.Decision, r *conn.Row, i int) { r.JSON(i, &d.Reason) }),
}

var auditColumns = conn.Columns[store.AuditEntry]{
	conn.Col("at", func(e *store.AuditEntry, r *conn.Row, i int) { e.At = r.Time(i) }),
	conn.Col("actor", func(e *store.AuditEntry, r *conn.Row, i int) { e.Actor = r.Text(i) }),
	conn.Col("verb", func(e *store.AuditEntry, r *conn.Row, i int) { e.Verb = r.Text(i) }),
	conn.Col("target", func(e *store.AuditEntry, r *conn.Row, i int) { e.Target = r.Text(i) }),
	conn.Col("reason", func(e *store.AuditEntry, r *conn.Row, i int) { e.Reason = r.Text(i) }),
}

// claimRow is one claim call, as the reaper finds it.
type claimRow struct {
	lease  task.LeaseID
	worker string
	ids    []task.ID
}

var claimColumns = conn.Columns[claimRow]{
	conn.Col("lease_id", func(c *claimRow, r *conn.Row, i int) { c.lease = r.Lease(i) }),
	conn.Col("worker_id", func(c *claimRow, r *conn.Row, i int) { c.worker = r.Text(i) }),
	conn.Col("task_ids", func(c *claimRow, r *conn.Row, i int) { c.ids = r.IDs(i) }),
}

// The rows of a snapshot.
var (
	edgeColumns = conn.Columns[store.EdgeRow]{
		conn.Col("task_id", func(e *store.EdgeRow, r *conn.Row, i int) { e.Task = r.ID(i) }),
		conn.Col("depends_on_task_id", func(e *store.EdgeRow, r *conn.Row, i int) { e.Needs = r.ID(i) }),
		conn.Col("kind", func(e *store.EdgeRow, r *conn.Row, i int) { e.Kind = task.EdgeKind(r.Name(i)) }),
		conn.Col("done", func(e *store.EdgeRow, r *conn.Row, i int) { e.Done = r.Bool(i) }),
		conn.Col("step", func(e *store.EdgeRow, r *conn.Row, i int) { e.Step = r.Text(i) }),
		conn.Col("awaited", func(e *store.EdgeRow, r *conn.Row, i int) { e.Awaited = int(r.Int(i)) }),
		conn.Col("ended_state", func(e *store.EdgeRow, r *conn.Row, i int) { e.EndedState = task.State(r.Name(i)) }),
		conn.Col("ended_kind, ended_code, ended_message", func(e *store.EdgeRow, r *conn.Row, i int) { e.EndedError = scanEndedError(r, i) }), // the last: it is three
	}

	dispatchColumns = conn.Columns[store.DispatchRow]{
		conn.Col("task_id", func(d *store.DispatchRow, r *conn.Row, i int) { d.Task = r.ID(i) }),
		conn.Col("queue", func(d *store.DispatchRow, r *conn.Row, i int) { d.Queue = r.Name(i) }),
		conn.Col("task_type", func(d *store.DispatchRow, r *conn.Row, i int) { d.Type = r.Name(i) }),
		conn.Col("priority", func(d *store.DispatchRow, r *conn.Row, i int) { d.Priority = int(r.Int(i)) }),
		conn.Col("available_at", func(d *store.DispatchRow, r *conn.Row, i int) { d.AvailableAt = r.Time(i) }),
		conn.Col("concurrency_key", func(d *store.DispatchRow, r *conn.Row, i int) { d.ConcurrencyKey = r.Text(i) }),
	}

	keyColumns = conn.Columns[store.KeyRow]{
		conn.Col("key", func(k *store.KeyRow, r *conn.Row, i int) { k.Key = r.Text(i) }),
		conn.Col("held", func(k *store.KeyRow, r *conn.Row, i int) { k.Held = int(r.Int(i)) }),
		conn.Col("cap", func(k *store.KeyRow, r *conn.Row, i int) { k.Cap = int(r.Int(i)) }),
	}

	waiterColumns = conn.Columns[store.WaiterRow]{
		conn.Col("key", func(w *store.WaiterRow, r *conn.Row, i int) { w.Key = r.Text(i) }),
		conn.Col("due_at", func(w *store.WaiterRow, r *conn.Row, i int) { w.DueAt = r.Time(i) }),
		conn.Col("task_id", func(w *store.WaiterRow, r *conn.Row, i int) { w.Task = r.ID(i) }),
		conn.Col("queue", func(w *store.WaiterRow, r *conn.Row, i int) { w.Queue = r.Name(i) }),
		conn.Col("task_type", func(w *store.WaiterRow, r *conn.Row, i int) { w.Type = r.Name(i) }),
	}
)
