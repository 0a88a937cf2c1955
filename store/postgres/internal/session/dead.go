package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/internal/workerlock"
	"github.com/goweaver/weaver/store"
)

// Dead are workers that are proven dead, by their locks on this machine or by their sessions.
// It implements sqlstore.Dead and sqlstore.Confirmer, and must be closed.
type Dead struct {
	*workerlock.Dead // by their locks on this machine
	ns               string
	sessions         map[store.WorkerID]int64 // by their sessions, with LastSeen of their rows
}

// lookWait is a reaper's maximum wait for a look, because it has further work.
const lookWait = time.Second

// Dead looks again, and returns the dead workers of a namespace. A failed look is not an
// error: it only means fewer proofs.
func (o *Observer) Dead(ctx context.Context, ns string) *Dead {
	o.Watch(ns)
	fresh := freshLook
	if o.cfg.Asked {
		fresh = 0
	}
	looking, cancel := context.WithTimeout(ctx, part(ctx, lookWait))
	current := o.look(looking, fresh)
	cancel()
	places, sessions := make(map[store.WorkerID]workerlock.Place), make(map[store.WorkerID]int64)
	o.mu.Lock()
	for w, s := range o.workers {
		if w.ns != ns || !current {
			continue
		}
		places[w.id] = s.Place
		if s.dead {
			sessions[w.id] = s.base
		}
	}
	o.mu.Unlock()
	d := &Dead{Dead: o.cfg.Folder.DeadAt(ctx, ns, places), ns: ns, sessions: sessions}
	for _, id := range d.Dead.IDs() {
		delete(d.sessions, id) // one proof is enough, and the lock needs no confirmation
	}
	return d
}

// IDs returns the workers. Those proven dead by their sessions need a confirmation.
func (d *Dead) IDs() []store.WorkerID {
	return append(d.Dead.IDs(), slices.Collect(maps.Keys(d.sessions))...)
}

// The last look may be a moment old, and the worker may have come back. Its row stays locked,
// so that it comes back after this transaction.
const sqlConfirm = `SELECT 1 FROM weaver_workers WHERE namespace = ?1 AND worker_id = ?2 AND last_seen = ?3 /*lock*/`

// Confirm implements sqlstore.Confirmer. It returns the workers that are dead in the
// transaction that takes their leases.
func (d *Dead) Confirm(t *sqlstore.Tx) ([]store.WorkerID, error) {
	ids := d.Dead.IDs()
	for _, id := range slices.Sorted(maps.Keys(d.sessions)) {
		st := t.Conn().Stmt(sqlConfirm).Text(1, d.ns).Text(2, string(id)).Int(3, d.sessions[id])
		if st.One() {
			ids = append(ids, id)
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}
