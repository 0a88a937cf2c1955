package sqlstore

import (
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// recording is one batch of records.
type recording struct {
	tx      *Tx
	steps   byClaim[plainStep] // to be written in chunks
	inOrder bool               // a record has a cost, which may ask its task to end
}

// plainStep is the value of a step of a task's first attempt, to be written together with
// others of the same claim.
type plainStep struct {
	rec *store.Record
	got *store.RecordResult
}

// store sets the step in the result.
func (s plainStep) store(t *Tx) { s.got.Step = rules.StoredStep(s.rec, 1, t.at) }

// chunkableStep reports whether a record is only the value of a step of a first attempt,
// according to its epoch.
func chunkableStep(rec *store.Record) bool {
	s := rec.Step
	if s == nil || len(rec.Artifacts) > 0 || len(s.Redact) > 0 {
		return false
	}
	_, large := task.BlobOf(s.Value)
	return !large && s.State == task.StepCompleted && s.Kind == task.KindStep && !rules.OfUndo(s) &&
		len(rec.Tasks) == 0 && rec.Progress == nil && rec.Lease.Epoch == 1
}

// sqlStepsGuard is sqlStepGuard for a chunk of tasks without a cancel request. sqlInsertSteps
// is sqlInsertStep for the chunk. A first attempt has no earlier crashes.
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

// insertSteps writes a chunk of steps of one claim. It returns false if the guard did not
// accept all of them, or one is recorded already. Then the caller must roll back.
func (r *recording) insertSteps(chunk []plainStep) (bool, error) {
	t := r.tx
	n := len(chunk)
	st := t.stmt(sqlStepsGuard[n]).Text(1, t.ns).Lease(2, &chunk[0].rec.Lease.ID)
	for i := range chunk {
		st.ID(3+i, &chunk[i].rec.Lease.Task)
	}
	if accepted, err := st.Exec(); err != nil || accepted != n {
		return false, err
	}
	st = t.stmt(sqlInsertSteps[n]).Text(1, t.ns).Time(2, t.at)
	for i := range chunk {
		s, p := &chunk[i].got.Step, 3+7*i
		chunk[i].store(t)
		st.ID(p, &s.TaskID).Text(p+1, s.Name).Int(p+2, int64(s.Try)).Int(p+3, int64(s.Index)).
			Bytes(p+4, s.Value).Error(p+5, s.Error).Time(p+6, s.StartedAt)
	}
	inserted, err := st.Exec()
	return inserted == n, err
}
