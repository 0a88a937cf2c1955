package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Tasks that were to clean up, in a file from before undo phases, are in their phase: due,
// waiting for their key, and paused.
func TestCleanupsOfBeforeAreUndoPhases(t *testing.T) {
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
	deadline := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row := func(n int, asked int, kind, reason string) string {
		id := fmt.Sprintf("x'%032x'", n)
		f.exec(fmt.Sprintf(`INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, max_attempts, attempt_no, lease_epoch, options_json, schema_version, input,
			created_at, updated_at, deadline_at, cancel_requested, cancel_kind, cancel_by, cancel_reason)
			VALUES ('%s', %s, '%s', 'default', 5, 'ready', 3, 1, 1, '{"cleanup_when_cancelled":true}', 1, '1', 0, 1000000, %d, %d, '%s', 'ada', %s)`,
			fixNS, id, fixType, deadline.UnixMicro(), asked, kind, reason))
		f.exec(fmt.Sprintf(`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at) VALUES ('%s', %s, 'default', '%s', 5, 1)`, fixNS, id, fixType))
		return id
	}
	row(1, 1, "cancelled", "'wrong'")
	row(2, 2, "deadline", "NULL")
	row(3, 1, "budget", "'spent'")
	row(4, 0, "", "NULL")
	if err := f.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[byte]struct {
		ends    task.State
		kind    task.ErrorKind
		message string
	}{
		1: {task.Cancelled, task.KindCancelled, "cancelled by ada: wrong"},
		2: {task.Cancelled, task.KindDeadline, "its deadline passed at 2026-03-01T12:00:00Z"},
		3: {task.Failed, task.KindBudget, "the budget is used up: spent"},
	} {
		got, err := f.db.Claim(t.Context(), fixNS, fixHint("w", task.ID{15: n}))
		if err != nil || len(got.Tasks) != 1 {
			t.Fatalf("the claim of task %d: %+v, %v", n, got, err)
		}
		p := got.Tasks[0].Task.Undo
		if p == nil || p.EndsAs != want.ends || p.Error == nil || p.Error.Kind != want.kind || p.Error.Message != want.message || !p.Began.Equal(time.Unix(1, 0)) {
			t.Fatalf("task %d has the phase %+v, want %+v", n, p, want)
		}
		res, err := f.db.Finish(t.Context(), fixNS, store.Finish{Lease: got.Tasks[0].Lease, Outcome: task.OutcomeUndone, EndsAs: p.EndsAs})
		if err != nil || res[0].Err != nil || res[0].State != want.ends {
			t.Errorf("task %d ended: %+v, %v", n, res, err)
		}
	}
	got, err := f.db.Tasks(t.Context(), fixNS, task.ID{15: 4})
	if err != nil || len(got) != 1 || got[0].State != task.Ready || got[0].Undo != nil {
		t.Errorf("a task that is not to clean up: %+v, %v", got, err)
	}
}
