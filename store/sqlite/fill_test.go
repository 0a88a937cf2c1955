package sqlite_test

import (
	"fmt"
	"strings"
)

// fill puts n rows into each table, as in a store after long use. Tables with a row for each
// worker or paused queue get a hundredth of that. Nine in ten rows are in the fixture's
// namespace. Tasks have every state, in and outside of jobs, with and without keys. The rows
// of different tables may not agree: fill is for tests of the rows that statements read, not
// of their meaning. It may be called once.
func (f *fixture) fill(n int) {
	f.Helper()
	if err := f.db.Exec(f.Context(), "PRAGMA cache_size = -400000;"+fillScript(0, n, fillSQL)); err != nil {
		f.Fatalf("fill: %v", err)
	}
}

// fillScript runs inserts from x, for the n rows after the given number.
func fillScript(after, n int, inserts []string) string {
	return "BEGIN IMMEDIATE;" + fmt.Sprintf(fillRows, after+1, after+n, fillNS, fillID("i"), fillID("i - 1"), fillID("i / 100")) +
		strings.Join(inserts, ";\n") + "; COMMIT; DROP TABLE temp.x"
}

const (
	fillRows = `
CREATE TEMP TABLE x AS WITH RECURSIVE r(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM r WHERE i < %d)
SELECT i, %s ns, %s id, %s before, %s job FROM r;`

	fillNS = `CASE WHEN i % 10 = 0 THEN 'acme-prod' ELSE '` + fixNS + `' END`
)

// fillID returns an expression for the 16 bytes of an ID.
func fillID(i string) string { return "CAST(printf('%016d', " + i + ") AS BLOB)" }

// fillSQL has an insert for each table, from x(i, ns, id, before, job).
var fillSQL = []string{
	`INSERT INTO weaver_jobs (namespace, job_id, name, state, budget_json, total, unfinished, movable, failed, succeeded, created_at, updated_at)
SELECT ns, id, 'job ' || i, CASE i % 4 WHEN 0 THEN 'running' ELSE 'succeeded' END, '{}', 100, 0, 0, 0, 100, i, i FROM x`,
	`INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, waiting_reason, lease_id, lease_epoch, job_id,
  idempotency_key, concurrency_key, options_json, created_at, updated_at)
SELECT ns, id, 'acme.test.t' || (i % 20) || '.v1', 'q' || (i % 10), 1 + i % 9,
  CASE i % 20 WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' WHEN 3 THEN 'blocked' WHEN 4 THEN 'running' WHEN 5 THEN 'pending' WHEN 6 THEN 'ready' ELSE 'succeeded' END,
  CASE i % 20 WHEN 5 THEN 'deps' END, CASE i % 20 WHEN 4 THEN id END, i % 3, CASE WHEN i % 2 = 0 THEN job END,
  CASE WHEN i % 3 = 0 THEN 'key ' || i END, CASE WHEN i % 3 = 1 THEN 'key ' || (i % 1000) END, '{}', i, i FROM x`,
	`INSERT INTO weaver_payloads (namespace, task_id, kind, data) SELECT ns, id, 'input', '"x"' FROM x`,
	`INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind, done) SELECT ns, id, before, 'success', i % 10 > 1 FROM x`,
	`INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, code_version, started_at, finished_at, outcome_kind)
SELECT ns, id, 1, 1, id, 1, i, i, 'success' FROM x`,
	`INSERT INTO weaver_decisions (namespace, task_id, attempt_no, decided_at, decision_kind, reason_json) SELECT ns, id, 1, i, 'retry', '{}' FROM x`,
	`INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, started_at, completed_at)
SELECT ns, id, 'step', 0, 0, 1, 1, 0, 'step', 'completed', i, i FROM x`,
	`INSERT INTO weaver_signals (namespace, task_id, seq, name, key, payload, sent_at, actor, step)
SELECT ns, id, 1, 'signal', 'key', '1', i, 'ann', CASE WHEN i % 10 > 1 THEN 'step' END FROM x`,
	`INSERT INTO weaver_events (namespace, task_id, seq, type, at, body) SELECT ns, id, i, 'step.started', i, '{}' FROM x`,
	`INSERT INTO weaver_logs (namespace, task_id, seq, type, at, body) SELECT ns, id, i, 'log.written', i, '{}' FROM x`,
	`INSERT INTO weaver_checkpoints (namespace, task_id, name, value, attempt_no, saved_at) SELECT ns, id, 'cursor', '1', 1, i FROM x`,
	`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key)
SELECT ns, id, 'q' || (i % 10), 'acme.test.t' || (i % 20) || '.v1', 1 + i % 9, i, CASE WHEN i % 3 = 1 THEN 'key ' || (i % 1000) END FROM x`,
	`INSERT INTO weaver_claims (namespace, lease_id, worker_id, check_at, task_ids) SELECT ns, id, 'w' || (i % 1000), 4e15 + i, id FROM x`,
	`INSERT INTO weaver_timers (namespace, due_at, task_id) SELECT ns, 4e15 + i, id FROM x`,
	`INSERT INTO weaver_task_labels (namespace, key, value, task_id) SELECT ns, 'team', 'team ' || (i % 100), id FROM x`,
	`INSERT INTO weaver_conc_keys (namespace, key, held, cap) SELECT ns, 'key ' || i, 1, 1 FROM x`,
	`INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id) SELECT ns, 'key ' || (i % 1000), i, id FROM x`,
	`INSERT INTO weaver_workers (namespace, worker_id, name, ttl, last_seen, heartbeats_since) SELECT ns, 'w' || i, 'host:' || i, 30000000, 4e15, 4e15 FROM x WHERE i % 100 = 1`,
	`INSERT INTO weaver_paused_queues (namespace, queue, at, actor, reason) SELECT ns, 'paused ' || i, i, 'ann', '' FROM x WHERE i % 100 = 1`,
	`INSERT INTO weaver_audit (namespace, audit_id, at, actor, verb, target, reason) SELECT ns, i, i, 'ann', 'cancel', 'task ' || (i % 10000), '' FROM x`,
	`INSERT INTO weaver_types (namespace, task_type, schema_version, code_version, digest, announced_at, announced_by, body)
SELECT ns, 'acme.test.t' || i || '.v1', 1, 1, i, i, 'w' || i, '{}' FROM x WHERE i % 100 = 1`,
	`INSERT INTO weaver_store_meta (namespace, key, value) SELECT ns, 'key ' || i, '' FROM x WHERE i % 100 = 1`,
}
