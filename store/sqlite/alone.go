package sqlite

import (
	"context"
	"sync"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/sqlite/internal/conn"
)

// alone knows the workers of a file that only this process can open, as in a browser. All other
// workers in the file are those of processes that have ended.
type alone struct {
	mu   sync.Mutex
	here map[worker]*DB
}

type worker struct {
	ns string
	id store.WorkerID
}

func (a *alone) join(db *DB, ns string, id store.WorkerID) {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.here[worker{ns, id}] = db
	}
}

func (a *alone) leave(ns string, id store.WorkerID) {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.here, worker{ns, id})
	}
}

// close forgets the workers of a DB.
func (a *alone) close(db *DB) {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		for w, of := range a.here {
			if of == db {
				delete(a.here, w)
			}
		}
	}
}

func (a *alone) dead(ns string, id store.WorkerID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here[worker{ns, id}] == nil
}

// deadAlone returns the workers that have a row and are not of this process.
func (db *DB) deadAlone(ctx context.Context, ns string) (sqlstore.Dead, error) {
	var dead ended
	err := db.read(ctx, func(c *conn.Conn) error {
		dead = nil
		st := c.Stmt(sqlWorkerIDs).Text(1, ns)
		for st.Next() {
			if id := store.WorkerID(st.ColText(0)); db.alone.dead(ns, id) {
				dead = append(dead, id)
			}
		}
		return st.Done()
	})
	return dead, err
}

// ended are workers of processes that have ended. Nothing else proves it, so nothing is to be
// removed.
type ended []store.WorkerID

// IDs implements sqlstore.Dead.
func (e ended) IDs() []store.WorkerID { return e }

// Forget implements sqlstore.Dead.
func (ended) Forget([]store.WorkerID) {}

// Close implements sqlstore.Dead.
func (ended) Close() {}
