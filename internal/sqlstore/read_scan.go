package sqlstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// scanPage is the number of tasks, jobs or keys in one part of a scan. A part of 1,000 tasks
// takes about 10 ms; a part of jobs takes longer if they have many tasks.
const scanPage = 1000

var (
	sqlScanTasks = `
SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id > ?2 ORDER BY task_id LIMIT ?3`
	sqlScanEdges = `
SELECT ` + edgeColumns.List() + ` FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3
ORDER BY task_id, depends_on_task_id`
	sqlScanAttempts = `
SELECT ` + attemptColumns.List() + ` FROM weaver_attempts WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id, attempt_no`
	sqlScanDecisions = `
SELECT ` + decisionColumns.List() + ` FROM weaver_decisions WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id, attempt_no`
	sqlScanSteps = `
SELECT ` + stepColumns.List() + ` FROM weaver_steps WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3
ORDER BY task_id, step_index, by_attempt, by_try, name`
	sqlScanSignals = `
SELECT ` + signalColumns.List() + ` FROM weaver_signals WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id, seq`
	sqlScanCheckpts = `
SELECT ` + checkpointColumns.List() + ` FROM weaver_checkpoints WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id, name`
	sqlScanDispatch = `
SELECT ` + dispatchColumns.List() + ` FROM weaver_outbox_events WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id`
	sqlScanWaiters = `
SELECT ` + waiterColumns.List() + ` FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task
WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id`
	sqlScanPaused = `
SELECT ` + pausedTaskColumns.List() + ` FROM weaver_paused_tasks WHERE namespace = ?1 AND task_id > ?2 AND task_id <= ?3 ORDER BY task_id`
	sqlScanArtifacts = `
SELECT ` + artifactColumns.List() + ` FROM weaver_artifacts a
LEFT JOIN weaver_blobs b ON b.namespace = a.namespace AND b.blob_id = a.blob_id
WHERE a.namespace = ?1 AND a.task_id > ?2 AND a.task_id <= ?3 AND a.kind = 'artifact'`
	sqlScanReferred = `
SELECT b.blob_id, b.sha256, b.size_bytes, b.state FROM weaver_artifacts a
CROSS JOIN weaver_blobs b ON b.namespace = a.namespace AND b.blob_id = a.blob_id
WHERE a.namespace = ?1 AND a.task_id > ?2 AND a.task_id <= ?3`
	sqlScanNeeded = `SELECT ` + neededColumns.List() + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

	sqlScanJobs   = `SELECT ` + jobColumns.List() + ` FROM weaver_jobs WHERE namespace = ?1 AND job_id > ?2 ORDER BY job_id LIMIT ?3`
	sqlScanJobSum = `
SELECT ` + summandColumns.List() + ` FROM weaver_tasks INDEXED BY weaver_tasks_by_job
WHERE namespace = ?1 AND job_id IS NOT NULL AND job_id > ?2 AND job_id <= ?3`

	sqlScanKeys    = `SELECT ` + keyColumns.List() + ` FROM weaver_conc_keys WHERE namespace = ?1 AND key > ?2 ORDER BY key LIMIT ?3`
	sqlScanUndoing = `
SELECT ` + undoingColumns.List() + ` FROM weaver_tasks INDEXED BY weaver_tasks_undoing
WHERE namespace = ?1 AND undo IS NOT NULL AND concurrency_key IS NOT NULL AND concurrency_key > ?2 AND state = 'pending'`
	sqlScanWaitedFor = `SELECT key FROM weaver_conc_waiters WHERE namespace = ?1 AND key > ?2 ORDER BY key LIMIT 1`
	sqlScanWaitersOf = `
SELECT ` + waiterColumns.List() + ` FROM weaver_conc_waiters WHERE namespace = ?1 AND key = ?2 ORDER BY due_at, task_id`
	sqlScanDueOf = `
SELECT ` + dispatchColumns.List() + ` FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_key
WHERE namespace = ?1 AND concurrency_key = ?2 AND available_at <= ?3`
)

// summandColumns are the columns of a task that its job counts.
var summandColumns = sqlstmt.Columns[task.Task]{
	sqlstmt.Col("task_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.ID = r.ID(i) }),
	sqlstmt.Col("job_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.JobID = r.ID(i) }),
	sqlstmt.Col("state", func(t *task.Task, r *sqlstmt.Row, i int) { t.State = task.State(r.Name(i)) }),
	sqlstmt.Col("waiting_reason", func(t *task.Task, r *sqlstmt.Row, i int) { t.Waiting = task.Waiting(r.Name(i)) }),
	sqlstmt.Col("join_kind", func(t *task.Task, r *sqlstmt.Row, i int) { t.Join = task.Join(r.Name(i)) }),
	sqlstmt.Col("ready_at", func(t *task.Task, r *sqlstmt.Row, i int) { t.ReadyAt = r.Time(i) }),
	errorKindColumn,
	mayFailColumn,
}

// undoingColumns are the columns that decide whether a task holds its key while it is undone.
var undoingColumns = sqlstmt.Columns[task.Task]{
	sqlstmt.Col("task_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.ID = r.ID(i) }),
	sqlstmt.Col("state", func(t *task.Task, r *sqlstmt.Row, i int) { t.State = task.State(r.Name(i)) }),
	sqlstmt.Col("concurrency_key", func(t *task.Task, r *sqlstmt.Row, i int) { t.ConcurrencyKey = r.Text(i) }),
	sqlstmt.Col("undo", func(t *task.Task, r *sqlstmt.Row, i int) { t.Undo = r.Phase(i) }),
}

// neededColumns are the columns of a task that its dependents read.
var neededColumns = sqlstmt.Columns[task.Task]{
	sqlstmt.Col("task_id", func(t *task.Task, r *sqlstmt.Row, i int) { t.ID = r.ID(i) }),
	sqlstmt.Col("state", func(t *task.Task, r *sqlstmt.Row, i int) { t.State = task.State(r.Name(i)) }),
	errorKindColumn,
	mayFailColumn,
}

var (
	errorKindColumn = sqlstmt.Col("last_error_kind", func(t *task.Task, r *sqlstmt.Row, i int) {
		if kind := r.Name(i); kind != "" {
			t.Error = &task.Error{Kind: task.ErrorKind(kind)}
		}
	})
	mayFailColumn = sqlstmt.Col("allow_failure", func(t *task.Task, r *sqlstmt.Row, i int) { t.AllowFailure = r.Bool(i) })
)

// Scan implements store.Data with one read transaction for each part.
func (s *Store) Scan(ctx context.Context, ns string, fn func(*store.Part) error) error {
	ids := func(of store.PartOf, read func(v *View, p *store.Part, after []byte) (last []byte, err error)) error {
		return scanParts(ctx, s, ns, of, []byte{}, read, fn)
	}
	if err := ids(store.PartOfTasks, s.scanTasks); err != nil {
		return err
	}
	if err := ids(store.PartOfJobs, s.scanJobs); err != nil {
		return err
	}
	return scanParts(ctx, s, ns, store.PartOfKeys, "", s.scanKeys, fn)
}

// scanParts reads the parts of one kind and calls fn with each. read fills a part with the
// rows behind after, and returns the position of its last row, or the zero value at the end.
func scanParts[K string | []byte](ctx context.Context, s *Store, ns string, of store.PartOf, after K, read func(v *View, p *store.Part, after K) (K, error), fn func(*store.Part) error) error {
	for {
		var p *store.Part
		var last K
		err := s.read(ctx, ns, func(v *View) (err error) {
			p = &store.Part{Of: of, Snapshot: new(store.Snapshot)}
			if p.Generation, err = v.generation(); err != nil {
				return err
			}
			p.Now = v.now() // as in a snapshot: after the first read
			if p.Chores, err = v.chores(); err != nil {
				return err
			}
			last, err = read(v, p, after)
			return err
		})
		if err != nil {
			return err
		}
		if err := fn(p); err != nil {
			return err
		}
		if len(last) == 0 {
			return nil
		}
		after = last
	}
}

// scanTasks reads tasks, and the rows of all tables between the first and the last of them.
// This includes rows of tasks that do not exist.
func (s *Store) scanTasks(v *View, p *store.Part, after []byte) (last []byte, err error) {
	if err := v.snapTasks(p.Snapshot, v.stmt(sqlScanTasks).Text(1, v.ns).Blob(2, after).Int(3, int64(s.Page))); err != nil {
		return nil, err
	}
	end := newest
	if n := len(p.Tasks); n == s.Page {
		last = slices.Clone(p.Tasks[n-1].ID[:])
		end = last
	}
	between := func(sql string) *sqlstmt.Stmt { return v.stmt(sql).Text(1, v.ns).Blob(2, after).Blob(3, end) }
	for _, read := range []func() error{
		func() (err error) { p.Edges, err = edgeColumns.All(between(sqlScanEdges)); return err },
		func() (err error) { p.Attempts, err = attemptColumns.All(between(sqlScanAttempts)); return err },
		func() (err error) { p.Decisions, err = decisionColumns.All(between(sqlScanDecisions)); return err },
		func() (err error) { p.Steps, err = stepColumns.All(between(sqlScanSteps)); return err },
		func() (err error) { p.Signals, err = signalColumns.All(between(sqlScanSignals)); return err },
		func() (err error) { p.Checkpoints, err = checkpointColumns.All(between(sqlScanCheckpts)); return err },
		func() (err error) { p.Dispatch, err = dispatchColumns.All(between(sqlScanDispatch)); return err },
		func() (err error) { p.Waiters, err = waiterColumns.All(between(sqlScanWaiters)); return err },
		func() (err error) { p.PausedTasks, err = pausedTaskColumns.All(between(sqlScanPaused)); return err },
		func() (err error) { p.Artifacts, err = scanArtifacts(between(sqlScanArtifacts)); return err },
		func() (err error) { p.Blobs, err = scanReferred(between(sqlScanReferred)); return err },
		func() error { return v.scanNeeded(p) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// scanArtifacts reads artifacts, by task and ID.
func scanArtifacts(st *sqlstmt.Stmt) ([]task.Artifact, error) {
	all, err := artifactColumns.All(st)
	slices.SortFunc(all, func(a, b task.Artifact) int { return cmp.Or(a.TaskID.Compare(b.TaskID), a.ID.Compare(b.ID)) })
	return all, err
}

// scanReferred reads the blobs that tasks refer to, without duplicates.
func scanReferred(st *sqlstmt.Stmt) ([]store.BlobRow, error) {
	all, err := blobColumns.All(st)
	slices.SortFunc(all, func(a, b store.BlobRow) int { return a.ID.Compare(b.ID) })
	return slices.CompactFunc(all, func(a, b store.BlobRow) bool { return a.ID == b.ID }), err
}

// scanNeeded reads the ends of the tasks named by the part's edges.
func (v *View) scanNeeded(p *store.Part) error {
	known := make(map[task.ID]bool, len(p.Tasks))
	for i := range p.Tasks {
		known[p.Tasks[i].ID] = true
	}
	for i := range p.Edges {
		id := p.Edges[i].Needs
		if known[id] {
			continue
		}
		known[id] = true
		t, err := neededColumns.One(v.stmt(sqlScanNeeded).Text(1, v.ns).ID(2, &id))
		if err != nil {
			return err
		}
		if t != nil {
			p.Needed = append(p.Needed, *t)
		}
	}
	return nil
}

// scanJobs reads jobs with the sums of their tasks. It also sums tasks of jobs that do not
// exist.
func (s *Store) scanJobs(v *View, p *store.Part, after []byte) (last []byte, err error) {
	p.Jobs, err = jobColumns.All(v.stmt(sqlScanJobs).Text(1, v.ns).Blob(2, after).Int(3, int64(s.Page)))
	if err != nil {
		return nil, err
	}
	end := newest
	if n := len(p.Jobs); n == s.Page {
		last = slices.Clone(p.Jobs[n-1].ID[:])
		end = last
	}
	// A job may have more tasks than fit into memory.
	p.Sums = make(map[task.ID]task.JobCounters, len(p.Jobs))
	for i := range p.Jobs {
		p.Sums[p.Jobs[i].ID] = task.JobCounters{}
	}
	st := v.stmt(sqlScanJobSum).Text(1, v.ns).Blob(2, after).Blob(3, end)
	for st.Next() {
		var t task.Task
		summandColumns.Scan(st.Row(), 0, &t)
		sum, known := p.Sums[t.JobID]
		if !known {
			p.Tasks = append(p.Tasks, t)
			continue
		}
		p.Sums[t.JobID] = sum.Add(task.Count(t.End(), t.Waiting, t.Join, !t.ReadyAt.IsZero()))
	}
	return last, st.Done()
}

// scanKeys reads keys: keys with a row, keys with waiters, and keys of running tasks.
func (s *Store) scanKeys(v *View, p *store.Part, after string) (last string, err error) {
	limit := s.Page
	if p.Keys, err = keyColumns.All(v.stmt(sqlScanKeys).Text(1, v.ns).Text(2, after).Int(3, int64(limit))); err != nil {
		return "", err
	}
	names := make([]string, len(p.Keys))
	for i := range p.Keys {
		names[i] = p.Keys[i].Key
	}
	waited, err := v.keysWaitedFor(after, limit)
	if err != nil {
		return "", err
	}
	if p.Tasks, err = v.holdingKeys(after); err != nil {
		return "", err
	}
	names = append(names, waited...)
	slices.Sort(names)
	if names = slices.Compact(names); len(names) >= limit {
		names = names[:limit]
		last = names[limit-1]
	}
	beyond := func(key string) bool { return last != "" && key > last }
	p.Keys = slices.DeleteFunc(p.Keys, func(k store.KeyRow) bool { return beyond(k.Key) })
	p.Tasks = slices.DeleteFunc(p.Tasks, func(t task.Task) bool { return beyond(t.ConcurrencyKey) })
	for _, key := range names {
		waiters, err := waiterColumns.All(v.stmt(sqlScanWaitersOf).Text(1, v.ns).Text(2, key))
		if err != nil {
			return "", err
		}
		due, err := dispatchColumns.All(v.stmt(sqlScanDueOf).Text(1, v.ns).Text(2, key).Time(3, p.Now))
		if err != nil {
			return "", err
		}
		p.Waiters, p.Dispatch = append(p.Waiters, waiters...), append(p.Dispatch, due...)
	}
	p.Paused, p.PausedTypes, err = v.paused()
	return last, err
}

// keysWaitedFor returns up to limit keys with waiters. It seeks from key to key, because each
// may have any number of waiters.
func (v *View) keysWaitedFor(after string, limit int) (keys []string, err error) {
	for len(keys) < limit {
		st := v.stmt(sqlScanWaitedFor).Text(1, v.ns).Text(2, after)
		found := st.One()
		if found {
			after = st.ColText(0)
			keys = append(keys, after)
		}
		if err := st.Done(); err != nil || !found {
			return keys, err
		}
	}
	return keys, nil
}

// holdingKeys returns the tasks that hold keys after the given key, running or while they are
// undone.
func (v *View) holdingKeys(after string) ([]task.Task, error) {
	list, err := v.runningWithKeys(after)
	if err != nil {
		return nil, err
	}
	undoing, err := undoingColumns.All(v.stmt(sqlScanUndoing).Text(1, v.ns).Text(2, after))
	return append(list, undoing...), err
}

// runningWithKeys returns the running tasks with keys after the given key.
func (v *View) runningWithKeys(after string) (list []task.Task, err error) {
	ids, err := v.running()
	for i := 0; i < len(ids) && err == nil; i++ {
		st := v.stmt(sqlKeyOf).Text(1, v.ns).ID(2, &ids[i])
		if st.One() {
			if key := st.ColText(0); key > after {
				list = append(list, task.Task{ID: ids[i], State: task.Running, ConcurrencyKey: key})
			}
		}
		err = st.Done()
	}
	return list, err
}
