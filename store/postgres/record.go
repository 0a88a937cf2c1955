package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/task"
)

const (
	serverTime = `CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)`

	// recordsNow is the condition for storing the step values of a first attempt at once.
	recordsNow = `lease_epoch = 1 AND lease_id = ?8 AND cancel_requested = 0
    AND CAST(?9 AS text) = coalesce((SELECT value FROM weaver_store_meta WHERE namespace = ?1 AND key = 'generation'),
      (SELECT value FROM weaver_store_meta WHERE namespace = '' AND key = 'generation'))`
	insertSteps = `
INSERT INTO weaver_steps (namespace, completed_at, attempt_no, try, by_attempt, kind, state, task_id, name, by_try, step_index, value, error_json, started_at)`

	// sqlRecordNow writes all steps or nothing: if the guard rejects one of them, a cast of
	// non-numeric text fails and aborts the transaction.
	sqlRecordNow = `
WITH clk AS MATERIALIZED (SELECT coalesce(CAST(?12 AS bigint), ` + serverTime + `) AS now), ok AS (
  UPDATE weaver_tasks SET step_count = step_count + 1
  WHERE namespace = ?1 AND task_id = ANY(CAST(?2 AS bytea[])) AND ` + recordsNow + `
  RETURNING task_id),
added AS (` + insertSteps + `
  SELECT CAST(?1 AS text), clk.now, 0, 0, 1, 'step', 'completed', u.id, u.name, u.by_try, u.step_index, u.value, u.error, clk.now - u.elapsed
  FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS text[]), CAST(?4 AS bigint[]), CAST(?5 AS bigint[]), CAST(?6 AS text[]), CAST(?7 AS text[]),
    CAST(?10 AS bigint[])) AS u(id, name, by_try, step_index, value, error, elapsed), clk
  WHERE u.id IN (SELECT task_id FROM ok)
  RETURNING 1)
SELECT now, CAST(CASE WHEN (SELECT count(*) FROM added) = CAST(?11 AS bigint) THEN '1' ELSE 'weaver records these steps one by one' END AS bigint) FROM clk`

	// sqlRecordOneNow is sqlRecordNow for one step, at half of its cost. It returns no row if the
	// guard rejects the step.
	sqlRecordOneNow = `
WITH ok AS (
  UPDATE weaver_tasks SET step_count = step_count + 1
  WHERE namespace = ?1 AND task_id = CAST(?2 AS bytea) AND ` + recordsNow + `
  RETURNING coalesce(CAST(?11 AS bigint), ` + serverTime + `) AS now)` + insertSteps + `
  SELECT CAST(?1 AS text), now, 0, 0, 1, 'step', 'completed', CAST(?2 AS bytea), CAST(?3 AS text), CAST(?4 AS bigint), CAST(?5 AS bigint),
    CAST(?6 AS text), CAST(?7 AS text), now - CAST(?10 AS bigint) FROM ok
  RETURNING completed_at`
)

// Record implements store.Core. It stores the step values of first attempts in one round trip.
func (db *DB) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	if !sqlstore.PlainSteps(recs) {
		return db.verbs.Record(ctx, ns, recs...)
	}
	queue := recordNow
	if len(recs) == 1 {
		queue = recordOneNow
	}
	var now int64
	var accepted bool
	var st *conn.Stmt
	err := db.pool.Alone(ctx, func(c *conn.Conn) (err error) {
		st, err = queue(c, ns, recs)
		return err
	}, func() error {
		if accepted = st.Step(); accepted {
			now = st.Int(0)
		}
		return errors.Join(st.Err(), st.Reset())
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "22P02" || pg.Code == "23505") || err == nil && !accepted { // nothing was written; recording one by one finds the failing step
		return db.verbs.Record(ctx, ns, recs...)
	}
	if err != nil {
		return nil, db.translate(err)
	}
	got := make([]store.RecordResult, len(recs))
	for i := range recs {
		got[i].Step = rules.StoredStep(&recs[i], 1, time.UnixMicro(now).UTC())
	}
	return got, nil
}

// recordNow queues the steps. The statement returns the time.
func recordNow(c *conn.Conn, ns string, recs []store.Record) (*conn.Stmt, error) {
	st, err := c.Statement(sqlRecordNow)
	if err != nil {
		return nil, err
	}
	ids, names, tries, indexes, values, errs, elapsed := st.Array(2), st.Array(3), st.Array(4), st.Array(5), st.Array(6), st.Array(7), st.Array(10)
	for i := range recs {
		s := recs[i].Step
		ids.Bytes(recs[i].Lease.Task[:])
		names.Text(s.Name)
		tries.Int(int64(s.Try))
		indexes.Int(int64(s.Index))
		sqlstmt.PutRaw(values, s.Value)
		failure, err := stepError(s)
		if err != nil {
			return nil, err
		}
		sqlstmt.PutRaw(errs, failure)
		elapsed.Int(micros(&recs[i]))
	}
	l := &recs[0].Lease
	b := binder{st: st}
	b.text(1, ns).blob(8, l.ID[:]).text(9, l.Generation).int(11, int64(len(recs))).intOrNull(12, given(c))
	return st, b.send()
}

// recordOneNow is recordNow for one step.
func recordOneNow(c *conn.Conn, ns string, recs []store.Record) (*conn.Stmt, error) {
	st, err := c.Statement(sqlRecordOneNow)
	if err != nil {
		return nil, err
	}
	l, s := &recs[0].Lease, recs[0].Step
	failure, err := stepError(s)
	if err != nil {
		return nil, err
	}
	b := binder{st: st}
	b.text(1, ns).blob(2, l.Task[:]).text(3, s.Name).int(4, int64(s.Try)).int(5, int64(s.Index)).orNull(6, string(s.Value)).orNull(7, string(failure)).
		blob(8, l.ID[:]).text(9, l.Generation).int(10, micros(&recs[0])).intOrNull(11, given(c))
	return st, b.send()
}

// stepError returns the stored form of a step's error; nil if it has no error.
func stepError(s *task.Step) ([]byte, error) {
	if s.Error == nil {
		return nil, nil
	}
	return json.Marshal(s.Error)
}

// micros returns a step's duration in microseconds, by which its stored start precedes its end.
func micros(rec *store.Record) int64 {
	end := time.Unix(0, 0).UTC().AddDate(1, 0, 0)
	step := rules.StoredStep(rec, 1, end)
	return end.UnixMicro() - step.StartedAt.UnixMicro()
}
