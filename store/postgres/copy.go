package postgres

import (
	"slices"

	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

// copyFrom is how many new tasks of a kind are stored by COPY, or more: it takes two round
// trips more than a statement over arrays, and a fifth less of the server for each row.
const copyFrom = 500

// copyMost is how many rows one COPY takes: each has the time of a statement.
const copyMost = 5_000

// copyable reports whether tasks of a kind can be stored by COPY: it stores no columns but
// those of copyAlike, and none that rows have of their own.
func copyable(a *sqlstore.Alike, rows int) bool {
	return rows >= copyFrom && *a == sqlstore.Alike{
		Type: a.Type, Queue: a.Queue, State: a.State, Options: a.Options, Key: a.Key, Priority: a.Priority,
		SchemaVersion: a.SchemaVersion, MaxAttempts: a.MaxAttempts, MaxRepairs: a.MaxRepairs, Plain: a.Plain, AllowFailure: a.AllowFailure,
	}
}

// copyAlike stores new tasks that are available at an instant, as sqlInsertNew does: it
// fails when one of them is there already.
func copyAlike(c *conn.Conn, ns string, now int64, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	for part := range slices.Chunk(rows, copyMost) {
		if err := copyRows(c, ns, now, a, part); err != nil {
			return err
		}
	}
	return nil
}

// copyRows is copyAlike for as many as one COPY takes.
func copyRows(c *conn.Conn, ns string, now int64, a *sqlstore.Alike, rows []sqlstore.AlikeTask) error {
	const (
		tasks = `COPY weaver_tasks (namespace, task_type, queue, state, options_json, concurrency_key, priority, schema_version,
  max_attempts, max_repairs, plain, allow_failure, updated_at, task_id, input, created_at) FROM STDIN (FORMAT binary)`
		dispatch = `COPY weaver_outbox_events (namespace, queue, task_type, concurrency_key, priority, available_at, task_id) FROM STDIN (FORMAT binary)`
	)
	alike := new(conn.Fields).Text(ns).Text(a.Type).Text(a.Queue).Text(a.State).TextOrNull(a.Options).TextOrNull(a.Key).Int(a.Priority).
		Int(a.SchemaVersion).Int(a.MaxAttempts).Int(a.MaxRepairs).Flag(a.Plain).Flag(a.AllowFailure).Int(now)
	err := c.Copy(tasks, conn.NewRows(len(rows), 16, alike, func(i int, f *conn.Fields) {
		f.Bytes(rows[i].ID[:]).RawText(rows[i].Input).Int(rows[i].ID.Time().UnixMicro())
	}))
	if err != nil {
		return err
	}
	alike = new(conn.Fields).Text(ns).Text(a.Queue).Text(a.Type).TextOrNull(a.Key).Int(a.Priority).Int(now)
	return c.Copy(dispatch, conn.NewRows(len(rows), 7, alike, func(i int, f *conn.Fields) { f.Bytes(rows[i].ID[:]) }))
}
