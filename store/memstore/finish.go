package memstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Finish implements store.Core.
func (s *Store) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	out := make([]store.FinishResult, len(fins))
	err := s.do(ctx, ns, func(o *op) {
		// Retries that draw from a budget come last, after all other finishes were
		// counted.
		drawn := map[task.Lease]int{}
		var last []int
		for i := range fins {
			f := &fins[i]
			if _, again := drawn[f.Lease]; again || o.draws(f) {
				last = append(last, i)
				drawn[f.Lease]++
			} else {
				out[i] = o.finish(f)
			}
		}
		for lease := range drawn {
			j := o.jobs[o.tasks[lease.Task].JobID]
			j.AttemptsUsed++
			o.resolveJob(j)
		}
		for _, i := range last {
			out[i] = o.finish(&fins[i])
		}
		o.propagate()
		o.noteJobs(fins, out)
	})
	return out, err
}

// noteJobs sets the job states in the results of a batch of finishes.
func (o *op) noteJobs(fins []store.Finish, out []store.FinishResult) {
	for i := range fins {
		if out[i].Job == "" {
			continue
		}
		j := o.jobs[o.tasks[fins[i].Lease.Task].JobID]
		if was, counted := o.jobWas[j]; counted && was != j.State {
			out[i].Job = j.State
		} else {
			out[i].Job = ""
		}
	}
}

// draws reports whether a finish with a valid lease is a retry that its job's budget may
// override.
func (o *op) draws(f *store.Finish) bool {
	r, err := o.guard(f.Lease)
	if err != nil || rules.CheckFinish(f) != nil || o.limited(r) == nil {
		return false
	}
	t := o.resolve(r, f)
	return t.Draws()
}

// finish ends one attempt if its lease is valid. A retry that draws from a budget was
// already counted.
func (o *op) finish(f *store.Finish) store.FinishResult {
	if err := rules.CheckFinish(f); err != nil {
		return store.FinishResult{Err: err}
	}
	if err := o.usable(rules.FinishBlobs(f)); err != nil {
		return store.FinishResult{Err: err}
	}
	r, err := o.guard(f.Lease)
	if err != nil {
		return o.finishedBefore(f, err)
	}
	t := o.resolve(r, f)
	counted := t.Draws()
	if j := o.limited(r); j != nil {
		t.Overrule(j)
	}
	o.mayUndo(r, f, &t)
	t.Idle = rules.IdleAttempts(f, &t, r.IdleAttempts)
	decision, err := o.decision(r, &t)
	if err != nil {
		return store.FinishResult{Err: err}
	}
	o.addEvents(f.Lease, f.Events)
	a := r.attempt()
	a.CodeVersion, a.OutcomeHash = f.CodeVersion, f.Hash()
	a.Handler, a.RouteReason = f.Handler, f.RouteReason
	a.StepsRun, a.StepsUnreached = copyList(f.StepsRun), copyList(f.StepsUnreached)
	a.Notes = copyMap(f.Notes)
	o.recordAttempt(a, t.Outcome, t.Failure)
	if decision != nil {
		o.decisions[r.ID] = append(o.decisions[r.ID], *decision)
	}
	if f.Progress != nil {
		r.Progress = copyPtr(f.Progress)
	}
	r.count(&t)
	if !counted {
		o.draw(r, &t)
	}
	o.endLease(r)
	if t.Join != task.JoinNone { // the join counts it
		r.Join = t.Join
	}
	o.transition(r, &t)
	switch {
	case t.Awaited:
		o.depend(r, f.DependsOn)
	case t.Join != task.JoinNone:
		o.decompose(r, f, &t)
	}
	res := store.FinishResult{State: r.State, Waiting: r.Waiting, Overruled: rules.Overruled(f, &t)}
	if j := o.jobs[r.JobID]; j != nil {
		res.Job = j.State // until the whole batch is counted
	}
	return res
}

// mayUndo turns the end of a task into the begin of its undo phase if there are steps to
// undo.
func (o *op) mayUndo(r *row, f *store.Finish, t *rules.Transition) {
	u := r.undoable()
	u.Unclean, u.Unaware = f.Unclean, t.Unaware || f.Panicked
	t.BeginUndo(u, time.Time{}, o.now)
}

// undoable returns the steps left to undo at the end of a task without a report of its
// handler.
func (r *row) undoable() *rules.Undoable {
	return &rules.Undoable{
		Open: r.UndoOpen, Began: rules.Began(r.State, r.Waiting, r.Join, r.AttemptNo), CleansUp: r.CleanupWhenCancelled, Unaware: true,
		Phase: r.Undo, Key: r.State == task.Running && r.ConcurrencyKey != "",
	}
}

// finishedBefore returns the result of a finish whose lease is not valid (R8): the report
// is repeated, contradictory or late.
func (o *op) finishedBefore(f *store.Finish, lost error) store.FinishResult {
	if f.Lease.Generation != o.generation {
		return store.FinishResult{Err: lost}
	}
	for _, a := range o.attempts[f.Lease.Task] {
		switch {
		case a.LeaseID != f.Lease.ID || a.OutcomeHash == "":
			// Another attempt; or this attempt, and its worker did not end it.
		case a.OutcomeHash == f.Hash():
			return rules.ReplayedResult(f, o.recorded(&a))
		default:
			return store.FinishResult{Err: rules.Conflicting(&f.Lease)}
		}
	}
	return store.FinishResult{Err: lost}
}

// recorded returns the recorded finish of an attempt.
func (o *op) recorded(a *task.Attempt) rules.Recorded {
	was := rules.Recorded{Outcome: a.Outcome, Error: a.Error, Decision: o.decidedOn(a), At: a.FinishedAt}
	if r := o.tasks[a.TaskID]; r != nil {
		if was.Undo = r.Undo; r.FinishedAt.Equal(a.FinishedAt) && r.Error != nil {
			was.Error = r.Error
		}
	}
	return was
}

// decidedOn returns the kind of an attempt's decision, or "".
func (o *op) decidedOn(a *task.Attempt) task.DecisionKind {
	for _, d := range o.decisions[a.TaskID] {
		if d.AttemptNo == a.No {
			return d.Kind
		}
	}
	return ""
}

// decision returns the row of a transition's decision, or nil.
func (o *op) decision(r *row, t *rules.Transition) (*task.Decision, error) {
	if t.Decision == nil {
		return nil, nil
	}
	d, err := copyDecision(*t.Decision)
	d.TaskID, d.AttemptNo, d.At = r.ID, r.AttemptNo, o.now
	return &d, err
}

// count updates the counters of a task whose attempt ends.
func (r *row) count(t *rules.Transition) {
	if t.CountsAttempt() {
		r.AttemptCount++
	}
	r.IdleAttempts = t.Idle
	if t.CountsInternal {
		r.InternalCount++
	} else {
		r.InternalCount = 0
	}
	if t.CountsRepair {
		r.RepairCount++
	}
	if t.ResetCrashes {
		r.CrashCount, r.QuarantineLosses = 0, 0
	}
	if t.RaiseEpoch {
		r.Epoch++
	}
}

// transition applies a transition to a task that has left running or does not run.
func (o *op) transition(r *row, t *rules.Transition) {
	failure := copyPtr(t.TaskError())
	if t.KeepError {
		failure = r.Error
	}
	if t.SetReadyAt {
		r.ReadyAt = t.ReadyAt
	}
	if t.SetUndo {
		o.setUndo(r, t.Undo, t.State)
	}
	if t.Begins {
		o.undoBegan(r)
	}
	switch {
	case t.Claimable() && t.Interrupted():
		o.makeReadyAt(r, t.ReadyAt, t.Waiting, failure)
	case t.Claimable():
		o.makeReady(r, t.ReadyAt, t.Waiting, failure)
		if t.Begins {
			r.ReadyAt = time.Time{} // it counted before
		}
	case t.State == task.Pending:
		o.move(r, t.State, t.Waiting, failure)
	case t.State == task.Blocked:
		o.move(r, t.State, t.Waiting, failure)
		o.notice.Tasks = append(o.notice.Tasks, r.ID)
	default:
		r.Output = copyRaw(t.Output)
		o.refer(r.ID, refOutput, "", r.Output)
		o.end(r, t.State, failure)
	}
}

// setUndo replaces the undo phase of a task that enters a state; p may be nil. Between
// the attempts of the phase the task may hold its key.
func (o *op) setUndo(r *row, p *task.UndoPhase, to task.State) {
	held := r.State == task.Pending && r.HoldsKey()
	r.Undo = p.Clone()
	switch keeps := to == task.Pending && p != nil && p.HoldsKey; {
	case held && !keeps:
		o.drop(r)
	case keeps && !held:
		o.holdOn(r)
	}
}

// leave moves a task that does not run to its end, or to the begin of its undo phase.
func (o *op) leave(r *row, t *rules.Transition) {
	o.unschedule(r)
	if !t.State.Terminal() {
		o.transition(r, t)
		return
	}
	if t.SetUndo {
		o.setUndo(r, t.Undo, t.State)
	}
	o.end(r, t.State, copyPtr(t.Failure))
}

// fail ends a waiting task with an error.
func (o *op) fail(r *row, s task.State, failure *task.Error) {
	t := rules.Transition{State: s, Failure: failure}
	t.BeginUndo(r.undoable(), time.Time{}, o.now)
	o.leave(r, &t)
}

// undoBegan ends the states that do not apply in an undo phase: the pause, the deadline,
// and the wait for the children, which are cancelled.
func (o *op) undoBegan(r *row) {
	delete(o.pausedTask, r.ID)
	r.RemainingDeps = 0
	o.undone = append(o.undone, r)
}

// cancelRequest returns the cancel request of the task.
func (r *row) cancelRequest() (c rules.CancelRequest) {
	if r.CancelRequested {
		c.Kind, c.By, c.Reason = r.CancelKind, r.CancelBy, r.CancelReason
	}
	return c
}
