package sqlite

import (
	"context"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Orphans implements store.OrphanReader: a worker's lock that is free proves its
// process dead, as for a reaper.
//
// A look writes nothing (workerlock.Folder.LooksDead). It asks for holders of leases
// only, which had their locks before they had rows. A worker may end its tasks, and
// its process, between the reading of its leases and the look. So those that look
// dead are compared once more with what is stored.
func (db *DB) Orphans(ctx context.Context, ns string, asked ...task.ID) ([]task.ID, error) {
	if db.locks == nil || len(asked) == 0 {
		return nil, nil
	}
	before, err := db.holdersOf(ctx, ns, asked)
	if err != nil {
		return nil, err
	}
	dead := make(map[string]bool)
	some := false
	for _, h := range before {
		if _, looked := dead[h.worker]; !looked {
			dead[h.worker] = db.locks.LooksDead(ns, store.WorkerID(h.worker))
			some = some || dead[h.worker]
		}
	}
	if !some {
		return nil, nil
	}
	after, err := db.holdersOf(ctx, ns, asked)
	if err != nil {
		return nil, err
	}
	var orphans []task.ID
	for _, id := range asked {
		if h, runs := before[id]; runs && dead[h.worker] && after[id] == h {
			orphans = append(orphans, id)
		}
	}
	return orphans, nil
}

// holder is who runs a task, under which lease.
type holder struct {
	worker string
	lease  task.LeaseID
}

// holdersOf returns who runs the named tasks; tasks that do not run have none.
func (db *DB) holdersOf(ctx context.Context, ns string, asked []task.ID) (map[task.ID]holder, error) {
	named := make(map[task.ID]bool, len(asked))
	for _, id := range asked {
		named[id] = true
	}
	var found map[task.ID]holder
	err := database{db: db}.Read(ctx, ns, func(v *sqlstore.View) error {
		found = make(map[task.ID]holder)
		return v.EachRunning(func(id task.ID, worker store.WorkerID, lease task.LeaseID) {
			if named[id] {
				found[id] = holder{string(worker), lease}
			}
		})
	})
	return found, err
}
