package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Erasing removes a task with all its recorded rows and its children, or a whole job. It
// removes as many rows as there is room for. The rest is a chore (delete_task, delete_job),
// which any reaper works off. From the first removed row on, operators' commands and new edges
// cannot reach the task, so that nothing brings it back (leaving).

const (
	// sqlRecorded counts the rows of a task in each table, up to a limit.
	sqlRecorded = `
SELECT (SELECT count(*) FROM (SELECT 1 FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) a),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) b),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) c),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) d),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) e),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) f),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need WHERE namespace = ?1 AND depends_on_task_id = ?2 LIMIT ?3) g),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) h),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_checkpoints WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) i),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_events WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) j),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_logs WHERE namespace = ?1 AND task_id = ?2 LIMIT ?3) k),
  (SELECT count(*) FROM (SELECT 1 FROM weaver_audit INDEXED BY weaver_audit_by_target WHERE namespace = ?1 AND target = ?4 LIMIT ?3) l)`

	sqlEraseAttempts = `
DELETE FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2 AND attempt_no IN (
  SELECT attempt_no FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2 ORDER BY attempt_no LIMIT ?3)`
	sqlEraseDecisions = `
DELETE FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2 AND attempt_no IN (
  SELECT attempt_no FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2 ORDER BY attempt_no LIMIT ?3)`
	sqlStepKeys     = `SELECT name, attempt_no, try FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 ORDER BY name, attempt_no, try LIMIT ?3`
	sqlEraseStep    = `DELETE FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = ?4 AND try = ?5`
	sqlEraseSignals = `
DELETE FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 AND seq IN (
  SELECT seq FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq LIMIT ?3)`
	sqlErasePayloads = `
DELETE FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2 AND kind IN (
  SELECT kind FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2 ORDER BY kind LIMIT ?3)`
	sqlErasePause = `
DELETE FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id = ?2 AND ?3 > 0`
	sqlEraseIncoming = `
DELETE FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need WHERE namespace = ?1 AND depends_on_task_id = ?2 AND task_id IN (
  SELECT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
  WHERE namespace = ?1 AND depends_on_task_id = ?2 ORDER BY task_id LIMIT ?3)`
	sqlEraseCheckpts = `
DELETE FROM weaver_checkpoints WHERE namespace = ?1 AND task_id = ?2 AND name IN (
  SELECT name FROM weaver_checkpoints WHERE namespace = ?1 AND task_id = ?2 ORDER BY name LIMIT ?3)`
	sqlEraseEvents = `
DELETE FROM weaver_events WHERE namespace = ?1 AND task_id = ?2 AND seq IN (
  SELECT seq FROM weaver_events WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq LIMIT ?3)`
	sqlEraseLogs = `
DELETE FROM weaver_logs WHERE namespace = ?1 AND task_id = ?2 AND seq IN (
  SELECT seq FROM weaver_logs WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq LIMIT ?3)`
	sqlEraseAudit = `
DELETE FROM weaver_audit WHERE namespace = ?1 AND audit_id IN (
  SELECT audit_id FROM weaver_audit INDEXED BY weaver_audit_by_target WHERE namespace = ?1 AND target = ?2 AND verb <> 'delete_job' ORDER BY audit_id LIMIT ?3)`

	sqlEraseTask = `DELETE FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlEraseJob  = `DELETE FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2`

	sqlOutgoing = `
SELECT depends_on_task_id, kind = 'success' AND awaited > 0, kind = 'done' AND awaited > 0 FROM weaver_task_dependencies
WHERE namespace = ?1 AND task_id = ?2 ORDER BY depends_on_task_id LIMIT ?3`
	sqlEraseEdge = `DELETE FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3`

	// A job counts the edges to its tasks from outside. ?2 is the task with the edge, ?3 the
	// job's task, ?4 is 1 or -1.
	sqlCountOutside = `
UPDATE weaver_jobs SET outside = outside + ?4
WHERE namespace = ?1 AND job_id = (SELECT job_id FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?3)
AND job_id IS DISTINCT FROM (SELECT job_id FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2)`

	sqlFreeTaskKey = `UPDATE weaver_tasks SET idempotency_key = NULL WHERE namespace = ?1 AND task_id = ?2 AND idempotency_key IS NOT NULL`
	sqlFreeJobKey  = `UPDATE weaver_jobs SET idempotency_key = NULL WHERE namespace = ?1 AND job_id = ?2 AND idempotency_key IS NOT NULL`

	sqlFirstOfJob = `SELECT task_id FROM weaver_tasks INDEXED BY weaver_tasks_by_job WHERE namespace = ?1 AND job_id = ?2 ORDER BY task_id LIMIT 1`

	sqlLeaving = `
SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'delete_task' AND subject = ?2
UNION ALL
SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'delete_job' AND subject = ?3 LIMIT 1`
)

// recordedTables are the tables of sqlRecorded, in its order.
var recordedTables = []struct {
	erase  string
	target bool                                         // its key is the ID as text
	each   func(e *eraser, id *task.ID, rows int) error // replaces erase
}{
	{erase: sqlEraseAttempts},
	{erase: sqlEraseDecisions},
	{each: func(e *eraser, id *task.ID, n int) error { return e.eachStep(id, sqlStepKeys, sqlEraseStep, n) }},
	{erase: sqlEraseSignals},
	{erase: sqlErasePayloads},
	{erase: sqlErasePause},
	{erase: sqlEraseIncoming},
	{each: func(e *eraser, id *task.ID, n int) error { return e.forgetSome(id, sqlRefKeys, n) }},
	{erase: sqlEraseCheckpts},
	{erase: sqlEraseEvents},
	{erase: sqlEraseLogs},
	{erase: sqlEraseAudit, target: true},
}

// leaving reports whether a task, or its job, is being removed.
func (t *Tx) leaving(id, job *task.ID) (bool, error) {
	st := t.stmt(sqlLeaving).Text(1, t.ns).ID(2, id).ID(3, job)
	found := st.One()
	return found, st.Done()
}

// eraser removes tasks and jobs in one transaction.
type eraser struct {
	*Tx
	room int       // in rows
	gone []task.ID // tasks outside jobs, and jobs, that are removed or have a removing chore
}

// task removes a task, or begins to and leaves the rest to a chore.
func (e *eraser) task(id *task.ID) error {
	e.gone = append(e.gone, *id)
	done, err := e.rows(id, false)
	if err != nil || done {
		return err
	}
	if err := e.stmt(sqlFreeTaskKey).Text(1, e.ns).ID(2, id).Run(); err != nil {
		return err
	}
	return e.putChore(&chore{kind: store.ChoreDeleteTask, id: *id})
}

// rows removes the rows of a task, and then the task. It returns false if there was no room
// for all of them. With inJob the job and all children are removed too.
func (e *eraser) rows(id *task.ID, inJob bool) (done bool, err error) {
	if done, err := e.outgoing(id, inJob); err != nil || !done {
		return false, err
	}
	counts := make([]int, len(recordedTables))
	target := id.String()
	st := e.stmt(sqlRecorded).Text(1, e.ns).ID(2, id).Int(3, int64(e.room)).Text(4, target)
	if st.One() {
		for i := range counts {
			counts[i] = int(st.ColInt(i))
		}
	}
	if err := st.Done(); err != nil {
		return false, err
	}
	for i, n := range counts {
		if n = min(n, e.room); n == 0 {
			continue
		}
		if each := recordedTables[i].each; each != nil {
			if err := each(e, id, n); err != nil {
				return false, err
			}
			continue
		}
		st := e.stmt(recordedTables[i].erase).Text(1, e.ns).Int(3, int64(n))
		if recordedTables[i].target {
			st.Text(2, target)
		} else {
			st.ID(2, id)
		}
		if err := st.Run(); err != nil {
			return false, err
		}
		e.room -= n
	}
	if e.room <= 0 {
		return false, nil
	}
	if err := e.deleteLabels(id); err != nil {
		return false, err
	}
	e.room--
	if err := e.stmt(sqlExpiryDone).Text(1, e.ns).ID(2, id).Run(); err != nil {
		return false, err
	}
	return true, e.stmt(sqlEraseTask).Text(1, e.ns).ID(2, id).Run()
}

// eachStep runs a statement for each of the first n steps that another statement finds.
func (e *eraser) eachStep(id *task.ID, keys, each string, n int) error {
	type key struct {
		name         string
		attempt, try int64
	}
	var list []key
	st := e.stmt(keys).Text(1, e.ns).ID(2, id).Int(3, int64(n))
	for st.Next() {
		list = append(list, key{st.ColText(0), st.ColInt(1), st.ColInt(2)})
	}
	err := st.Done()
	for i := 0; i < len(list) && err == nil; i++ {
		err = e.stmt(each).Text(1, e.ns).ID(2, id).Text(3, list[i].name).Int(4, list[i].attempt).Int(5, list[i].try).Run()
	}
	e.room -= len(list)
	return err
}

const (
	sqlRefKeys      = `SELECT kind, artifact_id FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 ORDER BY kind, artifact_id LIMIT ?3`
	sqlValueRefKeys = `
SELECT kind, artifact_id FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 AND kind IN ('input', 'output', 'step') LIMIT ?3`
	sqlForgetRef = `DELETE FROM weaver_artifacts WHERE namespace = ?1 AND task_id = ?2 AND kind = ?3 AND artifact_id = ?4 RETURNING blob_id`
)

// forgetSome removes the first n references to blobs that a statement finds.
func (e *eraser) forgetSome(id *task.ID, keys string, n int) error {
	type key struct {
		kind string
		id   task.ID
	}
	var list []key
	st := e.stmt(keys).Text(1, e.ns).ID(2, id).Int(3, int64(n))
	for st.Next() {
		list = append(list, key{st.ColText(0), st.ColID(1)})
	}
	err := st.Done()
	for i := 0; i < len(list) && err == nil; i++ {
		err = e.forget(e.stmt(sqlForgetRef).Text(1, e.ns).ID(2, id).Text(3, list[i].kind).ID(4, &list[i].id))
	}
	e.room -= len(list)
	return err
}

// outgoing removes the edges of a task, with the children that no other task needs.
func (e *eraser) outgoing(id *task.ID, inJob bool) (done bool, err error) {
	type edge struct {
		needs          task.ID
		outside, child bool
	}
	if e.room <= 0 {
		return false, nil
	}
	var edges []edge
	st := e.stmt(sqlOutgoing).Text(1, e.ns).ID(2, id).Int(3, int64(e.room))
	for st.Next() {
		edges = append(edges, edge{st.ColID(0), st.ColBool(1), st.ColBool(2)})
	}
	if err := st.Done(); err != nil {
		return false, err
	}
	done = len(edges) < e.room
	e.room -= len(edges)
	for i := range edges {
		to := &edges[i]
		if to.outside {
			if err := e.stmt(sqlCountOutside).Text(1, e.ns).ID(2, id).ID(3, &to.needs).Int(4, -1).Run(); err != nil {
				return false, err
			}
		}
		if err := e.stmt(sqlEraseEdge).Text(1, e.ns).ID(2, id).ID(3, &to.needs).Run(); err != nil {
			return false, err
		}
		if !to.child || inJob {
			continue
		}
		goes, err := e.removable(&to.needs)
		if err == nil && goes {
			err = e.task(&to.needs)
		}
		if err != nil {
			return false, err
		}
	}
	return done && e.room > 0, nil
}

const sqlNeedsIt = `
SELECT 1 FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need WHERE namespace = ?1 AND depends_on_task_id = ?2 LIMIT 1`

const sqlHasDrafts = `SELECT 1 FROM weaver_drafts WHERE namespace = ?1 AND task_id = ?2 LIMIT 1`

const (
	sqlEnded    = `SELECT 1 FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND finished_at IS NOT NULL`
	sqlPhaseOf  = `SELECT undo, task_id FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2 AND undo IS NOT NULL`
	sqlPhasesOf = `
SELECT undo, task_id FROM weaver_tasks INDEXED BY weaver_tasks_by_job
WHERE namespace = ?1 AND job_id = ?2 AND last_error_kind = 'undo_failed' ORDER BY task_id`
)

// stands returns the first task of a statement's rows whose undo was given up, or zero.
func stands(st *sqlstmt.Stmt) (id task.ID, err error) {
	for st.Next() {
		if id.IsZero() && st.Row().Phase(0).Stands() {
			id = st.ColID(1)
		}
	}
	return id, st.Done()
}

// removable reports whether a task outside jobs can be removed. It must have ended, with ended
// children, without an edge to it, and without an undo that was given up. It must not be in
// removal already.
func (e *eraser) removable(id *task.ID) (bool, error) {
	for _, probe := range []struct {
		sql  string
		want bool
	}{{sqlEnded, true}, {sqlNeedsIt, false}, {sqlHasDrafts, false}} {
		st := e.stmt(probe.sql).Text(1, e.ns).ID(2, id)
		found := st.One()
		if err := st.Done(); err != nil || found != probe.want {
			return false, err
		}
	}
	if at, err := stands(e.stmt(sqlPhaseOf).Text(1, e.ns).ID(2, id)); err != nil || !at.IsZero() {
		return false, err
	}
	child, err := e.firstID(e.stmt(sqlOpenChildren).Text(1, e.ns).ID(2, id).Blob(3, nil).Int(4, 1))
	if err != nil || !child.IsZero() {
		return false, err
	}
	leaving, err := e.leaving(id, &task.ID{})
	return !leaving, err
}

// job removes a job, or begins to and leaves the rest to a chore.
func (e *eraser) job(id *task.ID) error {
	e.gone = append(e.gone, *id)
	done, err := e.jobRows(id)
	if err != nil || done {
		return err
	}
	if err := e.stmt(sqlFreeJobKey).Text(1, e.ns).ID(2, id).Run(); err != nil {
		return err
	}
	return e.putChore(&chore{kind: store.ChoreDeleteJob, id: *id})
}

// jobRows removes the tasks of a job, and then the job.
func (e *eraser) jobRows(id *task.ID) (done bool, err error) {
	for e.room > 0 {
		next, err := e.firstID(e.stmt(sqlFirstOfJob).Text(1, e.ns).ID(2, id))
		if err != nil {
			return false, err
		}
		if next.IsZero() {
			n, err := e.stmt(sqlEraseAudit).Text(1, e.ns).Text(2, id.String()).Int(3, int64(e.room)).Exec()
			if err != nil || n >= e.room {
				return false, err
			}
			e.room -= n + 1
			if err := e.eraseBases(id); err != nil {
				return false, err
			}
			return true, e.stmt(sqlEraseJob).Text(1, e.ns).ID(2, id).Run()
		}
		if done, err := e.rows(&next, true); err != nil || !done {
			return false, err
		}
	}
	return false, nil
}

// eraseSome does a bite of a chore that removes.
func (o *operation) eraseSome(c *chore) (more bool, err error) {
	e := eraser{Tx: o.tx, room: max(1, rules.MaxMoves-o.tx.moved)}
	var done bool
	switch c.kind {
	case store.ChoreDeleteJob:
		done, err = e.jobRows(&c.id)
	case store.ChoreDropValues:
		done, err = e.dropRows(&c.id)
	default:
		done, err = e.rows(&c.id, false)
	}
	o.tx.moved = max(o.tx.moved+1, rules.MaxMoves-e.room)
	return !done, err
}

// sqlJobBusy finds chores that change the tasks of a job.
const sqlJobBusy = `
SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'cancel_job' AND subject = ?2
UNION ALL
SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'raise_budget' AND subject = ?2
UNION ALL
SELECT 1 FROM weaver_chores WHERE namespace = ?1 AND kind = 'spent_job' AND subject = ?2 LIMIT 1`

const sqlOutside = `SELECT 1 FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2 AND outside > 0`

// checkDeleteJob returns the reason why a job cannot be deleted, as refusal.
func (t *Tx) checkDeleteJob(j *task.Job) (refusal, err error) {
	var found [2]bool
	for i, sql := range []string{sqlJobBusy, sqlOutside} {
		st := t.stmt(sql).Text(1, t.ns).ID(2, &j.ID)
		found[i] = st.One()
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	base, err := t.isBase(&j.ID)
	if err != nil {
		return nil, err
	}
	var at task.ID
	if rules.MayStand(j) {
		if at, err = stands(t.stmt(sqlPhasesOf).Text(1, t.ns).ID(2, &j.ID)); err != nil {
			return nil, err
		}
	}
	return rules.CheckDeleteJob(j, found[0], found[1], base, at), nil
}

// deleteJob removes a finished job.
func (o *operation) deleteJob(cmd store.DeleteJob, got *store.CommandResult) error {
	t := o.tx
	job, err := t.job(&cmd.Job)
	if err != nil {
		return err
	}
	if job == nil {
		got.Err = rules.JobNotFound(cmd.Job)
		return nil
	}
	leaving, err := t.leaving(&task.ID{}, &cmd.Job)
	if err != nil {
		return err
	}
	if leaving {
		got.Err = rules.JobNotFound(cmd.Job)
		return nil
	}
	if got.Err, err = t.checkDeleteJob(job); err != nil || got.Err != nil {
		return err
	}
	if err := o.note(cmd.Audit, "delete_job", cmd.Job.String()); err != nil {
		return err
	}
	got.Deleted = job.Counters.Total
	e := eraser{Tx: t, room: max(1, rules.MaxMoves-t.moved)}
	if err := e.job(&cmd.Job); err != nil {
		return err
	}
	t.moved += rules.MaxMoves - e.room
	o.rest = func(t *Tx) (*chore, error) { return t.chore(&chore{kind: store.ChoreDeleteJob, id: cmd.Job}) }
	return nil
}

const (
	sqlHasAwaited = `SELECT 1 FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3 AND kind = 'success' AND awaited > 0`
	sqlAwaited    = `SELECT depends_on_task_id FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND kind = 'success' AND awaited > 0`
)

// countOutside counts the edge that a task is about to get to a requested task of another job.
func (t *Tx) countOutside(id, needs *task.ID) error {
	st := t.stmt(sqlHasAwaited).Text(1, t.ns).ID(2, id).ID(3, needs)
	known := st.One()
	if err := st.Done(); err != nil || known {
		return err
	}
	return t.stmt(sqlCountOutside).Text(1, t.ns).ID(2, id).ID(3, needs).Int(4, 1).Run()
}

// uncountOutside reverses countOutside for a task.
func (t *Tx) uncountOutside(id *task.ID) error {
	list, err := ids(t.stmt(sqlAwaited).Text(1, t.ns).ID(2, id))
	for i := 0; i < len(list) && err == nil; i++ {
		err = t.stmt(sqlCountOutside).Text(1, t.ns).ID(2, id).ID(3, &list[i]).Int(4, -1).Run()
	}
	return err
}
