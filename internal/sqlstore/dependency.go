package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlEdgeTo = `SELECT awaited, kind FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3`

	// sqlWaitsForTask follows the edges that rules.LeadsOn allows.
	sqlWaitsForTask = `
WITH RECURSIVE reached(id) AS (
  SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 UNION
  SELECT d.depends_on_task_id FROM reached r
  CROSS JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = r.id
  CROSS JOIN weaver_task_dependencies d INDEXED BY weaver_task_dependencies_open ON d.namespace = ?1 AND d.task_id = r.id AND d.done = 0
  WHERE CASE WHEN d.step IS NOT NULL THEN t.state <> 'succeeded' AND t.state <> 'failed' AND t.state <> 'cancelled'
    ELSE ` + WaitsForTasks + ` AND (t.join_kind IS NULL OR d.awaited > 0) END)
SELECT 1 FROM reached WHERE id = ?3 LIMIT 1`

	// plain was set by the enqueue and is cleared only here, because another task now waits
	// for the end of the task.
	sqlBecomeNeeded = `UPDATE weaver_tasks SET needed = 1, plain = 0 WHERE namespace = ?1 AND task_id = ?2`

	sqlPutAwaited = `
INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind, awaited, done, ended_state, ended_kind, ended_code, ended_message)
VALUES (?1, ?2, ?3, 'success', ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (namespace, task_id, depends_on_task_id) DO UPDATE SET kind = excluded.kind, awaited = excluded.awaited, done = excluded.done, ended_state = excluded.ended_state,
  ended_kind = excluded.ended_kind, ended_code = excluded.ended_code, ended_message = excluded.ended_message`

	sqlWaitForDependency = `UPDATE weaver_tasks SET remaining_deps = 1 - ?4, join_kind = ?3 WHERE namespace = ?1 AND task_id = ?2`
)

// dependency reads the task of an add_dependency.
func (m *moves) dependency(row *leaseRow, id *task.ID) (d rules.Dependency, err error) {
	t := m.tx
	if err := t.db.Graph(t); err != nil { // before the task's lock, for which others wait
		return d, err
	}
	need, err := m.taskRow(id)
	if err != nil || need == nil {
		return d, err
	}
	if leaving, err := t.leaving(id, &need.job); err != nil || leaving {
		return d, err
	}
	d.Found, d.Name, d.End, d.Outside = true, rules.TaskName(need.node, *id), need.contribution.End, need.job != row.job
	st := t.stmt(sqlEdgeTo).Text(1, t.ns).ID(2, &row.id).ID(3, id)
	if st.One() {
		d.Known, d.Child = true, st.ColInt(0) > 0 && task.EdgeKind(st.ColName(1)) == task.OnDone
	}
	if err := st.Done(); err != nil || *id == row.id {
		return d, err
	}
	st = t.stmt(sqlWaitsForTask).Text(1, t.ns).ID(2, id).ID(3, &row.id)
	d.Cycle = st.One()
	return d, st.Done()
}

// depend writes the edge to a requested task, after the asking task's transition is written.
func (m *moves) depend(row *leaseRow, end task.End, fin *store.Finish, to *rules.Transition) error {
	t, ended := m.tx, end.State.Terminal()
	state := ""
	var kept *task.Error
	if ended {
		var err error
		state = string(end.State)
		if kept, err = t.endedError(&fin.DependsOn, end.State); err != nil {
			return err
		}
	}
	if err := t.countOutside(&row.id, &fin.DependsOn); err != nil {
		return err
	}
	st := t.stmt(sqlPutAwaited).Text(1, t.ns).ID(2, &row.id).ID(3, &fin.DependsOn).Int(4, int64(row.attemptNo)).Bool(5, ended).OrNull(6, state)
	if err := bindEndedError(st, 7, kept).Run(); err != nil {
		return err
	}
	if err := t.stmt(sqlBecomeNeeded).Text(1, t.ns).ID(2, &fin.DependsOn).Run(); err != nil {
		return err
	}
	return t.stmt(sqlWaitForDependency).Text(1, t.ns).ID(2, &row.id).OrNull(3, string(to.Join)).Bool(4, ended).Run()
}
