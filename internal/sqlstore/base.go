package sqlstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/task"
)

// A job names the jobs that it is based on in based_on. weaver_job_bases has the same
// by base, so that a removal finds the later jobs.

const (
	sqlInsertBase = `INSERT INTO weaver_job_bases (namespace, base, job_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING`
	// An older program removes a job and leaves its rows here.
	sqlIsBase = `
SELECT 1 FROM weaver_job_bases b CROSS JOIN weaver_jobs j ON j.namespace = b.namespace AND j.job_id = b.job_id
WHERE b.namespace = ?1 AND b.base = ?2 LIMIT 1`
	sqlBasesOf   = `SELECT based_on FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2 AND based_on IS NOT NULL`
	sqlEraseBase = `DELETE FROM weaver_job_bases WHERE namespace = ?1 AND base = ?2 AND job_id = ?3`
)

// lockBases locks the jobs that a new one is based on, so that none is removed before
// it is stored. missing is [store.ErrNotFound] for one that does not exist or is being
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

// insertBases stores what a new job is based on.
func (t *Tx) insertBases(j *task.NewJob) error {
	for _, id := range j.BasedOn {
		if err := t.stmt(sqlInsertBase).Text(1, t.ns).Text(2, id.String()).ID(3, &j.ID).Run(); err != nil {
			return err
		}
	}
	return nil
}

// isBase reports whether a job exists that is based on a job.
func (t *Tx) isBase(id *task.ID) (bool, error) {
	st := t.stmt(sqlIsBase).Text(1, t.ns).Text(2, id.String())
	found := st.One()
	return found, st.Done()
}

// eraseBases removes the references of a job that goes to those it was based on.
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
