package sqlstore

import (
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// chunkable reports whether a finish may be the good end of a plain task's first
// attempt, of a claim whose worker and time are known: most are. Those are
// written in chunks; whether the task is plain is for their guard to find out.
func (f *finishing) chunkable(fin *store.Finish) bool {
	l := &fin.Lease
	if !f.moves.tx.inlineSuccess(fin) || l.Epoch != 1 || fin.Progress != nil || fin.Handler != "" {
		return false
	}
	_, known := f.moves.tx.fx.Claim(l.ID)
	return known
}

// inlineSuccess reports whether a finish is a good end whose output is on the task's row.
func (t *Tx) inlineSuccess(fin *store.Finish) bool {
	_, large := task.BlobOf(fin.Output)
	return fin.Outcome == task.OutcomeSuccess && !large && len(fin.Output) <= t.inlineMax()
}

// sqlSucceed is guard and transition in one statement, for a chunk of first
// attempts of one claim. What a plain task cannot have (an error, crashes, a long
// output) it need not clear. It asks for no rows back: RETURNING costs SQLite a
// temporary table each time. sqlInsertAttempts is their sqlInsertAttempt.
var (
	sqlSucceed = newChunkSQL(func(n int) string {
		return `
UPDATE weaver_tasks SET state = 'succeeded', output = CASE task_id` + repeat(n, "", func(i int) string {
			return " WHEN " + params(4+i, 1) + " THEN " + params(4+n+i, 1)
		}) + ` END, attempt_count = 1, lease_id = NULL, lease_expires_at = NULL, updated_at = ?3, finished_at = ?3
WHERE namespace = ?1 AND task_id IN (` + params(4, n) + `) AND lease_epoch = 1 AND lease_id = ?2 AND plain = 1`
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

// succeedMany ends a chunk of tasks of one claim well. It reports false when the
// guard did not accept all of them; then what it wrote must be undone.
func (f *finishing) succeedMany(chunk []*report) (bool, error) {
	t := f.moves.tx
	n, lease := len(chunk), &chunk[0].fin.Lease.ID
	st := t.stmt(sqlSucceed[n]).Text(1, t.ns).Lease(2, lease).Int(3, t.mic)
	for i, r := range chunk {
		st.ID(4+i, &r.fin.Lease.Task).Bytes(4+n+i, r.fin.Output)
	}
	if accepted, err := st.Exec(); err != nil || accepted != n {
		return false, err
	}
	claim, _ := t.fx.Claim(*lease)
	st = t.stmt(sqlInsertAttempts[n]).Text(1, t.ns).Lease(2, lease).OrNull(3, claim.Worker).Int(4, claim.StartedAt).Int(5, t.mic)
	for i, r := range chunk {
		p := 6 + 4*i
		st.ID(p, &r.fin.Lease.Task).Int(p+1, int64(r.fin.CodeVersion)).Bytes(p+2, r.steps).OrNull(p+3, r.hash)
	}
	if err := st.Run(); err != nil {
		return false, err
	}
	for _, r := range chunk {
		if err := f.succeeded(r); err != nil {
			return false, err
		}
	}
	return true, nil
}

// succeeded notes the end of a plain task that is written.
func (f *finishing) succeeded(r *report) error {
	t := f.moves.tx
	r.got.State = task.Succeeded
	t.fx.Notice.Tasks = append(t.fx.Notice.Tasks, r.fin.Lease.Task)
	return t.endLease(r.fin.Lease.ID)
}
