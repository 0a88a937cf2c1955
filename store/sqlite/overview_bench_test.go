package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/goweaver/weaver/store"
)

// BenchmarkOverview reads the parts of an overview of a million tasks, with a million rows of
// most kinds that define states.
func BenchmarkOverview(b *testing.B) {
	db := openFile(b, filepath.Join(b.TempDir(), "w.db"))
	var fill []string
	for _, sql := range fillSQL {
		for _, table := range []string{"weaver_tasks ", "weaver_task_dependencies ", "weaver_outbox_events ", "weaver_conc_waiters "} {
			if strings.HasPrefix(sql, "INSERT INTO "+table) {
				fill = append(fill, sql)
			}
		}
	}
	// Of the running tasks, 10,000 have a claim.
	fill = append(fill, `INSERT INTO weaver_claims (namespace, lease_id, worker_id, check_at, task_ids) SELECT ns, id, 'w' || (i % 1000), 4e15 + i, id FROM x WHERE i % 100 = 4`)
	for i := range 20 {
		if err := db.Exec(b.Context(), fillScript(i*50_000, 50_000, fill)); err != nil {
			b.Fatal(err)
		}
	}
	for _, part := range []struct {
		name  string
		parts store.OverviewParts
	}{{"counts", store.OverviewCounts}, {"queues", store.OverviewQueues}, {"workers", store.OverviewWorkers}} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.Overview(b.Context(), fixNS, store.OverviewRequest{Parts: part.parts}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
