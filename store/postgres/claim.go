package postgres

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

var claimReads = append([]string{sqlLanes}, sqlstore.ClaimReads...)

// claim claims due tasks.
func (db *DB) claim(ctx context.Context, ns string, req store.ClaimRequest) (got store.ClaimResult, err error) {
	if err := sqlstore.CheckClaim(&req); err != nil {
		return store.ClaimResult{}, err
	}
	var fx sqlstore.Effects
	reads := claimReads
	if need, _ := db.lanes.NeedsReading(ns, time.Now()); !need {
		reads = sqlstore.ClaimReads
	}
	err = db.pool.Tx(ctx, false, func(c *conn.Conn) error {
		t, err := db.begun(c, ns, &fx, 0, reads...)
		if err == nil {
			got, err = t.Claim(&req)
		}
		return err
	})
	if err != nil {
		return store.ClaimResult{}, db.translate(err)
	}
	db.apply(&fx)
	return got, nil
}

// Lanes implements sqlstore.Database. Each claim reads the lanes again, because other processes
// write too, unless reading them takes long.
func (d database) Lanes() *lane.Cache { return &d.db.lanes }

// A loose index scan: one probe for each lane.
const sqlLanes = `
WITH RECURSIVE lanes AS (
  (SELECT queue, task_type, lane_group, priority, available_at FROM weaver_outbox_events WHERE namespace = ?1
   ORDER BY queue, task_type, lane_group, priority, available_at LIMIT 1)
  UNION ALL
  SELECT n.queue, n.task_type, n.lane_group, n.priority, n.available_at FROM lanes l, LATERAL (
    SELECT o.queue, o.task_type, o.lane_group, o.priority, o.available_at FROM weaver_outbox_events o
    WHERE o.namespace = ?1 AND (o.queue, o.task_type, o.lane_group, o.priority) > (l.queue, l.task_type, l.lane_group, l.priority)
    ORDER BY o.queue, o.task_type, o.lane_group, o.priority, o.available_at LIMIT 1) n)
SELECT queue, task_type, lane_group, priority, available_at FROM lanes`

// ReadLanes implements sqlstore.Database.
func (d database) ReadLanes(t *sqlstore.Tx) (read map[lane.Key]int64, when lane.Reading, err error) {
	when = d.db.beginReading()
	if !d.asked.At.IsZero() { // the begin of the transaction has already read them
		when, *d.asked = *d.asked, lane.Reading{}
	}
	read = make(map[lane.Key]int64)
	st := d.c.Stmt(sqlLanes).Text(1, t.Namespace())
	for st.Next() {
		read[lane.Key{Queue: st.ColName(0), Type: st.ColName(1), Group: st.ColName(2), Priority: st.ColInt(3)}] = st.ColInt(4)
	}
	err = st.Done()
	when.Took = time.Since(when.At)
	return read, when, err
}

func (db *DB) beginReading() lane.Reading {
	return lane.Reading{Since: db.lanes.Version(), At: time.Now()}
}
