package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// maxGraphEdges is the maximum number of edges on a page of a graph. A page with one node may
// have more.
const maxGraphEdges = 100_000

const (
	sqlNodesOfJob = `
SELECT t.task_id, t.options_json, t.task_type, t.queue, t.state, t.waiting_reason, t.last_error_kind, t.allow_failure, t.parent_task_id, t.attempt_no, t.started_at, t.finished_at, t.ready_at,
  o.available_at, w.due_at, k.due_at,
  CASE WHEN k.task_id IS NOT NULL THEN 'task' WHEN y.task_type IS NOT NULL THEN 'type' WHEN q.queue IS NOT NULL THEN 'queue' END
FROM weaver_tasks t INDEXED BY weaver_tasks_by_job
LEFT JOIN weaver_outbox_events o ON o.namespace = t.namespace AND o.task_id = t.task_id
LEFT JOIN weaver_conc_waiters w INDEXED BY weaver_conc_waiters_by_task ON w.namespace = t.namespace AND w.task_id = t.task_id
LEFT JOIN weaver_paused_tasks k ON k.namespace = t.namespace AND k.task_id = t.task_id
LEFT JOIN weaver_paused_types y ON y.namespace = t.namespace AND y.task_type = t.task_type
LEFT JOIN weaver_paused_queues q ON q.namespace = t.namespace AND q.queue = t.queue
WHERE t.namespace = ?1 AND t.job_id = ?2 AND t.task_id > ?3 ORDER BY t.task_id LIMIT ?4`

	sqlEdgesOfNodes = `
SELECT d.depends_on_task_id, d.task_id, d.kind, d.done, d.step, d.awaited FROM weaver_tasks t INDEXED BY weaver_tasks_by_job
CROSS JOIN weaver_task_dependencies d ON d.namespace = t.namespace AND d.task_id = t.task_id
WHERE t.namespace = ?1 AND t.job_id = ?2 AND t.task_id > ?3 AND t.task_id <= ?4 ORDER BY t.task_id, d.depends_on_task_id LIMIT ?5`
)

// Graph implements store.Flow.
func (s *Store) Graph(ctx context.Context, ns string, req store.GraphRequest) (g store.Graph, err error) {
	var after task.ID
	if req.After != "" {
		if after, err = task.ParseID(req.After); err != nil {
			return g, fmt.Errorf("%w: %q did not come from a graph", store.ErrBadCursor, req.After)
		}
	}
	err = s.read(ctx, ns, func(v *View) error {
		g = store.Graph{}
		job, err := v.job(&req.Job)
		if err != nil {
			return err
		}
		if job == nil {
			return fmt.Errorf("%w: job %s", store.ErrNotFound, req.Job)
		}
		now, limit := v.now(), req.Nodes()
		st := v.stmt(sqlNodesOfJob).Text(1, ns).ID(2, &req.Job).ID(3, &after).Int(4, int64(limit)+1)
		for st.Next() {
			g.Nodes = append(g.Nodes, nodeOf(st.Row(), now))
		}
		if err := st.Done(); err != nil || len(g.Nodes) == 0 {
			return err
		}
		if len(g.Nodes) > limit {
			g.Nodes = g.Nodes[:limit]
			g.Next = g.Nodes[limit-1].ID.String()
		}
		return v.edgesOf(&g, &req.Job, &after, s.GraphEdges)
	})
	return g, err
}

func nodeOf(r *sqlstmt.Row, now time.Time) store.GraphNode {
	t := task.Task{
		ID: r.ID(0), Type: r.Name(2), Queue: r.Name(3), State: task.State(r.Name(4)), Waiting: task.Waiting(r.Name(5)),
		ParentID: r.ID(8), ReadyAt: r.Time(12),
	}
	r.Options(1, &t)
	store.Derive(&t, store.Availability{Dispatch: r.Time(13), Waiter: r.Time(14), Parked: r.Time(15), Pause: task.PauseKind(r.Name(16))}, now)
	return store.GraphNode{
		ID: t.ID, Node: t.Node, Type: t.Type, Queue: t.Queue, State: t.State, Waiting: t.Waiting, ErrorKind: task.ErrorKind(r.Name(6)),
		AllowFailure: r.Bool(7), Parent: t.ParentID, Attempts: int(r.Int(9)), StartedAt: r.Time(10), FinishedAt: r.Time(11),
	}
}

// edgesOf reads the edges of the nodes of a page. Beyond the maximum, the page ends before the
// node whose edges are cut, but keeps at least one node.
func (v *View) edgesOf(g *store.Graph, job, after *task.ID, most int) error {
	last := g.Nodes[len(g.Nodes)-1].ID
	edges, err := v.edges(job, after, &last, most+1)
	if err != nil || len(edges) <= most {
		g.Edges = edges
		return err
	}
	cut := max(slices.IndexFunc(g.Nodes, func(n store.GraphNode) bool { return n.ID == edges[most].To }), 1)
	if cut < len(g.Nodes) {
		g.Nodes = g.Nodes[:cut]
		g.Next = g.Nodes[cut-1].ID.String()
	}
	last = g.Nodes[cut-1].ID
	g.Edges, err = v.edges(job, after, &last, math.MaxInt32)
	return err
}

func (v *View) edges(job, after, last *task.ID, limit int) (edges []store.GraphEdge, err error) {
	st := v.stmt(sqlEdgesOfNodes).Text(1, v.ns).ID(2, job).ID(3, after).ID(4, last).Int(5, int64(limit))
	for st.Next() {
		edges = append(edges, store.GraphEdge{
			From: st.ColID(0), To: st.ColID(1), Kind: task.EdgeKind(st.ColName(2)), Decided: st.ColBool(3), Step: st.ColText(4), Awaited: int(st.ColInt(5)),
		})
	}
	return edges, st.Done()
}
