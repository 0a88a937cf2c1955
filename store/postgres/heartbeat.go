package postgres

import (
	"errors"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/task"
)

const (
	sqlBeatAll = `
WITH held AS MATERIALIZED (
  SELECT t.task_id FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bytea[])) AS u(id, epoch, lease)
  JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = u.id AND t.lease_epoch = u.epoch AND t.lease_id = u.lease
  FOR NO KEY UPDATE OF t SKIP LOCKED)
UPDATE weaver_tasks SET lease_expires_at = CASE WHEN lease_expires_at > ?5 THEN lease_expires_at ELSE ?5 END
WHERE namespace = ?1 AND task_id = ANY(CAST(ARRAY(SELECT task_id FROM held) AS bytea[]))
RETURNING task_id, lease_epoch, cancel_requested, cancel_kind, cancel_by, cancel_reason`

	// It takes no lock, and sees every commit up to now.
	sqlStillHeld = `
SELECT t.task_id, t.lease_epoch FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bytea[])) AS u(id, epoch, lease)
JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = u.id AND t.lease_epoch = u.epoch AND t.lease_id = u.lease`
)

// held identifies a lease in a heartbeat.
type held struct {
	task  task.ID
	epoch int64
}

// Beat implements sqlstore.Bulk.
func (d database) Beat(t *sqlstore.Tx, leases []task.Lease, until int64) ([]store.Beat, error) {
	st, err := d.bindLeases(sqlBeatAll, t.Namespace(), leases)
	if err == nil {
		err = st.BindInt(5, until)
	}
	if err != nil {
		return nil, err
	}
	extended := make(map[held]store.Beat, len(leases))
	for st.Step() {
		var b store.Beat
		if st.Int(2) != 0 {
			b = store.Beat{Cancel: task.ErrorKind(st.Raw(3)), By: string(st.Raw(4)), Reason: string(st.Raw(5))}
		}
		extended[held{task.ID(pad(st.Raw(0))), st.Int(1)}] = b
	}
	if err := errors.Join(st.Err(), st.Reset()); err != nil {
		return nil, err
	}
	still := make(map[held]bool)
	if len(extended) < len(leases) {
		if st, err = d.bindLeases(sqlStillHeld, t.Namespace(), leases); err != nil {
			return nil, err
		}
		for st.Step() {
			still[held{task.ID(pad(st.Raw(0))), st.Int(1)}] = true
		}
		if err := errors.Join(st.Err(), st.Reset()); err != nil {
			return nil, err
		}
	}
	beats := make([]store.Beat, len(leases))
	for i := range leases {
		h := held{leases[i].Task, leases[i].Epoch}
		b, ok := extended[h]
		if !ok {
			b = store.Beat{Retry: still[h], Lost: !still[h]}
		}
		beats[i] = b
	}
	return beats, nil
}

// bindLeases binds a namespace and leases.
func (d database) bindLeases(sql, ns string, leases []task.Lease) (*conn.Stmt, error) {
	st, err := d.c.Statement(sql)
	if err == nil {
		err = st.BindText(1, ns)
	}
	if err != nil {
		return nil, err
	}
	ids, epochs, of := st.Array(2), st.Array(3), st.Array(4)
	for i := range leases {
		ids.Bytes(leases[i].Task[:])
		epochs.Int(leases[i].Epoch)
		of.Bytes(leases[i].ID[:])
	}
	return st, nil
}
