package sqlite

import (
	"context"
	"slices"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	sqlSnapTasks     = `SELECT ` + taskColumns + ` FROM weaver_tasks WHERE namespace = ?1 ORDER BY task_id`
	sqlSnapJobs      = `SELECT ` + jobColumns + ` FROM weaver_jobs WHERE namespace = ?1 ORDER BY job_id`
	sqlSnapEdges     = `SELECT task_id, depends_on_task_id, kind, done FROM weaver_task_dependencies WHERE namespace = ?1 ORDER BY task_id, depends_on_task_id`
	sqlSnapAttempts  = `SELECT ` + attemptColumns + ` FROM weaver_attempts WHERE namespace = ?1 ORDER BY task_id, attempt_no`
	sqlSnapDecisions = `SELECT ` + decisionColumns + ` FROM weaver_decisions WHERE namespace = ?1 ORDER BY task_id, attempt_no`
	sqlSnapSteps     = `SELECT ` + stepColumns + `, task_id FROM weaver_steps WHERE namespace = ?1 ORDER BY task_id, step_index, by_attempt, by_try, name`
	sqlSnapDispatch  = `
SELECT task_id, queue, task_type, priority, available_at, concurrency_key FROM weaver_outbox_events WHERE namespace = ?1 ORDER BY task_id`
	sqlSnapKeys    = `SELECT key, held, cap FROM weaver_conc_keys WHERE namespace = ?1 ORDER BY key`
	sqlSnapWaiters = `SELECT key, due_at, task_id FROM weaver_conc_waiters WHERE namespace = ?1 ORDER BY key, due_at, task_id`
	sqlSnapAudit   = `SELECT at, actor, verb, target, reason FROM weaver_audit WHERE namespace = ?1 ORDER BY audit_id`
)

// Snapshot implements store.Reader. It is one read transaction, long on a
// large database: for checks and tests.
func (db *DB) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	var s *store.Snapshot
	err := db.read(ctx, "snapshot", ns, func(v *view) error {
		s = new(store.Snapshot)
		return v.snapshot(s)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (v *view) snapshot(s *store.Snapshot) (err error) {
	if s.Generation, err = v.generation(v.ns); err != nil {
		return err
	}
	// Now that something was read the picture is fixed. A clock read before
	// could be behind what the picture shows.
	s.Now = store.Now()
	if err := v.snapTasks(s); err != nil {
		return err
	}
	read := func(sql string, row func(st *stmt)) {
		if err != nil {
			return
		}
		st := v.stmt(sql).text(1, v.ns)
		for st.next() {
			row(st)
		}
		err = st.done()
	}
	read(sqlSnapJobs, func(st *stmt) { s.Jobs = append(s.Jobs, st.scanJob()) })
	read(sqlSnapEdges, func(st *stmt) {
		s.Edges = append(s.Edges, store.EdgeRow{Task: st.colID(0), Needs: st.colID(1), Kind: task.EdgeKind(st.colName(2)), Done: st.colBool(3)})
	})
	read(sqlSnapAttempts, func(st *stmt) { s.Attempts = append(s.Attempts, st.scanAttempt()) })
	read(sqlSnapDecisions, func(st *stmt) { s.Decisions = append(s.Decisions, st.scanDecision()) })
	read(sqlSnapSteps, func(st *stmt) { s.Steps = append(s.Steps, st.scanStep(st.colID(11))) })
	read(sqlSnapDispatch, func(st *stmt) {
		s.Dispatch = append(s.Dispatch, store.DispatchRow{
			Task: st.colID(0), Queue: st.colName(1), Type: st.colName(2), Priority: int(st.colInt(3)), AvailableAt: st.colTime(4), ConcurrencyKey: st.colText(5),
		})
	})
	read(sqlSnapKeys, func(st *stmt) {
		s.Keys = append(s.Keys, store.KeyRow{Key: st.colText(0), Held: int(st.colInt(1)), Cap: int(st.colInt(2))})
	})
	read(sqlSnapWaiters, func(st *stmt) {
		s.Waiters = append(s.Waiters, store.WaiterRow{Key: st.colText(0), DueAt: st.colTime(1), Task: st.colID(2)})
	})
	read(sqlPaused, func(st *stmt) { s.Paused = append(s.Paused, st.colText(0)) })
	if err != nil {
		return err
	}
	slices.Sort(s.Paused)
	s.Audit, err = v.audit(v.stmt(sqlSnapAudit).text(1, v.ns))
	return err
}

func (v *view) snapTasks(s *store.Snapshot) error {
	var payloads []bool
	st := v.stmt(sqlSnapTasks).text(1, v.ns)
	for st.next() {
		r := st.row()
		s.Tasks = append(s.Tasks, task.Task{})
		payloads = append(payloads, r.scanTask(&s.Tasks[len(s.Tasks)-1]))
		if r.err != nil {
			st.err = r.err
		}
	}
	if err := st.done(); err != nil {
		return err
	}
	for i := range s.Tasks {
		if err := v.fetchPayloads(v.ns, &s.Tasks[i], payloads[i]); err != nil {
			return err
		}
	}
	return nil
}
