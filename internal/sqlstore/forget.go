package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A task is forgotten in the transaction that marks its row. From then on nothing starts it
// again. Its other rows are erased in the order of forgetStages, up to the move limit of the
// transaction. The chore forget does the rest and keeps its position. Overwritten and deleted
// values are also gone from their pages (secure_delete). Copies of rows that SQLite moved
// earlier are gone after Scrub.

const forgottenValues = 2 // in values_dropped; 1: a retention rule dropped them

const (
	sqlForgetState = `SELECT values_dropped FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlForgetTask  = `
UPDATE weaver_tasks SET input = NULL, output = NULL, progress = NULL, has_payloads = 0, values_dropped = 2,
  options_json = json_remove(options_json, '$.metadata'),
  last_error_json = json_remove(json_set(last_error_json, '$.message', ?3), '$.code', '$.stack'),
  undo = json_remove(json_set(undo, '$.error.message', ?3), '$.error.code', '$.error.stack')
WHERE namespace = ?1 AND task_id = ?2`

	sqlForgetAudit = `
UPDATE weaver_audit SET reason = ?3 WHERE namespace = ?1 AND audit_id IN (
  SELECT audit_id FROM weaver_audit INDEXED BY weaver_audit_by_target WHERE namespace = ?1 AND target = ?2 AND verb = 'repair' LIMIT ?4)`

	sqlForgetSignals = `
UPDATE weaver_signals SET payload = '' WHERE namespace = ?1 AND task_id = ?2 AND seq > ?3 AND seq <= ?4`
	sqlSignalsAfter = `SELECT seq FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4`

	sqlForgetAttempts = `
UPDATE weaver_attempts SET outcome_hash = CASE WHEN outcome_hash IS NOT NULL THEN ?5 END,
  outcome_json = json_remove(json_replace(outcome_json, '$.action.route', ?5), '$.notes'),
  error_json = json_remove(json_set(error_json, '$.message', ?5), '$.code', '$.stack')
WHERE namespace = ?1 AND task_id = ?2 AND attempt_no > ?3 AND attempt_no <= ?4`
	sqlAttemptsAfter = `
SELECT attempt_no FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2 AND attempt_no > ?3 ORDER BY attempt_no LIMIT ?4`

	sqlForgetDecisions = `
UPDATE weaver_decisions SET
  reason_json = json_remove(json_replace(json_set(reason_json, '$.text', ?5), '$.fallback', ?5), '$.evidence', '$.change')
WHERE namespace = ?1 AND task_id = ?2 AND attempt_no > ?3 AND attempt_no <= ?4`
	sqlDecisionsAfter = `
SELECT attempt_no FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2 AND attempt_no > ?3 ORDER BY attempt_no LIMIT ?4`

	sqlStepsAfter = `
SELECT name, attempt_no, try FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2
  AND (name, attempt_no, try) > (?3, ?4, ?5) ORDER BY name, attempt_no, try LIMIT ?6`
	sqlForgetStep = `
UPDATE weaver_steps SET value = NULL, error_json = json_remove(json_set(error_json, '$.message', ?6), '$.code', '$.stack')
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = ?4 AND try = ?5`

	sqlDependentsAfter = `
SELECT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND task_id > ?3 ORDER BY task_id LIMIT ?4`
	sqlForgetEdge = `
UPDATE weaver_task_dependencies SET ended_code = NULL, ended_message = CASE WHEN ended_message IS NOT NULL THEN ?4 END
WHERE namespace = ?1 AND task_id = ?2 AND depends_on_task_id = ?3 AND (ended_code IS NOT NULL OR ended_message IS NOT NULL)`
)

// forgetAt is the position of a chore, which erases the rows behind it.
type forgetAt struct {
	Stage   int    `json:"stage,omitempty"`
	Name    string `json:"name,omitempty"` // of steps
	Attempt int64  `json:"attempt,omitempty"`
	Number  int64  `json:"number,omitempty"` // of signals, attempts, decisions; the try of a step
	Task    []byte `json:"task,omitempty"`   // of edges
}

// forgetStages erase up to e.room rows behind a position, and advance it. They report whether
// rows may remain.
var forgetStages = []func(e *eraser, id *task.ID, at *forgetAt) (more bool, err error){
	forgetRange(sqlSignalsAfter, sqlForgetSignals, false),
	(*eraser).forgetSteps,
	forgetRange(sqlAttemptsAfter, sqlForgetAttempts, true),
	forgetRange(sqlDecisionsAfter, sqlForgetDecisions, true),
	(*eraser).forgetEdges,
	forgetAll(func(e *eraser, id *task.ID) error { return e.forgetSome(id, sqlRefKeys, e.room) }),
	forgetDeletes(sqlEraseCheckpts), forgetDeletes(sqlEraseEvents), forgetDeletes(sqlEraseLogs),
	forgetAll((*eraser).forgetUploads),
}

// forgetTask erases an ended task, or begins to and leaves the rest to a chore. Crash after
// the commit: a reaper continues the chore.
func (o *operation) forgetTask(cmd store.ForgetTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, store.Seen{}, got)
	if err != nil || row == nil {
		return err
	}
	t := o.tx
	forgotten, err := t.forgotten(&row.id)
	if err != nil || forgotten {
		got.Existing = forgotten
		return err
	}
	if got.Err = rules.CheckStands(row.id, row.contribution.State, row.undo); got.Err != nil {
		return nil
	}
	st := t.stmt(sqlHasDrafts).Text(1, t.ns).ID(2, &row.id)
	drafts := st.One()
	if err := st.Done(); err != nil {
		return err
	}
	if got.Err = rules.CheckForget(row.id, row.contribution.State, drafts); got.Err != nil {
		return nil
	}
	if err := o.note(cmd.Audit, "forget", row.id.String()); err != nil {
		return err
	}
	secure, err := t.db.Erase(t)
	if err != nil {
		return err
	}
	defer secure()
	if err := t.stmt(sqlForgetTask).Text(1, t.ns).ID(2, &row.id).Text(3, rules.Forgotten).Run(); err != nil {
		return err
	}
	if err := t.stmt(sqlDropPayloads).Text(1, t.ns).ID(2, &row.id).Run(); err != nil {
		return err
	}
	if err := t.stmt(sqlForgetAudit).Text(1, t.ns).Text(2, row.id.String()).Text(3, rules.Forgotten).Int(4, int64(rules.MaxMoves)).Run(); err != nil {
		return err
	}
	if err := t.forgetJob(&row.job); err != nil {
		return err
	}
	c := chore{kind: store.ChoreForget, id: row.id}
	more, err := o.forgetSome(&c)
	if err != nil || !more {
		return err
	}
	return o.leave(&c)
}

const (
	sqlNotForgotten = `
SELECT 1 FROM weaver_tasks INDEXED BY weaver_tasks_by_job
WHERE namespace = ?1 AND job_id = ?2 AND coalesce(values_dropped, 0) <> 2 ORDER BY task_id LIMIT 1`
	sqlForgetJob = `UPDATE weaver_jobs SET meta = ?3 WHERE namespace = ?1 AND job_id = ?2`
)

// forgetJob erases the metadata of a job whose tasks are all forgotten. The job was locked
// with the task, so of its last two tasks one sees that the other is forgotten. Forget begins
// with the newest tasks, so the statement finds a task that is not forgotten at once.
func (t *Tx) forgetJob(id *task.ID) error {
	if id.IsZero() {
		return nil
	}
	st := t.stmt(sqlNotForgotten).Text(1, t.ns).ID(2, id)
	found := st.One()
	if err := st.Done(); err != nil || found {
		return err
	}
	job, err := t.View.job(id)
	if err != nil || job == nil {
		return err
	}
	if left := rules.ForgetMeta(job.Meta); len(left) != len(job.Meta) {
		return t.stmt(sqlForgetJob).Text(1, t.ns).ID(2, id).Strings(3, left).Run()
	}
	return nil
}

// forgotten reports whether a task was forgotten.
func (t *Tx) forgotten(id *task.ID) (bool, error) {
	st := t.stmt(sqlForgetState).Text(1, t.ns).ID(2, id)
	is := st.One() && st.ColInt(0) == forgottenValues
	return is, st.Done()
}

// forgetSome does a bite of a chore.
func (o *operation) forgetSome(c *chore) (more bool, err error) {
	secure, err := o.tx.db.Erase(o.tx)
	if err != nil {
		return false, err
	}
	defer secure()
	var at forgetAt
	if c.at != "" {
		if err := json.Unmarshal([]byte(c.at), &at); err != nil {
			return false, fmt.Errorf("chore forget %v at %q: %w", c.id, c.at, err)
		}
	}
	e := eraser{Tx: o.tx, room: max(1, rules.MaxMoves-o.tx.moved)}
	for at.Stage < len(forgetStages) && e.room > 0 {
		more, err := forgetStages[at.Stage](&e, &c.id, &at)
		if err != nil {
			return false, err
		}
		if !more {
			at = forgetAt{Stage: at.Stage + 1}
		}
	}
	o.tx.moved = max(o.tx.moved+1, rules.MaxMoves-e.room)
	b, err := json.Marshal(at)
	c.at = string(b)
	return at.Stage < len(forgetStages), err
}

// forgetRange erases numbered rows. text reports whether the erase statement has a parameter
// for the replacement text.
func forgetRange(after, erase string, text bool) func(*eraser, *task.ID, *forgetAt) (bool, error) {
	return func(e *eraser, id *task.ID, at *forgetAt) (bool, error) {
		limit := e.room
		st := e.stmt(after).Text(1, e.ns).ID(2, id).Int(3, at.Number).Int(4, int64(limit))
		last, n := at.Number, 0
		for ; st.Next(); n++ {
			last = st.ColInt(0)
		}
		if err := st.Done(); err != nil || n == 0 {
			return false, err
		}
		st = e.stmt(erase).Text(1, e.ns).ID(2, id).Int(3, at.Number).Int(4, last)
		if text {
			st.Text(5, rules.Forgotten)
		}
		at.Number = last
		e.room -= n
		return n == limit, st.Run()
	}
}

func (e *eraser) forgetSteps(id *task.ID, at *forgetAt) (more bool, err error) {
	type key struct {
		name         string
		attempt, try int64
	}
	limit := e.room
	var list []key
	st := e.stmt(sqlStepsAfter).Text(1, e.ns).ID(2, id).Text(3, at.Name).Int(4, at.Attempt).Int(5, at.Number).Int(6, int64(limit))
	for st.Next() {
		list = append(list, key{st.ColText(0), st.ColInt(1), st.ColInt(2)})
	}
	err = st.Done()
	for i := 0; i < len(list) && err == nil; i++ {
		k := &list[i]
		err = e.stmt(sqlForgetStep).Text(1, e.ns).ID(2, id).Text(3, k.name).Int(4, k.attempt).Int(5, k.try).Text(6, rules.Forgotten).Run()
		at.Name, at.Attempt, at.Number = k.name, k.attempt, k.try
	}
	e.room -= len(list)
	return len(list) == limit, err
}

// forgetEdges erases the task's error from the edges of its dependents.
func (e *eraser) forgetEdges(id *task.ID, at *forgetAt) (more bool, err error) {
	limit := e.room
	list, err := ids(e.stmt(sqlDependentsAfter).Text(1, e.ns).ID(2, id).Blob(3, at.Task).Int(4, int64(limit)))
	for i := 0; i < len(list) && err == nil; i++ {
		err = e.stmt(sqlForgetEdge).Text(1, e.ns).ID(2, &list[i]).ID(3, id).Text(4, rules.Forgotten).Run()
		at.Task = list[i][:]
	}
	e.room -= len(list)
	return len(list) == limit, err
}

// sqlUploadsOf finds the blobs last announced for a task that nothing refers to.
const sqlUploadsOf = `
SELECT blob_id FROM weaver_blobs INDEXED BY weaver_blobs_of_task
WHERE namespace = ?1 AND task_id = ?2 AND state = 'pending' ORDER BY blob_id LIMIT ?3`

// forgetUploads marks the unused uploads of a task for deletion.
func (e *eraser) forgetUploads(id *task.ID) error {
	list, err := ids(e.stmt(sqlUploadsOf).Text(1, e.ns).ID(2, id).Int(3, int64(e.room)))
	for i := 0; i < len(list) && err == nil; i++ {
		if _, err = e.blobState(&list[i]); err == nil { // locks the blob: another task may begin to refer to it
			err = e.stmt(sqlClaimBlob).Text(1, e.ns).ID(2, &list[i]).Run()
		}
	}
	e.room -= len(list)
	return err
}

// forgetAll wraps an erase that leaves nothing behind as a stage.
func forgetAll(erase func(*eraser, *task.ID) error) func(*eraser, *task.ID, *forgetAt) (bool, error) {
	return func(e *eraser, id *task.ID, _ *forgetAt) (bool, error) {
		err := erase(e, id)
		return e.room <= 0, err
	}
}

func forgetDeletes(sql string) func(*eraser, *task.ID, *forgetAt) (bool, error) {
	return forgetAll(func(e *eraser, id *task.ID) error {
		n, err := e.stmt(sql).Text(1, e.ns).ID(2, id).Int(3, int64(e.room)).Exec()
		e.room -= n
		return err
	})
}

var sqlForgetChore = `SELECT ` + choreColumns.List() + ` FROM weaver_chores WHERE namespace = ?1 AND kind = 'forget' ORDER BY subject LIMIT 1`

// FinishForgetting works off unfinished chores of ForgetTask, for example of an ended process.
func (s *Store) FinishForgetting(ctx context.Context, ns string) error {
	next := func(v *View) (*chore, error) { return choreColumns.One(v.stmt(sqlForgetChore).Text(1, v.ns)) }
	s.finishChores(ctx, ns, func(t *Tx) (*chore, error) { return next(&t.View) }, nil)
	var left *chore
	err := s.read(ctx, ns, func(v *View) (err error) {
		left, err = next(v)
		return err
	})
	if err == nil && left != nil {
		err = fmt.Errorf("task %v is still being forgotten, scrub again: %w", left.id, store.ErrUnavailable)
	}
	return err
}
