package sqlite

import (
	"context"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Orphans implements store.OrphanReader: a worker's lock that is free proves its
// process dead, as for a reaper. A look writes nothing (workerlock.Folder.LooksDead).
func (db *DB) Orphans(ctx context.Context, ns string, asked ...task.ID) ([]task.ID, error) {
	if db.locks == nil {
		return nil, nil
	}
	return sqlstore.Orphans(ctx, database{db: db}, ns, asked, func(workers []store.WorkerID) (map[store.WorkerID]bool, error) {
		dead := make(map[store.WorkerID]bool)
		for _, id := range workers {
			if db.locks.LooksDead(ns, id) {
				dead[id] = true
			}
		}
		return dead, nil
	})
}
