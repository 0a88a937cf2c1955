package sqlstore

import (
	"context"
	"errors"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// readChunk is the maximum number of tasks that one read transaction reads: a page, and one
// more that shows whether there is another page.
const readChunk = store.MaxLimit + 1

// Tasks implements store.Observe.
func (s *Store) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	var list []task.Task
	for chunk := range slices.Chunk(ids, readChunk) {
		err := s.read(ctx, ns, func(v *View) error {
			return v.readTasks(chunk, v.now(), func(t *task.Task) bool { list = append(list, *t); return false })
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// oneJob returns the job with an ID, if it exists.
func (s *Store) oneJob(ctx context.Context, ns string, id *task.ID) (list []task.Job, err error) {
	err = s.read(ctx, ns, func(v *View) error {
		job, err := v.job(id)
		if job == nil || err != nil {
			return err
		}
		list = []task.Job{*job}
		return v.unblock(&list[0])
	})
	return list, err
}

const sqlJobChore = `
SELECT 1 FROM weaver_chores c CROSS JOIN weaver_tasks t ON t.namespace = c.namespace AND t.task_id = c.subject
WHERE c.namespace = ?1 AND c.kind IN ('edges', 'revive') AND t.job_id = ?2 LIMIT 1`

// unblock corrects the state of a job that looks blocked while reapers propagate the end of
// one of its tasks. The tasks that wait for it will continue, or end, by themselves.
func (v *View) unblock(j *task.Job) error {
	if j.State != task.JobBlocked {
		return nil
	}
	st := v.stmt(sqlJobChore).Text(1, v.ns).ID(2, &j.ID)
	if st.One() {
		j.State = task.JobRunning
	}
	return st.Done()
}

var sqlJobs = `SELECT ` + jobColumns.List() + ` FROM weaver_jobs WHERE namespace = ?1 AND job_id < ?2 ORDER BY job_id DESC LIMIT ?3`

// Jobs implements store.Flow.
func (s *Store) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	if !f.ID.IsZero() {
		list, err := s.oneJob(ctx, ns, &f.ID)
		return list, "", err
	}
	before, err := cursor(f.After)
	if err != nil {
		return nil, "", err
	}
	limit := store.PageLimit(f.Limit)
	var list []task.Job
	for looks, n := s.Looks, limit+1; ; n *= 2 {
		n = min(n, readChunk, looks)
		var chunk []task.Job
		err := s.read(ctx, ns, func(v *View) (err error) {
			if chunk, err = jobColumns.All(v.stmt(sqlJobs).Text(1, ns).Blob(2, before).Int(3, int64(n))); err != nil {
				return err
			}
			for i := range chunk {
				err = errors.Join(err, v.unblock(&chunk[i]))
			}
			return err
		})
		if err != nil {
			return nil, "", err
		}
		for i := range chunk {
			if !selectsJob(&f, &chunk[i]) {
				continue
			}
			if len(list) == limit {
				return list, list[limit-1].ID.String(), nil
			}
			list = append(list, chunk[i])
		}
		if len(chunk) < n {
			return list, "", nil
		}
		last := chunk[n-1].ID
		if looks -= n; looks <= 0 {
			return list, last.String(), nil
		}
		before = slices.Clone(last[:])
	}
}

func selectsJob(f *store.JobFilter, j *task.Job) bool {
	return (f.Name == "" || f.Name == j.Name) &&
		(len(f.States) == 0 || slices.Contains(f.States, j.State))
}
