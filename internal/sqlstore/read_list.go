package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goweaver/weaver/internal/sqlstmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// listLooks is the maximum number of rows read for one page of a list: about 0.1 s if it reads
// every task.
const listLooks = 10_000

// newest sorts after every ID.
var newest = bytes.Repeat([]byte{0xff}, 17)

// cursor parses the beginning of a page.
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

// Sources of IDs for lists, newest first, with queue and type where they cost nothing. A list
// uses the narrowest sources that contain every requested task. The filter drops the surplus.
const (
	sqlIDsOfLabel = `
SELECT task_id FROM weaver_task_labels WHERE namespace = ?1 AND key = ?5 AND value = ?6 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsOfJob = `
SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND job_id = ?5 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsOfParent = `
SELECT task_id FROM weaver_tasks WHERE namespace = ?1 AND parent_task_id = ?5 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsEnded = `
SELECT task_id, queue, task_type, last_error_kind FROM weaver_tasks INDEXED BY weaver_tasks_by_end
WHERE namespace = ?1 AND /*end_*/state = ?5 AND (state = 'failed' OR state = 'blocked' OR state = 'cancelled') AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsDispatched = `
SELECT task_id, queue, task_type FROM weaver_outbox_events WHERE namespace = ?1 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsWaiting = `
SELECT task_id FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task WHERE namespace = ?1 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsParked = `
SELECT task_id FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsNeedy = `
SELECT DISTINCT task_id FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_open
WHERE namespace = ?1 AND done = 0 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsSuspended = `
SELECT DISTINCT task_id FROM weaver_steps INDEXED BY weaver_steps_waiting
WHERE namespace = ?1 AND state = 'waiting' AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
	sqlIDsAll = `
SELECT task_id, queue, task_type FROM weaver_tasks WHERE namespace = ?1 AND task_id < ?2 AND task_id >= ?4 ORDER BY task_id DESC LIMIT ?3`
)

// source reads up to limit tasks that are older than before. It returns the tasks that the
// filter may select, the number of tasks read, and the oldest of them.
type source func(v *View, f *store.Filter, before []byte, limit int) (ids []task.ID, looked int, oldest task.ID, err error)

func fromSQL(sql string, bind func(st *sqlstmt.Stmt)) source {
	return func(v *View, f *store.Filter, before []byte, limit int) (ids []task.ID, looked int, oldest task.ID, err error) {
		from, _ := f.Created()
		st := v.stmt(sql).Text(1, v.ns).Blob(2, before).Int(3, int64(limit)).ID(4, &from)
		if bind != nil {
			bind(st)
		}
		for ; st.Next(); looked++ {
			oldest = st.ColID(0)
			if n := st.Columns(); n > 1 && (f.Queue != "" || len(f.Types) > 0) && !f.OfLane(st.ColName(1), st.ColName(2)) ||
				n > 3 && len(f.ErrorKinds) > 0 && !slices.Contains(f.ErrorKinds, task.ErrorKind(st.ColName(3))) {
				continue
			}
			ids = append(ids, oldest)
		}
		return ids, looked, oldest, st.Done()
	}
}

// fromRunning returns running tasks, found through the claims that lease them.
func fromRunning(v *View, f *store.Filter, before []byte, limit int) (ids []task.ID, looked int, oldest task.ID, err error) {
	if ids, err = v.running(); err != nil {
		return nil, 0, oldest, err
	}
	from, _ := f.Created()
	ids = slices.DeleteFunc(ids, func(id task.ID) bool { return bytes.Compare(id[:], before) >= 0 || id.Compare(from) < 0 })
	slices.SortFunc(ids, newestFirst)
	if ids = ids[:min(limit, len(ids))]; len(ids) > 0 {
		oldest = ids[len(ids)-1]
	}
	return ids, len(ids), oldest, nil
}

func newestFirst(a, b task.ID) int { return b.Compare(a) }

// sources returns the sources that contain the tasks of a filter.
func sources(f *store.Filter) []source {
	if len(f.Labels) > 0 {
		k := slices.Min(slices.Collect(maps.Keys(f.Labels)))
		return []source{fromSQL(sqlIDsOfLabel, func(st *sqlstmt.Stmt) { st.Text(5, k).Text(6, f.Labels[k]) })}
	}
	if !f.Parent.IsZero() {
		return []source{fromSQL(sqlIDsOfParent, func(st *sqlstmt.Stmt) { st.ID(5, &f.Parent) })}
	}
	if !f.Job.IsZero() {
		return []source{fromSQL(sqlIDsOfJob, func(st *sqlstmt.Stmt) { st.ID(5, &f.Job) })}
	}
	states := statesOf(f)
	if slices.Contains(states, task.Succeeded) {
		return []source{fromSQL(sqlIDsAll, nil)}
	}
	var list []source
	if slices.Contains(states, task.Pending) {
		list = fromPending(f)
	} else if slices.Contains(states, task.Ready) {
		list = append(list, fromSQL(sqlIDsDispatched, nil))
	}
	if slices.Contains(states, task.Running) {
		list = append(list, fromRunning)
	}
	for _, s := range []task.State{task.Failed, task.Blocked, task.Cancelled} {
		if slices.Contains(states, s) {
			list = append(list, fromSQL(sqlIDsEnded, func(st *sqlstmt.Stmt) { st.Text(5, string(s)) }))
		}
	}
	return list
}

// statesOf returns the possible states of the tasks that the filter selects. A filter on
// waiting reasons or on errors narrows the requested states.
func statesOf(f *store.Filter) []task.State {
	states := slices.Clone(f.States)
	if len(states) == 0 {
		states = task.States()
	}
	without := func(drop ...task.State) {
		states = slices.DeleteFunc(states, func(s task.State) bool { return slices.Contains(drop, s) })
	}
	if len(f.ErrorKinds) > 0 && !slices.Contains(f.ErrorKinds, task.KindNone) {
		without(task.Succeeded)
	}
	if len(f.Waiting) > 0 && !slices.Contains(f.Waiting, task.WaitNone) {
		without(task.Ready, task.Running, task.Succeeded, task.Failed, task.Cancelled)
	}
	return states
}

// fromPending returns the sources of pending tasks, and of ready tasks if the filter does not
// exclude them by waiting reason.
func fromPending(f *store.Filter) (list []source) {
	waits := func(reason func(task.Waiting) bool) bool {
		return len(f.Waiting) == 0 || slices.Contains(f.Waiting, task.WaitNone) || slices.ContainsFunc(f.Waiting, reason)
	}
	if waits(func(w task.Waiting) bool { return w == task.WaitConcurrency }) {
		list = append(list, fromSQL(sqlIDsWaiting, nil))
	}
	if waits(task.Waiting.OnTasks) {
		list = append(list, fromSQL(sqlIDsNeedy, nil))
	}
	if waits(func(w task.Waiting) bool { return w == task.WaitSignal || w == task.WaitChildren }) {
		list = append(list, fromSQL(sqlIDsSuspended, nil))
	}
	if waits(func(w task.Waiting) bool { return w == task.WaitPaused }) {
		list = append(list, fromSQL(sqlIDsParked, nil))
	}
	only := func(w task.Waiting) bool { // a reason without a dispatch row
		return w == task.WaitConcurrency || w == task.WaitDeps || w == task.WaitRepair
	}
	if len(f.Waiting) == 0 || !allOf(f.Waiting, only) {
		list = append(list, fromSQL(sqlIDsDispatched, nil))
	}
	return list
}

func allOf[T any](list []T, is func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !is(v) })
}

// List implements store.Observe. It reads in short transactions, one for each chunk of
// candidates, so that a long search delays no other caller. A page ends at the row limit, so
// that the caller gets an answer.
func (s *Store) List(ctx context.Context, ns string, f store.Filter) ([]task.Task, string, error) {
	before, err := cursor(f.After)
	if err != nil {
		return nil, "", err
	}
	if _, to := f.Created(); to != nil && bytes.Compare(to[:], before) < 0 {
		before = to[:]
	}
	limit := store.PageLimit(f.Limit)
	q := search{f: &f, from: sources(&f), before: before}
	looks := s.Looks
	for chunk := max(limit+1, 64); ; chunk *= 2 {
		q.limit, q.want = max(1, min(chunk, readChunk, looks/max(1, len(q.from)))), limit+1-len(q.found)
		if err := s.read(ctx, ns, q.run); err != nil {
			return nil, "", err
		}
		if len(q.found) > limit {
			return q.found[:limit], q.found[limit-1].ID.String(), nil
		}
		if q.floor == nil {
			return q.found, "", nil
		}
		if looks -= q.looked; looks <= 0 {
			return q.found, q.floor.String(), nil
		}
		q.before = slices.Clone(q.floor[:])
	}
}

// search reads the candidates of a list chunk by chunk.
type search struct {
	f      *store.Filter
	from   []source
	before []byte // the chunk has only older tasks
	limit  int    // candidates of each source
	want   int    // remaining number of tasks

	found  []task.Task // of all chunks
	looked int         // candidates of this chunk
	floor  *task.ID    // older candidates were not read; nil: all were read
}

// run reads one chunk. It may run again only with another chunk.
func (s *search) run(v *View) error {
	s.looked, s.floor = 0, nil
	var ids []task.ID
	for _, src := range s.from {
		got, looked, oldest, err := src(v, s.f, s.before, s.limit)
		if err != nil {
			return err
		}
		if s.looked += looked; looked == s.limit && (s.floor == nil || oldest.Compare(*s.floor) > 0) {
			s.floor = &oldest
		}
		ids = append(ids, got...)
	}
	slices.SortFunc(ids, newestFirst)
	ids = slices.Compact(ids)
	if s.floor != nil {
		ids = slices.DeleteFunc(ids, func(id task.ID) bool { return id.Compare(*s.floor) < 0 })
	}
	if s.want == 0 {
		return nil
	}
	ids, err := v.sift(s.f, ids)
	if err != nil {
		return err
	}
	return v.readTasks(ids, v.now(), func(t *task.Task) bool {
		if s.f.Selects(t) {
			s.found = append(s.found, *t)
			s.want--
		}
		return s.want == 0
	})
}

// sqlStand reads the columns by which a filter rejects most tasks.
var sqlStand = newIDSQL(func(in string) string {
	return `SELECT task_id, state, waiting_reason, last_error_kind, queue, task_type FROM weaver_tasks WHERE namespace = ?1 AND task_id ` + in
})

// sift returns the IDs of tasks that a filter may select, in their order.
func (v *View) sift(f *store.Filter, ids []task.ID) ([]task.ID, error) {
	if len(f.States)+len(f.Waiting)+len(f.ErrorKinds)+len(f.Types) == 0 && f.Queue == "" {
		return ids, nil
	}
	may := make(map[task.ID]bool, len(ids))
	err := v.byIDs(sqlStand, ids, func(st *sqlstmt.Stmt, _ []task.ID) error {
		for st.Next() {
			may[st.ColID(0)] = f.OfLane(st.ColName(4), st.ColName(5)) &&
				maySelect(f, task.State(st.ColName(1)), task.Waiting(st.ColName(2)), task.ErrorKind(st.ColName(3)))
		}
		return st.Done()
	})
	return slices.DeleteFunc(ids, func(id task.ID) bool { return !may[id] }), err
}

// maySelect reports whether a filter may select a task with the stored state, waiting reason
// and kind of its last error. Readers see a pending or ready task in either state. They see it
// waiting for the stored reason, for its key, for the end of a pause, or for nothing
// (store.Derive).
func maySelect(f *store.Filter, state task.State, waiting task.Waiting, kind task.ErrorKind) bool {
	states, reasons := []task.State{state}, []task.Waiting{waiting}
	if state == task.Pending || state == task.Ready {
		states = []task.State{task.Pending, task.Ready}
		reasons = append(reasons, task.WaitNone, task.WaitConcurrency, task.WaitPaused)
	}
	return anyOf(f.States, states...) && anyOf(f.Waiting, reasons...) && anyOf(f.ErrorKinds, kind)
}

// anyOf reports whether any of the values is requested. An empty request selects all values.
func anyOf[T comparable](asked []T, values ...T) bool {
	return len(asked) == 0 || slices.ContainsFunc(values, func(v T) bool { return slices.Contains(asked, v) })
}
