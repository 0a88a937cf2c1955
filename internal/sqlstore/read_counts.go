package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// A dispatch row stands for a task that is ready, or pending until later or
	// while its queue or type is paused.
	sqlCountDispatched = `
SELECT count(*) FILTER (WHERE o.available_at <= ?2 AND q.queue IS NULL AND p.task_type IS NULL), count(*) FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane
LEFT JOIN weaver_paused_queues q ON q.namespace = o.namespace AND q.queue = o.queue
LEFT JOIN weaver_paused_types p ON p.namespace = o.namespace AND p.task_type = o.task_type
WHERE o.namespace = ?1`

	sqlCountParked = `SELECT count(*) FROM weaver_paused_tasks WHERE namespace = ?1 AND due_at IS NOT NULL`

	sqlCountWaiters = `SELECT count(*) FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task WHERE namespace = ?1`

	// A cancelled task may have open needs as well, and so may one that waits for
	// something else since a failure started it.
	sqlCountNeedy = `
SELECT count(DISTINCT d.task_id) FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_open
CROSS JOIN weaver_tasks t ON t.namespace = d.namespace AND t.task_id = d.task_id
WHERE d.namespace = ?1 AND d.done = 0 AND t.state = 'pending' AND (t.waiting_reason = 'deps' OR t.waiting_reason IN ('children', 'repair') AND t.join_kind IS NOT NULL)`

	// What is suspended without a time has a wait, and no dispatch row.
	sqlCountSuspended = `
SELECT count(DISTINCT s.task_id) FROM weaver_steps s INDEXED BY weaver_steps_waiting
CROSS JOIN weaver_tasks t ON t.namespace = s.namespace AND t.task_id = s.task_id
WHERE s.namespace = ?1 AND s.state = 'waiting' AND t.state = 'pending' AND t.ready_at IS NULL AND t.join_kind IS NULL
  AND (t.waiting_reason = 'signal' OR t.waiting_reason = 'children')`

	sqlCountEnded = `
SELECT count(*) FROM weaver_tasks INDEXED BY weaver_tasks_by_end
WHERE namespace = ?1 AND /*end_*/state = ?2 AND (state = 'failed' OR state = 'blocked' OR state = 'cancelled')`
)

// Counts implements store.Reader. Tasks in each state but succeeded are found
// through rows of their own: none of the statements reads a task that succeeded.
func (s *Store) Counts(ctx context.Context, ns string) (map[task.State]int, error) {
	var counts map[task.State]int
	err := s.read(ctx, ns, func(v *View) error {
		counts = make(map[task.State]int)
		st := v.stmt(sqlCountDispatched).Text(1, ns).Int(2, store.Now().UnixMicro())
		if st.One() {
			counts[task.Ready] = int(st.ColInt(0))
			counts[task.Pending] = int(st.ColInt(1) - st.ColInt(0))
		}
		if err := st.Done(); err != nil {
			return err
		}
		for _, sql := range []string{sqlCountWaiters, sqlCountNeedy, sqlCountSuspended, sqlCountParked} {
			st := v.stmt(sql).Text(1, ns)
			if st.One() {
				counts[task.Pending] += int(st.ColInt(0))
			}
			if err := st.Done(); err != nil {
				return err
			}
		}
		for _, state := range []task.State{task.Failed, task.Blocked, task.Cancelled} {
			st := v.stmt(sqlCountEnded).Text(1, ns).Text(2, string(state))
			if st.One() {
				counts[state] = int(st.ColInt(0))
			}
			if err := st.Done(); err != nil {
				return err
			}
		}
		counts[task.Running] = 0
		return v.eachRunning(func(*claimRow, int) { counts[task.Running]++ })
	})
	return counts, err
}
