package memstore

import (
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// retry revives a failed or cancelled task and the tasks that ended because of it.
func (o *op) retry(cmd store.RetryTask) store.CommandResult {
	r, res := o.find(cmd.Task, cmd.Seen)
	if res.Err != nil {
		return res
	}
	if err := rules.CheckForgotten(r.ID, r.State, r.Forgotten); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if cmd.Cleanup {
		return o.retryUndo(r, &cmd)
	}
	if err := rules.CheckUndone(r.ID, r.State, r.Undo); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if err := rules.CheckRetry(r.ID, r.State, rules.KindOf(r.Error), r.Join, o.needsOf(r)); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if err := rules.CheckJobBudget(r.ID, r.State, o.jobs[r.JobID]); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if err := rules.CheckChildUndone(r.ID, r.State, o.givenUpWith(r)); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	ran := o.cleanedUpWith(r)
	if !cmd.KeepSteps {
		if err := rules.CheckCleanedUp(r.ID, r.State, o.needsOf(r), ran); err != nil {
			return store.CommandResult{State: r.State, Err: err}
		}
	}
	attempts, cost, err := rules.RaisedLimits(&cmd, r.MaxAttempts, r.MaxCost)
	if err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	r.MaxAttempts, r.MaxCost = attempts, cost
	o.note(store.Audit{By: cmd.By, Reason: rules.KeepNote(r.ID, ran, rules.RetryNote(&cmd))}, rules.RetryVerb(&cmd), r.ID.String())
	o.bringBack(r, cmd.KeepSteps)
	if j, ok := o.jobs[r.JobID]; ok {
		j.CancelRequested, j.CancelBy, j.CancelReason = false, "", ""
		o.resolveJob(j)
	}
	return store.CommandResult{State: r.State}
}

// retryUndo retries the undo of a task, alone.
func (o *op) retryUndo(r *row, cmd *store.RetryTask) store.CommandResult {
	if err := rules.CheckUndoRetry(cmd, r.State, r.Waiting, r.Undo); err != nil {
		return store.CommandResult{State: r.State, Err: err}
	}
	if len(cmd.Skip) > 0 {
		of := o.undoes(r)
		skip, err := rules.StepsToSkip(cmd, r.State, o.steps[of.ID])
		for _, s := range skip {
			if o.callsEnded(s) != nil {
				err = rules.SkipsTooEarly(cmd, r.State, s.Name)
			}
		}
		if err != nil {
			return store.CommandResult{State: r.State, Err: err}
		}
		for _, s := range skip {
			o.retire(of, s, task.UndoSkipped)
		}
	}
	o.note(rules.SkipNote(cmd), rules.RetryVerb(cmd), r.ID.String())
	gaveUp := r.State.Terminal()
	to := rules.ResumeUndo(r.Undo, r.AttemptNo, o.now)
	o.leave(r, &to)
	if !r.Undo.Undoes().IsZero() {
		if parent := o.tasks[r.ParentID]; parent != nil {
			if follows := rules.FollowsRetry(parent.ID, parent.Undo, cmd); follows != nil {
				o.retryUndo(parent, follows)
			}
		}
	}
	if !gaveUp {
		return store.CommandResult{State: r.State}
	}
	r.FinishedAt = time.Time{}
	r.Epoch++
	for again := []*row{r}; len(again) > 0; again = again[1:] {
		for _, e := range o.dependents[again[0].ID] {
			d := o.tasks[e.Task]
			if !o.waitAgain(d, e) && rules.HeldUp(d.State, rules.KindOf(d.Error)) && rules.RevivesDependent(d.State, rules.KindOf(d.Error), d.Join, o.needsOf(d)) {
				again = append(append(again, d), o.revive(d)...)
			}
		}
	}
	if j, ok := o.jobs[r.JobID]; ok {
		o.resolveJob(j)
	}
	return store.CommandResult{State: r.State}
}

// waitAgain makes an unstarted dependent, or a call, wait for a dependency that
// continues. It reports whether it does.
func (o *op) waitAgain(d *row, e *store.EdgeRow) bool {
	switch {
	case e.Step != "":
		o.reopenCall(d, e)
		return true
	case e.Done && rules.ReopensEdge(d.State, d.Waiting, d.AttemptNo, d.Join, e.Awaited > 0):
		o.reopen(d, e)
		return true
	}
	return false
}

// bringBack revives a task and the tasks that ended because of it. A dependent with a
// completed cleanup stays ended unless its steps are kept.
func (o *op) bringBack(r *row, keepSteps bool) {
	revived := append([]*row{r}, o.revive(r)...)
	// A dependent is checked each time one of its dependencies revives, so the last of
	// them revives it.
	for ; len(revived) > 0; revived = revived[1:] {
		for _, e := range o.dependents[revived[0].ID] {
			d := o.tasks[e.Task]
			switch {
			case o.waitAgain(d, e):
			case !keepSteps && rules.FirstCleanup(o.steps[d.ID]) != nil:
			case !rules.SpentUp(o.jobs[d.JobID]) && rules.RevivesDependent(d.State, rules.KindOf(d.Error), d.Join, o.needsOf(d)):
				revived = append(append(revived, d), o.revive(d)...)
			}
		}
	}
}

// reopen makes a dependent wait for a retried dependency, unless another failed
// dependency lets it start.
func (o *op) reopen(r *row, e *store.EdgeRow) {
	open(e)
	r.RemainingDeps = rules.TaskWaits(r.Join, o.needsOf(r), rules.Unmarked).Open
	if r.RemainingDeps > 0 && r.Join == task.JoinNone {
		o.unschedule(r)
		o.move(r, task.Pending, task.WaitDeps, r.Error)
	}
}

// revive restores all attempts of a task.
func (o *op) revive(r *row) []*row {
	needs := o.needsOf(r)
	var limit time.Time
	if j, ok := o.jobs[r.JobID]; ok && rules.Past(r.DeadlineAt, o.now) {
		j.DeadlineAt = rules.ExtendedDeadline(j.Budget, j.DeadlineAt, o.now)
		limit = j.DeadlineAt
	}
	end, join := rules.KindOf(r.Error), r.Join
	v := rules.Revive(&rules.Revived{Needs: needs, End: end, Join: r.Join, Deadline: r.DeadlineAt, Job: limit}, o.now)
	r.AttemptCount, r.CrashCount, r.QuarantineLosses, r.InternalCount, r.RepairCount, r.IdleAttempts = 0, 0, 0, 0, 0, 0
	r.CancelRequested, r.CancelKind, r.CancelBy, r.CancelReason = false, task.KindNone, "", ""
	r.Undo = rules.RevivedPhase(needs, o.now)
	r.FinishedAt, r.ReadyAt, r.DeadlineAt = time.Time{}, time.Time{}, v.Deadline
	o.watch(r)
	r.Epoch++
	r.RemainingDeps, r.Join = v.Waits.Open, v.Join
	for i, e := range o.needs[r.ID] {
		switch {
		case e.Step != "": // handled below
		case e.Awaited == 0:
			e.Done = needs[i].Ended()
		case v.Join != task.JoinNone: // it may have been retried since
			o.setEdge(e, &needs[i])
		}
	}
	o.reviveCalls(r, needs)
	o.putAside(r)
	if v.State == task.Ready {
		o.makeReady(r, o.now, task.WaitNone, nil)
	} else {
		o.move(r, v.State, v.Waiting, nil)
	}
	return o.reviveChildren(r, needs, join, end)
}
