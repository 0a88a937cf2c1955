package sqlstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// A job lists its bases in based_on. weaver_job_bases is the index by base, so that a removal
// finds the later jobs.

const (
	sqlInsertBase = `INSERT INTO weaver_job_bases (namespace, base, job_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	// A job removed by an older program leaves its rows here.
	sqlIsBase = `
SELECT 1 FROM weaver_job_bases b CROSS JOIN weaver_jobs j ON j.namespace = b.namespace AND j.job_id = b.job_id
WHERE b.namespace = ?1 AND b.base = ?2 LIMIT 1`
	sqlBasesOf   = `SELECT based_on FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2 AND based_on IS NOT NULL`
	sqlEraseBase = `DELETE FROM weaver_job_bases WHERE namespace = ?1 AND base = ?2 AND job_id = ?3`
)

// lockBases locks the jobs that a new job is based on, so that none is removed before the new
// job is stored. missing is [store.ErrNotFound] for a base that does not exist or is being
// removed.
func (t *Tx) lockBases(j *task.NewJob) (missing, err error) {
	for _, id := range slices.SortedFunc(slices.Values(j.BasedOn), task.ID.Compare) {
		base, err := t.job(&id)
		if err != nil {
			return nil, err
		}
		leaving, err := t.leaving(&task.ID{}, &id)
		if err != nil {
			return nil, err
		}
		if base == nil || leaving {
			return rules.JobNotFound(id), nil
		}
	}
	return nil, nil
}

// insertBases stores the bases of a new job.
func (t *Tx) insertBases(j *task.NewJob) error {
	for _, id := range j.BasedOn {
		if err := t.stmt(sqlInsertBase).Text(1, t.ns).Text(2, id.String()).ID(3, &j.ID).Run(); err != nil {
			return err
		}
	}
	return nil
}

// isBase reports whether any job is based on a job.
func (t *Tx) isBase(id *task.ID) (bool, error) {
	st := t.stmt(sqlIsBase).Text(1, t.ns).Text(2, id.String())
	found := st.One()
	return found, st.Done()
}

// eraseBases removes the references of a deleted job to its bases.
func (e *eraser) eraseBases(id *task.ID) error {
	var bases []task.ID
	st := e.stmt(sqlBasesOf).Text(1, e.ns).ID(2, id)
	if st.One() {
		st.Row().JSON(0, &bases)
	}
	if err := st.Done(); err != nil {
		return err
	}
	for _, base := range bases {
		if err := e.stmt(sqlEraseBase).Text(1, e.ns).Text(2, base.String()).ID(3, id).Run(); err != nil {
			return err
		}
		e.room--
	}
	return nil
}

const (
	// A child has one parent. The undo of a parent reads the results of its children, and each
	// child those of its own children.
	sqlParentRuns = `
SELECT d.task_id, CASE WHEN u.state = 'succeeded' THEN 0 ELSE 1 END` + sqlFromParent
	sqlParentOpen = `
SELECT d.task_id, CASE WHEN u.finished_at IS NULL THEN 1 ELSE 0 END` + sqlFromParent
	sqlFromParent = `
FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need
CROSS JOIN weaver_tasks u ON u.namespace = d.namespace AND u.task_id = d.task_id
WHERE d.namespace = ?1 AND d.depends_on_task_id = ?2 AND d.kind = 'done' AND d.awaited > 0 LIMIT 1`

	sqlJobOpen = `
SELECT 1 FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2 AND finished_at IS NULL
UNION ALL
SELECT 1 FROM weaver_job_bases b CROSS JOIN weaver_jobs j ON j.namespace = b.namespace AND j.job_id = b.job_id
WHERE b.namespace = ?1 AND b.base = ?3 AND j.finished_at IS NULL LIMIT 1`
	sqlReaderOpen = `
SELECT CASE WHEN u.finished_at IS NULL THEN 1 ELSE 0 END
FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_by_need
CROSS JOIN weaver_tasks u ON u.namespace = d.namespace AND u.task_id = d.task_id
WHERE d.namespace = ?1 AND d.depends_on_task_id = ?2 LIMIT ?3`
)

// ancestor reports whether a parent of a task, on any level, satisfies sql ([sqlParentRuns],
// [sqlParentOpen]).
func (t *Tx) ancestor(id *task.ID, sql string) (bool, error) {
	for at := *id; ; {
		st := t.stmt(sql).Text(1, t.ns).ID(2, &at)
		some, found := st.One(), false
		if some {
			at, found = st.ColID(0), st.ColBool(1)
		}
		if err := st.Done(); err != nil || !some || found {
			return found, err
		}
	}
}

// mayRead reports whether an unfinished task may read the artifacts of an ended task. Readers
// are the tasks of its job, tasks of jobs based on that job, its dependents, and its parents
// on every level. job is zero for a task outside jobs.
func (t *Tx) mayRead(id, job *task.ID) (open bool, err error) {
	if !job.IsZero() {
		st := t.stmt(sqlJobOpen).Text(1, t.ns).ID(2, job).Text(3, job.String())
		open = st.One()
		if err := st.Done(); err != nil || open {
			return open, err
		}
	}
	st := t.stmt(sqlReaderOpen).Text(1, t.ns).ID(2, id).Int(3, rules.CollectDependents+1)
	looked := 0
	for st.Next() {
		looked++
		open = open || st.ColBool(0)
	}
	open = open || looked > rules.CollectDependents
	if err := st.Done(); err != nil || open {
		return open, err
	}
	return t.ancestor(id, sqlParentOpen)
}
