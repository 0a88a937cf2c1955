package sqlite

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// success is the success of a task's first attempt, to be written together
// with others of the same claim. The guard finds out whether the task is plain.
type success struct {
	fin   *store.Finish
	hash  string
	steps []byte
	got   *store.FinishResult
}

// batch adds a finish to those for finishMany, and reports whether it did: a
// first attempt, of a claim whose worker and time are known.
func (f *finishing) batch(fin *store.Finish, hash string, got *store.FinishResult) (bool, error) {
	l := &fin.Lease
	if fin.Outcome != task.OutcomeSuccess || l.Epoch != 1 || fin.Progress != nil || len(fin.Output) > inlineMax {
		return false, nil
	}
	if _, ok := f.tx.fx.Claim(l.ID); !ok {
		return false, nil
	}
	steps, err := stepsRun(fin)
	if err != nil {
		return false, err
	}
	f.successes.add(l.ID, success{fin, hash, steps, got})
	return true, nil
}

// finishMany ends the attempts of the batch.
func (f *finishing) finishMany() error {
	return f.successes.write(f.tx, f.succeedMany, func(s success) error {
		// One row needs no savepoint: a guard that does not accept it wrote nothing.
		if accepted, err := f.succeedMany([]success{s}); err != nil || accepted {
			return err
		}
		return f.singly(s.fin, s.hash, s.got)
	})
}

// sqlSucceedMany is guard and transition in one statement, for a chunk of first
// attempts of plain tasks of one claim. What such a task cannot have (an
// error, crashes, a long output) it need not clear. It asks for no rows back:
// RETURNING costs SQLite a temporary table each time. sqlInsertAttempts is
// sqlInsertAttempt for the same chunk.
var (
	sqlSucceedMany = newChunkSQL(func(n int) string {
		return `
UPDATE weaver_tasks SET state = 'succeeded', output = CASE task_id` + repeat(n, "", func(i int) string {
			return " WHEN " + params(4+i, 1) + " THEN " + params(4+n+i, 1)
		}) + ` END, attempt_count = 1, lease_id = NULL, lease_expires_at = NULL, updated_at = ?3, finished_at = ?3
WHERE namespace = ?1 AND task_id IN (` + params(4, n) + `) AND lease_epoch = 1 AND lease_id = ?2 AND plain`
	})

	sqlInsertAttempts = newChunkSQL(func(n int) string {
		return `
INSERT INTO weaver_attempts (namespace, lease_id, worker, started_at, finished_at, attempt_no, lease_epoch, outcome_kind,
  task_id, code_version, outcome_json, outcome_hash)
VALUES ` + repeat(n, ", ", func(i int) string {
			return "(?1, ?2, ?3, ?4, ?5, 1, 1, 'success', " + params(6+4*i, 4) + ")"
		})
	})
)

// succeedMany ends a chunk of tasks of one claim well. It reports false when
// the guard did not accept all of them; then what it wrote must be undone.
func (f *finishing) succeedMany(chunk []success) (bool, error) {
	n, lease := len(chunk), &chunk[0].fin.Lease.ID
	st := f.tx.stmt(sqlSucceedMany[n]).Text(1, f.tx.ns).Lease(2, lease).Int(3, f.tx.mic)
	for i := range chunk {
		st.ID(4+i, &chunk[i].fin.Lease.Task).Bytes(4+n+i, chunk[i].fin.Output)
	}
	if accepted, err := st.Exec(); err != nil || accepted != n {
		return false, err
	}
	c, _ := f.tx.fx.Claim(*lease)
	st = f.tx.stmt(sqlInsertAttempts[n]).Text(1, f.tx.ns).Lease(2, lease).OrNull(3, c.Worker).Int(4, c.StartedAt).Int(5, f.tx.mic)
	for i := range chunk {
		s, p := &chunk[i], 6+4*i
		st.ID(p, &s.fin.Lease.Task).Int(p+1, int64(s.fin.CodeVersion)).Bytes(p+2, s.steps).OrNull(p+3, s.hash)
	}
	if err := st.Run(); err != nil {
		return false, err
	}
	for i := range chunk {
		chunk[i].got.State = task.Succeeded
		f.tx.fx.Notice.Tasks = append(f.tx.fx.Notice.Tasks, chunk[i].fin.Lease.Task)
		if err := f.tx.endLease(*lease); err != nil {
			return false, err
		}
	}
	return true, nil
}
