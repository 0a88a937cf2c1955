package sqlite

import (
	"context"
	"os"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Orphans implements store.OrphanReader: a worker's lock that is free proves its
// process dead, as for a reaper.
//
// A look takes the lock shared, for as long as it takes to compare two names, and
// neither creates nor removes a file. What that does to others:
//
//   - A reaper or a joining worker that meets the shared lock tries again
//     ([lockFile]): it takes nothing for held that is only looked at.
//   - A worker that lives holds its lock exclusively, so it is never found free. It
//     has it before it has a row (Join), and a look asks for holders of leases only,
//     so no worker is found in the moment between the creation of its file and the
//     locking of it.
//   - A lock file that lost its name proves nothing, as for a reaper.
//   - A worker may end its tasks, and its process, between the reading of its
//     leases and the look. So those that look dead are compared once more with what
//     is stored.
func (db *DB) Orphans(ctx context.Context, ns string, asked ...task.ID) ([]task.ID, error) {
	if db.memory || !haveLocks || len(asked) == 0 {
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
			dead[h.worker] = db.looksDead(ns, store.WorkerID(h.worker))
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
	err := database{db}.Read(ctx, ns, func(v *sqlstore.View) error {
		found = make(map[task.ID]holder)
		return v.EachRunning(func(id task.ID, worker store.WorkerID, lease task.LeaseID) {
			if named[id] {
				found[id] = holder{string(worker), lease}
			}
		})
	})
	return found, err
}

// looksDead reports whether a worker's lock is proven free.
func (db *DB) looksDead(ns string, id store.WorkerID) bool {
	path := db.lockPath(ns, id)
	if db.locks.holds(path) {
		return false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return false // no file, or one that may not be read: no proof
	}
	defer dropLock(f)
	if db.locks.opened != nil {
		db.locks.opened()
	}
	free, err := tryShare(f)
	return err == nil && free && isAt(f, path)
}
