package sqlstore

import (
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// ops implements propagate.Ops row by row with prepared statements: on SQLite a set-based
// statement costs as much as its rows separately (ADR 0014). A database with Bulk has
// set-based statements for the needs of most batches.
type ops struct{ tx *Tx }

var _ propagate.Ops = ops{}

// WakeKeys implements propagate.Ops.
func (o ops) WakeKeys(keys []string) (again []string, err error) {
	for _, k := range keys {
		more, err := o.tx.wakeKey(k)
		if err != nil {
			return nil, err
		}
		if more {
			again = append(again, k)
		}
	}
	return again, nil
}

// InsertDispatch implements propagate.Ops.
func (o ops) InsertDispatch(rows []store.DispatchRow) error {
	some, err := o.tx.anyPaused()
	if err != nil {
		return err
	}
	if o.tx.bulk != nil && !some {
		return o.tx.dispatchAll(rows)
	}
	for i := range rows {
		r := &rows[i]
		if some {
			if parked, err := o.tx.park(&r.Task, r.AvailableAt.UnixMicro()); err != nil {
				return err
			} else if parked {
				continue
			}
		}
		d := dispatched{r.Task, lane.Key{Queue: r.Queue, Type: r.Type, Group: r.Group, Priority: int64(r.Priority)}, r.ConcurrencyKey}
		if err := o.tx.dispatch(&d, r.AvailableAt.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}

const (
	// If LIMIT is only a parameter, SQLite prepares the statement again for each ended task,
	// which takes five times as long as running it.
	sqlOpenEdges = `
SELECT task_id, kind, step, awaited FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND task_id > ?3 AND done = 0 ORDER BY task_id LIMIT ?4 + 0`
	sqlEdgeDone = `
UPDATE weaver_task_dependencies SET done = 1, ended_state = CASE WHEN awaited > 0 THEN ?4 END, ended_kind = ?5, ended_code = ?6, ended_message = ?7
WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3`
)

// MarkEdges implements propagate.Ops.
func (o ops) MarkEdges(ended []propagate.Ended, limit int) (edges []propagate.Edge, rest []propagate.Ended, err error) {
	if o.tx.bulk != nil && len(ended) > 1 {
		if edges, few, err := o.markAll(ended, limit); few || err != nil {
			return edges, nil, err
		}
	}
	var awaited []bool // parallel to edges
	for i := range ended {
		need := &ended[i]
		st := o.tx.stmt(sqlOpenEdges).Text(1, o.tx.ns).ID(2, &need.ID).ID(3, &need.After).Int(4, int64(limit-len(edges)+1))
		more := *need
		for st.Next() {
			if len(edges) == limit {
				rest = append(rest, more)
				continue // the extra row shows that more remain
			}
			more.After = st.ColID(0)
			awaited = append(awaited, st.ColInt(3) > 0)
			edges = append(edges, propagate.Edge{
				Dependent: more.After, Step: st.ColText(2),
				EndedNeed: rules.EndedNeed{Need: need.ID, Kind: task.EdgeKind(st.ColName(1)), End: need.End},
			})
		}
		if err := st.Done(); err != nil {
			return nil, nil, err
		}
	}
	for i := range edges {
		e := &edges[i]
		var kept *task.Error
		if awaited[i] {
			if kept, err = o.tx.endedError(&e.Need, e.End.State); err != nil {
				return nil, nil, err
			}
		}
		st := o.tx.stmt(sqlEdgeDone).Text(1, o.tx.ns).ID(2, &e.Dependent).ID(3, &e.Need).Text(4, string(e.End.State))
		if err := bindEndedError(st, 5, kept).Run(); err != nil {
			return nil, nil, err
		}
	}
	return edges, rest, nil
}

// DependentColumns are the columns of a dependent after LowerNeeds.
var DependentColumns = sqlstmt.Columns[propagate.Dependent]{
	sqlstmt.Col("task_id", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.ID, d.Dispatch.Task = r.ID(i), r.ID(i) }),
	sqlstmt.Col("remaining_deps", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Waits.Open = int(r.Int(i)) }),
	sqlstmt.Col("coalesce(open_if_failed, -1)", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Waits.IfFailed = int(r.Int(i)) }),
	sqlstmt.Col("join_kind", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Join = task.Join(r.Name(i)) }),
	sqlstmt.Col("allow_failure", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.MayFail = r.Bool(i) }),
	sqlstmt.Col("ready_at", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.ReadyAt = r.Time(i) }),
	sqlstmt.Col("deadline_at", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Deadline = r.Time(i) }),
	sqlstmt.Col("job_id", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Job = r.ID(i) }),
	sqlstmt.Col("needed", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Needed = r.Bool(i) }),
	sqlstmt.Col("calls", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Calls = r.Bool(i) }),
	sqlstmt.Col("queue", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Dispatch.Queue = r.Name(i) }),
	sqlstmt.Col("task_type", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Dispatch.Type = r.Name(i) }),
	sqlstmt.Col("priority", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Dispatch.Priority = int(r.Int(i)) }),
	sqlstmt.Col("concurrency_key", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Dispatch.ConcurrencyKey = r.Text(i) }),
	sqlstmt.Col("lane_group", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Dispatch.Group = r.Name(i) }),
	sqlstmt.Col("undo_open", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Undoable.Open = int(r.Int(i)) }),
	sqlstmt.Col("undo", func(d *propagate.Dependent, r *sqlstmt.Row, i int) { d.Undoable.Phase = r.Phase(i) }),
	sqlstmt.Col("attempt_no", func(d *propagate.Dependent, r *sqlstmt.Row, i int) {
		d.Undoable.Began, d.Undoable.Unaware = rules.Began(task.Pending, task.WaitDeps, d.Join, int(r.Int(i))), true
	}),
	sqlstmt.Col("CASE WHEN join_kind IS NOT NULL THEN options_json END", func(d *propagate.Dependent, r *sqlstmt.Row, i int) {
		if d.Undoable.Began {
			var t task.Task
			r.Options(i, &t)
			d.Undoable.CleansUp = t.CleanupWhenCancelled
		}
	}),
}

// WaitsForTasks is rules.WaitsForTasks.
const WaitsForTasks = `state = 'pending' AND (waiting_reason = 'deps' OR waiting_reason IN ('children', 'repair') AND join_kind IS NOT NULL)`

// sqlLowerNeeds is rules.Waits.After.
var sqlLowerNeeds = `
UPDATE weaver_tasks SET
  remaining_deps = remaining_deps - ?3 - CASE WHEN open_if_failed IS NULL THEN 0 WHEN ?5 THEN open_if_failed ELSE ?4 END,
  open_if_failed = CASE WHEN ?5 THEN NULL ELSE open_if_failed - ?4 END
WHERE namespace = ?1 AND task_id = ?2 AND ` + WaitsForTasks + `
RETURNING ` + DependentColumns.List()

// LowerNeeds implements propagate.Ops.
func (o ops) LowerNeeds(marked []propagate.Marked) ([]propagate.Dependent, error) {
	if o.tx.bulk != nil && len(marked) > 1 {
		return o.lowerAll(marked)
	}
	var deps []propagate.Dependent
	for i := range marked {
		m := &marked[i]
		d, err := DependentColumns.One(o.tx.stmt(sqlLowerNeeds).Text(1, o.tx.ns).ID(2, &m.ID).Int(3, int64(m.All)).Int(4, int64(m.IfFailed)).Bool(5, m.Wrong))
		if err != nil {
			return nil, err
		}
		if d != nil {
			deps = append(deps, *d)
		}
	}
	return deps, nil
}

// sqlIfFailed reads two rows, to learn whether there is another one.
const sqlIfFailed = `
SELECT d.depends_on_task_id, n.state, n.last_error_kind FROM weaver_task_dependencies d
CROSS JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2 AND d.kind = 'failed' ORDER BY d.depends_on_task_id LIMIT 2`

// IfFailed implements propagate.Ops.
func (o ops) IfFailed(dependents []task.ID) ([]propagate.Edge, error) {
	var edges []propagate.Edge
	for i := range dependents {
		st := o.tx.stmt(sqlIfFailed).Text(1, o.tx.ns).ID(2, &dependents[i])
		for st.Next() {
			end := task.End{State: task.State(st.ColName(1)), Kind: task.ErrorKind(st.ColName(2))}
			edges = append(edges, propagate.Edge{
				Dependent: dependents[i],
				EndedNeed: rules.EndedNeed{Need: st.ColID(0), Kind: task.OnFailed, End: end},
			})
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	return edges, nil
}

const sqlMakeReady = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = ?4, join_kind = NULL, updated_at = ?5 WHERE namespace = ?1 AND task_id = ?2`

// MakeReady implements propagate.Ops.
func (o ops) MakeReady(tasks []propagate.Ready) error {
	if o.tx.bulk != nil && len(tasks) > 1 {
		return o.tx.bulk.MakeReady(o.tx, tasks)
	}
	for i := range tasks {
		t := &tasks[i]
		err := o.tx.stmt(sqlMakeReady).Text(1, o.tx.ns).ID(2, &t.ID).Text(3, string(t.State)).OrNull(4, string(t.Waiting)).Int(5, o.tx.mic).Run()
		if err != nil {
			return err
		}
	}
	return nil
}

const sqlOptionsOf = `SELECT options_json FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// Nodes implements propagate.Ops.
func (o ops) Nodes(ids []task.ID) ([]string, error) {
	names := make([]string, len(ids))
	for i := range ids {
		t, err := o.tx.options(&ids[i])
		if err != nil {
			return nil, err
		}
		names[i] = t.Node
	}
	return names, nil
}

// options reads the options of a task: its node, labels and others.
func (t *Tx) options(id *task.ID) (of task.Task, err error) {
	st := t.stmt(sqlOptionsOf).Text(1, t.ns).ID(2, id)
	if st.One() {
		st.ColOptions(0, &of)
	}
	return of, st.Done()
}

// CancelDependents implements propagate.Ops.
func (o ops) CancelDependents(tasks []propagate.Unmet) error {
	for i := range tasks {
		u := &tasks[i]
		if err := o.tx.writeEnd(&u.ID, task.Cancelled, u.Failure); err != nil {
			return err
		}
		if u.Undo {
			if err := o.tx.setUndo(&u.ID, &rules.Transition{SetUndo: true}); err != nil {
				return err
			}
		}
		if u.Deadline.IsZero() {
			continue
		}
		if err := o.tx.deleteTimer(&u.ID, u.Deadline.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlUndoNeeds = `
SELECT n.state, n.last_error_kind, n.allow_failure FROM weaver_task_dependencies d
CROSS JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2`
	sqlUndone = `
SELECT n.task_id, n.options_json, n.attempt_no FROM weaver_task_dependencies d
CROSS JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2 AND d.kind = 'undo' ORDER BY d.depends_on_task_id LIMIT 1`
)

// UndoNeeds implements propagate.Ops.
func (o ops) UndoNeeds(id, job task.ID) (needs []rules.UndoNeed, cancelled bool, err error) {
	seen := make(map[task.End]bool)
	st := o.tx.stmt(sqlUndoNeeds).Text(1, o.tx.ns).ID(2, &id)
	for st.Next() {
		end := task.End{State: task.State(st.ColName(0)), Kind: task.ErrorKind(st.ColName(1)), AllowFailure: st.ColBool(2)}
		if !seen[end] {
			seen[end] = true
			needs = append(needs, rules.UndoNeed{Kind: task.OnDone, End: end})
		}
	}
	if err := st.Done(); err != nil {
		return nil, false, err
	}
	if st = o.tx.stmt(sqlUndone).Text(1, o.tx.ns).ID(2, &id); st.One() {
		var of task.Task
		st.ColOptions(1, &of)
		needs = append(needs, rules.UndoNeed{Kind: task.OnUndo, End: task.End{State: task.Succeeded}, Began: st.ColInt(2) > 0, Name: rules.TaskName(of.Node, st.ColID(0))})
	}
	if err := st.Done(); err != nil || job.IsZero() {
		return needs, false, err
	}
	j, err := o.tx.job(&job)
	return needs, j != nil && j.CancelRequested, err
}

// BeginUndo implements propagate.Ops.
func (o ops) BeginUndo(tasks []propagate.Undoing) error {
	m := moves{tx: o.tx}
	for i := range tasks {
		u := &tasks[i]
		if err := m.writeBegin(&u.ID, &u.To); err != nil {
			return err
		}
		if _, err := o.tx.unpause(&u.ID); err != nil {
			return err
		}
		if u.Deadline.IsZero() {
			continue
		}
		if err := o.tx.deleteTimer(&u.ID, u.Deadline.UnixMicro()); err != nil {
			return err
		}
	}
	return nil
}

var (
	sqlJob      = `SELECT ` + jobColumns.List() + ` FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2`
	sqlCountJob = `
UPDATE weaver_jobs SET total = ?3, unfinished = ?4, movable = ?5, failed = ?6, succeeded = ?7, allowed = ?11, state = ?8, updated_at = ?9,
  attempts_used = ?12, cost = ?13, exhausted_at = coalesce(exhausted_at, ?14),
  finished_at = CASE WHEN ?10 THEN coalesce(finished_at, ?9) END
WHERE namespace = ?1 AND job_id = ?2`
)

// CountJobs implements propagate.Ops.
func (o ops) CountJobs(changes []propagate.JobChange) (moved []propagate.JobState, exhausted []task.ID, err error) {
	for i := range changes {
		c := &changes[i]
		job, err := o.tx.job(&c.Job)
		if err != nil {
			return nil, nil, err
		}
		if job == nil {
			continue
		}
		n := job.Counters.Add(c.Change)
		job.Counters = n
		job.AttemptsUsed += c.Attempts
		job.Cost += c.Cost
		now, err := o.tx.exhausts(job)
		if err != nil {
			return nil, nil, err
		}
		state := task.JobStateOf(n, job.CancelRequested)
		if state != job.State {
			moved = append(moved, propagate.JobState{Job: c.Job, Was: job.State, State: state})
		}
		st := o.tx.stmt(sqlCountJob).Text(1, o.tx.ns).ID(2, &c.Job).
			Int(3, int64(n.Total)).Int(4, int64(n.Unfinished)).Int(5, int64(n.Movable)).Int(6, int64(n.Failed)).Int(7, int64(n.Succeeded)).
			Text(8, string(state)).Int(9, o.tx.mic).Bool(10, state.Terminal()).Int(11, int64(n.Allowed)).
			Int(12, int64(job.AttemptsUsed)).Int(13, job.Cost)
		if now {
			exhausted = append(exhausted, c.Job)
			st.Int(14, o.tx.mic)
		} else {
			st.Null(14)
		}
		if err := st.Run(); err != nil {
			return nil, nil, err
		}
	}
	return moved, exhausted, nil
}

// job reads a job, or returns nil.
func (v *View) job(id *task.ID) (*task.Job, error) {
	return jobColumns.One(v.stmt(sqlJob).Text(1, v.ns).ID(2, id))
}

// wakeKeys wakes keys in a fixed order.
func (t *Tx) wakeKeys(keys map[string]bool) error {
	again, err := ops{t}.WakeKeys(slices.Sorted(maps.Keys(keys)))
	if err != nil || len(again) == 0 {
		return err
	}
	return ops{t}.AddChores(again, nil)
}
