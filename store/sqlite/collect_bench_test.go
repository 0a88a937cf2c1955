package sqlite_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite"
	"github.com/goweaver/weaver/task"
)

// BenchmarkClaimBesideCollect measures claims and ends with and without a collector that
// removes old tasks as the engine does.
func BenchmarkClaimBesideCollect(b *testing.B) {
	const old = 200_000
	for _, beside := range []bool{false, true} {
		b.Run(map[bool]string{false: "alone", true: "beside"}[beside], func(b *testing.B) {
			db := openFile(b, filepath.Join(b.TempDir(), "bench.db"), sqlite.Synchronous(sqlite.Normal))
			for _, sql := range []string{fmt.Sprintf(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO weaver_tasks (namespace, task_id, task_type, queue, priority, state, plain, attempt_no, attempt_count, max_attempts, input, output, created_at, updated_at, finished_at)
SELECT '%s', CAST(char(1, 1, 1, 1, 1, 1) || printf('%%010d', i) AS BLOB), '%s', 'q', 5, 'succeeded', 1, 1, 1, 5, '{"n":12345}', 'null', 1, 1, 1 FROM n`, old, benchNS, benchType), `
INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, code_version, started_at, finished_at, outcome_kind)
SELECT namespace, task_id, 1, 1, task_id, 1, 1, 1, 'success' FROM weaver_tasks`} {
				if err := db.Exec(b.Context(), sql); err != nil {
					b.Fatal(err)
				}
			}
			stop := make(chan struct{})
			var wg sync.WaitGroup
			removed := 0
			if beside {
				wg.Go(func() {
					req := store.CollectRequest{Retain: []store.Retention{{Age: 24 * time.Hour}}}
					for {
						start := time.Now()
						got, err := db.Collect(b.Context(), benchNS, req)
						if err != nil {
							b.Error(err)
							return
						}
						removed += got.Tasks
						req.After = got.Next
						select {
						case <-stop:
							return
						case <-time.After(max(50*time.Millisecond, 4*time.Since(start))):
						}
					}
				})
			}
			enqueueAll(b, db, 10*b.N, 1000)
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for range b.N {
				start := time.Now()
				got, err := db.Claim(b.Context(), benchNS, store.ClaimRequest{
					Worker: "w", TTL: time.Minute, LeaseID: task.NewLeaseID(), Limit: 10, Types: map[string]int{benchType: 1},
				})
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
				fins := make([]store.Finish, len(got.Tasks))
				for i := range got.Tasks {
					fins[i] = store.Finish{Lease: got.Tasks[i].Lease, Outcome: task.OutcomeSuccess, CodeVersion: 1}
				}
				if _, err := db.Finish(b.Context(), benchNS, fins...); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			close(stop)
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
			b.ReportMetric(float64(removed), "removed")
		})
	}
}
