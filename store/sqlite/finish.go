package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Finish implements store.Worker.
func (db *DB) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	if len(fins) == 0 {
		return nil, nil
	}
	hashes := make([]string, len(fins)) // here, where no other caller waits for it
	for i := range fins {
		hashes[i] = fins[i].Hash()
	}
	got := make([]store.FinishResult, len(fins))
	err := db.write(ctx, "finish attempts", ns, len(fins), func(t *tx) error {
		f := finishing{tx: t, moves: newMoves(t)}
		for i := range fins {
			got[i] = store.FinishResult{}
			if err := f.one(&fins[i], hashes[i], &got[i]); err != nil {
				return err
			}
		}
		if err := f.finishMany(); err != nil {
			return err
		}
		// Separate statements, each seeing the ones before: edges after all
		// guards, so that two needs of one task in one batch both count.
		return f.moves.propagate()
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// finishing is one batch of ends.
type finishing struct {
	tx        *tx
	moves     *moves
	successes leaseBatch[success]
}

// one ends one attempt, or adds it to a batch of attempts that end together.
// Crash after the commit: the caller asks again and R8 answers success.
func (f *finishing) one(fin *store.Finish, hash string, got *store.FinishResult) error {
	if got.Err = check(fin); got.Err != nil {
		return nil
	}
	ok, err := f.tx.valid(&fin.Lease)
	if err != nil {
		return err
	}
	if !ok {
		got.Err = leaseLost(&fin.Lease, "the store was restored since")
		return nil
	}
	if batched, err := f.batch(fin, hash, got); err != nil || batched {
		return err
	}
	return f.singly(fin, hash, got)
}

// singly ends one attempt. The guard is an UPDATE, never an earlier SELECT, and
// everything else is driven by the row it returned (R2).
func (f *finishing) singly(fin *store.Finish, hash string, got *store.FinishResult) error {
	var h leaseRow
	ok, err := f.guard(fin, &h)
	if err != nil {
		return err
	}
	if !ok {
		return f.compare(fin, hash, got)
	}
	end := f.resolve(fin, &h)
	if err := f.write(&end, &h); err != nil {
		return err
	}
	if err := f.attempt(fin, &end, &h, hash); err != nil {
		return err
	}
	if end.decision != nil {
		if err := f.decide(&end, &h); err != nil {
			return err
		}
	}
	if err := f.tx.endLease(fin.Lease.ID); err != nil {
		return err
	}
	got.State, got.Waiting = end.state, end.waiting
	return f.moves.afterRunning(&h, &end)
}

func leaseLost(l *task.Lease, why string) error {
	return fmt.Errorf("task %v, epoch %d: %w (%s)", l.Task, l.Epoch, store.ErrLeaseLost, why)
}

// sqlGuard accepts a lease and changes nothing but progress; sqlLeaseRow then
// reads the row, which no other transaction can change before the commit.
const sqlGuard = `
UPDATE weaver_tasks SET progress = coalesce(?5, progress)
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

var sqlLeaseRow = `SELECT ` + leaseColumns.List() + ` FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

func (f *finishing) guard(fin *store.Finish, h *leaseRow) (bool, error) {
	l := &fin.Lease
	n, err := f.tx.stmt(sqlGuard).Text(1, f.tx.ns).ID(2, &l.Task).Int(3, l.Epoch).Lease(4, &l.ID).Progress(5, fin.Progress).Exec()
	if err != nil || n == 0 {
		return false, err
	}
	st := f.tx.stmt(sqlLeaseRow).Text(1, f.tx.ns).ID(2, &l.Task)
	if !st.One() {
		return false, st.Done()
	}
	leaseColumns.Scan(st.Row(), 0, h)
	return true, st.Done()
}

const sqlMove = `
UPDATE weaver_tasks SET state = ?3, waiting_reason = ?4, ready_at = CASE WHEN ?5 THEN ?6 ELSE ready_at END,
  output = ?7, has_payloads = max(has_payloads, ?8),
  last_error_kind = CASE WHEN ?9 THEN last_error_kind ELSE ?10 END,
  last_error_json = CASE WHEN ?9 THEN last_error_json ELSE ?11 END,
  attempt_count = attempt_count + ?12, crash_count = CASE WHEN ?17 THEN 0 ELSE crash_count END,
  quarantine_losses = CASE WHEN ?17 THEN 0 ELSE quarantine_losses END, internal_count = CASE WHEN ?13 THEN internal_count + 1 ELSE 0 END,
  lease_epoch = lease_epoch + ?14, lease_id = NULL, lease_expires_at = NULL, updated_at = ?15, finished_at = ?16
WHERE namespace = ?1 AND task_id = ?2`

// write moves the task whose guard passed in this transaction.
func (f *finishing) write(e *transition, h *leaseRow) error {
	output, long, err := f.tx.outOfLine(&h.id, kindOutput, e.output)
	if err != nil {
		return err
	}
	counts := task.Counts(e.outcome, kindOf(e.failure))
	failure := e.ofTask()
	st := f.tx.stmt(sqlMove).Text(1, f.tx.ns).ID(2, &h.id).Text(3, string(e.state)).OrNull(4, string(e.waiting)).
		Bool(5, e.setReady).Time(6, e.readyAt).Bytes(7, output).Bool(8, long).
		Bool(9, e.keep).OrNull(10, string(kindOf(failure))).Error(11, failure).
		Bool(12, counts).Bool(13, e.internal).Bool(14, e.revoke).Int(15, f.tx.mic).Bool(17, e.forgive)
	if e.state.Terminal() {
		st.Int(16, f.tx.mic)
	} else {
		st.Null(16)
	}
	return st.Run()
}

const sqlInsertAttempt = `
INSERT INTO weaver_attempts (namespace, task_id, attempt_no, lease_epoch, lease_id, worker, code_version, started_at, finished_at,
  outcome_kind, error_kind, error_json, outcome_json, outcome_hash)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)`

// outcomeJSON is what attempts.outcome_json holds; the observation is the
// error's column, or the task's output.
type outcomeJSON struct {
	Action struct {
		Steps     []string `json:"steps,omitempty"`     // that it started
		Unreached []string `json:"unreached,omitempty"` // recorded earlier, not called this time
	} `json:"action"`
}

func stepsRun(fin *store.Finish) ([]byte, error) {
	if len(fin.StepsRun)+len(fin.StepsUnreached) == 0 {
		return nil, nil
	}
	var o outcomeJSON
	o.Action.Steps, o.Action.Unreached = fin.StepsRun, fin.StepsUnreached
	return json.Marshal(o)
}

func (f *finishing) attempt(fin *store.Finish, e *transition, h *leaseRow, hash string) error {
	steps, err := stepsRun(fin)
	if err != nil {
		return err
	}
	return f.tx.insertAttempt(h, fin.CodeVersion, e.outcome, e.failure, steps, hash)
}

// insertAttempt writes the row of an attempt that ended now.
func (t *tx) insertAttempt(h *leaseRow, version int, o task.Outcome, failure *task.Error, outcome []byte, hash string) error {
	return t.stmt(sqlInsertAttempt).Text(1, t.ns).ID(2, &h.id).Int(3, int64(h.attemptNo)).Int(4, h.epoch).Lease(5, &h.leaseID).
		OrNull(6, h.worker).Int(7, int64(version)).Int(8, h.startedAt).Int(9, t.mic).Text(10, string(o)).
		OrNull(11, string(kindOf(failure))).Error(12, failure).Bytes(13, outcome).OrNull(14, hash).Run()
}

const sqlInsertDecision = `
INSERT INTO weaver_decisions (namespace, task_id, attempt_no, decided_at, decision_kind, next_ready_at, child_task_ids, reason_json)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`

func (f *finishing) decide(e *transition, h *leaseRow) error {
	d := e.decision
	st := f.tx.stmt(sqlInsertDecision).Text(1, f.tx.ns).ID(2, &h.id).Int(3, int64(h.attemptNo)).Int(4, f.tx.mic).Text(5, string(d.Kind)).
		Time(6, d.NextReadyAt)
	if len(d.ChildIDs) > 0 {
		st.JSON(7, d.ChildIDs)
	} else {
		st.Null(7)
	}
	return st.JSON(8, d.Reason).Run()
}

const (
	sqlFinished = `
SELECT outcome_hash, outcome_kind, finished_at FROM weaver_attempts WHERE namespace = ?1 AND task_id = ?2 AND lease_id = ?3 AND outcome_hash IS NOT NULL`
)

// compare is R8: a finish whose guard matched nothing was made before, or
// contradicts what was, or lost its lease. Attempts that others ended have no
// hash.
func (f *finishing) compare(fin *store.Finish, hash string, got *store.FinishResult) error {
	l := &fin.Lease
	st := f.tx.stmt(sqlFinished).Text(1, f.tx.ns).ID(2, &l.Task).Lease(3, &l.ID)
	var stored string
	var outcome task.Outcome
	var at time.Time
	if st.One() {
		stored, outcome, at = st.ColText(0), task.Outcome(st.ColName(1)), st.ColTime(2)
	}
	if err := st.Done(); err != nil {
		return err
	}
	switch stored {
	case "":
		got.Err = leaseLost(l, "the task is in another attempt, or has ended")
		return nil
	case hash:
		got.State, got.Waiting = fin.ReplayedResult(outcome, at)
		return nil
	}
	got.Err = fmt.Errorf("task %v, epoch %d: %w: this lease already ended with another outcome", l.Task, l.Epoch, store.ErrConflict)
	return nil
}
