package postgres

import (
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

var leaseColumns = sqlstore.LeaseColumns

// sqlGuardAll is the guard of many finishes; it returns a row for each.
var sqlGuardAll = `
UPDATE weaver_tasks SET progress = coalesce(u.said, progress)
FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bytea[]), CAST(?5 AS text[])) AS u(id, epoch, lease, said)
WHERE namespace = ?1 AND task_id = u.id AND lease_epoch = u.epoch AND lease_id = u.lease
RETURNING ` + leaseColumns.List()

// sqlSucceedEach is the guard and sqlTransition of successful finishes. It rejects tasks in an undo
// phase.
var sqlSucceedEach = `
UPDATE weaver_tasks SET ` + sqlstore.SetGoodEnd("u.result", "?7") + `, progress = coalesce(u.said, progress)
FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS bigint[]), CAST(?4 AS bytea[]), CAST(?5 AS text[]), CAST(?6 AS text[])) AS u(id, epoch, lease, said, result)
WHERE namespace = ?1 AND task_id = u.id AND lease_epoch = u.epoch AND lease_id = u.lease AND undo IS NULL
RETURNING ` + leaseColumns.List()

// The statements after the guard, for all finishes at once: sqlTransition, sqlInsertAttempt,
// sqlInsertDecision and sqlInsertDispatch over arrays.
var (
	sqlTransitionAll = `
UPDATE weaver_tasks t SET ` + sqlstore.SetEnd("u", "?2") + `
FROM unnest(` + sqlstore.EndFields.Arrays(3) + `) AS u(` + sqlstore.EndFields.Names() + `)
WHERE t.namespace = ?1 AND t.task_id = u.id`

	sqlAttemptsAll = `
INSERT INTO weaver_attempts (namespace, finished_at, ` + sqlstore.AttemptFields.Names() + `)
SELECT CAST(?1 AS text), CAST(?2 AS bigint), u.* FROM unnest(` + sqlstore.AttemptFields.Arrays(3) + `) AS u`

	sqlDecisionsAll = `
INSERT INTO weaver_decisions (namespace, decided_at, ` + sqlstore.DecisionFields.Names() + `)
SELECT CAST(?1 AS text), CAST(?2 AS bigint), u.* FROM unnest(` + sqlstore.DecisionFields.Arrays(3) + `) AS u`

	sqlDispatchAll = `
INSERT INTO weaver_outbox_events (namespace, ` + sqlstore.DispatchFields.Names() + `)
SELECT CAST(?1 AS text), u.* FROM unnest(` + sqlstore.DispatchFields.Arrays(2) + `) AS u`
)

// Guard implements sqlstore.Bulk.
func (d database) Guard(t *sqlstore.Tx, ends []*store.Finish) *sqlstmt.Stmt {
	if _, err := d.guard(sqlGuardAll, ends); err != nil {
		return sqlstmt.Failed(err)
	}
	return d.c.Stmt(sqlGuardAll).Text(1, t.Namespace())
}

// SucceedEach implements sqlstore.Bulk.
func (d database) SucceedEach(t *sqlstore.Tx, ends []*store.Finish) *sqlstmt.Stmt {
	st, err := d.guard(sqlSucceedEach, ends)
	if err != nil {
		return sqlstmt.Failed(err)
	}
	outputs := st.Array(6)
	for _, f := range ends {
		sqlstmt.PutRaw(outputs, f.Output)
	}
	return d.c.Stmt(sqlSucceedEach).Text(1, t.Namespace()).Int(7, t.Now().UnixMicro())
}

// guard binds the leases and the progress of finishes.
func (d database) guard(sql string, ends []*store.Finish) (*conn.Stmt, error) {
	st, err := d.c.Statement(sql)
	if err != nil {
		return nil, err
	}
	ids, epochs, leases, progress := st.Array(2), st.Array(3), st.Array(4), st.Array(5)
	for _, f := range ends {
		ids.Bytes(f.Lease.Task[:])
		epochs.Int(f.Lease.Epoch)
		leases.Bytes(f.Lease.ID[:])
		sqlstmt.PutJSON(progress, f.Progress)
	}
	return st, nil
}

// End implements sqlstore.Bulk.
func (d database) End(t *sqlstore.Tx, ends []sqlstore.End) error {
	moved := func(e *sqlstore.End) bool { return !e.Moved }
	decided := func(e *sqlstore.End) bool { return e.To.Decision != nil }
	err := writeEnds(d, t, sqlTransitionAll, sqlstore.EndFields, ends, moved)
	if err == nil {
		err = writeEnds(d, t, sqlAttemptsAll, sqlstore.AttemptFields, ends, nil)
	}
	if err == nil {
		err = writeEnds(d, t, sqlDecisionsAll, sqlstore.DecisionFields, ends, decided)
	}
	return err
}

// writeEnds runs a statement over arrays with the finishes that about selects; nil selects all.
func writeEnds(d database, t *sqlstore.Tx, sql string, fields sqlstmt.Fields[sqlstore.End], ends []sqlstore.End, about func(*sqlstore.End) bool) error {
	rows := make([]*sqlstore.End, 0, len(ends))
	for i := range ends {
		if about == nil || about(&ends[i]) {
			rows = append(rows, &ends[i])
		}
	}
	if len(rows) == 0 {
		return nil
	}
	st, err := d.c.Statement(sql)
	if err != nil {
		return err
	}
	bindArrays(st, 3, fields, len(rows), func(i int) *sqlstore.End { return rows[i] })
	b := &binder{st: st}
	return b.text(1, t.Namespace()).int(2, t.Now().UnixMicro()).exec()
}

// bindArrays binds the columns of n rows to consecutive array parameters that start at first.
func bindArrays[T any](st *conn.Stmt, first int, fields sqlstmt.Fields[T], n int, row func(i int) *T) {
	for p := range fields {
		a := st.Array(first + p)
		for i := range n {
			fields[p].Put(row(i), a)
		}
	}
}

// Dispatch implements sqlstore.Bulk.
func (d database) Dispatch(t *sqlstore.Tx, rows []store.DispatchRow) error {
	st, err := d.c.Statement(sqlDispatchAll)
	if err != nil {
		return err
	}
	bindArrays(st, 2, sqlstore.DispatchFields, len(rows), func(i int) *store.DispatchRow { return &rows[i] })
	b := binder{st: st}
	return b.text(1, t.Namespace()).exec()
}
