package sqlstore

import (
	"cmp"
	"context"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Collect implements store.Ops. It searches with a reader and asks the writer only if
// something is due. The writer then checks each candidate again.
func (s *Store) Collect(ctx context.Context, ns string, req store.CollectRequest) (store.CollectResult, error) {
	switch {
	case req.Blobs != nil:
		return s.collectBlobs(ctx, ns, req.Blobs)
	case req.Expiries:
		return s.collectExpiries(ctx, ns)
	case req.Feed:
		more, err := s.pruneFeed(ctx, ns)
		return store.CollectResult{More: more}, err
	case req.Stats != nil:
		return s.collectStats(ctx, ns, req.Stats.Keep)
	}
	at, err := rules.ParseCollectCursor(req.After)
	if err != nil {
		return store.CollectResult{}, err
	}
	if at.Stage == rules.CollectSpace {
		return s.giveBack(ctx, &req, at)
	}
	var list []retained
	behind := at
	err = s.read(ctx, ns, func(v *View) (err error) {
		list, behind, err = v.collectable(&req, at)
		return err
	})
	res := store.CollectResult{Next: behind.String()}
	if err != nil || len(list) == 0 {
		return res, err
	}
	err = s.write(ctx, ns, Heavy, func(t *Tx) error {
		res = store.CollectResult{Next: behind.String()}
		limit := rules.CollectLimit(req.Limit)
		c := collecting{eraser: eraser{Tx: t, room: limit + rules.MaxMoves}, req: &req, res: &res}
		run := func() error { return c.run(at, list) }
		if !req.DryRun {
			err := run()
			t.fx.Notice.Changed = rules.CollectChanges(&req, &res)
			return err
		}
		return t.undoable(func() error { return cmp.Or(run(), errUndo) }, nil)
	})
	return res, err
}

// retained is a candidate for removal: a task or a job.
type retained struct {
	id      task.ID
	of      rules.Retained
	job     task.ID
	dropped bool
	forgot  bool
	labels  map[string]string // read on demand
}

var (
	sqlCollectJobs = `
SELECT ` + retainedJobColumns.List() + ` FROM weaver_jobs WHERE namespace = ?1 AND job_id > ?2 AND job_id < ?3 ORDER BY job_id LIMIT ?4`
	sqlCollectTasks = `
SELECT ` + retainedTaskColumns.List() + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id > ?2 AND task_id < ?3 ORDER BY task_id LIMIT ?4`
	sqlRetainedTask = `SELECT ` + retainedTaskColumns.List() + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
)

var (
	retainedJobColumns = sqlstmt.Columns[retained]{
		sqlstmt.Col("job_id", func(c *retained, r *sqlstmt.Row, i int) { c.id = r.ID(i) }),
		sqlstmt.Col("state", func(c *retained, r *sqlstmt.Row, i int) { c.of.State = task.State(r.Name(i)) }),
		sqlstmt.Col("finished_at", func(c *retained, r *sqlstmt.Row, i int) { c.of.At = r.Time(i) }),
	}
	retainedTaskColumns = sqlstmt.Columns[retained]{
		sqlstmt.Col("task_id", func(c *retained, r *sqlstmt.Row, i int) { c.id = r.ID(i) }),
		sqlstmt.Col("task_type", func(c *retained, r *sqlstmt.Row, i int) { c.of.Type = r.Name(i) }),
		sqlstmt.Col("state", func(c *retained, r *sqlstmt.Row, i int) { c.of.State = task.State(r.Name(i)) }),
		sqlstmt.Col("finished_at", func(c *retained, r *sqlstmt.Row, i int) { c.of.At = r.Time(i) }),
		sqlstmt.Col("job_id", func(c *retained, r *sqlstmt.Row, i int) { c.job = r.ID(i) }),
		sqlstmt.Col("undo", func(c *retained, r *sqlstmt.Row, i int) { c.of.Stands = r.Phase(i).Stands() }),
		sqlstmt.Col("values_dropped", func(c *retained, r *sqlstmt.Row, i int) { c.dropped, c.forgot = r.Bool(i), r.Int(i) == forgottenValues }),
	}
)

// collectable reads the next tasks or jobs of a stage. It returns the removable ones, and the
// cursor behind all rows read.
func (v *View) collectable(req *store.CollectRequest, at rules.CollectCursor) (list []retained, behind rules.CollectCursor, err error) {
	now := v.now()
	young, some := rules.Young(req.Retain, now)
	if !some {
		return nil, at.NextStage(), nil
	}
	sql, columns := sqlCollectTasks, retainedTaskColumns
	if at.Stage == rules.CollectJobs {
		sql, columns = sqlCollectJobs, retainedJobColumns
	}
	before := rules.FirstID(young)
	all, err := columns.All(v.stmt(sql).Text(1, v.ns).ID(2, &at.ID).ID(3, &before).Int(4, rules.CollectLooks))
	for i := range all {
		if c := &all[i]; c.goes(req, now) || c.drops(req, now) {
			list = append(list, *c)
		}
	}
	if behind = at.NextStage(); len(all) == rules.CollectLooks {
		behind = rules.CollectCursor{Stage: at.Stage, ID: all[len(all)-1].id}
	}
	return list, behind, err
}

// goes reports whether the rules remove a job, or a task outside jobs.
func (c *retained) goes(req *store.CollectRequest, now time.Time) bool {
	return c.job.IsZero() && rules.Goes(req.Retain, &c.of, now)
}

// drops reports whether the rules drop the values of a task.
func (c *retained) drops(req *store.CollectRequest, now time.Time) bool {
	return c.of.Type != "" && !c.dropped && rules.DropsValues(req.Retain, &c.of, now)
}

// collecting is one bite.
type collecting struct {
	eraser
	req *store.CollectRequest
	res *store.CollectResult

	of     *records // of the next tasks
	looked int      // number of these tasks
}

// run checks each candidate again and removes it if it is due, until the bite is full. Crash
// after the commit: chores finish begun removals, and the next bite continues with the rest.
func (c *collecting) run(at rules.CollectCursor, list []retained) error {
	defer func() { c.res.Gone = c.gone }()
	next := c.nextTasks
	if at.Stage == rules.CollectJobs {
		next = func(list []retained) (int, error) { return 1, c.oneJob(&list[0].id) }
	}
	for len(list) > 0 {
		if c.room <= rules.MaxMoves {
			c.res.Next = at.String()
			return nil
		}
		n, err := next(list)
		if err != nil {
			return err
		}
		at.ID = list[n-1].id
		list = list[n:]
	}
	return nil
}

func (c *collecting) oneJob(id *task.ID) error {
	j, err := c.Tx.job(id)
	if err != nil || j == nil {
		return err
	}
	of := rules.Retained{State: task.State(j.State), At: j.FinishedAt}
	if !rules.Goes(c.req.Retain, &of, c.at) {
		return nil
	}
	leaving, err := c.leaving(&task.ID{}, id)
	if err != nil || leaving {
		return err
	}
	if refused, err := c.checkDeleteJob(j); err != nil || refused != nil {
		return err
	}
	c.res.Jobs++
	return c.job(id)
}

func (c *collecting) one(id *task.ID) error {
	if _, err := c.db.Tasks(c.Tx, *id); err != nil {
		return err
	}
	r, err := retainedTaskColumns.One(c.stmt(sqlRetainedTask).Text(1, c.ns).ID(2, id))
	if err != nil || r == nil {
		return err
	}
	if r.goes(c.req, c.at) {
		goes, err := c.removable(id)
		if err != nil {
			return err
		}
		if goes {
			before := len(c.gone)
			err := c.task(id)
			c.res.Tasks += len(c.gone) - before
			return err
		}
	}
	if !r.drops(c.req, c.at) {
		return nil
	}
	leaving, err := c.leaving(id, &r.job)
	if err != nil || leaving {
		return err
	}
	if last, err := c.readsNoMore(r); err != nil || !last {
		return err
	}
	c.res.Dropped++
	return c.dropValues(id)
}

// sqlReaders reads the states of a limited number of dependents of a task.
const sqlReaders = `
SELECT coalesce((SELECT CASE WHEN u.state = 'succeeded' THEN 1 ELSE 0 END FROM weaver_tasks u WHERE u.namespace = d.namespace AND u.task_id = d.task_id), 1)
FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need
WHERE d.namespace = ?1 AND d.depends_on_task_id = ?2 LIMIT ?3`

// readsNoMore reports whether no task that may run again reads the values of a task.
func (c *collecting) readsNoMore(r *retained) (bool, error) {
	if !r.job.IsZero() {
		j, err := c.Tx.job(&r.job)
		if err != nil || j == nil {
			return false, err
		}
		refused, err := c.checkDeleteJob(j)
		of := r.of
		of.At = j.FinishedAt
		return refused == nil && !rules.JobMayRead(j) && rules.DropsValues(c.req.Retain, &of, c.at), err
	}
	looked, ended := 0, true
	st := c.stmt(sqlReaders).Text(1, c.ns).ID(2, &r.id).Int(3, rules.CollectDependents+1)
	for st.Next() {
		looked++
		ended = ended && st.ColBool(0)
	}
	if err := st.Done(); err != nil || !ended || looked > rules.CollectDependents {
		return false, err
	}
	open, err := c.ancestor(&r.id, sqlParentRuns)
	return !open, err
}

const (
	sqlDropTask = `
UPDATE weaver_tasks SET input = NULL, output = NULL, progress = NULL, has_payloads = 0, values_dropped = 1 WHERE namespace = ?1 AND task_id = ?2`
	sqlDropPayloads = `DELETE FROM weaver_payloads WHERE namespace = ?1 AND task_id = ?2`
	sqlPayloadSeqs  = `
SELECT seq FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 AND seq > 0 AND payload <> '' ORDER BY seq LIMIT ?3`
	sqlDropPayload = `UPDATE weaver_signals SET payload = '' WHERE namespace = ?1 AND task_id = ?2 AND seq = ?3`
	sqlValueKeys   = `SELECT name, attempt_no, try FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND value IS NOT NULL LIMIT ?3`
	sqlDropValue   = `UPDATE weaver_steps SET value = NULL WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = ?4 AND try = ?5`
)

// dropValues removes the input and the results of a task, or begins to and leaves the rest to
// a chore.
func (e *eraser) dropValues(id *task.ID) error {
	for _, sql := range []string{sqlDropTask, sqlDropPayloads} {
		if err := e.stmt(sql).Text(1, e.ns).ID(2, id).Run(); err != nil {
			return err
		}
		e.room--
	}
	done, err := e.dropRows(id)
	if err != nil || done {
		return err
	}
	return e.putChore(&chore{kind: store.ChoreDropValues, id: *id})
}

// dropRows removes the values of the signals and steps of a task, its references to the blobs
// of values, its checkpoints, and its events, which contain values too. Its artifacts stay.
func (e *eraser) dropRows(id *task.ID) (done bool, err error) {
	if e.room <= 0 {
		return false, nil
	}
	var seqs []int64
	st := e.stmt(sqlPayloadSeqs).Text(1, e.ns).ID(2, id).Int(3, int64(e.room))
	for st.Next() {
		seqs = append(seqs, st.ColInt(0))
	}
	err = st.Done()
	for i := 0; i < len(seqs) && err == nil; i++ {
		err = e.stmt(sqlDropPayload).Text(1, e.ns).ID(2, id).Int(3, seqs[i]).Run()
	}
	if e.room -= len(seqs); err != nil || e.room <= 0 {
		return false, err
	}
	if err = e.eachStep(id, sqlValueKeys, sqlDropValue, e.room); err != nil || e.room <= 0 {
		return false, err
	}
	if err = e.forgetSome(id, sqlValueRefKeys, e.room); err != nil || e.room <= 0 {
		return false, err
	}
	for _, sql := range []string{sqlEraseCheckpts, sqlEraseEvents, sqlEraseLogs} {
		n, err := e.stmt(sql).Text(1, e.ns).ID(2, id).Int(3, int64(e.room)).Exec()
		if e.room -= n; err != nil || e.room <= 0 {
			return false, err
		}
	}
	return true, nil
}

// giveBack returns space freed by collections to the file system.
func (s *Store) giveBack(ctx context.Context, req *store.CollectRequest, at rules.CollectCursor) (res store.CollectResult, err error) {
	if req.DryRun {
		return res, nil
	}
	freed, more, err := s.db.GiveBack(ctx)
	if err != nil {
		return res, err
	}
	if res.Freed = freed; more {
		res.Next = at.String()
	}
	return res, nil
}
