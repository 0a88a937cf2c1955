package postgres_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Tasks with a scheduled cleanup run move to their undo phase: due tasks, tasks that wait for their
// key, and paused ones. Other tasks do not change.
func TestMigrateUndo_ConvertsCleanupRuns(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("migrations/0010_undo.sql")
	if err != nil {
		t.Fatal(err)
	}
	_, convert, found := strings.Cut(string(text), "\n-- Tasks that were")
	if !found {
		t.Fatal("the migration converts nothing")
	}
	_, u := migrated(t)
	for id, asked := range map[string]string{
		`'\x01'`: `1, 'cancelled', 'ada', 'wrong'`,
		`'\x02'`: `2, 'deadline', NULL, NULL`,
		`'\x03'`: `1, 'budget', 'ada', 'spent'`,
		`'\x04'`: `0, NULL, NULL, NULL`,
	} {
		u.exec(`INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, attempt_no, created_at, updated_at, deadline_at,
			cancel_requested, cancel_kind, cancel_by, cancel_reason) VALUES ('n', ` + id + `, 't', 'q', 5, 'ready', 1, 0, 1000000, 60000000, ` + asked + `)`)
	}
	u.exec(`INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at) VALUES ('n', '\x01', 'q', 't', 5, 1), ('n', '\x04', 'q', 't', 5, 1)`)
	u.exec(`INSERT INTO weaver_conc_waiters (namespace, key, due_at, task_id, queue, task_type) VALUES ('n', 'k', 1, '\x02', 'q', 't')`)
	u.exec(`INSERT INTO weaver_paused_tasks (namespace, task_id, at, actor, reason) VALUES ('n', '\x03', 1, 'ada', '')`)
	u.exec("--" + convert)
	want := []string{
		`pending undo 1 cancelled cancelled cancelled by ada: wrong 1970-01-01T00:00:01Z cancelled`,
		`pending undo 1 deadline cancelled its deadline passed at 1970-01-01T00:01:00Z 1970-01-01T00:00:01Z deadline`,
		`pending undo 1 budget failed the budget is used up: spent 1970-01-01T00:00:01Z budget`,
		`ready 0`,
	}
	if got := u.texts(`SELECT concat_ws(' ', state, waiting_reason, cancel_requested, last_error_kind, undo::json->>'ends_as', last_error_json::json->>'message',
		undo::json->>'began', undo::json->'error'->>'kind') FROM weaver_tasks WHERE namespace = 'n' ORDER BY task_id`); !slices.Equal(got, want) {
		t.Errorf("the tasks are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
