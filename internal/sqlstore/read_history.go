package sqlstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	sqlAttempts  = `SELECT ` + attemptColumns.List() + ` FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2 ORDER BY attempt_no`
	sqlDecisions = `SELECT ` + decisionColumns.List() + ` FROM weaver_decisions WHERE namespace = ?1 AND task_id = ?2 ORDER BY attempt_no`
	sqlNeeds     = `
SELECT depends_on_task_id, kind, done, awaited, ended_state, step, ended_kind, ended_code, ended_message FROM weaver_task_dependencies WHERE namespace = ?1 AND task_id = ?2 ORDER BY depends_on_task_id`
	sqlNeededBy = `
SELECT task_id, kind, done, awaited, ended_state, step, ended_kind, ended_code, ended_message FROM weaver_task_dependencies INDEXED BY weaver_task_dependencies_by_need
WHERE namespace = ?1 AND depends_on_task_id = ?2 ORDER BY task_id`
	sqlAuditOf = `
SELECT ` + auditColumns.List() + ` FROM weaver_audit INDEXED BY weaver_audit_by_target WHERE namespace = ?1 AND target = ?2 ORDER BY audit_id`
	sqlKeyOf = `SELECT concurrency_key FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`
)

// History implements store.Observe.
func (s *Store) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	var h store.History
	err := s.read(ctx, ns, func(v *View) error {
		h = store.History{}
		now := v.now()
		t, err := v.readTask(&id, now)
		if err != nil {
			return err
		}
		if t == nil {
			return rules.NotFound(id)
		}
		h.Task = *t
		return v.history(&h, now)
	})
	return h, err
}

func (v *View) history(h *store.History, now time.Time) (err error) {
	t := &h.Task
	if h.Attempts, err = attemptColumns.All(v.stmt(sqlAttempts).Text(1, v.ns).ID(2, &t.ID)); err != nil {
		return err
	}
	if t.State == task.Running {
		h.Attempts = append(h.Attempts, task.Attempt{
			TaskID: t.ID, No: t.AttemptNo, Epoch: t.Epoch, LeaseID: t.LeaseID, Worker: t.LeasedBy, StartedAt: t.StartedAt,
		})
	}
	if h.Decisions, err = decisionColumns.All(v.stmt(sqlDecisions).Text(1, v.ns).ID(2, &t.ID)); err != nil {
		return err
	}
	if h.Steps, err = v.steps(&t.ID); err != nil {
		return err
	}
	if h.Signals, err = signalColumns.All(v.stmt(sqlSignals).Text(1, v.ns).ID(2, &t.ID)); err != nil {
		return err
	}
	if h.Artifacts, err = artifactColumns.All(v.stmt(sqlArtifacts).Text(1, v.ns).ID(2, &t.ID)); err != nil {
		return err
	}
	if h.Checkpoints, err = checkpointColumns.All(v.stmt(sqlCheckpoints).Text(1, v.ns).ID(2, &t.ID)); err != nil {
		return err
	}
	if h.Needs, err = v.needs(sqlNeeds, &t.ID, now); err != nil {
		return err
	}
	if h.Dependents, err = v.needs(sqlNeededBy, &t.ID, now); err != nil {
		return err
	}
	if h.Audit, err = auditColumns.All(v.stmt(sqlAuditOf).Text(1, v.ns).Text(2, t.ID.String())); err != nil {
		return err
	}
	if t.Waiting == task.WaitConcurrency {
		if h.Holders, err = v.holders(t.ConcurrencyKey); err != nil {
			return err
		}
		if h.Ahead, err = v.ahead(t, now); err != nil {
			return err
		}
	}
	if err = v.limitsOf(h, now); err != nil {
		return err
	}
	return v.pauses(h)
}

// limitsOf reads the limits that do not let a due task start.
func (v *View) limitsOf(h *store.History, now time.Time) error {
	if h.Task.State != task.Ready {
		return nil
	}
	names := store.LimitNames(h.Task.Queue, h.Task.Type, store.LaneGroup(h.Task.Options, h.Task.Labels))
	page, err := v.limitPage(&store.LimitFilter{Names: names})
	if err == nil {
		rules.ClosedLimits(h, page.Limits, now)
	}
	return err
}

// Needs implements store.Flow.
func (s *Store) Needs(ctx context.Context, ns string, id task.ID) (needs []store.Need, err error) {
	err = s.read(ctx, ns, func(v *View) (err error) {
		needs, err = v.needs(sqlNeeds, &id, v.now())
		return err
	})
	return needs, err
}

// needs reads the edges at one side of a task, and the tasks at their other ends.
func (v *View) needs(sql string, id *task.ID, now time.Time) ([]store.Need, error) {
	var list []store.Need
	st := v.stmt(sql).Text(1, v.ns).ID(2, id)
	for st.Next() {
		list = append(list, store.Need{
			ID: st.ColID(0), Kind: task.EdgeKind(st.ColName(1)), Done: st.ColBool(2),
			Awaited: int(st.ColInt(3)), EndedState: task.State(st.ColName(4)), Step: st.ColText(5), EndedError: scanEndedError(st.Row(), 6),
		})
	}
	if err := st.Done(); err != nil {
		return nil, err
	}
	for i := range list {
		if err := v.otherEnd(&list[i], now); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const sqlOtherEnd = `SELECT options_json, state, allow_failure, last_error_kind FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// otherEnd reads the task at the other end of an edge. For an ended task, the usual case when
// a handler reads outputs, four columns suffice.
func (v *View) otherEnd(n *store.Need, now time.Time) error {
	st := v.stmt(sqlOtherEnd).Text(1, v.ns).ID(2, &n.ID)
	if st.One() {
		r := st.Row()
		var of task.Task
		r.Options(0, &of)
		n.Node, n.State, n.AllowFailure, n.ErrorKind = of.Node, task.State(r.Name(1)), r.Bool(2), task.ErrorKind(r.Name(3))
	}
	if err := st.Done(); err != nil || n.State.Terminal() || n.State == "" {
		return err
	}
	t, err := v.readTask(&n.ID, now)
	if t != nil {
		n.State, n.ErrorKind = t.State, ""
	}
	return err
}

// holders returns the running tasks with a key.
func (v *View) holders(key string) ([]task.ID, error) {
	ids, err := v.running()
	if err != nil {
		return nil, err
	}
	var list []task.ID
	for i := range ids {
		st := v.stmt(sqlKeyOf).Text(1, v.ns).ID(2, &ids[i])
		if st.One() && st.ColText(0) == key {
			list = append(list, ids[i])
		}
		if err := st.Done(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const sqlAhead = `
SELECT task_id FROM weaver_outbox_events INDEXED BY weaver_outbox_events_by_key
WHERE namespace = ?1 AND concurrency_key = ?2 AND queue = ?3 AND task_type = ?4 AND lane_group = ?5 AND available_at <= ?6
ORDER BY available_at, task_id LIMIT 1`

// ahead returns the due task that comes before a waiter in its own lane while the key has
// room, or zero.
func (v *View) ahead(t *task.Task, now time.Time) (id task.ID, err error) {
	if free, err := v.keyFree(t.ConcurrencyKey); err != nil || !free {
		return id, err
	}
	st := v.stmt(sqlAhead).Text(1, v.ns).Text(2, t.ConcurrencyKey).Text(3, t.Queue).Text(4, t.Type).Text(5, store.LaneGroup(t.Options, t.Labels)).Int(6, now.UnixMicro())
	if st.One() {
		id = st.ColID(0)
	}
	return id, st.Done()
}
