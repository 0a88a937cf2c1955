package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store/postgres"
)

const newTask = "INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, created_at, updated_at, idempotency_key) VALUES "

// The schema rejects contradictory rows, whatever the code does.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	_, u := migrated(t)
	for name, pair := range map[string]struct {
		first, second string
		both          bool // both forms are accepted
	}{
		"an idempotency key twice":    {newTask + `('a', '\x01', 't', 'q', 5, 'ready', 0, 0, 'k')`, newTask + `('a', '\x02', 't', 'q', 5, 'ready', 0, 0, 'k')`, false},
		"a key of another type":       {newTask + `('a', '\x01', 't', 'q', 5, 'ready', 0, 0, 'k')`, newTask + `('a', '\x02', 'u', 'q', 5, 'ready', 0, 0, 'k')`, true},
		"an id in two namespaces":     {newTask + `('a', '\x01', 't', 'q', 5, 'ready', 0, 0, 'k')`, newTask + `('b', '\x01', 't', 'q', 5, 'ready', 0, 0, 'k')`, true},
		"two claims under a lease id": {`INSERT INTO weaver_claims VALUES (1, 'a', '\x01', 'w', '')`, `INSERT INTO weaver_claims VALUES (2, 'a', '\x01', 'w', '')`, false},
		"a blob twice":                {`INSERT INTO weaver_blobs VALUES (1, 0, 'a', '\x01', 's', 'live')`, `INSERT INTO weaver_blobs VALUES (1, 0, 'a', '\x02', 's', 'pending')`, false},
		"a blob that is deleted":      {`INSERT INTO weaver_blobs VALUES (1, 0, 'a', '\x01', 's', 'deleting')`, `INSERT INTO weaver_blobs VALUES (1, 0, 'a', '\x02', 's', 'live')`, true},
	} {
		u.exec("BEGIN")
		u.exec(pair.first)
		if _, err := u.conn.Exec(t.Context(), pair.second); (err == nil) != pair.both {
			t.Errorf("%s: %v", name, err)
		}
		u.exec("ROLLBACK")
	}
}

// Texts are ordered by their bytes, whatever the database's collation is.
func TestTextOrder(t *testing.T) {
	t.Parallel()
	_, u := migrated(t)
	for _, key := range []string{"b", "a", "B", "ä", "_", "Z", "z", "a b", "ab"} {
		u.exec("INSERT INTO weaver_store_meta VALUES ('n', $1, '')", key)
	}
	if got := fmt.Sprint(u.texts("SELECT key FROM weaver_store_meta WHERE namespace = 'n' ORDER BY key")); got != "[B Z _ a a b ab b z ä]" {
		t.Errorf("ordered %s", got)
	}
}

// A claim of any number of tasks writes no index, and neither does a finish: no index and no index
// condition has a column that they change. A claim finds room on each page. A finish finds room
// only after the versions before the claim have been removed, which depends on all other activity
// of the server.
func TestUpdatesAreHeapOnly(t *testing.T) {
	t.Parallel()
	_, u := migrated(t)
	if got := u.texts(`
SELECT DISTINCT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum > 0
WHERE i.indrelid = 'weaver_tasks'::regclass AND (a.attnum = ANY (i.indkey::int2[]) OR EXISTS (
  SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum))
ORDER BY 1`); fmt.Sprint(got) != "[concurrency_key end_state idempotency_key job_id namespace parent_task_id queue task_id task_type undo]" {
		t.Errorf("indexes of weaver_tasks have the columns %v: each but end_state, and undo in an undo phase, must never change", got)
	}
	u.exec(strings.Replace(newTask, "VALUES", `SELECT 'a', decode(lpad(to_hex(i), 32, '0'), 'hex'), 't', 'q', 5, 'ready', 1, 1, NULL FROM generate_series(1, 1000) i`, 1))
	u.exec("BEGIN")
	u.exec(`UPDATE weaver_tasks SET state = 'running', lease_id = '\x00112233445566778899aabbccddeeff', lease_epoch = 1, leased_by = 'worker', lease_expires_at = 9, updated_at = 2`)
	if got := u.texts("SELECT n_tup_hot_upd || ' of ' || n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'weaver_tasks'"); got[0] != "1000 of 1000" {
		t.Errorf("heap-only updates of a claim: %s", got[0])
	}
	u.exec("COMMIT")
	u.exec(`UPDATE weaver_tasks SET state = 'succeeded', lease_id = NULL, lease_expires_at = NULL, output = '{}', finished_at = 3, updated_at = 3`)
	u.exec(postgres.Translate(`UPDATE weaver_tasks SET state = 'failed' WHERE task_id < '\x00000000000000000000000000000101'`))
	if got := u.texts("SELECT count(*) || ' ' || min(end_state) || ' ' || (count(*) FILTER (WHERE end_state IS NULL)) FROM weaver_tasks WHERE end_state IS NOT NULL"); got[0] != "256 failed 0" {
		t.Errorf("in weaver_tasks_by_end: %s", got)
	}
	u.exec("ANALYZE weaver_tasks")
	plan := strings.Join(u.texts(`EXPLAIN (COSTS off) SELECT task_id FROM weaver_tasks WHERE namespace = 'a' AND end_state = 'failed' AND task_id < '\xff' ORDER BY task_id DESC LIMIT 10`), "\n")
	if !strings.Contains(plan, "weaver_tasks_by_end") || strings.Contains(plan, "Sort") {
		t.Errorf("failed tasks are listed by\n%s", plan)
	}
}

// Small tables with frequent updates are vacuumed often, and the hot ones keep room for new row
// versions.
func TestTablesAreTuned(t *testing.T) {
	t.Parallel()
	_, u := migrated(t)
	for _, name := range []string{"weaver_tasks", "weaver_jobs", "weaver_conc_keys", "weaver_workers"} {
		if got := u.texts("SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE oid = $1::regclass", name); !strings.Contains(got[0], "fillfactor=") {
			t.Errorf("%s has the parameters %s", name, got)
		}
	}
	for _, name := range []string{"weaver_outbox_events", "weaver_claims", "weaver_conc_keys", "weaver_conc_waiters", "weaver_workers"} {
		if got := u.texts("SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE oid = $1::regclass", name); !strings.Contains(got[0], "autovacuum_vacuum_scale_factor=0 ") {
			t.Errorf("%s has the parameters %s", name, got)
		}
	}
}
