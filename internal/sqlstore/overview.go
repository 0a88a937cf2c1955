package sqlstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
)

// Overview implements store.Observe.
func (s *Store) Overview(ctx context.Context, ns string, req store.OverviewRequest) (store.Overview, error) {
	var got store.Overview
	err := s.read(ctx, ns, func(v *View) (err error) {
		r := reader{View: v, now: v.now(), cap: s.Counted}
		got = store.Overview{At: r.now}
		if req.Parts&store.OverviewJob != 0 {
			if got.Job, err = v.countJob(req.Job); err != nil || req.Parts == store.OverviewJob {
				return err
			}
		}
		if req.Parts&(store.OverviewCounts|store.OverviewQueues|store.OverviewWorkers) != 0 {
			if r.runs, err = r.readRuns(); err != nil {
				return err
			}
		}
		if req.Parts&(store.OverviewCounts|store.OverviewQueues|store.OverviewHints) != 0 {
			err = r.readPauses()
		}
		if err == nil && req.Parts&(store.OverviewCounts|store.OverviewQueues) != 0 {
			err = r.lanes()
		}
		if err == nil && req.Parts&store.OverviewHints != 0 {
			got.Hints, err = r.hints()
		}
		if err == nil && req.Parts&store.OverviewCounts != 0 {
			got.Counts, err = r.counts()
		}
		if err == nil && req.Parts&store.OverviewQueues != 0 {
			got.Queues = r.queues()
		}
		if err == nil && req.Parts&store.OverviewWorkers != 0 {
			got.Workers, err = s.workers(r)
		}
		if err == nil && req.Parts&store.OverviewLine != 0 {
			got.Line, err = v.line(&req.Task, r.now)
		}
		return err
	})
	if err == nil {
		got.Workers, err = s.findDead(ctx, ns, got.Workers)
	}
	return got, err
}

// reader reads an overview.
type reader struct {
	*View
	now time.Time
	cap int // limit of each count

	runs         runs
	due          []dueLane
	lanesCut     bool // there are more lanes
	queuePauses  []store.AuditEntry
	typePauses   []store.AuditEntry
	pausedQueues map[string]bool
	pausedTypes  map[string]bool
}

// count converts the result of a statement with the limit cap + 1.
func (r *reader) count(n int64) store.Count {
	return store.Count{N: min(int(n), r.cap), More: int(n) > r.cap}
}

// one runs a statement that returns one row of numbers.
func one(st *sqlstmt.Stmt) (a, b int64, err error) {
	if st.One() {
		a = st.ColInt(0)
		if st.Columns() > 1 {
			b = st.ColInt(1)
		}
	}
	return a, b, st.Done()
}

// runs are the running tasks of a namespace.
type runs struct {
	by   []run
	more bool // there are more
}

// run counts the running tasks of a worker, queue and type.
type run struct {
	worker      store.WorkerID
	queue, kind string
	n           int
}

// sqlRunning reads a bounded number of tasks from the ID lists of claims. Tasks that do not
// run any more have no queue in the result.
const sqlRunning = `
WITH RECURSIVE places(lease_id, place, size) AS (
  SELECT c.lease_id, 1, length(c.task_ids) FROM (SELECT lease_id, task_ids FROM weaver_claims WHERE namespace = ?1 LIMIT ?2) c
  UNION ALL
  SELECT p.lease_id, p.place + 16, p.size FROM places p WHERE p.place + 16 < p.size
)
SELECT c.worker_id, t.queue, t.task_type, count(*) FROM (SELECT lease_id, place FROM places LIMIT ?2) p
CROSS JOIN weaver_claims c ON c.namespace = ?1 AND c.lease_id = p.lease_id
LEFT JOIN weaver_tasks t ON t.namespace = ?1 AND t.task_id = substr(c.task_ids, p.place, 16) AND t.lease_id = c.lease_id
GROUP BY c.worker_id, t.queue, t.task_type`

func (r *reader) readRuns() (all runs, err error) {
	looked := 0
	st := r.stmt(sqlRunning).Text(1, r.ns).Int(2, r.looks())
	for st.Next() {
		n := int(st.ColInt(3))
		looked += n
		if queue := st.ColText(1); queue != "" {
			all.by = append(all.by, run{store.WorkerID(st.ColText(0)), queue, st.ColText(2), n})
		}
	}
	all.more = looked >= int(r.looks())
	return all, st.Done()
}

func (a *runs) total() (n int) {
	for i := range a.by {
		n += a.by[i].n
	}
	return n
}

// dueLane counts the dispatch rows of a queue, or of one of its types.
type dueLane struct {
	queue, kind string // kind: "" means every type that is not paused
	due, later  int    // at most the limit plus one
	first       time.Time
}

const (
	// sqlQueueDepths finds queues by jumping from one to the next, and reads a bounded number
	// of rows of each.
	sqlQueueDepths = `
WITH RECURSIVE queues(queue) AS (
  SELECT (SELECT o.queue FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane WHERE o.namespace = ?1 ORDER BY o.queue LIMIT 1)
  UNION ALL
  SELECT (SELECT o.queue FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane WHERE o.namespace = ?1 AND o.queue > q.queue ORDER BY o.queue LIMIT 1)
  FROM queues q WHERE q.queue IS NOT NULL
)
SELECT q.queue, (SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane WHERE o.namespace = ?1 AND o.queue = q.queue LIMIT ?2) d),
  (SELECT count(*) FROM (SELECT o.available_at FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane WHERE o.namespace = ?1 AND o.queue = q.queue LIMIT ?2) d WHERE d.available_at <= ?4),
  (SELECT d.available_at FROM (SELECT o.available_at FROM weaver_outbox_events o INDEXED BY weaver_outbox_events_by_lane WHERE o.namespace = ?1 AND o.queue = q.queue LIMIT ?2) d ORDER BY d.available_at LIMIT 1)
FROM queues q WHERE q.queue IS NOT NULL LIMIT ?3`

	// sqlNextOfQueue finds the lane of a queue after the given lane; see sqlNextLane.
	sqlNextOfQueue = `
SELECT task_type, lane_group, priority, available_at FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_lane
WHERE namespace = ?1 AND queue = ?2 AND (task_type, lane_group, priority, available_at) > (?3, ?4, ?5, 9223372036854775807)
ORDER BY task_type, lane_group, priority, available_at LIMIT 1`

	sqlCountDue = `
SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_lane
  WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND priority = ?4 AND lane_group = ?7 AND available_at <= ?5 LIMIT ?6) o`
	sqlCountLater = `
SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_lane
  WHERE namespace = ?1 AND queue = ?2 AND task_type = ?3 AND priority = ?4 AND lane_group = ?7 AND available_at > ?5 LIMIT ?6) o`
)

// lanes counts the dispatch rows. It counts the rows of a queue at once, or lane by lane if
// there are too many of them or a type is paused.
func (r *reader) lanes() error {
	st := r.stmt(sqlQueueDepths).Text(1, r.ns).Int(2, int64(r.cap)+1).Int(3, store.MaxCount+1).Time(4, r.now)
	var byLane []string
	queues := 0
	for ; st.Next(); queues++ {
		queue, rows, due := st.ColText(0), int(st.ColInt(1)), int(st.ColInt(2))
		if rows > r.cap || len(r.pausedTypes) > 0 {
			byLane = append(byLane, queue)
			continue
		}
		r.due = append(r.due, dueLane{queue: queue, due: due, later: rows - due, first: st.ColTime(3)})
	}
	r.lanesCut = queues > store.MaxCount
	if err := st.Done(); err != nil {
		return err
	}
	for _, queue := range byLane {
		if err := r.lanesOf(queue); err != nil {
			return err
		}
	}
	return nil
}

// lanesOf counts the dispatch rows of a queue lane by lane, up to the limit: of all types
// together, and of each paused type.
func (r *reader) lanesOf(queue string) error {
	of := make(map[string]*dueLane)
	for kind, group, priority := "", "", int64(0); ; {
		st := r.stmt(sqlNextOfQueue).Text(1, r.ns).Text(2, queue).Text(3, kind).Text(4, group).Int(5, priority)
		found := st.One()
		var first time.Time
		if found {
			kind, group, priority, first = st.ColText(0), st.ColText(1), st.ColInt(2), st.ColTime(3)
		}
		if err := st.Done(); err != nil {
			return err
		}
		if !found {
			break
		}
		name := ""
		if r.pausedTypes[kind] {
			name = kind
		}
		l := of[name]
		if l == nil {
			l = &dueLane{queue: queue, kind: name, first: first}
			of[name] = l
		}
		if first.Before(l.first) {
			l.first = first
		}
		for _, part := range []struct {
			sql string
			n   *int
		}{{sqlCountDue, &l.due}, {sqlCountLater, &l.later}} {
			if *part.n > r.cap {
				continue
			}
			n, _, err := one(r.stmt(part.sql).Text(1, r.ns).Text(2, queue).Text(3, kind).Int(4, priority).Time(5, r.now).Int(6, int64(r.cap+1-*part.n)).Text(7, group))
			if err != nil {
				return err
			}
			*part.n += int(n)
		}
	}
	for _, l := range of {
		r.due = append(r.due, *l)
	}
	return nil
}

const (
	sqlQueuePauses = `SELECT at, actor, 'pause', queue, reason FROM weaver_paused_queues WHERE namespace = ?1 ORDER BY queue`
	sqlTypePauses  = `SELECT at, actor, 'pause_type', task_type, reason FROM weaver_paused_types WHERE namespace = ?1 ORDER BY task_type`
)

func (r *reader) readPauses() (err error) {
	if r.queuePauses, r.pausedQueues, err = r.pausesBy(sqlQueuePauses); err == nil {
		r.typePauses, r.pausedTypes, err = r.pausesBy(sqlTypePauses)
	}
	return err
}

func (r *reader) pausesBy(sql string) (list []store.AuditEntry, names map[string]bool, err error) {
	names = make(map[string]bool)
	st := r.stmt(sql).Text(1, r.ns)
	for st.Next() {
		e := store.AuditEntry{At: st.ColTime(0), Actor: st.ColText(1), Verb: st.ColText(2), Target: st.ColText(3), Reason: st.ColText(4)}
		list, names[e.Target] = append(list, e), true
	}
	return list, names, st.Done()
}

func (r *reader) queues() []store.Queue {
	var lanes []store.Lane
	for i := range r.due {
		d := &r.due[i]
		l := store.Lane{Queue: d.queue, Type: d.kind, Due: r.count(int64(d.due)), Later: r.count(int64(d.later))}
		if d.due > 0 {
			l.OldestDue = d.first
		}
		lanes = append(lanes, l)
	}
	for i := range r.runs.by {
		b := &r.runs.by[i]
		lanes = append(lanes, store.Lane{Queue: b.queue, Type: b.kind, Running: r.count(int64(b.n))})
	}
	list := store.QueuesOf(lanes, r.queuePauses, r.typePauses)
	for i := range list {
		q := &list[i]
		q.Running.More = q.Running.More || r.runs.more
		if r.lanesCut {
			q.Due.More, q.Later.More = true, true
		}
	}
	return list
}
