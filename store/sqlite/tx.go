package sqlite

import (
	"github.com/goweaver/weaver/task"
)

// readGeneration makes t.gen known. The writer remembers it while nobody else
// commits (the data version tells) and no operation of its own changes it.
func (t *tx) readGeneration() (err error) {
	if t.gen != "" {
		return nil
	}
	if t.caller {
		t.gen, err = t.view.generation()
		return err
	}
	w := &t.db.w
	if t.gen = w.generations[t.ns]; t.gen != "" {
		return nil
	}
	if t.gen, err = t.view.generation(); err == nil && !w.restoring {
		if w.generations == nil {
			w.generations = make(map[string]string)
		}
		w.generations[t.ns] = t.gen
	}
	return err
}

// valid reports whether a lease was granted in this life of the store (R17).
func (t *tx) valid(l *task.Lease) (bool, error) {
	err := t.readGeneration()
	return l.Generation == t.gen, err
}

const sqlInsertDispatch = `
INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`

const sqlDeleteDispatch = `DELETE FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = ?2`

// dispatched is what a dispatch row needs to know about its task.
type dispatched struct {
	id   task.ID
	lane laneKey
	key  string // concurrency key
}

// dispatch makes a task claimable from available on (W1): it writes a fresh
// row. Whoever might find an old one deletes it first.
func (t *tx) dispatch(d *dispatched, available int64) error {
	err := t.stmt(sqlInsertDispatch).Text(1, t.ns).ID(2, &d.id).Text(3, d.lane.queue).Text(4, d.lane.typ).
		Int(5, d.lane.priority).Int(6, available).OrNull(7, d.key).Run()
	if err != nil {
		return err
	}
	t.db.lanes.add(t.ns, d.lane, available)
	t.fx.notice.Due = true
	return nil
}

// undispatch makes a task unclaimable; it reports whether it was claimable.
func (t *tx) undispatch(id *task.ID) (bool, error) {
	n, err := t.stmt(sqlDeleteDispatch).Text(1, t.ns).ID(2, id).Exec()
	return n > 0, err
}
