package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
)

var statusColumns = sqlstmt.Columns[store.WorkerStatus]{
	sqlstmt.Col("worker_id", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.ID = store.WorkerID(r.Text(i)) }),
	sqlstmt.Col("name", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.Name = r.Text(i) }),
	sqlstmt.Col("ttl", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.TTL = r.Duration(i) }),
	sqlstmt.Col("types", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { r.JSON(i, &w.Types) }),
	sqlstmt.Col("announced", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { r.JSON(i, &w.Announcement) }),
	sqlstmt.Col("last_seen", func(w *store.WorkerStatus, r *sqlstmt.Row, i int) { w.LastSeen = r.Time(i) }),
}

var sqlWorkers = `SELECT ` + statusColumns.List() + ` FROM weaver_workers WHERE namespace = ?1 ORDER BY worker_id`

// Idler is a Database that knows the begin of each worker's idle time.
type Idler interface {
	Idle(v *View) (map[store.WorkerID]time.Time, error)
}

// workers returns the workers, without checking which are dead.
func (s *Store) workers(r reader) (list []store.WorkerStatus, err error) {
	if list, err = statusColumns.All(r.stmt(sqlWorkers).Text(1, r.ns)); err != nil {
		return nil, err
	}
	running := make(map[store.WorkerID]int)
	for i := range r.runs.by {
		running[r.runs.by[i].worker] += r.runs.by[i].n
	}
	var idle map[store.WorkerID]time.Time
	if d, ok := s.db.(Idler); ok {
		if idle, err = d.Idle(r.View); err != nil {
			return nil, err
		}
	}
	for i := range list {
		w := &list[i]
		w.Running, w.IdleSince, w.Silent = r.count(int64(running[w.ID])), idle[w.ID], r.now.Sub(w.LastSeen) > w.TTL
		w.Running.More = w.Running.More || r.runs.more
	}
	return list, nil
}

// findDead marks the dead workers. It drops a worker that left since the read, because such a
// worker has released the lock that proves its life.
func (s *Store) findDead(ctx context.Context, ns string, list []store.WorkerStatus) ([]store.WorkerStatus, error) {
	if len(list) == 0 {
		return list, nil
	}
	ids := make([]store.WorkerID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	dead, err := s.db.LooksDead(ctx, ns, ids)
	if err != nil || len(dead) == 0 {
		return list, err
	}
	err = s.read(ctx, ns, func(v *View) error {
		for i := range list {
			w := &list[i]
			if !dead[w.ID] {
				continue
			}
			st := v.stmt(sqlWorker).Text(1, ns).Text(2, string(w.ID))
			w.Dead = st.One()
			if err := st.Done(); err != nil {
				return err
			}
		}
		return nil
	})
	return slices.DeleteFunc(list, func(w store.WorkerStatus) bool { return dead[w.ID] && !w.Dead }), err
}
