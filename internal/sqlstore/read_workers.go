package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
)

var statusColumns = sqlstmt.Columns[store.WorkerStatus]{
	sqlstmt.Col("worker_id", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.ID = store.WorkerID(r.Text(i)) }),
	sqlstmt.Col("name", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.Name = r.Text(i) }),
	sqlstmt.Col("ttl", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.TTL = r.Duration(i) }),
	sqlstmt.Col("types", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { r.JSON(i, &w.Types) }),
	sqlstmt.Col("last_seen", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.LastSeen = r.Time(i) }),
}

var sqlWorkers = `SELECT ` + statusColumns.List() + ` FROM weaver_workers WHERE namespace = ?1 ORDER BY worker_id`

// Workers implements store.Reader.
func (s *Store) Workers(ctx context.Context, ns string) (list []store.WorkerStatus, err error) {
	err = s.read(ctx, ns, func(v *View) error {
		if list, err = statusColumns.All(v.stmt(sqlWorkers).Text(1, ns)); err != nil {
			return err
		}
		running, err := v.runningBy()
		for i := range list {
			list[i].Running = running[string(list[i].ID)]
		}
		return err
	})
	return list, err
}

// runningBy counts the running tasks of each worker.
func (v *View) runningBy() (map[string]int, error) {
	running := make(map[string]int)
	err := v.eachRunning(func(c *claimRow, _ int) { running[c.worker]++ })
	return running, err
}
