package postgres_test

import (
	"fmt"
	"strings"
)

const (
	planNS   = "acme-plans"
	planType = "acme.plans.v1"
)

// fullState is the state whose plans testdata/plans.txt records.
const fullState = "many of everything, analyzed"

// newNamespace is the state whose namespace is missing in the statistics: the planner assumes that
// it is empty. Only the statements of scanning may read many of its rows.
const newNamespace = "many due in a new namespace"

// fill is a state of the database in which plans are checked. Its SQL creates the rows from x(i,
// ns, id, before, job); analyze runs ANALYZE after it.
type fill struct {
	name    string
	analyze bool
	late    bool // the rows are inserted after all plans have been made
	sql     []string
}

// fills are the states of `make test`: each bad plan found so far appears in one of them.
var fills = []fill{
	{fullState, true, false, fillAll},
	{"many of everything, never analyzed", false, false, fillAll},
	{"drained, then many due", false, false, []string{
		fillTasks("'ready'", "i", "NULL"), fillDue("i"), "DELETE FROM weaver_outbox_events WHERE available_at < 9500", "VACUUM ANALYZE",
		"DELETE FROM weaver_tasks", fillTasks("'ready'", "i", "NULL"), fillDue("i") + " ON CONFLICT DO NOTHING",
	}},
	{newNamespace, false, false, []string{
		inAnother(fillTasks("'ready'", "i", "NULL")), inAnother(fillDue("i")), "DELETE FROM weaver_outbox_events", "ANALYZE", fillTasks("'ready'", "i", "NULL"), fillDue("i"),
	}},
	{"analyzed empty, then many of everything", true, true, fillAll},
}

// moreFills are the additional states of `make soak-plans`.
var moreFills = []fill{
	{"many due", true, false, []string{fillTasks("'ready'", "i", "NULL"), fillDue("i")}},
	{"many of the future", true, false, []string{fillTasks("'ready'", "9e15 + i", "NULL"), fillDue("9e15 + i")}},
	{"many finished", true, false, []string{fillTasks("'succeeded'", "NULL", "NULL"), fillAttempts}},
	{"many running", true, false, []string{fillTasks("'running'", "NULL", "job"), fillClaims}},
	{"analyzed empty, then many due", true, true, []string{fillTasks("'ready'", "i", "NULL"), fillDue("i")}},
}

// stayUnanalyzed turns off autovacuum's statistics, which would change plans between two
// statements.
func (u *user) stayUnanalyzed() {
	u.Helper()
	u.exec(`DO $$ DECLARE name text; BEGIN FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'weaver' LOOP
  EXECUTE 'ALTER TABLE weaver.' || name || ' SET (autovacuum_enabled = false)'; END LOOP; END $$`)
}

// fill creates n rows in each table of a state, nine in ten of them in the namespace of the work.
func (u *user) fill(n int, sql []string) {
	u.Helper()
	for _, s := range fillRows(n, planNS, sql) {
		u.exec(s)
	}
}

// fillRows returns the SQL that creates n rows in each table of a state, nine in ten of them in
// namespace ns.
func fillRows(n int, ns string, sql []string) []string {
	// A subquery and not a temporary table: the first temporary table makes all sessions plan
	// again.
	rows := fmt.Sprintf("FROM (SELECT i, CASE WHEN i %% 10 = 0 THEN 'acme-prod' ELSE '%s' END AS ns, %s AS id, %s AS before, %s AS job FROM generate_series(1, %d) AS i) x",
		ns, fillID("i"), fillID("i - 1"), fillID("i / 100"), n)
	filled := make([]string, len(sql))
	for i, s := range sql {
		filled[i] = strings.Replace(s, "FROM x", rows, 1)
	}
	return filled
}

// fillID returns an expression for the 16 bytes of an ID.
func fillID(i string) string { return "convert_to(lpad((" + i + ")::text, 16, '0'), 'UTF8')" }

// inAnother makes a fill create its rows in another namespace.
func inAnother(sql string) string { return strings.Replace(sql, "SELECT ns,", "SELECT 'another',", 1) }

// fillTasks stores plain tasks in a state. lease is an expression for their job, and for their
// lease if they run.
func fillTasks(state, readyAt, lease string) string {
	return fmt.Sprintf(`INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, ready_at, plain, input, output, lease_id, lease_epoch,
  attempt_no, schema_version, max_attempts, max_repairs, options_json, created_at, updated_at)
SELECT ns, id, '%s', 'default', 5, %[2]s, %[3]s, 1, '1', CASE WHEN %[2]s = 'succeeded' THEN '1' END, %[4]s, CASE WHEN %[2]s = 'ready' THEN 0 ELSE 1 END,
  CASE WHEN %[2]s = 'ready' THEN 0 ELSE 1 END, 1, 3, 3, NULL, i, i FROM x`, planType, state, readyAt, lease)
}

func fillDue(at string) string {
	return fmt.Sprintf(`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at) SELECT ns, id, 'default', '%s', 5, %s FROM x`, planType, at)
}

const (
	fillAttempts = `INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, code_version, started_at, finished_at, outcome_kind)
SELECT ns, id, 1, 1, id, 1, i, i, 'success' FROM x`
	fillClaims = `INSERT INTO weaver_claims (namespace, lease_id, worker_id, check_at, task_ids) SELECT ns, job, 'other', 9e15, string_agg(id, '') FROM x GROUP BY ns, job`
)

// endStateOfFill is the value of end_state of the tasks of fillAll.
const endStateOfFill = "CASE i % 20 WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' WHEN 3 THEN 'blocked' END, "

// fillAll has an insert for each table. Rows of different tables need not be consistent: the test
// checks the rows that statements read, not their meaning.
var fillAll = []string{
	`INSERT INTO weaver_jobs (namespace, job_id, name, state, budget_json, total, unfinished, movable, failed, succeeded, created_at, updated_at)
SELECT ns, id, 'job ' || i, CASE i % 4 WHEN 0 THEN 'running' ELSE 'succeeded' END, '{}', 100, 0, 0, 0, 100, i, i FROM x`,
	`INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, end_state, waiting_reason, lease_id, lease_epoch, job_id,
  idempotency_key, concurrency_key, options_json, created_at, updated_at)
SELECT ns, id, 'acme.test.t' || (i % 20) || '.v1', 'q' || (i % 10), 1 + i % 9,
  CASE i % 20 WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' WHEN 3 THEN 'blocked' WHEN 4 THEN 'running' WHEN 5 THEN 'pending' WHEN 6 THEN 'ready' ELSE 'succeeded' END,
  ` + endStateOfFill + `CASE i % 20 WHEN 5 THEN 'deps' END, CASE i % 20 WHEN 4 THEN id END, i % 3, CASE WHEN i % 2 = 0 THEN job END,
  CASE WHEN i % 3 = 0 THEN 'key ' || i END, CASE WHEN i % 3 = 1 THEN 'key ' || (i % 1000) END, '{}', i, i FROM x`,
	`INSERT INTO weaver_payloads (namespace, task_id, kind, data) SELECT ns, id, 'input', '"x"' FROM x`,
	`INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind, done) SELECT ns, id, before, 'success', CASE WHEN i % 10 > 1 THEN 1 ELSE 0 END FROM x`,
	fillAttempts,
	`INSERT INTO weaver_decisions (namespace, task_id, attempt_no, decided_at, decision_kind, reason_json) SELECT ns, id, 1, i, 'retry', '{}' FROM x`,
	`INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, started_at, completed_at)
SELECT ns, id, 'step', 0, 0, 1, 1, 0, 'step', CASE WHEN i % 5 = 0 THEN 'waiting' ELSE 'completed' END, i, i FROM x`,
	`INSERT INTO weaver_signals (namespace, task_id, seq, name, key, payload, sent_at, actor, step)
SELECT ns, id, 1, 'signal', 'key', '1', i, 'ann', CASE WHEN i % 10 > 1 THEN 'step' END FROM x`,
	`INSERT INTO weaver_events (namespace, task_id, seq, type, at, body) SELECT ns, id, i, 'step.started', i, '{}' FROM x`,
	`INSERT INTO weaver_logs (namespace, task_id, seq, type, at, body) SELECT ns, id, i, 'log.written', i, '{}' FROM x`,
	`INSERT INTO weaver_checkpoints (namespace, task_id, name, value, attempt_no, saved_at) SELECT ns, id, 'cursor', '1', 1, i FROM x`,
	`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key)
SELECT ns, id, 'q' || (i % 10), 'acme.test.t' || (i % 20) || '.v1', 1 + i % 9, i, CASE WHEN i % 3 = 1 THEN 'key ' || (i % 1000) END FROM x`,
	`INSERT INTO weaver_claims (namespace, lease_id, worker_id, check_at, task_ids) SELECT ns, id, 'w' || (i % 1000), 9e15 + i, id FROM x WHERE i % 20 = 1`,
	`INSERT INTO weaver_timers (namespace, due_at, task_id) SELECT ns, 9e15 + i, id FROM x`,
	`INSERT INTO weaver_task_labels (namespace, key, value, task_id) SELECT ns, 'team', 'team ' || (i % 100), id FROM x`,
	`INSERT INTO weaver_conc_keys (namespace, key, held, cap) SELECT ns, 'key ' || i, 1, 1 FROM x`,
	`INSERT INTO weaver_rates (namespace, name, arrival, rest_until, idle_at) SELECT ns, 'rate:key ' || i, 9e15 + i, 0, 9e15 + i FROM x`,
	`INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id, queue, task_type) SELECT ns, 'key ' || (i % 1000), i, id, 'q', 't' FROM x`,
	`INSERT INTO weaver_blobs (namespace, blob_id, sha256, size_bytes, state, touched_at) SELECT ns, id, i::text, i, CASE WHEN i % 10 = 1 THEN 'pending' ELSE 'live' END, i FROM x`,
	`INSERT INTO weaver_audit (namespace, audit_id, at, actor, verb, target, reason) SELECT ns, 1000000 + i, i, 'ann', 'cancel', 'task ' || (i % 10000), '' FROM x`,
	`INSERT INTO weaver_expiries (namespace, task_id, set_at, look_at) SELECT ns, id, i, 9e15 + i FROM x`,
	`INSERT INTO weaver_paused_tasks (namespace, task_id, at, actor, reason) SELECT ns, id, i, 'ann', '' FROM x`,
	`INSERT INTO weaver_drafts (namespace, task_id, first, children, awaited, drafts) SELECT ns, id, 1, 0, 0, '[]' FROM x`,
}

// small reports whether a table has one row for each worker, claim call, pause, limit or setting: any plan
// suits it.
func small(table string) bool {
	for _, name := range []string{"workers", "paused_queues", "paused_types", "limits", "limit_changes", "store_meta", "chores", "schema_versions"} {
		if strings.TrimPrefix(table, "weaver_") == name {
			return true
		}
	}
	return false
}
