package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/store/sqlite/internal/conn"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// newest comes after every id.
var newest = bytes.Repeat([]byte{0xff}, 17)

// cursor reads where a page begins.
func cursor(after string) ([]byte, error) {
	if after == "" {
		return newest, nil
	}
	id, err := task.ParseID(after)
	if err != nil {
		return nil, fmt.Errorf("%w: %q did not come from a list", store.ErrBadCursor, after)
	}
	return id[:], nil
}

// Sources of ids, newest first, for lists. A list takes the narrowest ones
// that hold every task it asks for; what a source holds too much, the filter
// drops.
const (
	sqlIDsOfLabel = `SELECT task_id FROM weaver_task_labels WHERE namespace = ?1 AND key = ?4 AND value = ?5 AND task_id < ?2 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsOfJob   = `SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND job_id = ?4 AND task_id < ?2 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsEnded   = `
SELECT task_id FROM weaver_tasks INDEXED BY weaver_tasks_by_end
WHERE namespace = ?1 AND state = ?4 AND (state = 'failed' OR state = 'blocked' OR state = 'cancelled') AND task_id < ?2 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsDispatched = `SELECT task_id FROM weaver_outbox_events WHERE namespace = ?1 AND task_id < ?2 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsWaiting    = `
SELECT task_id FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task WHERE namespace = ?1 AND task_id < ?2 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsNeedy = `
SELECT DISTINCT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_open
WHERE namespace = ?1 AND done = 0 AND task_id < ?2 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsAll = `
SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND task_id < ?2 AND (?4 IS NULL OR queue = ?4) AND (?5 IS NULL OR task_type = ?5)
ORDER BY task_id DESC LIMIT ?3`
)

// source yields up to limit ids that are older than before.
type source func(v *view, before []byte, limit int) ([]task.ID, error)

func fromSQL(sql string, bind func(st *conn.Stmt)) source {
	return func(v *view, before []byte, limit int) ([]task.ID, error) {
		st := v.stmt(sql).Text(1, v.ns).Blob(2, before).Int(3, int64(limit))
		if bind != nil {
			bind(st)
		}
		return ids(st)
	}
}

// fromRunning yields running tasks, through the claims that lease them.
func fromRunning(v *view, before []byte, limit int) ([]task.ID, error) {
	ids, err := v.running()
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id task.ID) bool { return bytes.Compare(id[:], before) >= 0 })
	slices.SortFunc(ids, newestFirst)
	return ids[:min(limit, len(ids))], nil
}

func newestFirst(a, b task.ID) int { return b.Compare(a) }

// sources returns where the tasks of a filter are to be looked for.
func sources(f *store.Filter) []source {
	if len(f.Labels) > 0 {
		k := slices.Min(slices.Collect(maps.Keys(f.Labels)))
		return []source{fromSQL(sqlIDsOfLabel, func(st *conn.Stmt) { st.Text(4, k).Text(5, f.Labels[k]) })}
	}
	if !f.Job.IsZero() {
		return []source{fromSQL(sqlIDsOfJob, func(st *conn.Stmt) { st.ID(4, &f.Job) })}
	}
	if len(f.States) == 0 || slices.Contains(f.States, task.Succeeded) {
		return []source{fromSQL(sqlIDsAll, func(st *conn.Stmt) {
			st.OrNull(4, f.Queue)
			if len(f.Types) == 1 {
				st.Text(5, f.Types[0])
			} else {
				st.Null(5)
			}
		})}
	}
	var list []source
	if slices.Contains(f.States, task.Pending) {
		list = append(list, fromSQL(sqlIDsWaiting, nil), fromSQL(sqlIDsNeedy, nil))
	}
	if slices.Contains(f.States, task.Pending) || slices.Contains(f.States, task.Ready) {
		list = append(list, fromSQL(sqlIDsDispatched, nil))
	}
	if slices.Contains(f.States, task.Running) {
		list = append(list, fromRunning)
	}
	for _, s := range []task.State{task.Failed, task.Blocked, task.Cancelled} {
		if slices.Contains(f.States, s) {
			list = append(list, fromSQL(sqlIDsEnded, func(st *conn.Stmt) { st.Text(4, string(s)) }))
		}
	}
	return list
}

// List implements store.Reader. It reads in short transactions, one per chunk
// of candidates, so that a long search delays no other caller.
func (db *DB) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	before, err := cursor(f.After)
	if err != nil {
		return nil, "", err
	}
	limit := store.PageLimit(f.Limit)
	from := sources(&f)
	var list []task.Task
	for {
		var found []task.Task
		var more bool
		at := before
		err := db.read(ctx, ns, func(v *view) (err error) {
			found, at, more, err = v.search(&f, from, before, limit+1-len(list))
			return err
		})
		if err != nil {
			return nil, "", err
		}
		list = append(list, found...)
		if len(list) > limit {
			return list[:limit], list[limit-1].ID.String(), nil
		}
		if !more {
			return list, "", nil
		}
		before = at
	}
}

// search looks at one chunk of candidates. It returns where the next chunk
// begins, and whether there may be one.
func (v *view) search(f *store.Filter, from []source, before []byte, want int) (found []task.Task, at []byte, more bool, err error) {
	const chunk = readChunk
	n := min(chunk, max(want, 64))
	var ids []task.ID
	var floor *task.ID // older ones were not read from every source
	for _, src := range from {
		got, err := src(v, before, n)
		if err != nil {
			return nil, nil, false, err
		}
		if len(got) == n && (floor == nil || got[n-1].Compare(*floor) > 0) {
			floor = &got[n-1]
		}
		ids = append(ids, got...)
	}
	slices.SortFunc(ids, newestFirst)
	ids = slices.Compact(ids)
	now := v.clock.Now()
	for i := range ids {
		if floor != nil && ids[i].Compare(*floor) < 0 {
			break
		}
		if len(found) == want {
			break
		}
		t, err := v.readTask(&ids[i], now)
		if err != nil {
			return nil, nil, false, err
		}
		if t != nil && f.Selects(t) {
			found = append(found, *t)
		}
	}
	if floor == nil {
		return found, nil, false, nil
	}
	return found, slices.Clone(floor[:]), true, nil
}
