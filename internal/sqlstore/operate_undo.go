package sqlstore

import (
	"github.com/goweaver/weaver/internal/propagate"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// forceUndo revokes the lease of a running undo attempt, if there is one. It returns the
// task's new state.
func (m *moves) forceUndo(row *taskRow, a store.Audit) (task.State, error) {
	failure := rules.CancelFailure(rules.CancelRequest{Kind: task.KindCancelled, By: a.By, Reason: a.Reason}, row.deadlineAt())
	to := rules.ForceUndo(row.undo, row.revoked(), failure, m.tx.at)
	if row.contribution.State != task.Running {
		return row.contribution.State, m.tx.setUndo(&row.id, &to)
	}
	return to.State, m.revoke(row, &to, failure)
}

// abandonUndo gives the undo of a task up, or accepts that it was given up. It returns the
// task's new state.
func (m *moves) abandonUndo(row *taskRow, a store.Audit) (task.State, error) {
	if row.contribution.State.Terminal() {
		return row.contribution.State, m.tx.setUndo(&row.id, &rules.Transition{SetUndo: true, Undo: rules.AcceptGivenUp(row.undo)})
	}
	to := rules.AbandonUndo(row.undo, row.revoked(), a, m.tx.at)
	if row.contribution.State == task.Running {
		return to.State, m.revoke(row, &to, to.Failure)
	}
	return to.State, m.end(row, &to)
}

// revoked returns the lease of a running task for an operator's revocation.
func (w *taskRow) revoked() *rules.Revoked {
	if w.contribution.State != task.Running {
		return new(rules.Revoked)
	}
	return &rules.Revoked{Lease: w.leaseID, Until: sqlstmt.Instant(w.leaseEnd), Key: w.key != ""}
}

// undoAgain is the actor of a chore that revives nothing: unstarted dependents wait again for
// the task whose undo is retried.
const undoAgain = "retry_cleanup"

const sqlReviveUndo = `UPDATE weaver_tasks SET finished_at = NULL, lease_epoch = lease_epoch + 1 WHERE namespace = ?1 AND task_id = ?2`

// retryUndo retries only the undo of a task.
func (o *operation) retryUndo(row *taskRow, cmd *store.RetryTask, got *store.CommandResult) error {
	at := row.contribution
	if got.Err = rules.CheckUndoRetry(cmd, at.State, at.Waiting, row.undo); got.Err != nil {
		return nil
	}
	cancelling, err := o.tx.cancelling()
	if err != nil {
		return err
	}
	if at.State.Terminal() && cancelling[row.job] {
		got.Err = rules.JobBeingCancelled(row.id, row.job)
		return nil
	}
	if len(cmd.Skip) > 0 {
		of := row.undo.Undoes()
		if of.IsZero() {
			of = row.id
		}
		steps, err := o.tx.steps(&of)
		if err != nil {
			return err
		}
		var skip []*task.Step
		if skip, got.Err = rules.StepsToSkip(cmd, at.State, steps); got.Err != nil {
			return nil
		}
		for _, s := range skip {
			refused, err := o.tx.callEnded(s)
			if err != nil {
				return err
			}
			if refused != nil {
				got.Err = rules.SkipsTooEarly(cmd, at.State, s.Name)
				return nil
			}
		}
		for _, s := range skip {
			if err := o.tx.retire(s, task.UndoSkipped, of != row.id); err != nil {
				return err
			}
		}
	}
	if err := o.note(rules.SkipNote(cmd), rules.RetryVerb(cmd), row.id.String()); err != nil {
		return err
	}
	if !row.undo.Undoes().IsZero() {
		if err := o.retryParent(row, cmd); err != nil {
			return err
		}
	}
	if got.State = task.Pending; !at.State.Terminal() {
		if err := o.moves.unschedule(row); err != nil {
			return err
		}
		return o.resumeUndo(row)
	}
	to := rules.ResumeUndo(row.undo, row.attemptNo, o.tx.at)
	if err := o.moves.writeBegin(&row.id, &to); err != nil {
		return err
	}
	if err := o.tx.stmt(sqlReviveUndo).Text(1, o.tx.ns).ID(2, &row.id).Run(); err != nil {
		return err
	}
	o.moves.pending.Count(row.job, at, propagate.Unfinished(to.State, to.Waiting))
	o.moves.pending.Recount(row.job)
	return o.reviveRest(&chore{kind: store.ChoreRevive, id: row.id, root: row.id, epoch: row.epoch + 1, by: undoAgain})
}
