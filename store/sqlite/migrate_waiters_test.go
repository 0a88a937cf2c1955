package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/goweaver/weaver/task"
)

// Waiters in a file from before lanes get their lanes, and a key continues that was blocked
// there by a row of a type without workers.
func TestWaitersOfBeforeGetTheirLanes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(frozenFile)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "weaver.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f := unmigrated(t, path)
	row := func(n int, typ, queue, key string) (id string) {
		id = fmt.Sprintf("x'%032x'", n)
		f.exec(fmt.Sprintf(`INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, max_attempts, concurrency_key, options_json, schema_version, input, created_at, updated_at)
			VALUES ('%s', %s, '%s', '%s', 5, 'ready', 3, '%s', '{"concurrency_limit":1}', 1, '1', 0, 0)`, fixNS, id, typ, queue, key))
		return id
	}
	waits := func(n int, typ, queue, key string) {
		f.exec(fmt.Sprintf("INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id) VALUES ('%s', '%s', %d, %s)", fixNS, key, n, row(n, typ, queue, key)))
	}
	f.exec(fmt.Sprintf("INSERT INTO weaver_conc_keys (namespace, key, held, cap) VALUES ('%s', 'stuck', 0, 1)", fixNS))
	due := row(1, "acme.test.unserved.v1", "default", "stuck")
	f.exec(fmt.Sprintf(`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key)
		VALUES ('%s', %s, 'default', 'acme.test.unserved.v1', 5, 1, 'stuck')`, fixNS, due))
	waits(2, fixType, "other", "stuck")
	waits(3, fixType, "other", "stuck")
	if err := f.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := f.count("SELECT count(*) FROM weaver_conc_waiters WHERE queue = 'other' AND task_type = ?", fixType); n != 1 {
		t.Errorf("%d waiters of the lane, want the one that is left", n)
	}
	snap, err := f.db.Snapshot(t.Context(), fixNS)
	if err != nil {
		t.Fatal(err)
	}
	var all []task.ID
	for i := range snap.Tasks {
		all = append(all, snap.Tasks[i].ID)
	}
	f.sound(all...)
	for n := byte(2); n <= 3; n++ {
		got, err := f.db.Claim(t.Context(), fixNS, fixHint("w", task.ID{15: n}))
		if err != nil || len(got.Tasks) != 1 {
			t.Fatalf("the claim of waiter %d: %+v, %v", n, got, err)
		}
		f.finish(got.Tasks...)
	}
	f.sound(all...)
}
