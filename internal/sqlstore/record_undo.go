package sqlstore

import (
	"errors"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// plain is cleared, because a task that may have something to undo must not end by a
	// chunk.
	sqlBegan = `
UPDATE weaver_tasks SET undo_open = undo_open + 1, undo_no = undo_no + 1, plain = 0 WHERE namespace = ?1 AND task_id = ?2 RETURNING undo_no`
	// sqlStepEnded counts a step like sqlStepGuard. undo_open and step_count fall when a step
	// is undone.
	sqlStepEnded = `
UPDATE weaver_tasks SET step_count = step_count + ?3, undo_open = undo_open - ?4, crash_count = CASE WHEN undo IS NULL THEN 0 ELSE crash_count END,
  quarantine_losses = 0, undo = json_remove(undo, '$.crashes')
WHERE namespace = ?1 AND task_id = ?2`
	// sqlBeginNow combines the guard and sqlBegan, for a task that was not asked to end.
	sqlBeginNow = `
UPDATE weaver_tasks SET undo_open = undo_open + 1, undo_no = undo_no + 1, plain = 0
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4 AND cancel_requested = 0 AND undo IS NULL RETURNING undo_no, attempt_no`
	sqlNotBegun = `UPDATE weaver_tasks SET undo_open = undo_open - 1, undo_no = undo_no - 1 WHERE namespace = ?1 AND task_id = ?2`
	// sqlEndNow combines the guard and sqlStepEnded.
	sqlEndNow = `
UPDATE weaver_tasks SET step_count = step_count + 1, crash_count = CASE WHEN undo IS NULL THEN 0 ELSE crash_count END,
  quarantine_losses = 0, undo = json_remove(undo, '$.crashes')
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4 RETURNING attempt_no`
	sqlNotEnded = `UPDATE weaver_tasks SET step_count = step_count - 1 WHERE namespace = ?1 AND task_id = ?2`
	sqlPoint    = `
UPDATE weaver_tasks SET undo_open = 0, plain = 0 WHERE namespace = ?1 AND task_id = ?2 RETURNING undo_no`
	sqlKeepUndos = `UPDATE weaver_steps SET undo = 4 WHERE namespace = ?1 AND task_id = ?2 AND undo = 1`

	sqlInsertUndoable = `
INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, error_json,
  started_at, completed_at, cost, redact, undo, undo_no, round)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
ON CONFLICT DO NOTHING`
	sqlEndBegun = `
UPDATE weaver_steps SET state = ?4, value = ?5, error_json = ?6, by_attempt = ?7, by_try = ?8, completed_at = ?9, cost = ?10, redact = ?11
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0 AND state = 'begun' AND kind = 'step'
RETURNING step_index, started_at, undo, undo_no, round`
	sqlPastStep = `
UPDATE weaver_steps SET attempt_no = ?4, undo = ?5, state = ?6 WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0`
)

// recordUndoable writes the beginning or the end of a step with an undo, a point of no return,
// or the undo of a step. The guard comes first, and nothing else is written before the record
// is accepted. Crash after the commit: the row answers the same record.
func (t *Tx) recordUndoable(rec *store.Record, got *store.RecordResult) error {
	if rules.StartsUndo(rec) {
		return t.startUndo(rec, got)
	}
	l := &rec.Lease
	if rec.Progress == nil && rec.Step.Kind == task.KindStep {
		now := t.endNow
		if rec.Step.State == task.StepBegun {
			now = t.beginNow
		}
		if written, err := now(rec, got); written || err != nil {
			return err
		}
	}
	attempt, toEnd, err := t.accept(sqlRecordGuard, &store.Record{Lease: *l})
	if err != nil {
		return err
	}
	if attempt == 0 {
		got.Err = rules.LeaseLost(l, rules.LostToAnother)
		return nil
	}
	step := rules.StoredStep(rec, attempt, t.at)
	if step.Kind == task.KindUndo {
		err = t.recordUndo(rec.UndoOf, &step, got)
	} else {
		err = t.recordBegun(rec, &step, toEnd, got)
	}
	if err != nil || rec.Progress == nil || got.Err != nil && !errors.Is(got.Err, store.ErrCancelRequested) {
		return err
	}
	return t.recordTry(&store.Record{Lease: *l, Progress: rec.Progress}, &store.RecordResult{})
}

// beginNow writes the beginning of a step at half the cost. It writes nothing and returns
// false if the task was asked to end, the step is recorded, or the lease is lost.
func (t *Tx) beginNow(rec *store.Record, got *store.RecordResult) (written bool, err error) {
	id := &rec.Lease.Task
	st := t.stmt(sqlBeginNow).Text(1, t.ns).ID(2, id).Int(3, rec.Lease.Epoch).Lease(4, &rec.Lease.ID)
	no, attempt := 0, 0
	if st.One() {
		no, attempt = int(st.ColInt(0)), int(st.ColInt(1))
	}
	if err := st.Done(); err != nil || no == 0 {
		return false, err
	}
	step := rules.StoredStep(rec, attempt, t.at)
	step.UndoNo = no
	if written, err = t.insertUndoable(&step, 0, 0); err != nil || !written {
		return false, errors.Join(err, t.stmt(sqlNotBegun).Text(1, t.ns).ID(2, id).Run())
	}
	got.Step = step
	return true, nil
}

// endNow writes the end of a step that began, as beginNow writes its beginning. It writes
// nothing and returns false without a recorded step that only began.
func (t *Tx) endNow(rec *store.Record, got *store.RecordResult) (written bool, err error) {
	id := &rec.Lease.Task
	st := t.stmt(sqlEndNow).Text(1, t.ns).ID(2, id).Int(3, rec.Lease.Epoch).Lease(4, &rec.Lease.ID)
	attempt := 0
	if st.One() {
		attempt = int(st.ColInt(0))
	}
	if err := st.Done(); err != nil || attempt == 0 {
		return false, err
	}
	step := rules.StoredStep(rec, attempt, t.at)
	if written, err = t.endBegun(&step); err != nil || !written {
		return false, errors.Join(err, t.stmt(sqlNotEnded).Text(1, t.ns).ID(2, id).Run())
	}
	got.Step = step
	return true, t.besideStep(rec, got)
}

// besideStep writes the rows that belong to an ended step.
func (t *Tx) besideStep(rec *store.Record, got *store.RecordResult) error {
	if err := t.refer(&got.Step.TaskID, kindStepValue, got.Step.Name, got.Step.Value); err != nil {
		return err
	}
	if err := t.addArtifacts(rec.Artifacts, &got.Step); err != nil {
		return err
	}
	return t.spend(got)
}

// recordBegun writes the beginning or the end of a step with an undo, or a point of no return.
func (t *Tx) recordBegun(rec *store.Record, step *task.Step, toEnd bool, got *store.RecordResult) error {
	stored, err := t.stored(&step.TaskID, step.Name, 0, 0)
	if err != nil {
		return err
	}
	repeated := false
	if repeated, got.Err = rules.AcceptStep(stored, step, toEnd); got.Err != nil || repeated {
		t.repeated = repeated
		if stored != nil {
			got.Step = *stored
		}
		return nil
	}
	switch {
	case stored != nil:
		got.Step = rules.EndOfBegun(stored, step)
		_, err = t.endBegun(&got.Step)
	case step.Kind == task.KindPoint:
		got.Step = *step
		if got.Step.UndoNo, err = t.undoNo(sqlPoint, &step.TaskID); err == nil {
			err = t.stmt(sqlKeepUndos).Text(1, t.ns).ID(2, &step.TaskID).Run()
		}
	default:
		got.Step = *step
		if step.Undo == task.UndoOpen {
			got.Step.UndoNo, err = t.undoNo(sqlBegan, &step.TaskID)
		}
	}
	if err == nil && stored == nil {
		_, err = t.insertUndoable(&got.Step, 0, 0)
	}
	if err != nil || step.State == task.StepBegun {
		return err
	}
	if err := t.stepEnded(&step.TaskID, 1, 0); err != nil {
		return err
	}
	return t.besideStep(rec, got)
}

func (t *Tx) stepEnded(id *task.ID, steps, undone int) error {
	return t.stmt(sqlStepEnded).Text(1, t.ns).ID(2, id).Int(3, int64(steps)).Int(4, int64(undone)).Run()
}

// undoNo runs an update of a task and returns the number of the task's last beginning.
func (t *Tx) undoNo(update string, id *task.ID) (no int, err error) {
	st := t.stmt(update).Text(1, t.ns).ID(2, id)
	if st.One() {
		no = int(st.ColInt(0))
	}
	return no, st.Done()
}

// insertUndoable is insertStep for a step that has an undo, or had one in an earlier round.
func (t *Tx) insertUndoable(s *task.Step, keyAttempt, keyTry int) (bool, error) {
	st := t.stmt(sqlInsertUndoable).Text(1, t.ns).ID(2, &s.TaskID).Text(3, s.Name).Int(4, int64(keyAttempt)).Int(5, int64(keyTry)).
		Int(6, int64(s.AttemptNo)).Int(7, int64(s.Try)).Int(8, int64(s.Index)).Text(9, string(s.Kind)).Text(10, string(s.State)).
		Bytes(11, s.Value).Error(12, s.Error).Time(13, s.StartedAt)
	if s.CompletedAt.IsZero() {
		st.Int(14, 0)
	} else {
		st.Time(14, s.CompletedAt)
	}
	n, err := redacts(st, 16, s).Int(15, s.Cost).Undo(17, s.Undo).Int(18, int64(s.UndoNo)).Int(19, int64(s.Round)).Exec()
	return n > 0, err
}

// endBegun writes the end of a step that began, and copies the stored beginning to s. It
// returns false if there is no such step.
func (t *Tx) endBegun(s *task.Step) (ended bool, err error) {
	st := t.stmt(sqlEndBegun).Text(1, t.ns).ID(2, &s.TaskID).Text(3, s.Name).Text(4, string(s.State)).Bytes(5, s.Value).Error(6, s.Error).
		Int(7, int64(s.AttemptNo)).Int(8, int64(s.Try)).Time(9, s.CompletedAt).Int(10, s.Cost)
	st = redacts(st, 11, s)
	if ended = st.One(); ended {
		r := st.Row()
		s.Index, s.StartedAt, s.Undo, s.UndoNo, s.Round = int(r.Int(0)), r.Time(1), r.Undo(2), int(r.Int(3)), int(r.Int(4))
	}
	return ended, st.Done()
}

// redacts binds the paths that readers of a step's value hide.
func redacts(st *sqlstmt.Stmt, i int, s *task.Step) *sqlstmt.Stmt {
	if len(s.Redact) == 0 {
		return st.Null(i)
	}
	return st.JSON(i, s.Redact)
}
