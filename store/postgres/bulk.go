package postgres

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
	"github.com/goweaver/weaver/task"
)

var _ sqlstore.Bulk = database{}

// Statements over arrays. A statement that writes two tables derives the rows of the second from
// the rows it wrote to the first.
var (
	// A publisher may move a row between the snapshot of the statement and its lock. It is then not
	// deleted; the caller compares the third column of the first row, the number of deleted rows, and
	// rolls back. ?13 says whether to leave rows as store.DispatchRow.Leave does.
	sqlClaimLane = `
WITH due AS MATERIALIZED (
  SELECT task_id, available_at, ctid AS place FROM weaver_outbox_events
  WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND priority = ?4 AND lane_group = ?14 AND available_at <= ?5 AND available_at >= ?12
    AND (CAST(?13 AS bigint) = 0 OR sent_until IS NULL OR sent_until <= ?5 OR attempts <> 1 OR last_error IS NOT NULL)
  ORDER BY available_at, task_id LIMIT CAST(?6 AS bigint) FOR UPDATE SKIP LOCKED),
ids AS MATERIALIZED (SELECT ARRAY(SELECT task_id FROM due) AS list),
leased AS (
  UPDATE weaver_tasks SET ` + sqlstore.SetLease("?7", "?8", "?9", "?5", "?10") + `
  WHERE namespace = ?1 AND task_id = ANY(CAST((SELECT list FROM ids) AS bytea[])) AND lease_epoch = 0 AND lease_id IS NULL
    AND plain = 1 AND schema_version <= ?11
  RETURNING task_id, input, schema_version, max_attempts, max_repairs, options_json, created_at, idempotency_key),
gone AS (
  DELETE FROM weaver_outbox_events WHERE ctid = ANY(ARRAY(
    SELECT place FROM due WHERE (SELECT count(*) FROM leased) = (SELECT count(*) FROM due)))
  RETURNING 1)
SELECT string_agg(task_id || int8send(available_at), CAST('' AS bytea)), CAST(NULL AS text), (SELECT count(*) FROM gone), CAST(0 AS bigint), CAST(0 AS bigint), CAST(NULL AS text), CAST(0 AS bigint), CAST(NULL AS text) FROM due
UNION ALL
SELECT task_id, input, schema_version, max_attempts, max_repairs, options_json, created_at, idempotency_key FROM leased`

	// sqlClaimTasks is sqlClaimTask and sqlDeleteDispatch of sqlstore for many tasks. It finds each
	// row by its key even without table statistics: the server cannot flatten a subquery with a
	// limit.
	sqlClaimTasks = `
WITH gone AS (
  DELETE FROM weaver_outbox_events WHERE ctid = ANY(ARRAY(
    SELECT o.ctid FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
      SELECT ctid FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1) o)))
UPDATE weaver_tasks SET ` + sqlstore.SetLease("?3", "?4", "?5", "?6", "?7") + `
WHERE ctid = ANY(ARRAY(
  SELECT t.ctid FROM unnest(CAST(?2 AS bytea[]), CAST(?8 AS bigint[])) AS u(id, epoch), LATERAL (
    SELECT ctid FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id AND lease_epoch = u.epoch AND lease_id IS NULL LIMIT 1) t))`

	// It returns the IDs that the guard accepted, concatenated.
	sqlSucceedAll = func() string {
		own, claimed := sqlstore.PlainAttempt, sqlstore.ClaimedAttempt
		known, values := sqlstore.KnownAttempt()
		return `
WITH ok AS (
  UPDATE weaver_tasks t SET ` + sqlstore.SetPlainGoodEnd("u.result", "?2") + `
  FROM unnest(CAST(?3 AS text[]), ` + own.Arrays(4) + `) AS u(result, ` + strings.Replace(own.Names(), "task_id", "id", 1) + `)
  WHERE t.namespace = ?1 AND t.task_id = u.id AND t.lease_epoch = 1 AND t.lease_id = CAST(?` + strconv.Itoa(4+len(own)) + ` AS bytea) AND t.plain = 1
  RETURNING t.task_id, u.code_version, u.outcome_json, u.outcome_hash),
ended AS (
  INSERT INTO weaver_attempts (namespace, finished_at, ` + claimed.Names() + `, ` + known + `, ` + own.Names() + `)
  SELECT CAST(?1 AS text), CAST(?2 AS bigint), ` + claimed.Casts(4+len(own)) + `, ` + values + `, ` + own.Names() + ` FROM ok)
SELECT string_agg(task_id, CAST('' AS bytea)) FROM ok`
	}()

	sqlInsertStepsAll = `
WITH ok AS (
  UPDATE weaver_tasks SET step_count = step_count + 1
  WHERE namespace = ?1 AND task_id = ANY(CAST(?2 AS bytea[])) AND lease_epoch = 1 AND lease_id = ?8 AND cancel_requested = 0
  RETURNING task_id)` + insertSteps + `
SELECT CAST(?1 AS text), CAST(?9 AS bigint), 0, 0, 1, 'step', 'completed', u.id, u.name, u.by_try, u.step_index, u.value, u.error, u.started_at
FROM unnest(CAST(?2 AS bytea[]), CAST(?3 AS text[]), CAST(?4 AS bigint[]), CAST(?5 AS bigint[]), CAST(?6 AS text[]), CAST(?7 AS text[]),
  CAST(?10 AS bigint[])) AS u(id, name, by_try, step_index, value, error, started_at)
WHERE u.id IN (SELECT task_id FROM ok)
ON CONFLICT DO NOTHING`
)

var (
	sqlDueOfLanes = `
SELECT ` + sqlstore.HintedSelect + dueOfLanes + dueLimit

	sqlLeaveSentOf = `
SELECT ` + sqlstore.HintedSelect + dueOfLanes + `
    AND (sent_until IS NULL OR sent_until <= ?8 OR attempts <> 1 OR last_error IS NOT NULL)` + dueLimit

	sqlHintedAll = `
SELECT ` + sqlstore.HintedSelect + ` FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT * FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1 FOR UPDATE SKIP LOCKED) o, LATERAL (
  SELECT * FROM weaver_tasks WHERE namespace = ?1 AND task_id = o.task_id LIMIT 1) t`

	sqlForgetRatesAll = `
DELETE FROM weaver_rates WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM weaver_rates WHERE namespace = ?1 AND idle_at <= ?2 ORDER BY idle_at LIMIT CAST(?3 AS bigint)))`

	sqlLockSentAll = `
SELECT o.task_id, o.sent_until FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT task_id, sent_until FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1 FOR UPDATE SKIP LOCKED) o`

	sqlMarkSentAll = `
UPDATE weaver_outbox_events SET sent_until = ?3, attempts = attempts + 1` + sentRows

	sqlSetSentAll = `
UPDATE weaver_outbox_events SET sent_until = ?3, last_error = ?4` + sentRows

	// sqlReadTaken is sqlTakenTask of sqlstore for many tasks, ordered by ID.
	sqlReadTaken = `
SELECT ` + sqlstore.TaskSelect + ` FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT * FROM weaver_tasks WHERE namespace = ?1 AND task_id = u.id LIMIT 1 FOR UPDATE) t`

	// sqlReadTakenSteps is sqlSteps of sqlstore for many tasks.
	sqlReadTakenSteps = `
SELECT ` + sqlstore.StepSelect + ` FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
  SELECT * FROM weaver_steps WHERE namespace = ?1 AND task_id = u.id ORDER BY step_index, by_attempt, by_try, name OFFSET 0) s`
)

// The parts of sqlDueOfLane of sqlstore for many lanes.
const (
	dueOfLanes = `, l.at FROM unnest(CAST(?2 AS text[]), CAST(?3 AS text[]), CAST(?4 AS bigint[]), CAST(?5 AS text[]), CAST(?6 AS bigint[]), CAST(?7 AS bytea[]))
  WITH ORDINALITY AS l(queue, task_type, priority, lane_group, after, last, at), LATERAL (
  SELECT * FROM weaver_outbox_events
  WHERE namespace = ?1 AND queue = l.queue AND task_type = l.task_type AND priority = l.priority AND lane_group = l.lane_group AND available_at <= ?8
    AND (available_at, task_id) > (l.after, l.last)`
	dueLimit = `
  ORDER BY available_at, task_id LIMIT CAST(?9 AS bigint) FOR UPDATE SKIP LOCKED) o, LATERAL (
  SELECT * FROM weaver_tasks WHERE namespace = ?1 AND task_id = o.task_id LIMIT 1) t`
)

// sentRows selects rows that the transaction has locked.
const sentRows = `
WHERE ctid = ANY(ARRAY(
  SELECT o.ctid FROM unnest(CAST(?2 AS bytea[])) AS u(id), LATERAL (
    SELECT ctid FROM weaver_outbox_events WHERE namespace = ?1 AND task_id = u.id LIMIT 1) o))`

// InlineMax implements sqlstore.Bulk: the server stores long texts out of line by itself and does
// not rewrite them with their rows.
func (d database) InlineMax() int { return math.MaxInt }

// ClaimLane implements sqlstore.Bulk.
func (d database) ClaimLane(t *sqlstore.Tx, l *sqlstore.ClaimLease, version int, s *lane.State, schema, n int, leave bool) *sqlstmt.Stmt {
	return d.c.Stmt(sqlClaimLane).Text(1, t.Namespace()).Text(2, s.Queue).Text(3, s.Type).Int(4, s.Priority).Int(5, t.Now().UnixMicro()).
		Int(6, int64(n)).Lease(7, &l.ID).Text(8, l.Name).Int(9, l.Expires).Int(10, int64(version)).Int(11, int64(schema)).Int(12, s.Bound).Bool(13, leave).Text(14, s.Group)
}

// DueOfLanes implements sqlstore.Bulk.
func (d database) DueOfLanes(t *sqlstore.Tx, lanes []sqlstore.DueLane, n int, leave bool) *sqlstmt.Stmt {
	sql := sqlDueOfLanes
	if leave {
		sql = sqlLeaveSentOf
	}
	st, arrays := d.c.StmtArrays(sql)
	if arrays == nil {
		return st
	}
	queues, types, priorities, groups := arrays.Array(2), arrays.Array(3), arrays.Array(4), arrays.Array(5)
	after, last := arrays.Array(6), arrays.Array(7)
	for i := range lanes {
		l := &lanes[i]
		queues.Text(l.Queue)
		types.Text(l.Type)
		priorities.Int(l.Priority)
		groups.Text(l.Group)
		after.Int(l.After)
		last.Bytes(l.Last)
	}
	return st.Text(1, t.Namespace()).Int(8, t.Now().UnixMicro()).Int(9, int64(n))
}

// Hinted implements sqlstore.Bulk.
func (d database) Hinted(t *sqlstore.Tx, ids []task.ID) *sqlstmt.Stmt {
	return d.ofTasks(sqlHintedAll, t, ids)
}

// ForgetRates implements sqlstore.Bulk.
func (d database) ForgetRates(t *sqlstore.Tx, n int) error {
	return d.c.Stmt(sqlForgetRatesAll).Text(1, t.Namespace()).Int(2, t.Now().UnixMicro()).Int(3, int64(n)).Run()
}

// LockSent implements sqlstore.Bulk.
func (d database) LockSent(t *sqlstore.Tx, ids []task.ID) *sqlstmt.Stmt {
	return d.ofTasks(sqlLockSentAll, t, ids)
}

// MarkSent implements sqlstore.Bulk.
func (d database) MarkSent(t *sqlstore.Tx, ids []task.ID, until int64) error {
	return d.ofTasks(sqlMarkSentAll, t, ids).Int(3, until).Run()
}

// SetSent implements sqlstore.Bulk.
func (d database) SetSent(t *sqlstore.Tx, ids []task.ID, until int64, lastError string) error {
	return d.ofTasks(sqlSetSentAll, t, ids).Int(3, until).OrNull(4, lastError).Run()
}

// LockTasks implements sqlstore.Bulk.
func (d database) LockTasks(t *sqlstore.Tx, ids []task.ID) *sqlstmt.Stmt {
	return d.ofTasks(sqlReadTaken, t, ids)
}

// ReadSteps implements sqlstore.Bulk.
func (d database) ReadSteps(t *sqlstore.Tx, ids []task.ID) *sqlstmt.Stmt {
	return d.ofTasks(sqlReadTakenSteps, t, ids)
}

// ofTasks returns a statement over tasks with its parameters bound.
func (d database) ofTasks(sql string, t *sqlstore.Tx, ids []task.ID) *sqlstmt.Stmt {
	if _, err := d.bindIDs(sql, t.Namespace(), ids); err != nil {
		return sqlstmt.Failed(err)
	}
	return d.c.Stmt(sql).Text(1, t.Namespace()) // a new handle that refers to the bound parameters
}

// ClaimTasks implements sqlstore.Bulk.
func (d database) ClaimTasks(t *sqlstore.Tx, l *sqlstore.ClaimLease, version int, rows []sqlstore.ClaimTask) (int, error) {
	st, err := d.c.Statement(sqlClaimTasks)
	if err != nil {
		return 0, err
	}
	ids, epochs := st.Array(2), st.Array(8)
	for i := range rows {
		ids.Bytes(rows[i].ID[:])
		epochs.Int(rows[i].Epoch)
	}
	b := binder{st: st}
	b.text(1, t.Namespace()).blob(3, l.ID[:]).text(4, l.Name).int(5, l.Expires).int(6, t.Now().UnixMicro()).int(7, int64(version))
	if err := b.exec(); err != nil {
		return 0, err
	}
	return st.Changes()
}

// Succeed implements sqlstore.Bulk.
func (d database) Succeed(t *sqlstore.Tx, lease *task.LeaseID, c *sqlstore.Claim, ends []sqlstore.End) (map[task.ID]bool, error) {
	st, err := d.c.Statement(sqlSucceedAll)
	if err != nil {
		return nil, err
	}
	outputs := st.Array(3)
	for i := range ends {
		sqlstmt.PutRaw(outputs, ends[i].Output)
	}
	bindArrays(st, 4, sqlstore.PlainAttempt, len(ends), func(i int) *sqlstore.End { return &ends[i] })
	b := &binder{st: st}
	b.text(1, t.Namespace()).int(2, t.Now().UnixMicro())
	bindParams(b, 4+len(sqlstore.PlainAttempt), sqlstore.ClaimedAttempt, &sqlstore.End{Lease: *lease, Worker: c.Worker, StartedAt: c.StartedAt})
	if b.err != nil {
		return nil, b.err
	}
	var accepted map[task.ID]bool
	if st.Step() {
		if list := st.Raw(0); len(list) != len(ends)*len(task.ID{}) {
			accepted = make(map[task.ID]bool, len(ends))
			for ; len(list) > 0; list = list[len(task.ID{}):] {
				accepted[task.ID(list[:len(task.ID{})])] = true
			}
		}
	}
	return accepted, errors.Join(st.Err(), st.Reset())
}

// InsertSteps implements sqlstore.Bulk.
func (d database) InsertSteps(t *sqlstore.Tx, lease *task.LeaseID, steps []*task.Step) (int, error) {
	st, err := d.c.Statement(sqlInsertStepsAll)
	if err != nil {
		return 0, err
	}
	ids, names, tries, indexes, values, errs, started := st.Array(2), st.Array(3), st.Array(4), st.Array(5), st.Array(6), st.Array(7), st.Array(10)
	for _, s := range steps {
		ids.Bytes(s.TaskID[:])
		names.Text(s.Name)
		tries.Int(int64(s.Try))
		indexes.Int(int64(s.Index))
		sqlstmt.PutRaw(values, s.Value)
		failure, err := stepError(s)
		if err != nil {
			return 0, err
		}
		sqlstmt.PutRaw(errs, failure)
		started.Int(s.StartedAt.UnixMicro())
	}
	b := binder{st: st}
	b.text(1, t.Namespace()).blob(8, lease[:]).int(9, t.Now().UnixMicro())
	if err := b.exec(); err != nil {
		return 0, err
	}
	return st.Changes()
}

// bindParams binds the columns of a row to consecutive parameters that start at first.
func bindParams[T any](b *binder, first int, fields sqlstmt.Fields[T], row *T) {
	p := &parameter{b, first}
	for ; p.i < first+len(fields); p.i++ {
		fields[p.i-first].Put(row, p)
	}
}

// parameter is the sqlstmt.Sink that binds one parameter.
type parameter struct {
	*binder
	i int
}

func (p *parameter) Null()            { p.null(p.i) }
func (p *parameter) Int(v int64)      { p.int(p.i, v) }
func (p *parameter) Text(v string)    { p.text(p.i, v) }
func (p *parameter) RawText(v []byte) { p.bound(p.st.BindRawText(p.i, v)) }
func (p *parameter) Blob(v []byte)    { p.blob(p.i, v) }
func (p *parameter) Fail(err error)   { p.bound(err) }

// binder binds parameters until one is rejected.
type binder struct {
	st  *conn.Stmt
	err error
}

func (b *binder) bound(err error) *binder {
	if b.err == nil {
		b.err = err
	}
	return b
}

// send queues the statement if every parameter was bound.
func (b *binder) send() error {
	if b.err != nil {
		return b.err
	}
	return b.st.Send()
}

// exec is send for a statement without rows.
func (b *binder) exec() error {
	if b.err != nil {
		return b.err
	}
	return b.st.Exec()
}

func (b *binder) int(i int, v int64) *binder   { return b.bound(b.st.BindInt(i, v)) }
func (b *binder) text(i int, v string) *binder { return b.bound(b.st.BindText(i, v)) }
func (b *binder) blob(i int, v []byte) *binder { return b.bound(b.st.BindBlob(i, v)) }
func (b *binder) null(i int) *binder           { return b.bound(b.st.BindNull(i)) }

func (b *binder) bool(i int, v bool) *binder {
	if v {
		return b.int(i, 1)
	}
	return b.int(i, 0)
}

func (b *binder) intOrNull(i int, v int64) *binder {
	if v == 0 {
		return b.null(i)
	}
	return b.int(i, v)
}

func (b *binder) orNull(i int, v string) *binder {
	if v == "" {
		return b.null(i)
	}
	return b.text(i, v)
}
