package sqlstore

import (
	"context"

	"github.com/goweaver/weaver/internal/sqlstmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	sqlSnapTasks     = `SELECT ` + taskSelect + ` FROM weaver_tasks WHERE namespace = ?1 ORDER BY task_id`
	sqlSnapJobs      = `SELECT ` + jobColumns.List() + ` FROM weaver_jobs WHERE namespace = ?1 ORDER BY job_id`
	sqlSnapEdges     = `SELECT ` + edgeColumns.List() + ` FROM weaver_task_dependencies WHERE namespace = ?1 ORDER BY task_id, depends_on_task_id`
	sqlSnapAttempts  = `SELECT ` + attemptColumns.List() + ` FROM weaver_attempts WHERE namespace = ?1 ORDER BY task_id, attempt_no`
	sqlSnapDecisions = `SELECT ` + decisionColumns.List() + ` FROM weaver_decisions WHERE namespace = ?1 ORDER BY task_id, attempt_no`
	sqlSnapSteps     = `SELECT ` + stepColumns.List() + ` FROM weaver_steps WHERE namespace = ?1 ORDER BY task_id, step_index, by_attempt, by_try, name`
	sqlSnapSignals   = `SELECT ` + signalColumns.List() + ` FROM weaver_signals WHERE namespace = ?1 ORDER BY task_id, seq`
	sqlSnapCheckpts  = `SELECT ` + checkpointColumns.List() + ` FROM weaver_checkpoints WHERE namespace = ?1 ORDER BY task_id, name`
	sqlSnapPaused    = `SELECT ` + pausedTaskColumns.List() + ` FROM weaver_paused_tasks WHERE namespace = ?1 ORDER BY task_id`
	sqlSnapDispatch  = `SELECT ` + dispatchColumns.List() + ` FROM weaver_outbox_events WHERE namespace = ?1 ORDER BY task_id`
	sqlSnapKeys      = `SELECT ` + keyColumns.List() + ` FROM weaver_conc_keys WHERE namespace = ?1 ORDER BY key`
	sqlSnapWaiters   = `SELECT ` + waiterColumns.List() + ` FROM weaver_conc_waiters WHERE namespace = ?1 ORDER BY key, due_at, task_id`
	sqlSnapChores    = `SELECT ` + choreColumns.List() + ` FROM weaver_chores WHERE namespace = ?1 ORDER BY kind, subject`
	sqlSnapAudit     = `SELECT ` + auditColumns.List() + ` FROM weaver_audit WHERE namespace = ?1 ORDER BY audit_id`
)

// Snapshot implements store.Data. It is one read transaction, long on a large database: use
// it in tests. Scan reads the same in parts.
func (s *Store) Snapshot(ctx context.Context, ns string) (*store.Snapshot, error) {
	var snap *store.Snapshot
	err := s.read(ctx, ns, func(v *View) error {
		snap = new(store.Snapshot)
		return v.snapshot(snap)
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func (v *View) snapshot(s *store.Snapshot) (err error) {
	if s.Generation, err = v.generation(); err != nil {
		return err
	}
	// The first read fixed the snapshot. An earlier clock reading could be behind the
	// snapshot.
	s.Now = v.now()
	of := func(sql string) *sqlstmt.Stmt { return v.stmt(sql).Text(1, v.ns) }
	for _, read := range []func() error{
		func() error { return v.snapTasks(s, of(sqlSnapTasks)) },
		func() (err error) { s.Jobs, err = jobColumns.All(of(sqlSnapJobs)); return err },
		func() (err error) { s.Edges, err = edgeColumns.All(of(sqlSnapEdges)); return err },
		func() (err error) { s.Attempts, err = attemptColumns.All(of(sqlSnapAttempts)); return err },
		func() (err error) { s.Decisions, err = decisionColumns.All(of(sqlSnapDecisions)); return err },
		func() (err error) { s.Steps, err = stepColumns.All(of(sqlSnapSteps)); return err },
		func() (err error) { s.Signals, err = signalColumns.All(of(sqlSnapSignals)); return err },
		func() (err error) { s.Artifacts, err = artifactColumns.All(of(sqlSnapArtifacts)); return err },
		func() (err error) { s.Blobs, err = blobColumns.All(of(sqlSnapBlobs)); return err },
		func() (err error) { s.Checkpoints, err = checkpointColumns.All(of(sqlSnapCheckpts)); return err },
		func() (err error) { s.Dispatch, err = dispatchColumns.All(of(sqlSnapDispatch)); return err },
		func() (err error) { s.Keys, err = keyColumns.All(of(sqlSnapKeys)); return err },
		func() (err error) { s.Waiters, err = waiterColumns.All(of(sqlSnapWaiters)); return err },
		func() (err error) { s.Audit, err = auditColumns.All(of(sqlSnapAudit)); return err },
		func() (err error) { s.Chores, err = v.chores(); return err },
		func() (err error) { s.Paused, s.PausedTypes, err = v.paused(); return err },
		func() (err error) { s.Types, err = v.types(nil); return err },
		func() error { return v.snapSchedules(s) },
		func() (err error) { s.PausedTasks, err = pausedTaskColumns.All(of(sqlSnapPaused)); return err },
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// snapTasks reads the tasks that st selects.
func (v *View) snapTasks(s *store.Snapshot, st *sqlstmt.Stmt) error {
	var stored []task.ID // tasks with out-of-line texts
	for st.Next() {
		s.Tasks = append(s.Tasks, task.Task{})
		if t := &s.Tasks[len(s.Tasks)-1]; scanTask(st.Row(), t) {
			stored = append(stored, t.ID)
		}
	}
	if err := st.Done(); err != nil {
		return err
	}
	found := make(map[task.ID]*task.Task, len(s.Tasks))
	for i := range s.Tasks {
		found[s.Tasks[i].ID] = &s.Tasks[i]
	}
	return v.fetchPayloads(found, stored)
}
