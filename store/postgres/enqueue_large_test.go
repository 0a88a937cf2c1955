package postgres_test

import (
	"fmt"
	"testing"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Small submissions of the process do not wait for a large one.
func TestEnqueue_BesideLargeJob(t *testing.T) {
	t.Parallel()
	w := workIn(t, pgtest.Migrated(pgtest.InShort(t), "weaver", migrateURL))
	sub := store.Submission{Job: &task.NewJob{ID: w.ids.New(), Name: "large"}}
	for i := range rules.MaxWhole + 1 {
		sub.Tasks = append(sub.Tasks, w.draft(func(n *task.New) { n.Node = fmt.Sprint(i) }))
	}
	tx := w.locking("LOCK TABLE weaver.weaver_jobs IN SHARE MODE")
	done := make(chan error, 1)
	go func() {
		_, err := w.db.Enqueue(t.Context(), planNS, nil, sub)
		done <- err
	}()
	eventually(t, "the job waits for the lock", func() bool {
		var n int
		err := w.db.Pool().QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
  AND query LIKE '%weaver_jobs%'`).Scan(&n)
		return err == nil && n > 0
	})
	w.enqueue(1)
	select {
	case err := <-done:
		t.Errorf("the job was stored before: %v", err)
	default:
	}
	w.ok(tx.Rollback(t.Context()))
	w.ok(<-done)
}
