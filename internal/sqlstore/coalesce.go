package sqlstore

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlUnstartedDue = `
SELECT o.available_at, o.task_id, t.state, t.attempt_no, t.job_id, t.depth, t.cancel_requested, t.rerun_of FROM (
  SELECT namespace, available_at, task_id FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_key
  WHERE namespace = ?1 AND concurrency_key = ?2 AND queue = ?3 AND task_type = ?4 AND lane_group = ?5 ORDER BY available_at, task_id LIMIT ?6) o
CROSS JOIN weaver_tasks t ON t.namespace = o.namespace AND t.task_id = o.task_id ORDER BY o.available_at, o.task_id`
	sqlUnstartedWaiting = `
SELECT o.due_at, o.task_id, t.state, t.attempt_no, t.job_id, t.depth, t.cancel_requested, t.rerun_of FROM (
  SELECT namespace, due_at, task_id FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_lane
  WHERE namespace = ?1 AND key = ?2 AND queue = ?3 AND task_type = ?4 AND lane_group = ?5 ORDER BY due_at, task_id LIMIT ?6) o
CROSS JOIN weaver_tasks t ON t.namespace = o.namespace AND t.task_id = o.task_id ORDER BY o.due_at, o.task_id`
	sqlUnstartedByKey = `
SELECT 0, t.task_id, t.state, t.attempt_no, t.job_id, t.depth, t.cancel_requested, t.rerun_of FROM weaver_tasks t
WHERE t.namespace = ?1 AND t.task_type = ?2 AND t.idempotency_key = ?3
  AND NOT EXISTS (SELECT 1 FROM weaver_paused_tasks p WHERE p.namespace = ?1 AND p.task_id = t.task_id)`

	sqlTakeInput = `
UPDATE weaver_tasks SET input = ?3, schema_version = ?4, has_payloads = has_payloads | ?5, plain = 0, updated_at = ?6
WHERE namespace = ?1 AND task_id = ?2`
)

// coalesce replaces the input of an unstarted task with the same key by the input of a new
// task, and returns the older task. A zero ID means that there is no such task.
func (t *Tx) coalesce(n *task.New) (e store.Enqueued, err error) {
	st := t.stmt(sqlTaskExists).Text(1, t.ns).ID(2, &n.ID)
	again := st.One() // an earlier try of this call stored it
	if err := st.Done(); err != nil || again {
		return e, err
	}
	// Without the lock, two calls that find no task would both store one.
	if err := t.db.Name(t, fmt.Sprintf("coalesce %q %q %q %q", n.Type, n.Queue, n.IdempotencyKey, n.ConcurrencyKey)); err != nil {
		return e, err
	}
	var id task.ID
	for fresh := true; fresh; { // until the task is locked in the state that was read
		switch {
		case n.IdempotencyKey != "":
			_, id, err = t.unstarted(sqlUnstartedByKey, n.Type, n.IdempotencyKey)
		case n.ConcurrencyKey != "":
			id, err = t.oldestUnstarted(n)
		}
		if err != nil || id.IsZero() {
			return e, err
		}
		if fresh, err = t.db.Tasks(t, id); err != nil {
			return e, err
		}
	}
	if err = t.setInput(&id, n.Input, n.SchemaVersion); err == nil {
		err = t.watchExpiry(&id, n.Expire, t.at)
	}
	return store.Enqueued{ID: id, Disposition: store.DispositionCoalesced}, err
}

// setInput replaces the input of a task.
func (t *Tx) setInput(id *task.ID, input json.RawMessage, schemaVersion int) error {
	inline, long, err := t.outOfLine(id, kindInput, input)
	if err == nil {
		err = t.forgetKind(id, kindInput)
	}
	if err == nil {
		err = t.refer(id, kindInput, "", input)
	}
	if err == nil && !long {
		err = t.stmt(sqlDeletePayload).Text(1, t.ns).ID(2, id).Text(3, kindInput).Run()
	}
	if err != nil {
		return err
	}
	st := t.stmt(sqlTakeInput).Text(1, t.ns).ID(2, id)
	if long {
		st.Null(3)
	} else {
		st.Bytes(3, inline)
	}
	return st.Int(4, int64(schemaVersion)).Bool(5, long).Int(6, t.mic).Run()
}

// oldestUnstarted returns the task of the new task's lane with its concurrency key that
// takes its input and is due first.
func (t *Tx) oldestUnstarted(n *task.New) (task.ID, error) {
	group := store.LaneGroup(n.Options, n.Labels)
	at, due, err := t.unstarted(sqlUnstartedDue, n.ConcurrencyKey, n.Queue, n.Type, group)
	if err != nil {
		return due, err
	}
	waits, waiting, err := t.unstarted(sqlUnstartedWaiting, n.ConcurrencyKey, n.Queue, n.Type, group)
	if due.IsZero() || !waiting.IsZero() && cmp.Or(cmp.Compare(waits, at), waiting.Compare(due)) < 0 {
		return waiting, err
	}
	return due, err
}

// unstarted returns the first row of a statement whose task takes an input.
func (t *Tx) unstarted(sql string, args ...string) (at int64, id task.ID, err error) {
	st := t.stmt(sql).Text(1, t.ns)
	for i, a := range args {
		st.Text(2+i, a)
	}
	if len(args) == 4 {
		st.Int(6, rules.CoalesceLooks)
	}
	for id.IsZero() && st.Next() {
		of := task.Task{
			State: task.State(st.ColName(2)), AttemptNo: int(st.ColInt(3)), JobID: st.ColID(4),
			Depth: int(st.ColInt(5)), CancelRequested: st.ColBool(6), RerunOf: st.ColID(7),
		}
		if rules.TakesInput(&of) {
			at, id = st.ColInt(0), st.ColID(1)
		}
	}
	return at, id, st.Done()
}
