package sqlstore

import (
	"time"

	"github.com/goweaver/weaver/internal/lane"
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// A database with Bulk applies commands of one verb together (ADR 0056). It locks and reads
// their tasks ahead, and writes each table once for all tasks that share nothing with others
// except the counters of their jobs. The commands of such tasks commute with all other
// commands of the transaction, which are applied one by one in their places. Both ways use the
// same rules.

// BulkVerbs are the set-based statements of operators' verbs.
type BulkVerbs interface {
	// Targets locks tasks like Locks.Tasks, and reads them (TargetSelect). The IDs are sorted.
	Targets(t *Tx, ids []task.ID) *sqlstmt.Stmt
	// Beside selects the IDs of tasks with rows in other tables that exclude them from a set
	// of the verb. events is the number of events or logs from which on a task is excluded.
	Beside(t *Tx, verb SetVerb, ids []task.ID, events int) *sqlstmt.Stmt
	// Undispatch makes tasks unclaimable.
	Undispatch(t *Tx, ids []task.ID) error
	// CancelEach ends tasks that do not run as cancelled.
	CancelEach(t *Tx, tasks []CancelledTask) error
	// ReviveEach makes tasks ready, with all their attempts.
	ReviveEach(t *Tx, tasks []RevivedTask) error
	// UnblockEach makes blocked tasks ready.
	UnblockEach(t *Tx, tasks []UnblockedTask) error
	// NoteEach writes audit entries, in their order.
	NoteEach(t *Tx, notes []AuditNote) error
}

// SetVerb is a verb that can be applied to sets of tasks.
type SetVerb int

// The verbs.
const (
	NoSet SetVerb = iota // the command is applied alone
	SetCancel
	SetRetry
	SetUnblock
	SetDelete
)

// CancelledTask is an element of CancelEach.
type CancelledTask struct {
	ID         task.ID
	Failure    *task.Error
	By, Reason string
}

// RevivedTask is an element of ReviveEach.
type RevivedTask struct {
	ID       task.ID
	Deadline time.Time // zero: no deadline
}

// UnblockedTask is an element of UnblockEach.
type UnblockedTask struct {
	ID                task.ID
	Attempts, Repairs int // new counts
}

// AuditNote is an element of NoteEach.
type AuditNote struct {
	store.Audit
	Verb, Target string
}

// target is a task as read by set-based verbs.
type target struct {
	taskRow
	dropped bool // its values were dropped
	also    targetMore
}

// targetMore holds the fields read by single verbs.
type targetMore struct {
	labels                map[string]string
	payloads              bool // weaver_payloads may have some of its texts
	attempts, maxAttempts int
	repairs, maxRepairs   int
	failure               *task.Error
}

var targetColumns = sqlstmt.Columns[target]{
	sqlstmt.Col("values_dropped", func(w *target, r *sqlstmt.Row, i int) { w.dropped = r.Bool(i) }),
	sqlstmt.Col("options_json", func(w *target, r *sqlstmt.Row, i int) {
		var of task.Task
		r.Options(i, &of)
		w.also.labels = of.Labels
	}),
	sqlstmt.Col("has_payloads", func(w *target, r *sqlstmt.Row, i int) { w.also.payloads = r.Bool(i) }),
	sqlstmt.Col("attempt_count", func(w *target, r *sqlstmt.Row, i int) { w.also.attempts = int(r.Int(i)) }),
	sqlstmt.Col("max_attempts", func(w *target, r *sqlstmt.Row, i int) { w.also.maxAttempts = int(r.Int(i)) }),
	sqlstmt.Col("repair_count", func(w *target, r *sqlstmt.Row, i int) { w.also.repairs = int(r.Int(i)) }),
	sqlstmt.Col("max_repairs", func(w *target, r *sqlstmt.Row, i int) { w.also.maxRepairs = int(r.Int(i)) }),
	sqlstmt.Col("CASE WHEN state = 'blocked' THEN last_error_json END", func(w *target, r *sqlstmt.Row, i int) { w.also.failure = r.Error(i) }),
}

// TargetSelect lists the columns that BulkVerbs.Targets returns.
var TargetSelect = taskRowSelect + ", " + targetColumns.List()

func scanTarget(r *sqlstmt.Row, w *target) {
	scanTaskRow(r, &w.taskRow)
	targetColumns.Scan(r, len(leaseColumns)+len(taskRowColumns), w)
}

// apart reports whether, according to its row, a task shares nothing with other tasks. It
// fails closed: every field not named here must be zero, including fields added later.
func (w *target) apart(verb SetVerb) bool {
	rest := w.taskRow
	// Fields that verbs take into account, or do not read.
	rest.id, rest.lane, rest.contribution = task.ID{}, lane.Key{}, propagate.Contribution{}
	rest.epoch, rest.attemptNo, rest.worker, rest.startedAt, rest.idle, rest.crashes = 0, 0, "", 0, 0, 0
	rest.createdAt, rest.updatedAt, rest.deadline, rest.cost, rest.maxCost, rest.wakeSeq = time.Time{}, 0, 0, 0, 0, 0
	rest.cleansUp, rest.job, rest.node, rest.mayFail = false, task.ID{}, "", false
	if verb == SetRetry || verb == SetDelete { // of a task that has ended after a request to end
		rest.asked, rest.cancelled, rest.by, rest.reason = false, "", "", ""
	}
	return rest == taskRow{} && !w.dropped
}

// setVerb returns the verb and the task of a command that can be applied in a set.
func setVerb(cmd store.Command) (SetVerb, task.ID) {
	switch cmd := cmd.(type) {
	case store.CancelTask:
		return SetCancel, cmd.Task
	case store.RetryTask:
		if cmd.Cleanup || cmd.AddAttempts != 0 || cmd.AddCost != 0 || len(cmd.Skip) > 0 {
			return NoSet, task.ID{}
		}
		return SetRetry, cmd.Task
	case store.UnblockTask:
		if len(cmd.Input) > 0 {
			return NoSet, task.ID{}
		}
		return SetUnblock, cmd.Task
	case store.DeleteTask:
		return SetDelete, cmd.Task
	}
	return NoSet, task.ID{}
}

// verbSet applies commands of one verb to tasks that share nothing with others.
type verbSet struct {
	tx    *Tx
	moves moves
	verb  SetVerb

	targets   []*target
	notes     []AuditNote
	cancelled []CancelledTask
	revived   []RevivedTask
	unblocked []UnblockedTask
}

// add decides about a command. It returns false if the command is refused, or does more than a
// set can.
func (s *verbSet) add(cmd store.Command, w *target, got *store.CommandResult) (ok bool) {
	res := store.CommandResult{State: w.contribution.State}
	var note AuditNote
	switch cmd := cmd.(type) {
	case store.CancelTask:
		note, ok = s.cancel(&cmd, w, &res)
	case store.RetryTask:
		note, ok = s.retry(&cmd, w, &res)
	case store.UnblockTask:
		note, ok = s.unblock(&cmd, w, &res)
	case store.DeleteTask:
		note, ok = s.delete(&cmd, w, &res)
	}
	if !ok {
		return false
	}
	note.Target = w.id.String()
	s.notes, s.targets, *got = append(s.notes, note), append(s.targets, w), res
	return true
}

// seen reports whether a task is unchanged since the operator saw it.
func (w *target) seen(seen store.Seen) bool {
	return rules.CheckSeen(w.id, seen, w.epoch, sqlstmt.Instant(w.updatedAt)) == nil
}

// cancel is operation.cancel.
func (s *verbSet) cancel(cmd *store.CancelTask, w *target, got *store.CommandResult) (AuditNote, bool) {
	state := w.contribution.State
	ending := rules.ResolveEnd(&rules.Unfinished{State: state, Force: cmd.Force, Abandon: cmd.Abandon})
	if !w.seen(cmd.Seen) || rules.CheckCancel(cmd, state, nil) != nil || ending != rules.EndsNow || state == task.Running {
		return AuditNote{}, false
	}
	to := w.cancelTo(task.KindCancelled, cmd.Audit, cmd.Force, s.tx.at)
	if to.SetUndo {
		return AuditNote{}, false
	}
	s.cancelled = append(s.cancelled, CancelledTask{w.id, to.Failure, cmd.By, cmd.Reason})
	got.State = to.State
	return AuditNote{cmd.Audit, rules.CancelVerb(cmd, ending), ""}, true
}

// retry is operation.retry.
func (s *verbSet) retry(cmd *store.RetryTask, w *target, got *store.CommandResult) (AuditNote, bool) {
	at := w.contribution
	extends := !w.job.IsZero() && rules.Past(w.deadlineAt(), s.tx.at) // it extends the deadline of its job
	if !w.seen(cmd.Seen) || rules.CheckRetry(w.id, at.State, at.Kind, task.JoinNone, nil) != nil || extends {
		return AuditNote{}, false
	}
	v := rules.Revive(&rules.Revived{End: at.Kind, Deadline: w.deadlineAt()}, s.tx.at)
	if v.State != task.Ready {
		return AuditNote{}, false
	}
	s.revived = append(s.revived, RevivedTask{w.id, v.Deadline})
	got.State = v.State
	return AuditNote{store.Audit{By: cmd.By, Reason: rules.RetryNote(cmd)}, rules.RetryVerb(cmd), ""}, true
}

// unblock is operation.unblock without an input.
func (s *verbSet) unblock(cmd *store.UnblockTask, w *target, got *store.CommandResult) (AuditNote, bool) {
	at, of := w.contribution, &w.also
	if !w.seen(cmd.Seen) || rules.CheckUnblock(cmd, at.State, at.Waiting, of.failure) != nil {
		return AuditNote{}, false
	}
	s.unblocked = append(s.unblocked, UnblockedTask{
		w.id, rules.UnblockedAttempts(of.attempts, of.maxAttempts), rules.UnblockedRepairs(of.repairs, of.maxRepairs),
	})
	got.State = task.Ready
	return AuditNote{cmd.Audit, "unblock", ""}, true
}

// delete is operation.delete.
func (s *verbSet) delete(cmd *store.DeleteTask, w *target, got *store.CommandResult) (AuditNote, bool) {
	if !w.seen(cmd.Seen) || rules.CheckDelete(w.id, w.contribution.State, w.job, task.ID{}, rules.Awaiter{}, task.ID{}) != nil {
		return AuditNote{}, false
	}
	got.State = ""
	return AuditNote{cmd.Audit, "delete", ""}, true
}

// write writes the decided commands.
func (s *verbSet) write() (err error) {
	t := s.tx
	ids := make([]task.ID, len(s.targets))
	for i, w := range s.targets {
		ids[i] = w.id
	}
	if err := t.bulk.NoteEach(t, s.notes); err != nil {
		return err
	}
	switch s.verb {
	case SetCancel:
		err = s.writeCancel(ids)
	case SetRetry:
		if err = t.bulk.ReviveEach(t, s.revived); err == nil {
			err = s.reviveJobs()
		}
		if err == nil {
			err = s.writeReady(ids)
		}
	case SetUnblock:
		if err = t.bulk.UnblockEach(t, s.unblocked); err == nil {
			err = s.dropAnswers()
		}
		if err == nil {
			err = s.writeReady(ids)
		}
	case SetDelete:
		err = s.writeDelete(ids)
	}
	if err != nil {
		return err
	}
	return s.moves.propagate()
}

// dropAnswers deletes the inputs of earlier unblocks.
func (s *verbSet) dropAnswers() error {
	for _, w := range s.targets {
		if !w.also.payloads {
			continue
		}
		for _, kind := range []string{kindUnblock, kindFor} {
			if err := s.tx.replacePayload(&w.id, kind, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// runEach runs a statement over IDs that returns no rows.
func runEach(st *sqlstmt.Stmt, _ []task.ID) error { return st.Run() }

func (s *verbSet) writeCancel(ids []task.ID) error {
	t := s.tx
	if err := t.bulk.Undispatch(t, ids); err != nil {
		return err
	}
	if err := t.bulk.CancelEach(t, s.cancelled); err != nil {
		return err
	}
	for i, w := range s.targets {
		end := w.endOf(task.Cancelled, rules.KindOf(s.cancelled[i].Failure))
		s.moves.pending.Count(w.job, w.contribution, propagate.Contribution{End: end})
		if err := s.moves.ended(&w.leaseRow, end); err != nil {
			return err
		}
	}
	return nil
}

// reviveJobs is reviveJob for the jobs of the tasks.
func (s *verbSet) reviveJobs() error {
	o := operation{tx: s.tx, moves: s.moves}
	done := make(map[task.ID]bool)
	for _, w := range s.targets {
		if done[w.job] {
			continue
		}
		done[w.job] = true
		if err := o.reviveJob(w.job); err != nil {
			return err
		}
	}
	s.moves = o.moves
	return nil
}

// writeReady makes the ready tasks claimable.
func (s *verbSet) writeReady(ids []task.ID) error {
	t := s.tx
	if err := t.bulk.Undispatch(t, ids); err != nil {
		return err
	}
	rows := make([]store.DispatchRow, len(s.targets))
	for i, w := range s.targets {
		rows[i] = w.dispatchRow(t.at)
		s.moves.pending.Count(w.job, w.contribution, propagate.Unfinished(task.Ready, task.WaitNone))
	}
	for i := range s.revived {
		if r := &s.revived[i]; !r.Deadline.IsZero() {
			if err := t.insertTimer(&r.ID, r.Deadline); err != nil {
				return err
			}
		}
	}
	return t.dispatchAll(rows)
}

// sqlDeleteSet is sqlDelete for tasks without pauses, signals and edges, and dropEvents for
// tasks with few events.
var sqlDeleteSet = []chunkSQL{
	sqlEraseTasks, eraseFrom("weaver_payloads"), eraseFrom("weaver_attempts"), eraseFrom("weaver_decisions"), eraseFrom("weaver_steps"),
	eraseFrom("weaver_checkpoints"), eraseFrom("weaver_events"), eraseFrom("weaver_logs"),
}

func (s *verbSet) writeDelete(ids []task.ID) error {
	for _, w := range s.targets {
		if err := s.tx.deleteLabelsOf(&w.id, w.also.labels); err != nil {
			return err
		}
	}
	for _, sql := range sqlDeleteSet {
		if err := s.tx.byIDs(sql, ids, runEach); err != nil {
			return err
		}
	}
	return nil
}
