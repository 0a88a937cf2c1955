package sqlstore

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// The tasks of a job in one group are equal except for their due times. The earliest counts.
const sqlCountTasksOfJob = `
SELECT t.state, t.waiting_reason, t.queue, t.task_type, w.due_at IS NOT NULL, o.available_at IS NOT NULL, CASE WHEN o.available_at <= ?3 THEN 1 ELSE 0 END, k.due_at IS NOT NULL,
  CASE WHEN k.task_id IS NOT NULL THEN 'task' WHEN y.task_type IS NOT NULL THEN 'type' WHEN q.queue IS NOT NULL THEN 'queue' END,
  count(*), min(coalesce(w.due_at, k.due_at, o.available_at, t.ready_at))
FROM weaver_tasks t INDEXED BY weaver_tasks_by_job
LEFT JOIN weaver_outbox_events o ON o.namespace = t.namespace AND o.task_id = t.task_id
LEFT JOIN weaver_conc_waiters w INDEXED BY weaver_conc_waiters_by_task ON w.namespace = t.namespace AND w.task_id = t.task_id
LEFT JOIN weaver_paused_tasks k ON k.namespace = t.namespace AND k.task_id = t.task_id
LEFT JOIN weaver_paused_types y ON y.namespace = t.namespace AND y.task_type = t.task_type
LEFT JOIN weaver_paused_queues q ON q.namespace = t.namespace AND q.queue = t.queue
WHERE t.namespace = ?1 AND t.job_id = ?2
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`

// countJob counts the tasks of a job as they read.
func (v *View) countJob(job task.ID) (counts store.JobCounts, err error) {
	now := store.Now()
	st := v.stmt(sqlCountTasksOfJob).Text(1, v.ns).ID(2, &job).Int(3, now.UnixMicro())
	for st.Next() {
		t := task.Task{State: task.State(st.ColName(0)), Waiting: task.Waiting(st.ColName(1)), Queue: st.ColText(2), Type: st.ColText(3)}
		first := st.ColTime(10)
		stands := store.Availability{Pause: task.PauseKind(st.ColName(8))}
		switch {
		case st.ColInt(4) != 0:
			stands.Waiter = first
		case st.ColInt(7) != 0:
			stands.Parked = first
		case st.ColInt(5) != 0:
			stands.Dispatch = first
		default:
			t.ReadyAt = first
		}
		store.Derive(&t, stands, now)
		counts.Add(&t, int(st.ColInt(9)))
	}
	counts.Sort()
	return counts, st.Done()
}
