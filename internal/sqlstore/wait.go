package sqlstore

import (
	"errors"

	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A wait is the row of a step in the state waiting, under the key of its completed value (ADR
// 0023): the steps of one name share one row. Its completed_at is 0 until then.

const (
	sqlInsertWait = `
INSERT INTO weaver_steps (namespace, task_id, name, attempt_no, try, by_attempt, by_try, step_index, kind, state, value,
  wake_at, started_at, completed_at, awaits, children, children_left, children_stored, undo, undo_no, round)
VALUES (?1, ?2, ?3, 0, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)`

	sqlCompleteWait = `
UPDATE weaver_steps SET state = 'completed', value = ?4, completed_at = ?5
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND attempt_no = 0 AND try = 0`

	// A new wait or checkpoint resets the crash count, like a completed step.
	sqlWaitRecorded = `
UPDATE weaver_tasks SET step_count = step_count + ?3, crash_count = 0, quarantine_losses = 0 WHERE namespace = ?1 AND task_id = ?2`
)

// recordWait checks whether a wait is over, and registers it otherwise. The guard comes first,
// and nothing is written before the record is accepted. Crash after the commit: the row
// answers the same record.
func (t *Tx) recordWait(rec *store.Record, got *store.RecordResult) error {
	l := &rec.Lease
	attempt, cancelled, err := t.accept(sqlRecordGuard, &store.Record{Lease: *l})
	if err != nil {
		return err
	}
	if attempt == 0 {
		got.Err = rules.LeaseLost(l, rules.LostToAnother)
		return nil
	}
	if err := t.wait(rec, attempt, cancelled, got); err != nil {
		return err
	}
	if rec.Progress == nil || got.Err != nil && !errors.Is(got.Err, store.ErrCancelRequested) {
		return nil
	}
	return t.recordTry(&store.Record{Lease: *l, Progress: rec.Progress}, &store.RecordResult{})
}

func (t *Tx) wait(rec *store.Record, attempt int, cancelled bool, got *store.RecordResult) error {
	step := rules.StoredStep(rec, attempt, t.at)
	stored, err := t.stored(&rec.Lease.Task, step.Name, 0, 0)
	if err != nil {
		return err
	}
	var answered bool
	answered, got.Err = rules.AcceptWait(stored, &step, cancelled)
	if got.Err != nil || answered {
		if stored != nil {
			got.Step = *stored
		}
		return nil
	}
	if step.Kind == task.KindCall {
		return t.recordCall(rec, stored, &step, got)
	}
	return t.recordSignalWait(stored, &step, got)
}

// recordSignalWait completes a wait for a signal, or registers or continues it.
func (t *Tx) recordSignalWait(stored, step *task.Step, got *store.RecordResult) error {
	withdrawn := step.State == task.StepCompleted
	if stored != nil {
		step = stored
	}
	var signal *task.Signal
	var err error
	if !withdrawn {
		if signal, err = signalColumns.One(t.stmt(sqlOpenSignal).Text(1, t.ns).ID(2, &step.TaskID).Text(3, step.Signal)); err != nil {
			return err
		}
	}
	over := rules.ResolveWait(step, signal, withdrawn, t.at)
	got.Step = *step
	switch {
	case stored == nil:
		err = t.insertWait(step)
	case over:
		err = t.completeWait(step)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if signal != nil {
		err := t.stmt(sqlSignalTaken).Text(1, t.ns).ID(2, &step.TaskID).Int(3, int64(signal.Seq)).Text(4, step.Name).Run()
		if err != nil {
			return err
		}
	}
	return t.stmt(sqlWaitRecorded).Text(1, t.ns).ID(2, &step.TaskID).Bool(3, over).Run()
}

// insertWait writes the row of a wait, which may be over already.
func (t *Tx) insertWait(s *task.Step) error {
	st := t.stmt(sqlInsertWait).Text(1, t.ns).ID(2, &s.TaskID).Text(3, s.Name).Int(4, int64(s.AttemptNo)).Int(5, int64(s.Try)).
		Int(6, int64(s.Index)).Text(7, string(s.Kind)).Text(8, string(s.State)).Bytes(9, s.Value).Time(10, s.WakeAt).Time(11, s.StartedAt).
		OrNull(13, s.Signal).Int(14, int64(s.Children)).Int(15, int64(s.ChildrenLeft)).Int(16, int64(s.ChildrenStored)).
		Undo(17, s.Undo).Int(18, int64(s.UndoNo)).Int(19, int64(s.Round))
	if s.CompletedAt.IsZero() {
		return st.Int(12, 0).Run()
	}
	return st.Time(12, s.CompletedAt).Run()
}

// completeWait records that a wait is over.
func (t *Tx) completeWait(s *task.Step) error {
	return t.stmt(sqlCompleteWait).Text(1, t.ns).ID(2, &s.TaskID).Text(3, s.Name).Bytes(4, s.Value).Time(5, s.CompletedAt).Run()
}

var signalColumns = sqlstmt.Columns[task.Signal]{
	sqlstmt.Col("task_id", func(s *task.Signal, r *sqlstmt.Row, i int) { s.TaskID = r.ID(i) }),
	sqlstmt.Col("seq", func(s *task.Signal, r *sqlstmt.Row, i int) { s.Seq = int(r.Int(i)) }),
	sqlstmt.Col("name", func(s *task.Signal, r *sqlstmt.Row, i int) { s.Name = r.Text(i) }),
	sqlstmt.Col("key", func(s *task.Signal, r *sqlstmt.Row, i int) { s.Key = r.Text(i) }),
	sqlstmt.Col("payload", func(s *task.Signal, r *sqlstmt.Row, i int) { s.Payload = r.Bytes(i) }),
	sqlstmt.Col("sent_at", func(s *task.Signal, r *sqlstmt.Row, i int) { s.SentAt = r.Time(i) }),
	sqlstmt.Col("actor", func(s *task.Signal, r *sqlstmt.Row, i int) { s.Actor = r.Text(i) }),
	sqlstmt.Col("step", func(s *task.Signal, r *sqlstmt.Row, i int) { s.Step = r.Text(i) }),
}

var (
	sqlSignals    = `SELECT ` + signalColumns.List() + ` FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq`
	sqlOpenSignal = `
SELECT ` + signalColumns.List() + ` FROM weaver_signals INDEXED BY weaver_signals_open
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND step IS NULL ORDER BY seq LIMIT 1`
	sqlSignalByKey = `
SELECT ` + signalColumns.List() + ` FROM weaver_signals INDEXED BY weaver_signals_by_key
WHERE namespace = ?1 AND task_id = ?2 AND name = ?3 AND key = ?4`
	sqlOldestWait = `
SELECT ` + stepColumns.List() + ` FROM weaver_steps INDEXED BY weaver_steps_waiting
WHERE namespace = ?1 AND task_id = ?2 AND awaits = ?3 AND state = 'waiting' ORDER BY step_index, name LIMIT 1`
)

const (
	sqlSignalTaken = `UPDATE weaver_signals SET step = ?4 WHERE namespace = ?1 AND task_id = ?2 AND seq = ?3`
	sqlSignalsKept = `
SELECT count(*) FROM weaver_signals INDEXED BY weaver_signals_open WHERE namespace = ?1 AND task_id = ?2 AND step IS NULL`
	sqlInsertSignal = `
INSERT INTO weaver_signals (namespace, task_id, seq, name, key, payload, sent_at, actor, step)
SELECT ?1, ?2, coalesce((SELECT seq FROM weaver_signals WHERE namespace = ?1 AND task_id = ?2 ORDER BY seq DESC LIMIT 1), 0) + 1, ?3, ?4, ?5, ?6, ?7, ?8`
)

// sendSignal delivers a signal to the oldest wait for it, or stores it.
func (o *operation) sendSignal(cmd store.SendSignal, got *store.CommandResult) error {
	sent, err := o.signal(&cmd, got)
	if err != nil || !sent {
		return err
	}
	return o.note(cmd.Audit, "signal", cmd.Task.String())
}

// signal is sendSignal without an audit entry.
func (o *operation) signal(cmd *store.SendSignal, got *store.CommandResult) (sent bool, err error) {
	if got.Err = rules.CheckSignal(cmd); got.Err != nil {
		return false, nil
	}
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return false, err
	}
	t := o.tx
	stored, err := signalColumns.One(t.stmt(sqlSignalByKey).Text(1, t.ns).ID(2, &row.id).Text(3, cmd.Name).Text(4, cmd.Key))
	if err != nil {
		return false, err
	}
	got.Existing, got.Err = rules.AcceptSignal(cmd, row.contribution.State, stored)
	if got.Existing || got.Err != nil {
		return false, nil
	}
	var wait *task.Step
	if row.undo == nil {
		if wait, err = stepColumns.One(t.stmt(sqlOldestWait).Text(1, t.ns).ID(2, &row.id).Text(3, cmd.Name)); err != nil {
			return false, err
		}
	}
	taken := ""
	if wait != nil {
		taken = wait.Name
		err = o.takeSignal(row, wait, cmd, got)
	} else {
		err = o.mayKeep(&row.id, got)
	}
	if err != nil || got.Err != nil {
		return false, err
	}
	return true, t.stmt(sqlInsertSignal).Text(1, t.ns).ID(2, &row.id).Text(3, cmd.Name).Text(4, cmd.Key).Bytes(5, cmd.Payload).Int(6, t.mic).
		Text(7, cmd.By).OrNull(8, taken).Run()
}

// takeSignal completes a wait with a signal.
func (o *operation) takeSignal(row *taskRow, wait *task.Step, cmd *store.SendSignal, got *store.CommandResult) error {
	t := o.tx
	rules.ResolveWait(wait, &task.Signal{Payload: cmd.Payload}, false, t.at)
	if err := t.completeWait(wait); err != nil {
		return err
	}
	woken, err := t.waitEnded(row)
	if woken {
		got.State = task.Ready
		o.moves.pending.Count(row.job, row.contribution, propagate.Unfinished(task.Ready, task.WaitNone))
		o.moves.pending.Dispatch(row.dispatchRow(t.at))
	}
	return err
}

// mayKeep refuses a signal without a wait if too many are stored.
func (o *operation) mayKeep(id *task.ID, got *store.CommandResult) error {
	st := o.tx.stmt(sqlSignalsKept).Text(1, o.tx.ns).ID(2, id)
	if st.One() {
		got.Err = rules.KeepSignal(*id, int(st.ColInt(0)))
	}
	return st.Done()
}

const (
	sqlWaitEnded = `
UPDATE weaver_tasks SET wake_seq = wake_seq + 1, step_count = step_count + 1 WHERE namespace = ?1 AND task_id = ?2`
	sqlWaitWakes = `
UPDATE weaver_tasks SET wake_seq = wake_seq + 1, step_count = step_count + 1,
  state = 'ready', waiting_reason = NULL, ready_at = NULL, updated_at = ?3
WHERE namespace = ?1 AND task_id = ?2`
)

// waitEnded records that a wait of a task was completed from outside (W3). A suspended task
// gets ready; the caller writes its count and its dispatch row. An old due row is replaced by
// a row of the same lane, so that its key need not wake.
func (t *Tx) waitEnded(row *taskRow) (woken bool, err error) {
	c := &row.contribution
	if !rules.Suspended(c.State, c.Waiting, c.Join) {
		return false, t.stmt(sqlWaitEnded).Text(1, t.ns).ID(2, &row.id).Run()
	}
	if _, err := t.undispatch(&row.id); err != nil {
		return false, err
	}
	if row.key != "" {
		if err := t.unawait(&row.id); err != nil {
			return false, err
		}
	}
	return true, t.stmt(sqlWaitWakes).Text(1, t.ns).ID(2, &row.id).Int(3, t.mic).Run()
}
