package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Conditions of a single task that keep it in a set, or leave it to the single-task verb.
func TestVerbsBySets_OneAmongOthers(t *testing.T) {
	t.Parallel()
	const cancel, retry, remove, unblock = 0, 1, 2, 3
	w := newTwins(t, 0)
	of := func(table, more, values string) string {
		return "INSERT INTO " + table + " (namespace, task_id, " + more + ") SELECT namespace, task_id, " + values + " FROM weaver_tasks WHERE "
	}
	update := func(set string) string { return "UPDATE weaver_tasks SET " + set + " WHERE " }
	for _, c := range []struct {
		name string
		verb int
		sql  string
	}{
		{"paused, cancel", cancel, of("weaver_paused_tasks", "at, due_at, actor, reason", "1, 5, '', ''")},
		{"paused, retry", retry, of("weaver_paused_tasks", "at, actor, reason", "1, '', ''")},
		{"undo", cancel, update("attempt_no = 1, undo_open = 1")},
		{"cleanup when cancelled", cancel, update(`attempt_no = 1, options_json = '{"cleanup_when_cancelled":true}'`)},
		{"deadline, cancel", cancel, of("weaver_timers", "due_at", "7") + "%[1]s; " + update("deadline_at = 7")},
		{"deadline, retry", retry, update("deadline_at = 1900000000000000")},
		{"deadline passed, retry", retry, update("deadline_at = 7")},
		{"counters, retry", retry, update("crash_count = 2, quarantine_losses = 1, internal_count = 3, repair_count = 2, idle_attempts = 4, step_count = 3, cancel_requested = 1")},
		{"counters, unblock", unblock, update("attempt_count = 9, max_attempts = 4, repair_count = 7, max_repairs = 5, idle_attempts = 4")},
		{"answer", unblock, of("weaver_payloads", "kind, data", "'unblock_for', '1'") + "%[1]s; " + update("has_payloads = 1")},
		{"dropped", retry, update("values_dropped = 2")},
		{"cleaned up", retry, of("weaver_steps", "name, attempt_no, try, by_attempt, by_try, step_index, started_at, completed_at, kind, state", "'c', 0, 0, 1, 1, 0, 1, 1, 'cleanup', 'completed'")},
		{"needed, retry", retry, of("weaver_task_dependencies", "depends_on_task_id, kind, done", "decode(repeat('01', 16), 'hex'), 'done', 1")},
		{"needed, delete", remove, "INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind) SELECT namespace, decode(repeat('01', 16), 'hex'), task_id, 'done' FROM weaver_tasks WHERE "},
		{"leaving, retry", retry, "INSERT INTO weaver_chores (namespace, kind, subject, position) SELECT namespace, 'delete_task', task_id, '' FROM weaver_tasks WHERE "},
		{"leaving, delete", remove, "INSERT INTO weaver_chores (namespace, kind, subject, position) SELECT namespace, 'delete_task', task_id, '' FROM weaver_tasks WHERE "},
		{"brought back", retry, "INSERT INTO weaver_chores (namespace, kind, subject, root, position) SELECT namespace, 'revive', decode(repeat('07', 16), 'hex'), task_id, '' FROM weaver_tasks WHERE "},
		{"artifact", remove, of("weaver_artifacts", "kind, artifact_id, blob_id, created_at", "'artifact', '\\x01', '\\x02', 1")},
		{"signal", remove, of("weaver_signals", "seq, sent_at, name, key, actor, payload", "1, 1, 'n', 'k', '', ''")},
		{"drafts", remove, of("weaver_drafts", "first, children, awaited, drafts", "0, 1, 1, '[]'")},
		{"logs", remove, of("weaver_logs", "seq, at, type, body", "generate_series(1, 1000), 1, 'log', '{}'")},
		{"events", remove, of("weaver_events", "seq, at, type, body", "generate_series(1, 1000), 1, 'x', '{}'")},
		{"beside", remove, of("weaver_events", "seq, at, type, body", "1, 1, 'x', '{}'") + "%[1]s; " + of("weaver_checkpoints", "attempt_no, saved_at, name, value", "1, 1, 'n', '1'")},
		{"nothing", unblock, update("idle_attempts = 0")},
	} {
		var sub store.Submission
		var ids []task.ID
		for range 4 {
			n := task.New{
				ID: drawn.New(), Type: "t", Queue: task.DefaultQueue, Input: []byte(`1`), SchemaVersion: 1, Priority: task.DefaultPriority,
				MaxAttempts: 1, MaxRepairs: 1, Backoff: time.Second, BackoffMax: time.Second, Labels: map[string]string{"a": "b"},
			}
			sub.Tasks, ids = append(sub.Tasks, n), append(ids, n.ID)
		}
		w.both(c.name, func(s *twin) (any, error) { return s.db.Enqueue(w.Context(), space, nil, sub) })
		if c.verb != cancel {
			w.claimed(ids...)
			w.end([]task.DecisionKind{retry: task.DecideMarkDead, remove: task.DecideMarkDead, unblock: task.DecideBlock}[c.verb])
		}
		one := fmt.Sprintf("task_id = '\\x%x'", ids[1][:])
		sql := strings.ReplaceAll(c.sql, "%[1]s", one) + one
		w.both(c.name, func(s *twin) (any, error) {
			for _, part := range strings.Split(sql, "; ") {
				s.u.exec(part)
			}
			return nil, nil
		})
		var cmds []store.Command
		for _, id := range append(ids, ids[2]) { // one of them twice
			audit := store.Audit{By: "ann", Reason: c.name}
			cmds = append(cmds, []store.Command{
				cancel: store.CancelTask{Audit: audit, Task: id}, retry: store.RetryTask{Audit: audit, Task: id},
				remove: store.DeleteTask{Audit: audit, Task: id}, unblock: store.UnblockTask{Audit: audit, Task: id},
			}[c.verb])
		}
		w.commands(cmds...)
		w.both(c.name, func(s *twin) (any, error) {
			s.u.exec("DELETE FROM weaver_chores")
			return nil, nil
		})
	}
}
