package postgres_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/store/postgres"
	"github.com/goweaver/weaver/task"
)

var benchRows = flag.Int("rows", 1_000_000, "tasks beside those that BenchmarkClaim claims")

// BenchmarkClaim claims one task in a database with many others: future and finished tasks must not
// slow it down. Run it with -benchtime=2000x.
func BenchmarkClaim(b *testing.B) {
	for _, c := range []struct {
		name string
		sql  []string
	}{
		{"alone", nil},
		{"future", []string{fillTasks("'ready'", "9e15 + i", "NULL"), fillDue("9e15 + i")}},
		{"finished", []string{fillTasks("'succeeded'", "NULL", "NULL"), fillAttempts}},
	} {
		b.Run(c.name, func(b *testing.B) {
			url := pgtest.Migrated(b, "weaver", migrateURL)
			u := connect(b, url)
			u.fill(*benchRows, c.sql)
			u.exec("VACUUM ANALYZE")
			db, err := postgres.Open(b.Context(), url, postgres.Unsafe())
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := db.Close(); err != nil {
					b.Error(err)
				}
			}()
			w := &planWork{TB: b, db: db, ids: task.NewIDs(nil)}
			var took []time.Duration
			claim := func() {
				w.enqueue(1, func(n *task.New) { n.Type, n.Queue = planType, task.DefaultQueue })
				begun := time.Now()
				got := w.claim(100, planType)
				took = append(took, time.Since(begun))
				if len(got) != 1 {
					b.Fatalf("claimed %d tasks, want one", len(got))
				}
				w.succeed(got...)
			}
			for range 100 {
				claim()
			}
			took = nil
			b.ResetTimer()
			for range b.N {
				claim()
			}
			b.StopTimer()
			slices.Sort(took)
			for _, percent := range []int{50, 99} {
				b.ReportMetric(float64(took[(len(took)-1)*percent/100].Microseconds()), fmt.Sprintf("p%d-µs", percent))
			}
		})
	}
}
