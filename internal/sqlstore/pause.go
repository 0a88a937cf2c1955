package sqlstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Pauses. A paused queue or type keeps its dispatch rows, and claims skip them (W2). A paused
// task has no dispatch row. Its row of weaver_paused_tasks has the due time of the dispatch
// row that it would have, whatever makes it claimable (propagate's InsertDispatch). A resume
// inserts that row.

const (
	sqlPaused = `
SELECT queue, NULL, 0 FROM weaver_paused_queues WHERE namespace = ?1
UNION ALL SELECT NULL, task_type, 0 FROM weaver_paused_types WHERE namespace = ?1
UNION ALL SELECT NULL, NULL, revision FROM weaver_limit_changes WHERE namespace = ?1`

	sqlPauseQueue  = `INSERT INTO weaver_paused_queues (namespace, queue, at, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	sqlPauseType   = `INSERT INTO weaver_paused_types (namespace, task_type, at, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	sqlResumeQueue = `DELETE FROM weaver_paused_queues WHERE namespace = ?1 AND queue = ?2`
	sqlResumeType  = `DELETE FROM weaver_paused_types WHERE namespace = ?1 AND task_type = ?2`

	// lanePaused is the kind of the pause of a row's queue and type ('type' or 'queue'), or
	// NULL. The row has the alias o.
	lanePaused = `CASE WHEN EXISTS (SELECT 1 FROM weaver_paused_types p WHERE p.namespace = o.namespace AND p.task_type = o.task_type) THEN 'type'
  WHEN EXISTS (SELECT 1 FROM weaver_paused_queues p WHERE p.namespace = o.namespace AND p.queue = o.queue) THEN 'queue' END`
)

// paused returns the names of the paused queues and types.
func (v *View) paused() (queues, types []string, err error) {
	queues, types, _, err = v.restrictions()
	return queues, types, err
}

// restrictions returns the names of the paused queues and types, and the revision of the limits; 0:
// there never was one.
func (v *View) restrictions() (queues, types []string, limits int64, err error) {
	st := v.stmt(sqlPaused).Text(1, v.ns)
	for st.Next() {
		q, kind := st.ColText(0), st.ColText(1)
		switch {
		case q != "":
			queues = append(queues, q)
		case kind != "":
			types = append(types, kind)
		default:
			limits = st.ColInt(2)
		}
	}
	slices.Sort(queues)
	slices.Sort(types)
	return queues, types, limits, st.Done()
}

// pausedSets returns the paused queues and types; a nil map means that nothing is paused.
func (v *View) pausedSets() (queues, types map[string]bool, err error) {
	q, t, err := v.paused()
	return setOf(q), setOf(t), err
}

// setOf returns a set of names; nil if there are none.
func setOf(names []string) (m map[string]bool) {
	for _, name := range names {
		if m == nil {
			m = make(map[string]bool, len(names))
		}
		m[name] = true
	}
	return m
}

// pause excludes a queue or a type from claims. Its due rows no longer fill the limits of
// their keys, so waiters of other lanes may advance.
func (o *operation) pause(sql string, a store.Audit, verb, name string, kind store.ChoreKind) error {
	if err := o.note(a, verb, name); err != nil {
		return err
	}
	n, err := o.tx.stmt(sql).Text(1, o.tx.ns).Text(2, name).Int(3, o.tx.mic).Text(4, a.By).Text(5, a.Reason).Exec()
	if err != nil || n == 0 {
		return err
	}
	c := chore{kind: kind, name: name}
	more, err := o.wakeSome(&c)
	if err != nil || !more {
		return err
	}
	return o.leave(&c)
}

func (o *operation) resume(sql string, a store.Audit, verb, name string) error {
	if err := o.note(a, verb, name); err != nil {
		return err
	}
	o.tx.fx.Notice.Due = true
	return o.tx.stmt(sql).Text(1, o.tx.ns).Text(2, name).Run()
}

const (
	sqlTaskPaused = `SELECT 1 FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlPauseTask  = `
INSERT INTO weaver_paused_tasks (namespace, task_id, at, actor, reason, due_at) VALUES (?1, ?2, ?3, ?4, ?5, nullif(CAST(?6 AS bigint), 0))`
	sqlResumeTask = `DELETE FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2 RETURNING coalesce(due_at, 0)`
	sqlAnyPaused  = `SELECT 1 FROM weaver_paused_tasks WHERE namespace = ?1 LIMIT 1`
	sqlPark       = `UPDATE weaver_paused_tasks SET due_at = nullif(CAST(?3 AS bigint), 0) WHERE namespace = ?1 AND task_id = ?2`
)

// pauseTask removes a task's dispatch row, and keeps it from getting another one.
func (o *operation) pauseTask(cmd store.PauseTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	if got.Err = rules.CheckPause(row.id, row.contribution.State); got.Err != nil {
		return nil
	}
	t := o.tx
	if err := o.note(cmd.Audit, "pause_task", row.id.String()); err != nil {
		return err
	}
	st := t.stmt(sqlTaskPaused).Text(1, t.ns).ID(2, &row.id)
	paused := st.One()
	if err := st.Done(); err != nil || paused {
		return err
	}
	due, err := t.dueAt(&row.id)
	if err == nil && due != 0 {
		err = o.moves.unschedule(row)
	}
	if err != nil {
		return err
	}
	return t.stmt(sqlPauseTask).Text(1, t.ns).ID(2, &row.id).Int(3, t.mic).Text(4, cmd.By).Text(5, cmd.Reason).Int(6, due).Run()
}

// resumeTask inserts the dispatch row that a task would have without its pause.
func (o *operation) resumeTask(cmd store.ResumeTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	if err := o.note(cmd.Audit, "resume_task", row.id.String()); err != nil {
		return err
	}
	due, err := o.tx.unpause(&row.id)
	if err == nil && due != 0 {
		o.moves.pending.Dispatch(row.dispatchRow(sqlstmt.Instant(due)))
	}
	return err
}

// unpause ends the pause of a task and returns its stored due time, or 0.
func (t *Tx) unpause(id *task.ID) (due int64, err error) {
	st := t.stmt(sqlResumeTask).Text(1, t.ns).ID(2, id)
	if st.One() {
		due = st.ColInt(0)
	}
	return due, st.Done()
}

// park stores the due time of a paused task (0 if it has none) instead of its dispatch row,
// and reports whether the task is paused.
func (t *Tx) park(id *task.ID, due int64) (bool, error) {
	n, err := t.stmt(sqlPark).Text(1, t.ns).ID(2, id).Int(3, due).Exec()
	return n > 0, err
}

// anyPaused reports whether any single task is paused.
func (t *Tx) anyPaused() (bool, error) {
	st := t.stmt(sqlAnyPaused).Text(1, t.ns)
	found := st.One()
	return found, st.Done()
}

var pausedTaskColumns = sqlstmt.Columns[store.PausedTask]{
	sqlstmt.Col("task_id", func(p *store.PausedTask, r *sqlstmt.Row, i int) { p.Task = r.ID(i) }),
	sqlstmt.Col("due_at", func(p *store.PausedTask, r *sqlstmt.Row, i int) { p.DueAt = r.Time(i) }),
}

const (
	sqlQueuePauseOf = `SELECT at, actor, reason FROM weaver_paused_queues WHERE namespace = ?1 AND queue = ?2`
	sqlTypePauseOf  = `SELECT at, actor, reason FROM weaver_paused_types WHERE namespace = ?1 AND task_type = ?2`
	sqlTaskPauseOf  = `SELECT at, actor, reason FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2`
)

// pauses adds the pauses that concern a task to its history.
func (v *View) pauses(h *store.History) (err error) {
	t := &h.Task
	if h.TaskPause, err = pauseEntry(v.stmt(sqlTaskPauseOf).Text(1, v.ns).ID(2, &t.ID), "pause_task", t.ID.String()); err != nil || t.State.Terminal() {
		return err
	}
	if h.TypePause, err = pauseEntry(v.stmt(sqlTypePauseOf).Text(1, v.ns).Text(2, t.Type), "pause_type", t.Type); err != nil {
		return err
	}
	h.QueuePause, err = pauseEntry(v.stmt(sqlQueuePauseOf).Text(1, v.ns).Text(2, t.Queue), "pause", t.Queue)
	return err
}

func pauseEntry(st *sqlstmt.Stmt, verb, target string) (*store.AuditEntry, error) {
	if !st.One() {
		return nil, st.Done()
	}
	e := &store.AuditEntry{At: st.ColTime(0), Actor: st.ColText(1), Verb: verb, Target: target, Reason: st.ColText(2)}
	return e, st.Done()
}
