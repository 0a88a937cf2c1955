package sqlstore

import (
	"github.com/goweaver/weaver/task"
)

// sqlSucceed is guard and transition in one statement, for a chunk of first attempts of one
// claim. It returns no rows, because RETURNING costs SQLite a temporary table each time.
// sqlInsertAttempts is sqlInsertAttempt for the chunk.
var (
	sqlSucceed = newChunkSQL(func(n int) string {
		output := "CASE task_id" + repeat(n, "", func(i int) string {
			return " WHEN " + params(4+i, 1) + " THEN " + params(4+n+i, 1)
		}) + " END"
		return `
UPDATE weaver_tasks SET ` + SetPlainGoodEnd(output, "?3") + `
WHERE namespace = ?1 AND task_id IN (` + params(4, n) + `) AND lease_epoch = 1 AND lease_id = ?2 AND plain = 1`
	})

	sqlInsertAttempts = newChunkSQL(func(n int) string {
		known, values := KnownAttempt()
		own := 3 + len(ClaimedAttempt)
		return `
INSERT INTO weaver_attempts (namespace, finished_at, ` + ClaimedAttempt.Names() + `, ` + known + `, ` + PlainAttempt.Names() + `)
VALUES ` + repeat(n, ", ", func(i int) string {
			return "(?1, ?2, " + ClaimedAttempt.Params(3) + ", " + values + ", " + PlainAttempt.Params(own+i*len(PlainAttempt)) + ")"
		})
	})
)

// succeedMany ends a chunk of tasks of one claim with success. It returns false if the guard
// did not accept all of them. Then the caller must roll back.
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
	e := &f.one
	*e = End{Lease: *lease, Worker: claim.Worker, StartedAt: claim.StartedAt}
	st = ClaimedAttempt.Bind(t.stmt(sqlInsertAttempts[n]).Text(1, t.ns).Int(2, t.mic), 3, e)
	for i, r := range chunk {
		e.Task, e.Version, e.Steps, e.Hash = r.fin.Lease.Task, r.fin.CodeVersion, r.steps, r.hash
		PlainAttempt.Bind(st, 3+len(ClaimedAttempt)+i*len(PlainAttempt), e)
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

// succeeded records the written end of a plain task.
func (f *finishing) succeeded(r *report) error {
	t := f.moves.tx
	r.got.State = task.Succeeded
	t.fx.Notice.Tasks = append(t.fx.Notice.Tasks, r.fin.Lease.Task)
	return t.endLease(r.fin.Lease.ID)
}
