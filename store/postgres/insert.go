package postgres

import (
	"slices"
	"strconv"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

// A statement over arrays stores new tasks; COPY stores large sets with shared columns. Both write
// the columns of sqlstore.AlikeFields and OwnFields, for varied tasks also VariedFields, and a
// dispatch row for each task that does not wait.

// The statements over arrays. The first fails if a task already exists; in return its rows cost a
// sixth less. Varied tasks have rows in other tables too.
var (
	sqlInsertNew    = insertAlikeSQL(false, "")
	sqlInsertAlike  = insertAlikeSQL(false, onConflict)
	sqlInsertVaried = insertAlikeSQL(true, onConflict)
)

const onConflict = " ON CONFLICT DO NOTHING"

// The parameters of insertAlikeSQL after the namespace: the time, if a test sets it instead of the
// server, and the time at which the tasks become available.
const (
	newNow       = 2
	newAvailable = 3
	newAlike     = 4
)

type newColumns struct {
	alike sqlstmt.Fields[sqlstore.Alike]
	own   sqlstmt.Fields[sqlstore.AlikeTask]
}

var (
	alikeColumns  = newColumns{slices.Concat(sqlstore.AlikeFields, sqlstore.AlikeOptions), sqlstore.OwnFields}
	variedColumns = newColumns{sqlstore.AlikeFields, slices.Concat(sqlstore.OwnFields, sqlstore.VariedFields)}
)

func columnsOf(varied bool) newColumns {
	if varied {
		return variedColumns
	}
	return alikeColumns
}

// ownAt is the first parameter of the columns that differ between tasks.
func (c newColumns) ownAt() int { return newAlike + len(c.alike) }

// moreAt is the first parameter of the columns of varied tasks: labels, edges, and whether they
// wait, without a dispatch row.
func (c newColumns) moreAt() int { return c.ownAt() + len(c.own) }

// insertAlikeSQL returns a statement over arrays with one element per task.
func insertAlikeSQL(varied bool, conflict string) string {
	c := columnsOf(varied)
	cast := func(name string) string { // of a column that the tasks share
		i := slices.IndexFunc(c.alike, func(f sqlstmt.Field[sqlstore.Alike]) bool { return f.Name == name })
		return c.alike[i : i+1].Casts(newAlike + i)
	}
	array := func(i int, of string) string { return "CAST(?" + strconv.Itoa(c.moreAt()+i) + " AS " + of + "[])" }
	sql := `
WITH clk AS MATERIALIZED (SELECT coalesce(CAST(?2 AS bigint), ` + serverTime + `) AS now), added AS (
  INSERT INTO weaver_tasks (namespace, updated_at, ` + c.alike.Names() + `, ` + c.own.Names() + `)
  SELECT CAST(?1 AS text), clk.now, ` + c.alike.Casts(newAlike) + `, u.*
  FROM unnest(` + c.own.Arrays(c.ownAt()) + `) AS u, clk` + conflict + ` RETURNING task_id, lane_group)`
	if varied {
		sql += `,
labelled AS (
  INSERT INTO weaver_task_labels (namespace, key, value, task_id)
  SELECT CAST(?1 AS text), l.key, l.value, l.id FROM unnest(` + array(0, "bytea") + `, ` + array(1, "text") + `, ` + array(2, "text") + `) AS l(id, key, value)
  WHERE l.id IN (SELECT task_id FROM added)),
edges AS (
  INSERT INTO weaver_task_dependencies (namespace, task_id, depends_on_task_id, kind)
  SELECT CAST(?1 AS text), e.id, e.need, e.kind FROM unnest(` + array(3, "bytea") + `, ` + array(4, "bytea") + `, ` + array(5, "text") + `) AS e(id, need, kind)
  WHERE e.id IN (SELECT task_id FROM added)),
timed AS (
  INSERT INTO weaver_timers (namespace, due_at, task_id)
  SELECT CAST(?1 AS text), ` + cast("deadline_at") + `, task_id FROM added WHERE ` + cast("deadline_at") + ` IS NOT NULL
  ON CONFLICT DO NOTHING)`
	}
	sql += `
INSERT INTO weaver_outbox_events (namespace, task_id, queue, task_type, priority, available_at, concurrency_key, lane_group)
SELECT CAST(?1 AS text), task_id, ` + cast("queue") + `, ` + cast("task_type") + `, ` + cast("priority") + `, coalesce(CAST(?3 AS bigint), clk.now), ` +
		cast("concurrency_key") + `, coalesce(lane_group, '') FROM added, clk`
	if varied {
		sql += ` WHERE CAST(?` + strconv.Itoa(c.moreAt()+6) + ` AS smallint) = 0`
	}
	return sql
}

// InsertAlike implements sqlstore.Bulk.
func (d database) InsertAlike(t *sqlstore.Tx, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	return insertAlike(d.c, t.Namespace(), t.Now().UnixMicro(), sqlInsertAlike, a, rows)
}

// alikeRows bounds the rows of one statement. The server works on them while the client prepares
// the next ones.
const alikeRows = 1000

// insertAlike stores new tasks that were created at now. If now is 0 the tasks are created, and
// available, at the server's time. alike is sqlInsertAlike or sqlInsertNew.
func insertAlike(c *conn.Conn, ns string, now int64, alike string, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	for part := range slices.Chunk(rows, alikeRows) {
		if err := insertPart(c, ns, now, alike, a, part); err != nil {
			return err
		}
	}
	return nil
}

func insertPart(c *conn.Conn, ns string, now int64, sql string, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	if a.Varied {
		sql = sqlInsertVaried
	}
	st, err := c.Statement(sql)
	if err != nil {
		return err
	}
	columns := columnsOf(a.Varied)
	bindArrays(st, columns.ownAt(), columns.own, len(rows), func(i int) *sqlstore.AlikeTask { return &rows[i] })
	if a.Varied {
		bindMore(st, columns.moreAt(), rows)
	}
	b := &binder{st: st}
	b.text(1, ns).intOrNull(newNow, now).intOrNull(newAvailable, a.Available)
	if a.Varied {
		b.bool(columns.moreAt()+6, a.Waits)
	}
	bindParams(b, newAlike, columns.alike, a)
	return b.exec()
}

// bindMore binds the labels and edges of varied tasks.
func bindMore(st *conn.Stmt, first int, rows []sqlstore.AlikeTask) {
	tasks, names, values := st.Array(first), st.Array(first+1), st.Array(first+2)
	needy, need, kinds := st.Array(first+3), st.Array(first+4), st.Array(first+5)
	for i := range rows {
		r := &rows[i]
		for k, v := range r.Labels {
			tasks.Bytes(r.ID[:])
			names.Text(k)
			values.Text(v)
		}
		for _, e := range r.Needs {
			needy.Bytes(r.ID[:])
			need.Bytes(e.Needs[:])
			kinds.Text(string(e.Kind))
		}
	}
}

// copyFrom is the minimum number of tasks for COPY. COPY takes two more round trips than a
// statement over arrays, and a fifth less of the server's time for each row.
const copyFrom = 500

// copyMost bounds the rows of one COPY: each COPY has the time limit of one statement.
const copyMost = 5_000

// copyable reports whether COPY can store these tasks: they are available at once, and dispatch
// rows are their only rows in other tables.
func copyable(a *sqlstore.Alike, rows int) bool {
	return rows >= copyFrom && !a.Varied && !a.Waits && a.Available == 0 && a.Deadline == 0
}

// copyAlike stores new tasks that are available at now, as sqlInsertNew does. It fails if one of
// them already exists.
func copyAlike(c *conn.Conn, ns string, now int64, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	for part := range slices.Chunk(rows, copyMost) {
		if err := copyRows(c, ns, now, a, part); err != nil {
			return err
		}
	}
	return nil
}

// copyRows is copyAlike for the rows of one COPY. It omits columns that have their default value,
// because each column costs the same whatever its value.
func copyRows(c *conn.Conn, ns string, now int64, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	alike, err := setFields(alikeColumns.alike, a)
	if err != nil {
		return err
	}
	own := alikeColumns.own
	common := new(conn.Fields)
	common.Text(ns)
	common.Int(now)
	putFields(common, alike, a)
	err = c.Copy(`COPY weaver_tasks (namespace, updated_at, `+alike.Names()+`, `+own.Names()+`) FROM STDIN (FORMAT binary)`,
		conn.NewRows(len(rows), 2+len(alike)+len(own), common, func(i int, f *conn.Fields) { putFields(f, own, &rows[i]) }))
	if err != nil {
		return err
	}
	lane := sqlstore.AlikeFields.Of("queue", "task_type", "priority", "concurrency_key")
	common = new(conn.Fields)
	common.Text(ns)
	common.Int(now)
	putFields(common, lane, a)
	return c.Copy(`COPY weaver_outbox_events (namespace, available_at, `+lane.Names()+`, task_id) FROM STDIN (FORMAT binary)`,
		conn.NewRows(len(rows), 2+len(lane)+1, common, func(i int, f *conn.Fields) { putFields(f, own[:1], &rows[i]) }))
}

// setFields returns the columns whose value is neither NULL nor 0.
func setFields[T any](fields sqlstmt.Fields[T], v *T) (sqlstmt.Fields[T], error) {
	values, err := fields.Literals(v)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(fields), func(f sqlstmt.Field[T]) bool {
		return values[f.Name] == "NULL" || values[f.Name] == "0" && f.Name != "priority" // priority has no default
	}), nil
}

// putFields appends the columns of a row for COPY.
func putFields[T any](to *conn.Fields, fields sqlstmt.Fields[T], row *T) {
	for i := range fields {
		fields[i].Put(row, to.As(fields[i].Type))
	}
}

var _ sqlstmt.Sink = (*conn.Fields)(nil)
