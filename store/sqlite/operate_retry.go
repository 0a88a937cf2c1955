package sqlite

import (
	"fmt"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// sqlDeadNeed finds a need that ended other than well.
	sqlDeadNeed = `
SELECT n.task_id, n.options_json, n.state FROM weaver_task_dependencies d
JOIN weaver_tasks n ON n.namespace = d.namespace AND n.task_id = d.depends_on_task_id
WHERE d.namespace = ?1 AND d.task_id = ?2 AND n.state IN ('failed', 'cancelled') ORDER BY n.task_id LIMIT 1`

	sqlDependents = `
SELECT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 ORDER BY task_id`

	sqlReviveJob = `
UPDATE weaver_jobs SET cancel_requested = 0, cancel_by = NULL, cancel_reason = NULL WHERE namespace = ?1 AND job_id = ?2`
)

// retry revives a failed or cancelled task and those that ended because of it.
func (o *operation) retry(cmd store.RetryTask, got *store.CommandResult) error {
	w, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || w == nil {
		return err
	}
	if s := w.contribution.state; s != task.Failed && s != task.Cancelled {
		return refuse(w, got, "only failed and cancelled tasks can be retried")
	}
	need, state, err := o.deadNeed(&w.id)
	if err != nil {
		return err
	}
	if need != "" {
		return refuse(w, got, fmt.Sprintf("and needs task %s, which is %s: retry that one first", need, state))
	}
	if err := o.note(cmd.Audit, "retry", w.id.String()); err != nil {
		return err
	}
	if got.State, err = o.revive(w); err != nil {
		return err
	}
	if err := o.reviveDependents(w.id); err != nil || w.job.IsZero() {
		return err
	}
	if err := o.tx.stmt(sqlReviveJob).Text(1, o.tx.ns).ID(2, &w.job).Run(); err != nil {
		return err
	}
	o.moves.recount(w.job)
	return nil
}

// reviveDependents brings back what ended because of a revived task, to the
// last. A task with several such needs is looked at again with each of them,
// so the last one brings it back.
func (o *operation) reviveDependents(id task.ID) error {
	for revived := []task.ID{id}; len(revived) > 0; revived = revived[1:] {
		ids, err := ids(o.tx.stmt(sqlDependents).Text(1, o.tx.ns).ID(2, &revived[0]))
		if err != nil {
			return err
		}
		for i := range ids {
			w, err := o.moves.look(&ids[i])
			if err != nil {
				return err
			}
			if w == nil || w.contribution.state != task.Cancelled || w.contribution.kind != task.KindDependencyFailed {
				continue
			}
			switch need, _, err := o.deadNeed(&w.id); {
			case err != nil:
				return err
			case need != "":
				continue
			}
			if _, err := o.revive(w); err != nil {
				return err
			}
			revived = append(revived, w.id)
		}
	}
	return nil
}

// deadNeed returns the name of a need that ended other than well, or "".
func (o *operation) deadNeed(id *task.ID) (name string, state task.State, err error) {
	st := o.tx.stmt(sqlDeadNeed).Text(1, o.tx.ns).ID(2, id)
	if st.One() {
		var t task.Task
		st.ColOptions(1, &t)
		name, state = store.TaskName(t.Node, st.ColID(0)), task.State(st.ColName(2))
	}
	return name, state, st.Done()
}

const (
	sqlReopenEdges = `
UPDATE weaver_task_dependencies SET done = EXISTS (
  SELECT 1 FROM weaver_tasks n WHERE n.namespace = ?1 AND n.task_id = depends_on_task_id AND n.state = 'succeeded')
WHERE namespace = ?1 AND task_id = ?2`

	sqlRevive = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = ?4, ready_at = NULL, finished_at = NULL, updated_at = ?5,
  attempt_count = 0, crash_count = 0, quarantine_losses = 0, internal_count = 0, repair_count = 0, lease_epoch = lease_epoch + 1,
  last_error_kind = NULL, last_error_json = NULL, cancel_requested = 0, cancel_kind = NULL, cancel_by = NULL, cancel_reason = NULL,
  deadline_at = CASE WHEN deadline_at > ?5 THEN deadline_at END, remaining_deps = ?6
WHERE namespace = ?1 AND task_id = ?2`

	sqlOpenNeeds = `
SELECT count(*) FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 AND done = 0`
)

// revive gives a task all its attempts back. What it did stays: its history,
// its completed steps, and its number of attempts.
func (o *operation) revive(w *taskRow) (task.State, error) {
	if err := o.tx.stmt(sqlReopenEdges).Text(1, o.tx.ns).ID(2, &w.id).Run(); err != nil {
		return "", err
	}
	st := o.tx.stmt(sqlOpenNeeds).Text(1, o.tx.ns).ID(2, &w.id)
	open := int64(0)
	if st.One() {
		open = st.ColInt(0)
	}
	if err := st.Done(); err != nil {
		return "", err
	}
	after := jobContribution{state: task.Ready}
	if open > 0 {
		after = jobContribution{state: task.Pending, waiting: task.WaitDeps}
	}
	err := o.tx.stmt(sqlRevive).Text(1, o.tx.ns).ID(2, &w.id).Text(3, string(after.state)).OrNull(4, string(after.waiting)).
		Int(5, o.tx.mic).Int(6, open).Run()
	if err != nil {
		return "", err
	}
	o.moves.counted(w.job, w.contribution, after)
	if w.deadline > o.tx.mic {
		if err := o.tx.insertTimer(&w.id, conn.Instant(w.deadline)); err != nil {
			return "", err
		}
	}
	if open > 0 {
		return after.state, nil
	}
	if _, err := o.tx.undispatch(&w.id); err != nil { // W1: never rely on there being none
		return "", err
	}
	return after.state, o.tx.dispatch(w.dispatched(), o.tx.mic)
}

const (
	sqlUnblock = `
UPDATE weaver_tasks SET state = 'ready', waiting_reason = NULL, updated_at = ?3, attempt_count = max(0, min(attempt_count, max_attempts - 1)),
  has_payloads = max(has_payloads, ?4)
WHERE namespace = ?1 AND task_id = ?2`

	sqlDeletePayload = `DELETE FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2 AND kind = ?3`
)

// unblock lets a blocked task go on, with one attempt at least.
func (o *operation) unblock(cmd store.UnblockTask, got *store.CommandResult) error {
	w, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || w == nil {
		return err
	}
	if w.contribution.state != task.Blocked {
		return refuse(w, got, "only blocked tasks can be unblocked")
	}
	if err := o.note(cmd.Audit, "unblock", w.id.String()); err != nil {
		return err
	}
	if err := o.tx.stmt(sqlDeletePayload).Text(1, o.tx.ns).ID(2, &w.id).Text(3, kindUnblock).Run(); err != nil {
		return err
	}
	if len(cmd.Input) > 0 {
		if err := o.tx.stmt(sqlInsertPayload).Text(1, o.tx.ns).ID(2, &w.id).Text(3, kindUnblock).Bytes(4, cmd.Input).Run(); err != nil {
			return err
		}
	}
	if err := o.tx.stmt(sqlUnblock).Text(1, o.tx.ns).ID(2, &w.id).Int(3, o.tx.mic).Bool(4, len(cmd.Input) > 0).Run(); err != nil {
		return err
	}
	o.moves.counted(w.job, w.contribution, jobContribution{state: task.Ready})
	got.State = task.Ready
	if _, err := o.tx.undispatch(&w.id); err != nil {
		return err
	}
	return o.tx.dispatch(w.dispatched(), o.tx.mic)
}

// sqlDelete removes everything about a task but its audit.
var sqlDelete = []string{
	`DELETE FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2`,
	`DELETE FROM weaver_task_dependencies WHERE namespace = ?1 AND depends_on_task_id = ?2`,
}

const (
	sqlWaitsForIt = `
SELECT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 AND done = 0 LIMIT 1`
	sqlOptionsOf   = `SELECT options_json FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
	sqlDeleteLabel = `DELETE FROM weaver_task_labels WHERE namespace = ?1 AND key = ?2 AND value = ?3 AND task_id = ?4`
)

// delete removes a task that ended outside any job.
func (o *operation) delete(cmd store.DeleteTask, got *store.CommandResult) error {
	w, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || w == nil {
		return err
	}
	switch {
	case !w.contribution.state.Terminal():
		return refuse(w, got, "only tasks that ended can be deleted")
	case !w.job.IsZero():
		return refuse(w, got, fmt.Sprintf("but belongs to job %v, whose tasks stay with it", w.job))
	}
	waiting, err := ids(o.tx.stmt(sqlWaitsForIt).Text(1, o.tx.ns).ID(2, &w.id))
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		return refuse(w, got, fmt.Sprintf("but task %v still waits for it", waiting[0]))
	}
	if err := o.deleteLabels(&w.id); err != nil {
		return err
	}
	for _, sql := range sqlDelete {
		if err := o.tx.stmt(sql).Text(1, o.tx.ns).ID(2, &w.id).Run(); err != nil {
			return err
		}
	}
	return o.note(cmd.Audit, "delete", w.id.String())
}

func (o *operation) deleteLabels(id *task.ID) error {
	st := o.tx.stmt(sqlOptionsOf).Text(1, o.tx.ns).ID(2, id)
	var t task.Task
	if st.One() {
		st.ColOptions(0, &t)
	}
	if err := st.Done(); err != nil {
		return err
	}
	for k, v := range t.Labels {
		if err := o.tx.stmt(sqlDeleteLabel).Text(1, o.tx.ns).Text(2, k).Text(3, v).ID(4, id).Run(); err != nil {
			return err
		}
	}
	return nil
}
