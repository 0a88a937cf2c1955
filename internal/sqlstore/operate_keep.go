package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

const (
	// task.Step.RanCleanup
	ranCleanup = `kind = 'cleanup' AND state = 'completed' AND attempt_no = 0`

	sqlFirstCleanup = `
SELECT task_id, name FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND ` + ranCleanup + `
ORDER BY step_index, by_attempt, by_try, name LIMIT 1`

	sqlCleanupBeyond = backWith + `
SELECT s.task_id, s.name FROM back b
CROSS JOIN weaver_steps s ON s.namespace = ?1 AND s.task_id = b.id AND s.kind = 'cleanup' AND s.state = 'completed' AND s.attempt_no = 0
WHERE b.ran = 1 ORDER BY s.task_id, s.step_index, s.by_attempt, s.by_try, s.name LIMIT 1`
	sqlGivenUpBeyond = backWith + `
SELECT id FROM back WHERE gave_up = 1 ORDER BY id LIMIT 1`

	// backWith follows the edges along which a retry revives tasks: to children (way 0,
	// rules.Need.RevivesChild) and to dependents (way 1, rules.EndedByNeeds).
	backWith = `
WITH RECURSIVE back(id, ran, gave_up) AS (
  SELECT task_id, 0, 0 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 UNION
  SELECT t.task_id, CASE WHEN t.attempt_no > 0 THEN 1 ELSE 0 END, CASE WHEN t.undo IS NULL THEN 0 ELSE 1 END FROM back b
  CROSS JOIN (SELECT 0 AS way UNION ALL SELECT 1) w ON w.way >= 0
  CROSS JOIN weaver_tasks p ON p.namespace = ?1 AND p.task_id = b.id
  LEFT JOIN weaver_task_dependencies c ON w.way = 0 AND c.namespace = ?1 AND c.task_id = b.id AND c.awaited > 0 AND c.kind = 'done'
  LEFT JOIN weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need ON w.way = 1 AND d.namespace = ?1 AND d.depends_on_task_id = b.id AND d.step IS NULL
  CROSS JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = CASE WHEN w.way = 0 THEN c.depends_on_task_id ELSE d.task_id END
  WHERE t.task_id <> ?2 AND (t.state = 'failed' OR t.state = 'cancelled') AND CASE
    WHEN w.way = 0 THEN c.step IS NOT NULL OR p.join_kind IS NOT NULL AND (p.last_error_kind = 'budget' AND t.last_error_kind = 'budget'
      OR t.state = 'cancelled' AND (t.cancel_kind = 'parent_ended' OR p.last_error_kind = 'deadline' AND t.last_error_kind = 'deadline'))
    ELSE t.state = 'cancelled' AND t.last_error_kind IN ('dependency_failed', 'not_needed', 'budget')
      OR t.state = 'failed' AND t.last_error_kind = 'dependency_failed' AND t.join_kind = 'complete' END)`
)

// cleanedUp returns the first completed cleanup of a task.
func (t *Tx) cleanedUp(id *task.ID) (*rules.CleanedUp, error) { return t.cleanup(sqlFirstCleanup, id) }

// cleanedUpWith returns the first completed cleanup of a task, or else of the tasks that its
// retry may revive.
func (t *Tx) cleanedUpWith(row *taskRow) (*rules.CleanedUp, error) {
	ran, err := t.cleanedUp(&row.id)
	if err != nil || ran != nil || !row.needed && !row.calls && row.join == task.JoinNone {
		return ran, err
	}
	if ran, err = t.cleanup(sqlCleanupBeyond, &row.id); err != nil || ran != nil || row.job.IsZero() {
		return ran, err
	}
	return t.undoOfJob(&row.id)
}

// Each undo task of a job needs every other task of the job.
const sqlUndoOfJob = `
SELECT u.task_id, u.options_json FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need
CROSS JOIN weaver_tasks u ON u.namespace = d.namespace AND u.task_id = d.task_id AND u.attempt_no > 0
WHERE d.namespace = ?1 AND d.depends_on_task_id = ?2 AND EXISTS (
  SELECT 1 FROM weaver_task_dependencies e WHERE e.namespace = ?1 AND e.task_id = u.task_id AND e.kind = 'undo')
ORDER BY d.task_id LIMIT 1`

// undoOfJob returns the first undo of a task of the same job that has begun.
func (t *Tx) undoOfJob(id *task.ID) (ran *rules.CleanedUp, err error) {
	st := t.stmt(sqlUndoOfJob).Text(1, t.ns).ID(2, id)
	if st.One() {
		var of task.Task
		st.ColOptions(1, &of)
		ran = &rules.CleanedUp{Task: st.ColID(0), Undo: of.Node}
	}
	return ran, st.Done()
}

// givenUpWith returns the first task that the retry of another task would revive although its
// undo was given up, or zero.
func (t *Tx) givenUpWith(row *taskRow) (task.ID, error) {
	if !row.needed && !row.calls && row.join == task.JoinNone {
		return task.ID{}, nil
	}
	return t.firstID(t.stmt(sqlGivenUpBeyond).Text(1, t.ns).ID(2, &row.id))
}

func (t *Tx) cleanup(query string, id *task.ID) (ran *rules.CleanedUp, err error) {
	st := t.stmt(query).Text(1, t.ns).ID(2, id)
	if st.One() {
		ran = &rules.CleanedUp{Task: st.ColID(0), Step: st.ColText(1)}
	}
	return ran, st.Done()
}

const (
	// The attempt_no of a cleanup that is put aside becomes -1 the first time, then -2, and so
	// on.
	sqlPutAside = `
UPDATE weaver_steps SET attempt_no = (SELECT min(p.attempt_no) FROM weaver_steps p
  WHERE p.namespace = ?1 AND p.task_id = ?2 AND p.name = weaver_steps.name) - 1, undo = 3
WHERE namespace = ?1 AND task_id = ?2 AND try = 0 AND ` + ranCleanup
	sqlUncountSteps = `UPDATE weaver_tasks SET step_count = step_count - ?3 WHERE namespace = ?1 AND task_id = ?2`
)

// putAside keeps the completed cleanups of a revived task as past steps, so that they run
// again.
func (t *Tx) putAside(row *taskRow) error {
	if row.attemptNo == 0 {
		return nil
	}
	n, err := t.stmt(sqlPutAside).Text(1, t.ns).ID(2, &row.id).Exec()
	if err != nil || n == 0 {
		return err
	}
	return t.stmt(sqlUncountSteps).Text(1, t.ns).ID(2, &row.id).Int(3, int64(n)).Run()
}

// keptSteps is the actor of a chore that revives tasks although their cleanups completed.
const keptSteps = "keep_steps"

// actorOf returns the actor of a retry's chores.
func actorOf(keepSteps bool) string {
	if keepSteps {
		return keptSteps
	}
	return ""
}
