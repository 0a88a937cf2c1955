package sqlstore

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Tasks are counted by the rows that define their state, at most a limit for each count. A
// statement reads one row more than the limit, which shows whether the count is complete.
const (
	sqlCountParked = `SELECT count(*), count(due_at) FROM (SELECT due_at FROM weaver_paused_tasks WHERE namespace = ?1 LIMIT ?2) p`

	sqlCountWaiters = `
SELECT count(*) FROM (SELECT 1 FROM weaver_conc_waiters INDEXED BY weaver_conc_waiters_by_task WHERE namespace = ?1 LIMIT ?2) w`

	// A cancelled task may have open needs too, and so may a task that waits for something
	// else since a failure started it. Each may have any number of them.
	sqlCountNeedy = `
WITH RECURSIVE needy(task_id) AS (
  SELECT (SELECT d.task_id FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_open WHERE d.namespace = ?1 AND d.done = 0 ORDER BY d.task_id LIMIT 1)
  UNION ALL
  SELECT (SELECT d.task_id FROM weaver_task_dependencies d INDEXED BY weaver_task_dependencies_open
    WHERE d.namespace = ?1 AND d.done = 0 AND d.task_id > n.task_id ORDER BY d.task_id LIMIT 1)
  FROM needy n WHERE n.task_id IS NOT NULL
)
SELECT count(*), count(*) FILTER (WHERE ` + WaitsForTasks + `)
FROM (SELECT task_id FROM needy WHERE task_id IS NOT NULL LIMIT ?2) n CROSS JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = n.task_id`

	// A task that is suspended without a time has a wait, and no dispatch row.
	sqlCountSuspended = `
WITH RECURSIVE waiting(task_id) AS (
  SELECT (SELECT s.task_id FROM weaver_steps s INDEXED BY weaver_steps_waiting WHERE s.namespace = ?1 AND s.state = 'waiting' ORDER BY s.task_id LIMIT 1)
  UNION ALL
  SELECT (SELECT s.task_id FROM weaver_steps s INDEXED BY weaver_steps_waiting
    WHERE s.namespace = ?1 AND s.state = 'waiting' AND s.task_id > w.task_id ORDER BY s.task_id LIMIT 1)
  FROM waiting w WHERE w.task_id IS NOT NULL
)
SELECT count(*), count(*) FILTER (WHERE t.state = 'pending' AND t.ready_at IS NULL AND t.join_kind IS NULL AND (t.waiting_reason = 'signal' OR t.waiting_reason = 'children'))
FROM (SELECT task_id FROM waiting WHERE task_id IS NOT NULL LIMIT ?2) w CROSS JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = w.task_id`

	sqlCountEnded = `
SELECT count(*) FROM (SELECT 1 FROM weaver_tasks INDEXED BY weaver_tasks_by_end
  WHERE namespace = ?1 AND /*end_*/state = ?2 AND (state = 'failed' OR state = 'blocked' OR state = 'cancelled') LIMIT ?3) t`

	// No index finds succeeded tasks: every finish would write it.
	sqlCountOldest = `
SELECT count(*), count(*) FILTER (WHERE t.state = 'succeeded') FROM (SELECT state FROM weaver_tasks WHERE namespace = ?1 ORDER BY task_id LIMIT ?2) t`

	sqlCountAll = `SELECT count(*) FROM (SELECT 1 FROM weaver_tasks INDEXED BY weaver_tasks_by_lane WHERE namespace = ?1 LIMIT ?2) t`

	sqlCountChores = `SELECT count(*) FROM (SELECT 1 FROM weaver_chores WHERE namespace = ?1 LIMIT ?2) c`

	// sqlCountLanes finds queues of types by jumping from one to the next.
	sqlCountLanes = `
WITH RECURSIVE kinds(kind) AS (
  SELECT (SELECT t.task_type FROM weaver_tasks t INDEXED BY weaver_tasks_by_lane WHERE t.namespace = ?1 ORDER BY t.task_type LIMIT 1)
  UNION ALL
  SELECT (SELECT t.task_type FROM weaver_tasks t INDEXED BY weaver_tasks_by_lane WHERE t.namespace = ?1 AND t.task_type > k.kind ORDER BY t.task_type LIMIT 1)
  FROM kinds k WHERE k.kind IS NOT NULL
), lanes(kind, queue) AS (
  SELECT k.kind, (SELECT t.queue FROM weaver_tasks t INDEXED BY weaver_tasks_by_lane WHERE t.namespace = ?1 AND t.task_type = k.kind ORDER BY t.queue LIMIT 1)
  FROM kinds k WHERE k.kind IS NOT NULL
  UNION ALL
  SELECT l.kind, (SELECT t.queue FROM weaver_tasks t INDEXED BY weaver_tasks_by_lane
    WHERE t.namespace = ?1 AND t.task_type = l.kind AND t.queue > l.queue ORDER BY t.queue LIMIT 1)
  FROM lanes l WHERE l.queue IS NOT NULL
)
SELECT l.kind, l.queue, (SELECT count(*) FROM (SELECT 1 FROM weaver_tasks t INDEXED BY weaver_tasks_by_lane
  WHERE t.namespace = ?1 AND t.task_type = l.kind AND t.queue = l.queue LIMIT ?2) d)
FROM lanes l WHERE l.queue IS NOT NULL LIMIT ?3`

	sqlCountLane = `
SELECT count(*) FROM (SELECT 1 FROM weaver_tasks INDEXED BY weaver_tasks_by_lane WHERE namespace = ?1 AND task_type = ?2 AND queue = ?3 LIMIT ?4) t`
)

// looks returns the maximum number of rows read for a count of which only some rows count.
func (r *reader) looks() int64 { return 2 * int64(r.cap) }

// counts counts the tasks.
func (r *reader) counts() (store.Counts, error) {
	c := store.Counts{States: make(map[task.State]store.Count), Types: make(map[string]store.Count), Queues: make(map[string]store.Count)}
	running := r.count(int64(r.runs.total()))
	running.More = running.More || r.runs.more
	c.States[task.Running] = running
	var ready, pending store.Count
	for i := range r.due {
		d := &r.due[i]
		if r.pausedQueues[d.queue] || r.pausedTypes[d.kind] {
			pending = pending.Plus(r.count(int64(d.due)))
		} else {
			ready = ready.Plus(r.count(int64(d.due)))
		}
		pending = pending.Plus(r.count(int64(d.later)))
	}
	ready.More, pending.More = ready.More || r.lanesCut, pending.More || r.lanesCut
	waiters, _, err := one(r.stmt(sqlCountWaiters).Text(1, r.ns).Int(2, int64(r.cap)+1))
	if err != nil {
		return c, err
	}
	pending = pending.Plus(r.count(waiters))
	for _, sql := range []string{sqlCountParked, sqlCountNeedy, sqlCountSuspended} {
		looked, n, err := one(r.stmt(sql).Text(1, r.ns).Int(2, r.looks()))
		if err != nil {
			return c, err
		}
		some := r.count(n)
		some.More = some.More || looked == r.looks()
		pending = pending.Plus(some)
	}
	c.States[task.Ready], c.States[task.Pending] = r.atMost(ready), r.atMost(pending)
	for _, state := range []task.State{task.Failed, task.Blocked, task.Cancelled} {
		n, _, err := one(r.stmt(sqlCountEnded).Text(1, r.ns).Text(2, string(state)).Int(3, int64(r.cap)+1))
		if err != nil {
			return c, err
		}
		c.States[state] = r.count(n)
	}
	if c.States[task.Succeeded], err = r.succeeded(c.States); err != nil {
		return c, err
	}
	chores, _, err := one(r.stmt(sqlCountChores).Text(1, r.ns).Int(2, int64(r.cap)+1))
	if err != nil {
		return c, err
	}
	c.Chores = r.count(chores)
	return c, r.countLanes(&c)
}

// atMost limits a sum of counts.
func (r *reader) atMost(c store.Count) store.Count {
	sum := r.count(int64(c.N))
	sum.More = sum.More || c.More
	return sum
}

// succeeded counts the succeeded tasks: among the oldest tasks, or as the remainder of all
// tasks if the other counts are complete.
func (r *reader) succeeded(others map[task.State]store.Count) (store.Count, error) {
	looked, found, err := one(r.stmt(sqlCountOldest).Text(1, r.ns).Int(2, r.looks()))
	if err != nil || looked < r.looks() || found > int64(r.cap) {
		return r.count(found), err
	}
	var sum store.Count
	n := 0
	for _, o := range others {
		sum.More = sum.More || o.More
		n += o.N
	}
	if sum.More {
		return store.Count{N: int(found), More: true}, nil
	}
	all, _, err := one(r.stmt(sqlCountAll).Text(1, r.ns).Int(2, int64(n+r.cap)+1))
	return r.count(max(all-int64(n), found)), err
}

// countLanes counts the tasks of each type and queue. It first reads a few tasks of every
// lane. Then it reads the rest of the lanes whose type or queue is not known to exceed the
// limit.
func (r *reader) countLanes(c *store.Counts) error {
	type lane struct {
		kind, queue string
		n           int64
	}
	var large []lane
	kinds, queues := make(map[string]int64), make(map[string]int64)
	little, lanes := int64(max(r.cap/10, 1)), 0
	st := r.stmt(sqlCountLanes).Text(1, r.ns).Int(2, little).Int(3, store.MaxCount+1)
	for ; st.Next(); lanes++ {
		l := lane{st.ColText(0), st.ColText(1), st.ColInt(2)}
		kinds[l.kind] += l.n
		queues[l.queue] += l.n
		if l.n == little {
			large = append(large, l)
		}
	}
	if err := st.Done(); err != nil {
		return err
	}
	for _, l := range large {
		enough := int64(r.cap) + 1 - min(kinds[l.kind], queues[l.queue]) // rows needed in addition to those counted
		if enough <= 0 {
			continue
		}
		all, _, err := one(r.stmt(sqlCountLane).Text(1, r.ns).Text(2, l.kind).Text(3, l.queue).Int(4, l.n+enough))
		if err != nil {
			return err
		}
		kinds[l.kind] += all - l.n
		queues[l.queue] += all - l.n
	}
	for name, n := range kinds {
		c.Types[name] = r.count(n)
	}
	c.More = lanes > store.MaxCount
	for name, n := range queues {
		of := r.count(n)
		of.More = of.More || c.More // it may have tasks of other types
		c.Queues[name] = of
	}
	return nil
}
