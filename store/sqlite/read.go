package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// sqlReadTask reads a task with where it stands among dispatch rows, waiters
// and pauses.
const sqlReadTask = `
SELECT ` + taskColumns + `,
  (SELECT available_at FROM weaver_outbox_events o WHERE o.namespace = ?1 AND o.task_id = ?2),
  CASE WHEN concurrency_key IS NOT NULL THEN (SELECT due_at FROM weaver_conc_waiters w WHERE w.namespace = ?1 AND w.task_id = ?2) END,
  EXISTS (SELECT 1 FROM weaver_paused_queues p WHERE p.namespace = ?1 AND p.queue = weaver_tasks.queue)
FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// readTask reads a task as readers see it at now; nil when there is none.
func (c *conn) readTask(ns string, id *task.ID, now time.Time) (*task.Task, error) {
	st := c.stmt(sqlReadTask).text(1, ns).id(2, id)
	if !st.one() {
		return nil, st.done()
	}
	t := new(task.Task)
	r := st.row()
	payloads := r.scanTask(t)
	stands := store.Availability{Dispatch: r.time(taskColumnCount), Waiter: r.time(taskColumnCount + 1), Paused: r.int(taskColumnCount+2) != 0}
	st.err = r.err
	if err := st.done(); err != nil {
		return nil, err
	}
	store.Derive(t, stands, now)
	return t, c.fetchPayloads(ns, t, payloads)
}

// readChunk is how many tasks one read transaction reads at most.
const readChunk = 1000

// Tasks implements store.Reader.
func (db *DB) Tasks(ctx context.Context, ns string, ids ...task.ID) ([]task.Task, error) {
	var list []task.Task
	for chunk := range slices.Chunk(ids, readChunk) {
		err := db.read(ctx, "read tasks", ns, func(v *view) error {
			now := store.Now()
			for i := range chunk {
				t, err := v.readTask(ns, &chunk[i], now)
				if err != nil {
					return err
				}
				if t != nil {
					list = append(list, *t)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

const sqlQueues = `
SELECT queue, sum(available_at <= ?2), sum(available_at > ?2), 0 FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_lane
WHERE namespace = ?1 GROUP BY queue
UNION ALL
SELECT queue, 0, 0, 1 FROM weaver_paused_queues WHERE namespace = ?1
ORDER BY 1`

// Queues implements store.Reader.
func (db *DB) Queues(ctx context.Context, ns string) ([]store.Queue, error) {
	var list []store.Queue
	err := db.read(ctx, "read queues", ns, func(v *view) error {
		list = nil
		st := v.stmt(sqlQueues).text(1, ns).int(2, store.Now().UnixMicro())
		for st.next() {
			name := st.colText(0)
			if len(list) == 0 || list[len(list)-1].Name != name {
				list = append(list, store.Queue{Name: name})
			}
			q := &list[len(list)-1]
			q.Due += int(st.colInt(1))
			q.Later += int(st.colInt(2))
			q.Paused = q.Paused || st.colBool(3)
		}
		return st.done()
	})
	return list, err
}

const jobColumns = `job_id, name, state, budget_json, meta, total, unfinished, movable, failed, succeeded, cancel_requested, cancel_by,
  cancel_reason, deadline_at, created_at, updated_at, finished_at`

// scanJob reads jobColumns.
func (s *stmt) scanJob() task.Job {
	j := task.Job{
		ID: s.colID(0), Name: s.colText(1), State: task.JobState(s.colName(2)), Meta: s.colMap(4),
		Counters: task.JobCounters{
			Total: int(s.colInt(5)), Unfinished: int(s.colInt(6)), Movable: int(s.colInt(7)), Failed: int(s.colInt(8)), Succeeded: int(s.colInt(9)),
		},
		CancelRequested: s.colBool(10), CancelBy: s.colText(11), CancelReason: s.colText(12),
		DeadlineAt: s.colTime(13), CreatedAt: s.colTime(14), UpdatedAt: s.colTime(15), FinishedAt: s.colTime(16),
	}
	s.colJSON(3, &j.Budget)
	return j
}

const sqlReadJob = `SELECT ` + jobColumns + ` FROM weaver_jobs WHERE namespace = ?1 AND job_id = ?2`

// Job implements store.Reader.
func (db *DB) Job(ctx context.Context, ns string, id task.ID) (task.Job, error) {
	var job *task.Job
	err := db.read(ctx, "read job", ns, func(v *view) error {
		job = nil
		st := v.stmt(sqlReadJob).text(1, ns).id(2, &id)
		if st.one() {
			job = new(st.scanJob())
		}
		return st.done()
	})
	switch {
	case err != nil:
		return task.Job{}, err
	case job == nil:
		return task.Job{}, fmt.Errorf("job %v: %w", id, store.ErrNotFound)
	}
	return *job, nil
}

const sqlJobs = `SELECT ` + jobColumns + ` FROM weaver_jobs WHERE namespace = ?1 AND job_id < ?2 ORDER BY job_id DESC LIMIT ?3`

// Jobs implements store.Reader.
func (db *DB) Jobs(ctx context.Context, ns string, f store.JobFilter) ([]task.Job, string, error) {
	before, err := cursor(f.After)
	if err != nil {
		return nil, "", err
	}
	limit := store.PageLimit(f.Limit)
	var list []task.Job
	for {
		var chunk []task.Job
		err := db.read(ctx, "list jobs", ns, func(v *view) error {
			chunk = nil
			st := v.stmt(sqlJobs).text(1, ns).blob(2, before).int(3, readChunk)
			for st.next() {
				chunk = append(chunk, st.scanJob())
			}
			return st.done()
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
		if len(chunk) < readChunk {
			return list, "", nil
		}
		before = slices.Clone(chunk[len(chunk)-1].ID[:])
	}
}

func selectsJob(f *store.JobFilter, j *task.Job) bool {
	return (f.Name == "" || f.Name == j.Name) &&
		(len(f.States) == 0 || slices.Contains(f.States, j.State))
}
