package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Finish implements store.Worker.
func (s *Store) Finish(ctx context.Context, ns string, fins ...store.Finish) ([]store.FinishResult, error) {
	out := make([]store.FinishResult, len(fins))
	err := s.do(ctx, ns, func(o *op) {
		for i := range fins {
			out[i] = o.finish(&fins[i])
		}
	})
	return out, err
}

// finish ends one attempt, if its lease still stands.
func (o *op) finish(f *store.Finish) store.FinishResult {
	r, ok := o.guard(f.Lease)
	if !ok {
		return o.finishedBefore(f)
	}
	v, err := o.verdict(r, f)
	if err != nil {
		return store.FinishResult{Err: err}
	}
	a := r.attempt()
	a.CodeVersion, a.OutcomeHash = f.CodeVersion, f.Hash()
	a.StepsRun, a.StepsUnreached = copyList(f.StepsRun), copyList(f.StepsUnreached)
	o.recordAttempt(a, v.outcome, v.err)
	if task.Counts(v.outcome, kindOf(v.err)) {
		r.AttemptCount++
	}
	if kindOf(v.err) == task.KindInternal {
		r.InternalCount++
	} else {
		r.InternalCount = 0
	}
	if f.Progress != nil {
		r.Progress = copyPtr(f.Progress)
	}
	if v.decision != nil {
		v.decision.TaskID, v.decision.AttemptNo, v.decision.At = r.ID, r.AttemptNo, o.now
		if v.decision.Kind == task.DecideRetry {
			v.decision.NextReadyAt = o.after(f.Delay)
		}
		o.decisions[r.ID] = append(o.decisions[r.ID], *v.decision)
	}
	o.revoke(r)
	o.conclude(r, f, v)
	return store.FinishResult{State: r.State, Waiting: r.Waiting}
}

// finishedBefore answers a finish whose lease does not stand (R8): it is the
// same report once more, or a contradiction, or too late.
func (o *op) finishedBefore(f *store.Finish) store.FinishResult {
	lost := store.FinishResult{Err: store.ErrLeaseLost}
	r, ok := o.tasks[f.Lease.Task]
	if !ok || f.Lease.Generation != o.generation {
		return lost
	}
	for _, a := range o.attempts[r.ID] {
		switch {
		case a.LeaseID != f.Lease.ID || a.OutcomeHash == "":
			// Another attempt; or this one, but not its worker ended it.
		case a.OutcomeHash == f.Hash():
			state, waiting := f.ReplayedResult(a.Outcome, a.FinishedAt)
			return store.FinishResult{State: state, Waiting: waiting}
		default:
			return store.FinishResult{Err: fmt.Errorf("attempt %d of task %s ended with outcome %s already: %w", a.No, r.ID, a.Outcome, store.ErrConflict)}
		}
	}
	return lost
}

// verdict is what an attempt comes to, after cancel requests had their say.
type verdict struct {
	outcome  task.Outcome
	err      *task.Error
	decision *task.Decision
	move     task.DecisionKind // what becomes of the task, for outcomes that are judged
}

// verdict judges a finish without writing anything.
func (o *op) verdict(r *row, f *store.Finish) (verdict, error) {
	if r.CancelRequested && f.Outcome != task.OutcomeSuccess {
		return verdict{outcome: task.OutcomeCancelled, err: r.cancelError()}, nil
	}
	v := verdict{outcome: f.Outcome, err: copyPtr(f.Error)}
	switch f.Outcome {
	case task.OutcomeSuccess, task.OutcomeSuspended, task.OutcomeReleased:
		v.err = nil
		return v, nil
	case task.OutcomeCancelled:
		return v, nil
	case task.OutcomeFailure, task.OutcomeBlocked, task.OutcomeDecodeFailed:
	default:
		return v, fmt.Errorf("finish task %s: outcome %q cannot be reported", r.ID, f.Outcome)
	}
	if f.Decision == nil {
		if kindOf(f.Error) != task.KindInternal {
			return v, fmt.Errorf("finish task %s: outcome %q without a decision", r.ID, f.Outcome)
		}
		v.move = task.DecideRetry
		if f.Delay < 0 {
			v.move = task.DecideMarkDead
		}
		return v, nil
	}
	d, err := copyDecision(*f.Decision)
	if err != nil {
		return v, err
	}
	d.NextReadyAt = time.Time{}
	v.decision, v.move = &d, d.Kind
	switch d.Kind {
	case task.DecideRetry, task.DecideMarkDead, task.DecideBlock, task.DecideSucceed:
		return v, nil
	}
	return v, fmt.Errorf("finish task %s: decision %q cannot be carried out", r.ID, d.Kind)
}

// conclude moves the task to where the verdict sends it.
func (o *op) conclude(r *row, f *store.Finish, v verdict) {
	switch v.outcome {
	case task.OutcomeSuccess:
		o.succeed(r, f)
	case task.OutcomeCancelled:
		o.end(r, task.Cancelled, v.err)
	case task.OutcomeSuspended:
		r.ReadyAt = instant(f.WakeAt)
		o.offer(r, r.ReadyAt, task.WaitSleep, r.Error)
	case task.OutcomeReleased:
		r.Epoch++
		o.offer(r, o.now, task.WaitNone, r.Error)
	default:
		o.carryOut(v.move, r, f, v.err)
	}
}

// carryOut does what was decided after an attempt without success.
func (o *op) carryOut(d task.DecisionKind, r *row, f *store.Finish, err *task.Error) {
	switch d {
	case task.DecideRetry:
		r.ReadyAt = o.after(f.Delay)
		o.offer(r, r.ReadyAt, task.WaitRetry, err)
	case task.DecideMarkDead:
		o.end(r, task.Failed, err)
	case task.DecideBlock:
		o.move(r, task.Blocked, task.WaitManual, err)
		o.notice.Tasks = append(o.notice.Tasks, r.ID)
	case task.DecideSucceed:
		o.succeed(r, f)
	}
}

// succeed ends a task well. Only success and completed steps forgive crashes.
func (o *op) succeed(r *row, f *store.Finish) {
	r.Output = copyRaw(f.Output)
	r.CrashCount, r.QuarantineLosses = 0, 0
	o.end(r, task.Succeeded, nil)
}

// after returns the instant a delay from now; there is no way back in time.
func (o *op) after(d time.Duration) time.Time { return instant(o.now.Add(max(0, d))) }

// cancelError says who cancelled the task, and why.
func (r *row) cancelError() *task.Error {
	return store.CancelError(r.CancelKind, r.CancelBy, r.CancelReason, r.DeadlineAt)
}

// deadlineError says that the task's deadline passed.
func (r *row) deadlineError() *task.Error {
	return store.CancelError(task.KindDeadline, "", "", r.DeadlineAt)
}
