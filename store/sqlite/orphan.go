package sqlite

import (
	"context"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Orphans implements store.Observe. A worker's free lock proves that its process is dead,
// as for a reaper. The check writes nothing (workerlock.Folder.LooksDead).
func (db *DB) Orphans(ctx context.Context, ns string, asked ...task.ID) ([]task.ID, error) {
	if db.locks == nil && db.alone == nil {
		return nil, nil
	}
	return sqlstore.Orphans(ctx, database{db: db}, ns, asked)
}

// LooksDead implements sqlstore.Database.
func (d database) LooksDead(_ context.Context, ns string, workers []store.WorkerID) (map[store.WorkerID]bool, error) {
	dead := make(map[store.WorkerID]bool)
	if d.db.locks == nil && d.db.alone == nil {
		return dead, nil
	}
	for _, id := range workers {
		if d.db.locks.LooksDead(ns, id) || d.db.alone != nil && d.db.alone.dead(ns, id) {
			dead[id] = true
		}
	}
	return dead, nil
}
