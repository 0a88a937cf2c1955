package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Orphans returns which of the tasks run under leases of workers that look dead, in
// their order.
//
// A worker may end its tasks, and its process, between the reading of its leases and
// the look. So those that look dead are compared once more with what is stored.
func Orphans(ctx context.Context, db Database, ns string, asked []task.ID) ([]task.ID, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	before, err := holdersOf(ctx, db, ns, asked)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	var workers []store.WorkerID
	known := make(map[store.WorkerID]bool)
	for _, h := range before {
		if !known[h.worker] {
			known[h.worker] = true
			workers = append(workers, h.worker)
		}
	}
	dead, err := db.LooksDead(ctx, ns, workers)
	if err != nil || len(dead) == 0 {
		return nil, err
	}
	after, err := holdersOf(ctx, db, ns, asked)
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
	worker store.WorkerID
	lease  task.LeaseID
}

// holdersOf returns who runs the named tasks; tasks that do not run have none.
func holdersOf(ctx context.Context, db Database, ns string, asked []task.ID) (map[task.ID]holder, error) {
	named := make(map[task.ID]bool, len(asked))
	for _, id := range asked {
		named[id] = true
	}
	var found map[task.ID]holder
	err := db.Read(ctx, ns, func(v *View) error {
		found = make(map[task.ID]holder)
		return v.eachRunning(func(c *claimRow, i int) {
			if named[c.ids[i]] {
				found[c.ids[i]] = holder{store.WorkerID(c.worker), c.lease}
			}
		})
	})
	return found, err
}
