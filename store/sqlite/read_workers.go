package sqlite

import (
	"context"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

var statusColumns = conn.Columns[store.WorkerStatus]{
	conn.Col("worker_id", func(w *store.WorkerStatus, r *conn.Row, i int) { w.ID = store.WorkerID(r.Text(i)) }),
	conn.Col("name", func(w *store.WorkerStatus, r *conn.Row, i int) { w.Name = r.Text(i) }),
	conn.Col("ttl", func(w *store.WorkerStatus, r *conn.Row, i int) { w.TTL = r.Duration(i) }),
	conn.Col("types", func(w *store.WorkerStatus, r *conn.Row, i int) { r.JSON(i, &w.Types) }),
	conn.Col("last_seen", func(w *store.WorkerStatus, r *conn.Row, i int) { w.LastSeen = r.Time(i) }),
}

var sqlWorkers = `SELECT ` + statusColumns.List() + ` FROM weaver_workers WHERE namespace = ?1 ORDER BY worker_id`

// Workers implements store.Reader.
func (db *DB) Workers(ctx context.Context, ns string) (list []store.WorkerStatus, err error) {
	err = db.read(ctx, ns, func(v *view) error {
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
func (v *view) runningBy() (map[string]int, error) {
	running := make(map[string]int)
	err := v.eachRunning(func(c *claimRow, _ int) { running[c.worker]++ })
	return running, err
}
