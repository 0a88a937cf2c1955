package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Record implements store.Core.
func (s *Store) Record(ctx context.Context, ns string, recs ...store.Record) ([]store.RecordResult, error) {
	if len(recs) == 0 {
		return nil, nil
	}
	weight := len(recs)
	for i := range recs {
		weight += len(recs[i].Tasks) + len(recs[i].Events)/4
	}
	got := make([]store.RecordResult, len(recs))
	err := s.write(ctx, ns, weight, func(t *Tx) error {
		if err := t.lockSpenders(recs); err != nil {
			return err
		}
		r := recording{tx: t, inOrder: slices.ContainsFunc(recs, func(rec store.Record) bool { return rec.Step != nil && rec.Step.Cost != 0 })}
		for i := range recs {
			if err := r.add(&recs[i], &got[i]); err != nil {
				return err
			}
		}
		one := func(s plainStep) error { return t.recordCompleted(s.rec, s.got) }
		var err error
		if t.bulk != nil {
			err = r.insertAll(one)
		} else {
			err = r.steps.write(t, r.insertSteps, one)
		}
		if err != nil {
			return err
		}
		var events eventRows
		for i := range recs {
			if got[i].Err == nil {
				t.fx.Notice.Changed = true
				events.add(t, &recs[i].Lease, recs[i].Events)
			}
		}
		if err := events.write(t); err != nil {
			return err
		}
		return t.settleCosts()
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// lockSpenders locks the tasks whose records also change rows of their jobs: their cost, and
// the ends of children.
func (t *Tx) lockSpenders(recs []store.Record) error {
	var ids []task.ID
	for i := range recs {
		if s := recs[i].Step; s != nil && (s.Cost != 0 || len(recs[i].Tasks) > 0) {
			ids = append(ids, recs[i].Lease.Task)
		}
		if of := recs[i].UndoOf; !of.IsZero() {
			ids = append(ids, recs[i].Lease.Task, of)
		}
		for j := range recs[i].Tasks {
			if of := recs[i].Tasks[j].UndoOf; !of.IsZero() {
				ids = append(ids, of)
			}
		}
	}
	_, err := t.db.Tasks(t, ids...)
	return err
}

// add writes one record of a batch, or keeps it to be written together with others.
func (r *recording) add(rec *store.Record, got *store.RecordResult) error {
	ok, err := r.tx.acceptable(rec, got)
	switch {
	case err != nil || !ok:
		return err
	case !r.inOrder && chunkableStep(rec):
		r.steps.put(rec.Lease.ID, plainStep{rec, got})
		return nil
	}
	return r.tx.recordOne(rec, got)
}

// acceptable reports whether a record is well-formed and belongs to the current generation of
// the store.
func (t *Tx) acceptable(rec *store.Record, got *store.RecordResult) (bool, error) {
	*got = store.RecordResult{}
	if got.Err = rules.CheckRecord(rec); got.Err != nil {
		return false, nil
	}
	ok, err := t.valid(&rec.Lease)
	if err == nil && !ok {
		got.Err = rules.LeaseLost(&rec.Lease, rules.LostToRestore)
	}
	if err != nil || !ok {
		return false, err
	}
	got.Err, err = t.usable(rules.RecordBlobs(rec))
	return err == nil && got.Err == nil, err
}

// record writes one record completely or not at all.
func (t *Tx) record(rec *store.Record, got *store.RecordResult) error {
	if ok, err := t.acceptable(rec, got); err != nil || !ok {
		return err
	}
	return t.recordOne(rec, got)
}

func (t *Tx) recordOne(rec *store.Record, got *store.RecordResult) error {
	if rec.Checkpoint != nil {
		return t.recordCheckpoint(rec, got)
	}
	if rules.IsWait(rec) {
		return t.recordWait(rec, got)
	}
	if rec.Step == nil || rec.Step.State == task.StepFailed {
		return t.recordTry(rec, got)
	}
	if rules.OfUndo(rec.Step) {
		return t.recordUndoable(rec, got)
	}
	return t.recordCompleted(rec, got)
}

// sqlRecordGuard checks a lease. A failed try and progress change nothing else.
const sqlRecordGuard = `
UPDATE weaver_tasks SET progress = coalesce(?5, progress)
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

const sqlAttemptNo = `
SELECT attempt_no, CASE WHEN cancel_requested <> 0 OR undo IS NOT NULL THEN 1 ELSE 0 END FROM weaver_tasks WHERE namespace = ?1 AND task_id = ?2`

// recordTry writes a failed try and a progress report, even if the task was asked to cancel.
func (t *Tx) recordTry(rec *store.Record, got *store.RecordResult) error {
	l := &rec.Lease
	attempt, _, err := t.accept(sqlRecordGuard, rec)
	switch {
	case err != nil:
		return err
	case attempt == 0:
		got.Err = rules.LeaseLost(l, rules.LostToAnother)
		return nil
	case rec.Step == nil:
		return nil
	}
	got.Step = rules.StoredStep(rec, attempt, t.at)
	fresh, err := t.insertStep(&got.Step, attempt, got.Step.Try)
	if err != nil {
		return err
	}
	if fresh {
		return t.spend(got)
	}
	stored, err := t.stored(&l.Task, rec.Step.Name, attempt, rec.Step.Try)
	if stored != nil {
		got.Step = *stored
	}
	return err
}

// accept runs a guard. It returns the number of the attempt (0 if the lease is lost), and
// whether its task was asked to cancel or is being undone.
func (t *Tx) accept(guard string, rec *store.Record) (attempt int, cancelled bool, err error) {
	l := &rec.Lease
	n, err := t.stmt(guard).Text(1, t.ns).ID(2, &l.Task).Int(3, l.Epoch).Lease(4, &l.ID).Progress(5, rec.Progress).Exec()
	if err != nil || n == 0 {
		return 0, false, err
	}
	st := t.stmt(sqlAttemptNo).Text(1, t.ns).ID(2, &l.Task)
	if st.One() {
		attempt, cancelled = int(st.ColInt(0)), st.ColBool(1)
	}
	return attempt, cancelled, st.Done()
}

// nameStarted makes the ID of a started task the step's value if the task's idempotency key
// may belong to an existing task.
func (t *Tx) nameStarted(rec *store.Record, step *task.Step) error {
	if !rules.StartsByKey(rec) {
		return nil
	}
	e, err := (&insertion{tx: t}).existing(&rec.Tasks[0])
	if err != nil {
		return err
	}
	if e.ID.IsZero() {
		e.ID = rec.Tasks[0].ID
	}
	step.Value = rules.StartedValue(e.ID)
	return nil
}

const sqlSetStarted = `
UPDATE weaver_steps SET value = ?4 WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0`

// renameStarted corrects the value of a step if another transaction has stored a task under
// the same key since nameStarted.
func (t *Tx) renameStarted(rec *store.Record, got *store.RecordResult) error {
	if !rules.StartsByKey(rec) || len(got.Enqueued) != 1 || got.Enqueued[0].ID.IsZero() {
		return nil
	}
	value := rules.StartedValue(got.Enqueued[0].ID)
	if bytes.Equal(value, got.Step.Value) {
		return nil
	}
	got.Step.Value = value
	return t.stmt(sqlSetStarted).Text(1, t.ns).ID(2, &rec.Lease.Task).Text(3, got.Step.Name).Bytes(4, value).Run()
}

// sqlStepGuard checks a lease and counts the step that is about to be inserted. A completed
// step resets the crash count of the task, or the crash count of its undo phase.
const sqlStepGuard = `
UPDATE weaver_tasks SET step_count = step_count + 1, crash_count = CASE WHEN undo IS NULL THEN 0 ELSE crash_count END, quarantine_losses = 0,
  undo = json_remove(undo, '$.crashes'), progress = coalesce(?5, progress)
WHERE namespace = ?1 AND task_id = ?2 AND lease_epoch = ?3 AND lease_id = ?4`

var errUndo = errors.New("undo the element")

// recordCompleted writes a completed step exactly once (R10): the guard, then a plain insert,
// whose key allows one row per name. If the step cannot be stored, the savepoint rolls back
// everything including the guard. Crash after the commit: replay returns the recorded value,
// and the step's function does not run again.
func (t *Tx) recordCompleted(rec *store.Record, got *store.RecordResult) error {
	return t.undoable(func() error {
		l := &rec.Lease
		attempt, cancelled, err := t.accept(sqlStepGuard, rec)
		if err != nil {
			return err
		}
		if attempt == 0 {
			got.Err, got.Step = rules.LeaseLost(l, rules.LostToAnother), task.Step{} // a rolled-back batch has set it
			return nil
		}
		got.Step = rules.StoredStep(rec, attempt, t.at)
		cancelled = rules.Unwanted(&got.Step, cancelled)
		if err := t.nameStarted(rec, &got.Step); err != nil {
			return err
		}
		fresh := false
		if !cancelled {
			if fresh, err = t.insertStep(&got.Step, 0, 0); err != nil {
				return err
			}
		}
		if !fresh {
			if err := t.compareStep(rec, cancelled, got); err != nil {
				return err
			}
			return errUndo
		}
		if err := t.refer(&l.Task, kindStepValue, got.Step.Name, got.Step.Value); err != nil {
			return err
		}
		if err := t.addArtifacts(rec.Artifacts, &got.Step); err != nil {
			return err
		}
		if err := t.spend(got); err != nil || len(rec.Tasks) == 0 {
			return err
		}
		if got.Enqueued, err = t.enqueue(&store.Submission{Tasks: rec.Tasks}, l.Task); err != nil {
			return err
		}
		return t.renameStarted(rec, got)
	}, func() error {
		if got.Err == nil && got.Step.State == task.StepBegun { // by code that declared an undo
			return t.recordUndoable(rec, got)
		}
		if rec.Progress == nil || got.Err != nil && !errors.Is(got.Err, store.ErrCancelRequested) {
			return nil
		}
		// A step that is recorded already, or not wanted any more, may still report the
		// progress of its task.
		return t.recordTry(&store.Record{Lease: rec.Lease, Progress: rec.Progress}, &store.RecordResult{})
	})
}

// A savepoint around one element of a batch, or around operations in a caller's transaction.
const (
	BeginElement   = "SAVEPOINT element"
	ReleaseElement = "RELEASE SAVEPOINT element"
	UndoElement    = "ROLLBACK TO SAVEPOINT element"
)

// undoable runs one element of a batch. If do returns errUndo, its writes are rolled back and
// then runs.
func (t *Tx) undoable(do, then func() error) error {
	if err := t.stmt(BeginElement).Run(); err != nil {
		return err
	}
	err := do()
	if err != nil && !errors.Is(err, errUndo) {
		return err // the whole operation is rolled back
	}
	if err != nil {
		if err := t.stmt(UndoElement).Run(); err != nil {
			return err
		}
	}
	if rerr := t.stmt(ReleaseElement).Run(); rerr != nil {
		return rerr
	}
	if err != nil && then != nil {
		return then()
	}
	return nil
}

const sqlInsertStep = `
INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value, error_json,
  wake_at, started_at, completed_at, cost, redact)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
ON CONFLICT DO NOTHING`

// insertStep reports false when the key is taken.
func (t *Tx) insertStep(s *task.Step, keyAttempt, keyTry int) (bool, error) {
	if rules.OfUndo(s) {
		return t.insertUndoable(s, keyAttempt, keyTry)
	}
	n, err := redacts(t.stmt(sqlInsertStep), 17, s).Text(1, t.ns).ID(2, &s.TaskID).Text(3, s.Name).Int(4, int64(keyAttempt)).Int(5, int64(keyTry)).
		Int(6, int64(s.AttemptNo)).Int(7, int64(s.Try)).Int(8, int64(s.Index)).Text(9, string(s.Kind)).Text(10, string(s.State)).
		Bytes(11, s.Value).Error(12, s.Error).Time(13, s.WakeAt).Time(14, s.StartedAt).Time(15, s.CompletedAt).Int(16, s.Cost).Exec()
	return n > 0, err
}

var sqlStep = `
SELECT ` + stepColumns.List() + ` FROM weaver_steps WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = ?4 AND try = ?5`

// stored returns one recorded step, or nil.
func (t *Tx) stored(id *task.ID, name string, keyAttempt, keyTry int) (*task.Step, error) {
	return stepColumns.One(t.stmt(sqlStep).Text(1, t.ns).ID(2, id).Text(3, name).Int(4, int64(keyAttempt)).Int(5, int64(keyTry)))
}

// compareStep answers a step that was not inserted: another step is recorded under its name,
// or its task was asked to cancel.
func (t *Tx) compareStep(rec *store.Record, cancelled bool, got *store.RecordResult) error {
	l := &rec.Lease
	stored, err := t.stored(&l.Task, rec.Step.Name, 0, 0)
	if err != nil {
		return err
	}
	if stored == nil && !cancelled {
		return fmt.Errorf("step %q of task %v was neither inserted nor found", rec.Step.Name, l.Task)
	}
	t.repeated, got.Err = rules.AcceptStep(stored, &got.Step, cancelled)
	got.Step = task.Step{}
	if stored != nil {
		got.Step = *stored
	}
	if !t.repeated {
		return nil
	}
	return t.startedBefore(rec.Tasks, got)
}

// startedBefore returns the results for tasks that were enqueued with their step.
func (t *Tx) startedBefore(tasks []task.New, got *store.RecordResult) error {
	in := insertion{tx: t}
	for i := range tasks {
		e, err := in.existing(&tasks[i])
		if err != nil {
			return err
		}
		if e.ID.IsZero() { // deleted since
			e = store.Enqueued{ID: tasks[i].ID, Disposition: store.DispositionCreated}
		}
		got.Enqueued = append(got.Enqueued, e)
	}
	return nil
}
