package sqlstore

import (
	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/task"
)

// readGeneration sets t.gen.
func (t *Tx) readGeneration() (err error) {
	if t.gen != "" {
		return nil
	}
	if t.gen = t.fx.Generation(); t.gen != "" {
		return nil
	}
	if t.gen, err = t.generation(); err == nil {
		t.fx.RememberGeneration(t.gen)
	}
	return err
}

// valid reports whether a lease was granted in the current generation of the store (R17).
func (t *Tx) valid(l *task.Lease) (bool, error) {
	err := t.readGeneration()
	return l.Generation == t.gen, err
}

const sqlInsertDispatch = `
INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key, lane_group)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

const sqlDeleteDispatch = `DELETE FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = ?2`

// dispatched holds the fields of a task for its dispatch row.
type dispatched struct {
	id   task.ID
	lane lane.Key
	key  string // concurrency key
}

// dispatch makes a task claimable from available on (W1) by inserting a new row. Operations
// that may find an old row delete it first.
func (t *Tx) dispatch(d *dispatched, available int64) error {
	err := t.stmt(sqlInsertDispatch).Text(1, t.ns).ID(2, &d.id).Text(3, d.lane.Queue).Text(4, d.lane.Type).
		Int(5, d.lane.Priority).Int(6, available).OrNull(7, d.key).Text(8, d.lane.Group).Run()
	if err != nil {
		return err
	}
	t.db.Lanes().Add(t.ns, d.lane, available)
	t.fx.Notice.Due = true
	return nil
}

// undispatch makes a task unclaimable, and reports whether it was claimable.
func (t *Tx) undispatch(id *task.ID) (bool, error) {
	n, err := t.stmt(sqlDeleteDispatch).Text(1, t.ns).ID(2, id).Exec()
	return n > 0, err
}

const sqlDeleteClaim = `DELETE FROM weaver_claims WHERE namespace = ?1 AND lease_id = ?2`

// endLease records that a task left the state running, and deletes its claim's row after the
// last one.
func (t *Tx) endLease(lease task.LeaseID) error {
	if !t.fx.Ended(lease) {
		return nil
	}
	return t.stmt(sqlDeleteClaim).Text(1, t.ns).Lease(2, &lease).Run()
}
