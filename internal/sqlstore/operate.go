package sqlstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Operate implements store.Ops.
func (s *Store) Operate(ctx context.Context, ns string, cmds ...store.Command) ([]store.CommandResult, error) {
	if len(cmds) == 0 {
		return nil, nil
	}
	got := make([]store.CommandResult, len(cmds))
	for done := 0; done < len(cmds); {
		if keep, ok := cmds[done].(store.KeepFeed); ok {
			if got[done].Err = rules.CheckCommand(keep); got[done].Err == nil {
				if err := s.keepFeed(ctx, ns, keep.Keep); err != nil {
					return nil, err
				}
			}
			done++
			continue
		}
		n, chores, job, err := s.operateSome(ctx, ns, untilFeed(cmds[done:]), got[done:])
		if err == nil && !job.IsZero() {
			err = s.insertJobTasks(ctx, ns, job, nil)
		}
		if err != nil {
			return nil, err
		}
		for _, c := range chores {
			s.finishChores(ctx, ns, c.next, c.add)
		}
		done += n
	}
	return got, nil
}

// untilFeed returns the commands before the first KeepFeed, which has transactions of its own.
func untilFeed(cmds []store.Command) []store.Command {
	for i, c := range cmds {
		if _, ok := c.(store.KeepFeed); ok {
			return cmds[:i]
		}
	}
	return cmds
}

// commandChore is the remaining work of a command, with its result.
type commandChore struct {
	next func(*Tx) (*chore, error)
	add  func(*store.CommandResult)
}

// operateSome applies commands in one transaction, up to the move limit and at least one. It
// stops at a command about a job whose tasks must be inserted first, and returns that job.
func (s *Store) operateSome(ctx context.Context, ns string, cmds []store.Command, got []store.CommandResult) (n int, chores []commandChore, job task.ID, err error) {
	err = s.write(ctx, ns, weightOf(cmds), func(t *Tx) error {
		n, chores, job = 0, nil, task.ID{}
		ahead := lookahead{tx: t, off: s.OneByOne}
		for t.moved < rules.MaxMoves && n < len(cmds) {
			if s.Part > 0 {
				if job, err = t.inParts(cmds[n]); err != nil || !job.IsZero() {
					return err
				}
			}
			together, err := ahead.apply(cmds[n:], got[n:])
			if err != nil {
				return err
			}
			if together > 0 {
				t.fx.Notice.Changed = true
				t.moved += together
				n += together
				continue
			}
			o := operation{tx: t, moves: moves{tx: t}}
			if err := o.one(cmds[n], &got[n]); err != nil {
				return err
			}
			t.fx.Notice.Changed = t.fx.Notice.Changed || rules.Changes(cmds[n], &got[n])
			if o.rest != nil {
				res := &got[n]
				chores = append(chores, commandChore{o.rest, func(more *store.CommandResult) {
					res.Cancelled += more.Cancelled
					res.AskedTasks += more.AskedTasks
					res.AlreadyDone += more.AlreadyDone
				}})
			}
			t.moved++
			n++
		}
		return nil
	})
	return n, chores, job, err
}

// weightOf returns the weight of commands in a group. Operators' commands may move many rows.
func weightOf(cmds []store.Command) int {
	for _, c := range cmds {
		if _, ok := c.(store.Upload); !ok {
			return Heavy
		}
	}
	return min(len(cmds), rules.MaxMoves)
}

// operation is one operator command. Its changes and its audit entry are in one transaction.
type operation struct {
	tx    *Tx
	moves moves
	rest  func(*Tx) (*chore, error) // finds the remaining work of the command, or nil

	revives bool // a chore revives children
}

// leave stores the remaining work of a command, which is worked off before the command
// returns.
func (o *operation) leave(c *chore) error {
	o.rest = func(t *Tx) (*chore, error) { return t.chore(c) }
	return o.tx.putChore(c)
}

// one applies a command. Checks that refuse it come before any write.
func (o *operation) one(cmd store.Command, got *store.CommandResult) error {
	*got = store.CommandResult{}
	if got.Err = rules.CheckCommand(cmd); got.Err != nil {
		return nil
	}
	var err error
	switch cmd := cmd.(type) {
	case store.CancelTask:
		err = o.cancel(cmd, got)
	case store.CancelJob:
		err = o.cancelJob(cmd, got)
	case store.RetryTask:
		err = o.retry(cmd, got)
	case store.UnblockTask:
		err = o.unblock(cmd, got)
	case store.ReplaceInput:
		err = o.replaceInput(cmd, got)
	case store.RescheduleTask:
		err = o.reschedule(cmd, got)
	case store.SendSignal:
		err = o.sendSignal(cmd, got)
	case store.DeleteTask:
		err = o.delete(cmd, got)
	case store.DeleteJob:
		err = o.deleteJob(cmd, got)
	case store.RaiseBudget:
		err = o.raiseBudget(cmd, got)
	case store.RerunTask:
		err = o.rerun(cmd, got)
	case store.PauseTask:
		err = o.pauseTask(cmd, got)
	case store.ResumeTask:
		err = o.resumeTask(cmd, got)
	case store.PauseType:
		err = o.pause(sqlPauseType, cmd.Audit, "pause_type", cmd.Type, store.ChorePauseType)
	case store.ResumeType:
		err = o.resume(sqlResumeType, cmd.Audit, "resume_type", cmd.Type)
	case store.PauseQueue:
		err = o.pause(sqlPauseQueue, cmd.Audit, "pause", cmd.Queue, store.ChorePause)
	case store.ResumeQueue:
		err = o.resume(sqlResumeQueue, cmd.Audit, "resume", cmd.Queue)
	case store.Upload:
		if got.Err, err = o.tx.useBucket(cmd.Bucket); got.Err == nil && err == nil {
			got.Uploaded, err = o.tx.upload(&cmd)
		}
	case store.AcceptBucket:
		err = o.acceptBucket(cmd, got)
	case store.ForgetTask:
		err = o.forgetTask(cmd, got)
	case store.ExpireInput:
		err = o.expireInput(cmd, got)
	case store.AnnounceTypes:
		err = o.announce(cmd, got)
	case store.WriteSchedule:
		err = o.writeSchedule(cmd, got)
	case store.SetLimit:
		err = o.setLimit(cmd, got)
	case store.Rest:
		err = o.restLimit(cmd, got)
	case store.Restored:
		err = o.restored(cmd, got)
	default:
		got.Err = rules.UnknownCommand(cmd)
	}
	if err != nil {
		return err
	}
	if err := o.moves.propagate(); err != nil {
		return err
	}
	if c := o.moves.left; c != nil && o.rest == nil {
		o.rest = func(t *Tx) (*chore, error) { return t.chore(c) }
	}
	return nil
}

// note writes the audit entry of a verb.
func (o *operation) note(a store.Audit, verb, target string) error {
	return NoteFields.Bind(o.tx.stmt(sqlAudit).Text(1, o.tx.ns).Int(2, o.tx.mic), 3, &AuditNote{a, verb, target}).Run()
}

// find returns the task of a command and sets its state in got, or returns nil and sets the
// error.
func (o *operation) find(id task.ID, seen store.Seen, got *store.CommandResult) (*taskRow, error) {
	row, err := o.moves.taskRow(&id)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		got.Err = rules.NotFound(id)
		return nil, nil
	}
	if row.contribution.State.Terminal() {
		leaving, err := o.tx.leaving(&id, &row.job)
		if err != nil {
			return nil, err
		}
		if leaving {
			got.Err = rules.NotFound(id)
			return nil, nil
		}
	}
	got.State = row.contribution.State
	if got.Err = rules.CheckSeen(id, seen, row.epoch, sqlstmt.Instant(row.updatedAt)); got.Err != nil {
		return nil, nil
	}
	return row, nil
}

// cancel ends a task, asks its worker to end it, or begins its cleanup.
func (o *operation) cancel(cmd store.CancelTask, got *store.CommandResult) error {
	row, err := o.find(cmd.Task, cmd.Seen, got)
	if err != nil || row == nil {
		return err
	}
	if got.Err = rules.CheckCancel(&cmd, row.contribution.State, row.undo); got.Err != nil {
		return nil
	}
	ending := rules.ResolveEnd(&rules.Unfinished{State: row.contribution.State, Phase: row.undo, Force: cmd.Force, Abandon: cmd.Abandon})
	if err := o.note(cmd.Audit, rules.CancelVerb(&cmd, ending), row.id.String()); err != nil {
		return err
	}
	switch ending {
	case rules.ForcesUndo:
		got.State, err = o.moves.forceUndo(row, cmd.Audit)
	case rules.AbandonsUndo:
		got.State, err = o.moves.abandonUndo(row, cmd.Audit)
	default:
		got.State, err = o.moves.endBy(row, task.KindCancelled, cmd.Audit, cmd.Force)
	}
	got.Asked = !got.State.Terminal()
	return err
}

// endBy ends a task, begins its undo, or asks it to end. The reason (kind) is an operator's
// cancel, its parent's end, or its job's used-up budget. endBy returns the task's new state.
func (m *moves) endBy(row *taskRow, kind task.ErrorKind, a store.Audit, force bool) (task.State, error) {
	switch rules.ResolveEnd(&rules.Unfinished{State: row.contribution.State, Phase: row.undo, Force: force}) {
	case rules.EndAsked:
		return task.Running, m.ask(row, kind, a)
	case rules.InPhase:
		return row.contribution.State, nil
	}
	return m.cancelNow(row, kind, a, force)
}

// endEach is endBy for the unfinished tasks of a list.
func (m *moves) endEach(list []task.ID, kind task.ErrorKind, reason string) error {
	if _, err := m.tx.db.Tasks(m.tx, list...); err != nil {
		return err
	}
	for i := range list {
		row, err := m.taskRow(&list[i])
		if err != nil {
			return err
		}
		if row == nil || row.contribution.State.Terminal() {
			continue
		}
		if _, err := m.endBy(row, kind, store.Audit{Reason: reason}, false); err != nil {
			return err
		}
	}
	return nil
}

const sqlAsk = `
UPDATE weaver_tasks SET cancel_requested = 1, cancel_kind = ?5, cancel_by = ?3, cancel_reason = ?4
WHERE namespace = ?1 AND task_id = ?2 AND cancel_requested = 0`

// ask asks a running task to end. The first request stays on record. The deadline is not
// watched any more.
func (m *moves) ask(row *taskRow, kind task.ErrorKind, a store.Audit) error {
	t := m.tx
	t.fx.Notice.Cancels = append(t.fx.Notice.Cancels, row.id)
	if row.asked {
		return nil
	}
	if err := t.deleteTimer(&row.id, row.deadline); err != nil {
		return err
	}
	return t.stmt(sqlAsk).Text(1, t.ns).ID(2, &row.id).OrNull(3, a.By).OrNull(4, a.Reason).Text(5, string(kind)).Run()
}

// cancelNow ends a task as cancelled, revoking its lease if it runs, or begins its undo. It
// returns the new state.
func (m *moves) cancelNow(row *taskRow, kind task.ErrorKind, a store.Audit, force bool) (task.State, error) {
	to := row.cancelTo(kind, a, force, m.tx.at)
	var err error
	if row.contribution.State == task.Running {
		err = m.revoke(row, &to, to.Failure)
	} else {
		err = m.end(row, &to)
	}
	if err != nil {
		return "", err
	}
	return to.State, m.tx.stmt(sqlCancelledBy).Text(1, m.tx.ns).ID(2, &row.id).OrNull(3, a.By).OrNull(4, a.Reason).Text(5, string(kind)).Run()
}

// cancelTo returns the transition of a task for a cancel: it ends, or begins its undo.
func (w *taskRow) cancelTo(kind task.ErrorKind, a store.Audit, force bool, now time.Time) rules.Transition {
	failure := rules.CancelFailure(rules.CancelRequest{Kind: kind, By: a.By, Reason: a.Reason}, w.deadlineAt())
	to := rules.Transition{State: task.Cancelled, Outcome: task.OutcomeCancelled, Failure: failure}
	u, lease := w.undoable(), w.revoked()
	u.Forced, u.Hold = force, lease.Lease
	to.BeginUndo(u, lease.Until, now)
	return to
}

const sqlCancelJob = `
UPDATE weaver_jobs SET cancel_requested = 1, cancel_by = ?3, cancel_reason = ?4 WHERE namespace = ?1 AND job_id = ?2 AND cancel_requested = 0`

// cancelJob ends the tasks of a job that do not run, and asks the others to end. It ends all
// of them before it propagates to dependents, so that the end of one task neither starts nor
// ends another.
func (o *operation) cancelJob(cmd store.CancelJob, got *store.CommandResult) error {
	t := o.tx
	job, err := t.job(&cmd.Job)
	switch {
	case err != nil:
		return err
	case job == nil:
		got.Err = rules.JobNotFound(cmd.Job)
		return nil
	case job.State.Terminal():
		got.AlreadyDone = job.Counters.Total
		return nil
	}
	if err := o.note(cmd.Audit, "cancel_job", cmd.Job.String()); err != nil {
		return err
	}
	if err := t.stmt(sqlCancelJob).Text(1, t.ns).ID(2, &cmd.Job).OrNull(3, cmd.By).OrNull(4, cmd.Reason).Run(); err != nil {
		return err
	}
	c := chore{kind: store.ChoreCancelJob, id: cmd.Job, by: cmd.By, why: cmd.Reason}
	more, err := o.cancelSome(&c, got)
	if err != nil || !more {
		return err
	}
	return o.leave(&c)
}

const sqlNewGeneration = `
INSERT INTO weaver_store_meta (namespace, key, value) VALUES (?1, 'generation', ?2) ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value`

// restored begins a new generation of the store, which invalidates all earlier leases. The
// tasks come back when their leases expire, or now.
func (o *operation) restored(cmd store.Restored, got *store.CommandResult) error {
	if err := o.note(cmd.Audit, "restored", ""); err != nil {
		return err
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	if err := o.tx.stmt(sqlNewGeneration).Text(1, o.tx.ns).Text(2, hex.EncodeToString(b[:])).Run(); err != nil {
		return err
	}
	o.tx.fx.ChangeGeneration()
	running, err := o.tx.running()
	o.tx.fx.Notice.Cancels = append(o.tx.fx.Notice.Cancels, running...)
	if err == nil && cmd.EndLeases {
		got.Leases, err = o.endLeases()
	}
	return err
}

// endLeases ends all leases in this one transaction. No other process works in a store that
// was just restored, and there are at most twice as many leases as its workers had slots.
func (o *operation) endLeases() (int, error) {
	rows, err := claimColumns.All(o.tx.stmt(sqlAllClaims).Text(1, o.tx.ns))
	if err != nil {
		return 0, err
	}
	r := reaping{tx: o.tx, moves: o.moves, req: &store.ReapRequest{CrashBudget: -1, Limit: math.MaxInt}, restored: true}
	var reaped []store.Reaped
	for i := range rows {
		if reaped, err = r.claim(&rows[i], reaped); err != nil {
			return 0, err
		}
	}
	o.moves = r.moves
	return len(reaped), nil
}
