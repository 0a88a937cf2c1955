package postgres

import (
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

var leaseColumns = sqlstore.LeaseColumns

// sqlGuardAll is the guard of many ends, each with its row.
var sqlGuardAll = `
UPDATE weaver_tasks SET progress = coalesce(u.said, progress)
FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bytea[]), CAST(?5 AS text[])) AS u(id, epoch, lease, said)
WHERE namespace = ?1 AND task_id = u.id AND lease_epoch = u.epoch AND lease_id = u.lease
RETURNING ` + leaseColumns.List()

// sqlSucceedEach is the guard of good ends, and their sqlTransition. It accepts none of an
// undo phase.
var sqlSucceedEach = `
UPDATE weaver_tasks SET state = 'succeeded', waiting_reason = NULL, output = u.result, progress = coalesce(u.said, progress),
  last_error_kind = NULL, last_error_json = NULL, attempt_count = attempt_count + 1,
  crash_count = 0, quarantine_losses = 0, internal_count = 0, idle_attempts = 0,
  lease_id = NULL, lease_expires_at = NULL, updated_at = ?7, finished_at = ?7
FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bytea[]), CAST(?5 AS text[]), CAST(?6 AS text[])) AS u(id, epoch, lease, said, result)
WHERE namespace = ?1 AND task_id = u.id AND lease_epoch = u.epoch AND lease_id = u.lease AND undo IS NULL
RETURNING ` + leaseColumns.List()

// What follows the guard, for all of them at once: sqlTransition, sqlInsertAttempt,
// sqlInsertDecision and sqlInsertDispatch over arrays.
const (
	sqlTransitionAll = `
UPDATE weaver_tasks t SET state = u.state, waiting_reason = u.waiting, ready_at = CASE WHEN u.timed THEN u.ready ELSE t.ready_at END,
  output = u.output, has_payloads = t.has_payloads | u.long,
  last_error_kind = CASE WHEN u.keep THEN t.last_error_kind ELSE u.kind END,
  last_error_json = CASE WHEN u.keep THEN t.last_error_json ELSE u.error END,
  attempt_count = t.attempt_count + u.counts, crash_count = CASE WHEN u.reset THEN 0 ELSE t.crash_count END,
  quarantine_losses = CASE WHEN u.reset THEN 0 ELSE t.quarantine_losses END, internal_count = CASE WHEN u.internal THEN t.internal_count + 1 ELSE 0 END,
  idle_attempts = u.idle, repair_count = t.repair_count + u.repair, lease_epoch = t.lease_epoch + u.raise,
  lease_id = NULL, lease_expires_at = NULL, updated_at = ?3, finished_at = CASE WHEN u.over THEN CAST(?3 AS bigint) END
FROM unnest(CAST(?2 AS bytea[]), CAST(?4 AS text[]), CAST(?5 AS text[]), CAST(?6 AS boolean[]), CAST(?7 AS bigint[]), CAST(?8 AS text[]), CAST(?9 AS smallint[]),
  CAST(?10 AS boolean[]), CAST(?11 AS text[]), CAST(?12 AS text[]), CAST(?13 AS bigint[]), CAST(?14 AS boolean[]), CAST(?15 AS boolean[]), CAST(?16 AS bigint[]),
  CAST(?17 AS bigint[]), CAST(?18 AS bigint[]), CAST(?19 AS boolean[]))
  AS u(id, state, waiting, timed, ready, output, long, keep, kind, error, counts, reset, internal, idle, repair, raise, over)
WHERE t.namespace = ?1 AND t.task_id = u.id`

	sqlAttemptsAll = `
INSERT INTO weaver_attempts (namespace, finished_at, task_id, attempt_no, lease_epoch, lease_id, worker, code_version, started_at,
  outcome_kind, error_kind, error_json, outcome_json, outcome_hash, handler)
SELECT CAST(?1 AS text), CAST(?3 AS bigint), u.* FROM unnest(CAST(?2 AS bytea[]), CAST(?4 AS bigint[]), CAST(?5 AS bigint[]), CAST(?6 AS bytea[]), CAST(?7 AS text[]),
  CAST(?8 AS bigint[]), CAST(?9 AS bigint[]), CAST(?10 AS text[]), CAST(?11 AS text[]), CAST(?12 AS text[]), CAST(?13 AS text[]), CAST(?14 AS text[]), CAST(?15 AS text[])) AS u`

	sqlDecisionsAll = `
INSERT INTO weaver_decisions (namespace, decided_at, task_id, attempt_no, decision_kind, next_ready_at, child_task_ids, reason_json)
SELECT CAST(?1 AS text), CAST(?3 AS bigint), u.* FROM unnest(CAST(?2 AS bytea[]), CAST(?4 AS bigint[]), CAST(?5 AS text[]), CAST(?6 AS bigint[]),
  CAST(?7 AS text[]), CAST(?8 AS text[])) AS u`

	sqlDispatchAll = `
INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key)
SELECT CAST(?1 AS text), u.* FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS text[]), CAST(?4 AS text[]), CAST(?5 AS bigint[]), CAST(?6 AS bigint[]),
  CAST(?7 AS text[])) AS u`
)

// Guard implements sqlstore.Bulk.
func (d database) Guard(t *sqlstore.Tx, ends []*store.Finish) *sqlstmt.Stmt {
	if _, err := d.guard(sqlGuardAll, ends); err != nil {
		return sqlstmt.Failed(err)
	}
	return d.c.Stmt(sqlGuardAll).Text(1, t.Namespace())
}

// SucceedEach implements sqlstore.Bulk.
func (d database) SucceedEach(t *sqlstore.Tx, ends []*store.Finish) *sqlstmt.Stmt {
	st, err := d.guard(sqlSucceedEach, ends)
	if err != nil {
		return sqlstmt.Failed(err)
	}
	outputs := st.Array(6)
	for _, f := range ends {
		orNull(outputs, f.Output)
	}
	return d.c.Stmt(sqlSucceedEach).Text(1, t.Namespace()).Int(7, t.Now().UnixMicro())
}

// guard binds the leases and the progress of ends.
func (d database) guard(sql string, ends []*store.Finish) (*conn.Stmt, error) {
	st, err := d.c.Statement(sql)
	if err != nil {
		return nil, err
	}
	ids, epochs, leases, progress := st.Array(2), st.Array(3), st.Array(4), st.Array(5)
	for _, f := range ends {
		ids.Bytes(f.Lease.Task[:])
		epochs.Int(f.Lease.Epoch)
		leases.Bytes(f.Lease.ID[:])
		if err := jsonOrNull(progress, f.Progress); err != nil {
			return nil, err
		}
	}
	return st, nil
}

// End implements sqlstore.Bulk.
func (d database) End(t *sqlstore.Tx, ends []sqlstore.End) error {
	err := d.transitions(t, ends)
	if err == nil {
		err = d.attempts(t, ends)
	}
	if err == nil {
		err = d.decisions(t, ends)
	}
	return err
}

// of returns a statement over arrays, with the namespace and the time of the transaction
// bound.
func (d database) of(t *sqlstore.Tx, sql string) (*conn.Stmt, *binder, error) {
	st, err := d.c.Statement(sql)
	if err != nil {
		return nil, nil, err
	}
	b := &binder{st: st}
	return st, b.text(1, t.Namespace()).int(3, t.Now().UnixMicro()), nil
}

func (d database) transitions(t *sqlstore.Tx, ends []sqlstore.End) error {
	st, b, err := d.of(t, sqlTransitionAll)
	if err != nil {
		return err
	}
	ids, states, waits, timed, ready := st.Array(2), st.Array(4), st.Array(5), st.Array(6), st.Array(7)
	outputs, long, keep, kinds, failures := st.Array(8), st.Array(9), st.Array(10), st.Array(11), st.Array(12)
	counts, reset, internal, idle := st.Array(13), st.Array(14), st.Array(15), st.Array(16)
	repairs, raise, over := st.Array(17), st.Array(18), st.Array(19)
	for i := range ends {
		e, to := &ends[i], ends[i].To
		if e.Moved {
			continue
		}
		failure := to.TaskError()
		ids.Bytes(e.Task[:])
		states.Text(string(to.State))
		textOrNull(waits, string(to.Waiting))
		notBefore, set := to.NotBefore()
		flag(timed, set)
		timeOrNull(ready, notBefore)
		orNull(outputs, e.Output)
		flag(long, e.Long)
		flag(keep, to.KeepError)
		textOrNull(kinds, string(rules.KindOf(failure)))
		if err := jsonOrNull(failures, failure); err != nil {
			return err
		}
		flag(counts, to.CountsAttempt())
		flag(reset, to.ResetCrashes)
		flag(internal, to.CountsInternal)
		idle.Int(int64(to.Idle))
		flag(repairs, to.CountsRepair)
		flag(raise, to.RaiseEpoch)
		flag(over, to.State.Terminal())
	}
	if ids.Len() == 0 {
		return nil
	}
	return b.exec()
}

func (d database) attempts(t *sqlstore.Tx, ends []sqlstore.End) error {
	st, b, err := d.of(t, sqlAttemptsAll)
	if err != nil {
		return err
	}
	ids, numbers, epochs, leases, workers := st.Array(2), st.Array(4), st.Array(5), st.Array(6), st.Array(7)
	versions, started, outcomes, kinds, failures := st.Array(8), st.Array(9), st.Array(10), st.Array(11), st.Array(12)
	steps, hashes, handlers := st.Array(13), st.Array(14), st.Array(15)
	for i := range ends {
		e, to := &ends[i], ends[i].To
		ids.Bytes(e.Task[:])
		numbers.Int(int64(e.AttemptNo))
		epochs.Int(e.Epoch)
		leases.Bytes(e.Lease[:])
		textOrNull(workers, e.Worker)
		versions.Int(int64(e.Version))
		started.Int(e.StartedAt)
		outcomes.Text(string(to.Outcome))
		textOrNull(kinds, string(rules.KindOf(to.Failure)))
		if err := jsonOrNull(failures, to.Failure); err != nil {
			return err
		}
		orNull(steps, e.Steps)
		textOrNull(hashes, e.Hash)
		textOrNull(handlers, e.Handler)
	}
	return b.exec()
}

func (d database) decisions(t *sqlstore.Tx, ends []sqlstore.End) error {
	st, b, err := d.of(t, sqlDecisionsAll)
	if err != nil {
		return err
	}
	ids, numbers, kinds, ready, children, reasons := st.Array(2), st.Array(4), st.Array(5), st.Array(6), st.Array(7), st.Array(8)
	for i := range ends {
		e, decided := &ends[i], ends[i].To.Decision
		if decided == nil {
			continue
		}
		reason, err := json.Marshal(decided.Reason)
		if err != nil {
			return err
		}
		ids.Bytes(e.Task[:])
		numbers.Int(int64(e.AttemptNo))
		kinds.Text(string(decided.Kind))
		timeOrNull(ready, decided.NextReadyAt)
		if len(decided.ChildIDs) == 0 {
			children.Null()
		} else if err := jsonOrNull(children, &decided.ChildIDs); err != nil {
			return err
		}
		reasons.Bytes(reason)
	}
	if ids.Len() == 0 {
		return nil
	}
	return b.exec()
}

// Dispatch implements sqlstore.Bulk.
func (d database) Dispatch(t *sqlstore.Tx, rows []store.DispatchRow) error {
	st, err := d.c.Statement(sqlDispatchAll)
	if err != nil {
		return err
	}
	ids, queues, types, priorities, due, keys := st.Array(2), st.Array(3), st.Array(4), st.Array(5), st.Array(6), st.Array(7)
	for i := range rows {
		r := &rows[i]
		ids.Bytes(r.Task[:])
		queues.Text(r.Queue)
		types.Text(r.Type)
		priorities.Int(int64(r.Priority))
		due.Int(r.AvailableAt.UnixMicro())
		textOrNull(keys, r.ConcurrencyKey)
	}
	b := binder{st: st}
	return b.text(1, t.Namespace()).exec()
}

// textOrNull appends a text, or NULL for the empty one.
func textOrNull(a *conn.Array, v string) {
	if v == "" {
		a.Null()
	} else {
		a.Text(v)
	}
}

// timeOrNull appends an instant, or NULL for the zero one.
func timeOrNull(a *conn.Array, v time.Time) {
	if v.IsZero() {
		a.Null()
	} else {
		a.Int(v.UnixMicro())
	}
}

// jsonOrNull appends a value as JSON, or NULL for nil.
func jsonOrNull[T any](a *conn.Array, v *T) error {
	if v == nil {
		a.Null()
		return nil
	}
	b, err := json.Marshal(v)
	if err == nil {
		a.Bytes(b)
	}
	return err
}

// flag appends 1 or 0.
func flag(a *conn.Array, v bool) {
	if v {
		a.Int(1)
	} else {
		a.Int(0)
	}
}
