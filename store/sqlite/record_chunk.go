package sqlite

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// recording is one batch of records.
type recording struct {
	tx    *tx
	steps leaseBatch[plainStep]
}

// plainStep is the value of a step of a task's first attempt, to be written
// together with others of the same claim.
type plainStep struct {
	rec *store.Record
	got *store.RecordResult
}

// batch adds a record to those for recordMany, and reports whether it did: a value
// and nothing else, of a first attempt, which is what its epoch says.
func (r *recording) batch(rec *store.Record, got *store.RecordResult) bool {
	s := rec.Step
	if s == nil || s.State != task.StepCompleted || s.Kind != task.KindStep ||
		len(rec.Tasks) > 0 || rec.Progress != nil || rec.Lease.Epoch != 1 {
		return false
	}
	r.steps.add(rec.Lease.ID, plainStep{rec, got})
	return true
}

// recordMany writes the batch.
func (r *recording) recordMany() error {
	return r.steps.write(r.tx, r.insertSteps, func(s plainStep) error { return r.tx.recordCompleted(s.rec, s.got) })
}

// sqlStepsGuard is sqlStepGuard for a chunk of tasks, none of which is to be
// cancelled, and sqlInsertSteps their sqlInsertStep. In a first attempt there
// is no crash to forgive.
var (
	sqlStepsGuard = newChunkSQL(func(n int) string {
		return `
UPDATE weaver_tasks SET step_count = step_count + 1
WHERE namespace = ?1 AND task_id IN (` + params(3, n) + `) AND lease_epoch = 1 AND lease_id = ?2 AND cancel_requested = 0`
	})

	sqlInsertSteps = newChunkSQL(func(n int) string {
		return `
INSERT INTO weaver_steps (namespace, completed_at, attempt_no, try, by_attempt, kind, state,
  task_id, name, by_try, step_index, value, error_json, started_at)
VALUES ` + repeat(n, ", ", func(i int) string {
			return "(?1, ?2, 0, 0, 1, 'step', 'completed', " + params(3+7*i, 7) + ")"
		}) + `
ON CONFLICT DO NOTHING`
	})
)

// insertSteps writes a chunk of steps of one claim. It reports false when the
// guard did not accept all of them, or one is stored already; then what it wrote
// must be undone.
func (r *recording) insertSteps(chunk []plainStep) (bool, error) {
	n := len(chunk)
	st := r.tx.stmt(sqlStepsGuard[n]).Text(1, r.tx.ns).Lease(2, &chunk[0].rec.Lease.ID)
	for i := range chunk {
		st.ID(3+i, &chunk[i].rec.Lease.Task)
	}
	if accepted, err := st.Exec(); err != nil || accepted != n {
		return false, err
	}
	st = r.tx.stmt(sqlInsertSteps[n]).Text(1, r.tx.ns).Time(2, r.tx.now)
	for i := range chunk {
		s, p := &chunk[i].got.Step, 3+7*i
		*s = r.tx.asStored(chunk[i].rec, 1)
		st.ID(p, &s.TaskID).Text(p+1, s.Name).Int(p+2, int64(s.Try)).Int(p+3, int64(s.Index)).
			Bytes(p+4, s.Value).Error(p+5, s.Error).Time(p+6, s.StartedAt)
	}
	inserted, err := st.Exec()
	return inserted == n, err
}
