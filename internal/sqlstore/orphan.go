package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Orphans returns the tasks that run under leases of workers that look dead, in their order.
//
// A worker may end its tasks, and its process, between the reading of its leases and the check
// of the process. Tasks of dead-looking workers are therefore compared again with the stored
// leases.
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

// holder is the worker that runs a task, with its lease.
type holder struct {
	worker store.WorkerID
	lease  task.LeaseID
}

// holdersOf returns the holders of the named tasks, without tasks that do not run.
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
