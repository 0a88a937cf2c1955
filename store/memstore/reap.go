package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Reap implements store.Core.
func (s *Store) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if req.Limit <= 0 {
		req.Limit = rules.DefaultReapLimit
	}
	var res store.ReapResult
	err := s.do(ctx, ns, func(o *op) {
		eligibleAt := rules.ReaperEligibleAt(o.observed(req.Worker), req.TTL, rules.Stall{}, o.now)
		eligible := !eligibleAt.After(o.now)
		lost, passedOver := o.lostLeases(eligible)
		for _, r := range lost[:min(req.Limit, len(lost))] {
			res.Reaped = append(res.Reaped, o.reap(r, req.CrashBudget))
		}
		o.freeHolds()
		o.propagate() // tasks that end by a dependency have no deadline to miss
		for _, r := range o.pastDeadline(req.Limit) {
			o.expire(r)
			res.Expired = append(res.Expired, r.ID)
		}
		o.propagate()
		o.forgetWorkers(req.TTL, eligible)
		res.WarmingUp = passedOver
		res.Next, res.NextDeadline = o.nextReap(eligibleAt), o.nextDeadline()
	})
	return res, err
}

// observed returns the record of a worker, or nil if the worker is unknown.
func (o *op) observed(id store.WorkerID) *rules.Worker {
	if w, ok := o.workers[id]; ok {
		return &w.Worker
	}
	return nil
}

// seenDead reports whether a worker's process is known to be dead. Workers are observed
// from Join until they are forgotten.
func (o *op) seenDead(id store.WorkerID) bool {
	w, ok := o.workers[id]
	return ok && w.joined && o.dead[id]
}

// Orphans implements store.Observe.
func (s *Store) Orphans(ctx context.Context, ns string, ids ...task.ID) ([]task.ID, error) {
	var orphans []task.ID
	err := s.do(ctx, ns, func(o *op) {
		for _, id := range ids {
			if r, ok := o.tasks[id]; ok && r.State == task.Running && o.seenDead(r.worker) {
				orphans = append(orphans, id)
			}
		}
	})
	return orphans, err
}

// lostLeases returns the running tasks with lost leases: held by a process that is known
// to be dead, or expired. It reports whether it skipped expired leases because the
// calling worker is not eligible to reap them.
func (o *op) lostLeases(eligible bool) (lost []*row, passedOver bool) {
	lost = o.sorted(func(r *row) bool {
		switch {
		case r.State != task.Running:
			return false
		case o.seenDead(r.worker):
			return true
		case r.LeaseExpiresAt.After(o.now):
			return false
		}
		passedOver = passedOver || !eligible
		return eligible
	})
	slices.SortStableFunc(lost, func(a, b *row) int { return a.LeaseExpiresAt.Compare(b.LeaseExpiresAt) })
	return lost, passedOver
}

// reap takes one lease and resolves its task (R7).
func (o *op) reap(r *row, budget int) store.Reaped {
	stopped := o.seenDead(r.worker) || o.observed(r.worker).Stopped(r.LeaseExpiresAt)
	return o.take(r, stopped, budget, rules.LeaseLostFailure(r.LeasedBy, r.LeaseExpiresAt, o.now), held{})
}

// held is a revoked lease under which an attempt may still run. It may be zero.
type held struct {
	lease task.LeaseID
	until time.Time
}

// take ends a lease.
func (o *op) take(r *row, stopped bool, budget int, failure *task.Error, hold held) store.Reaped {
	loss := rules.ResolveLoss(&rules.LostLease{
		Stopped: stopped, Crashes: r.CrashCount, Alone: r.alone, Cancel: r.cancelRequest(), Deadline: r.DeadlineAt,
		Created: r.CreatedAt, Phase: r.Undo, Key: r.ConcurrencyKey != "",
	}, budget, o.now)
	u := r.undoable()
	u.Hold = hold.lease
	loss.BeginUndo(u, hold.until, o.now)
	o.recordAttempt(r.attempt(), loss.Outcome, failure)
	if loss.Crash && r.Undo == nil {
		r.CrashCount++
	}
	if loss.QuarantineLoss {
		r.QuarantineLosses++
	}
	r.Epoch++
	o.endLease(r)
	o.notice.Cancels = append(o.notice.Cancels, r.ID)
	o.transition(r, &loss.Transition)
	return store.Reaped{Task: r.ID, State: r.State, Crash: loss.Crash}
}

// pastDeadline returns the unfinished tasks whose deadline has passed and whose end was
// not yet requested.
func (o *op) pastDeadline(limit int) []*row {
	rows := o.sorted(func(r *row) bool {
		return r.hasDeadline() && rules.Past(r.DeadlineAt, o.now)
	})
	slices.SortStableFunc(rows, func(a, b *row) int { return a.DeadlineAt.Compare(b.DeadlineAt) })
	return rows[:min(limit, len(rows))]
}

// hasDeadline reports whether a task has a deadline that can end it.
func (r *row) hasDeadline() bool {
	return !r.State.Terminal() && !r.CancelRequested && r.Undo == nil && !r.DeadlineAt.IsZero()
}

// expire ends a task whose deadline has passed, or requests its end.
func (o *op) expire(r *row) {
	if rules.ResolveEnd(&rules.Unfinished{State: r.State, Phase: r.Undo}) == rules.EndAsked {
		r.CancelRequested, r.CancelKind = true, task.KindDeadline
		o.notice.Cancels = append(o.notice.Cancels, r.ID)
		return
	}
	to := rules.Transition{State: task.Cancelled, Failure: rules.DeadlineFailure(r.DeadlineAt)}
	if to.BeginUndo(r.undoable(), time.Time{}, o.now) {
		r.CancelRequested, r.CancelKind = true, task.KindDeadline
	}
	o.leave(r, &to)
}

// holds reports whether a revoked lease delays the undo of a task.
func (o *op) holds(r *row) bool {
	return r.State == task.Pending && r.Undo != nil && rules.Holds(r.Undo, r.Undo.Hold, o.now)
}

// freeHolds begins the undos that wait for the end of a lease whose process is dead.
func (o *op) freeHolds() {
	for _, r := range o.sorted(func(r *row) bool { return o.holds(r) && o.seenDead(r.held) }) {
		to := rules.FreeHold(r.Undo, o.now)
		o.leave(r, &to)
	}
}

// forgetWorkers removes workers without leases that are dead. If the calling worker is
// eligible to reap it also removes those that have been silent for long.
func (o *op) forgetWorkers(ttl time.Duration, eligible bool) {
	holds := map[store.WorkerID]bool{}
	for _, r := range o.tasks {
		if r.State == task.Running {
			holds[r.worker] = true
		}
	}
	for _, ord := range o.orders {
		if ord.Row.State == order.Sending {
			holds[store.WorkerID(ord.Row.LockedBy)] = true
		}
	}
	for id, w := range o.workers {
		if !holds[id] && (o.seenDead(id) || eligible && w.Forgettable(ttl, o.now)) {
			delete(o.workers, id)
		}
	}
}

// watch announces a task's new deadline.
func (o *op) watch(r *row) {
	if !r.DeadlineAt.IsZero() {
		o.notice.DeadlineIn(r.DeadlineAt.Sub(o.now))
	}
}

// nextDeadline returns the time until the next deadline, or 0 without one.
func (o *op) nextDeadline() time.Duration {
	var n store.Notice
	for _, r := range o.tasks {
		if r.hasDeadline() {
			n.DeadlineIn(r.DeadlineAt.Sub(o.now))
		}
	}
	return n.Deadline
}

// nextReap returns the time until the next lease or deadline expires. For a worker that
// is not yet eligible to reap, an expired lease counts from the time at which it is.
func (o *op) nextReap(eligibleAt time.Time) time.Duration {
	var soonest time.Time
	for _, r := range o.tasks {
		if r.State == task.Running {
			end := r.LeaseExpiresAt
			if !end.After(o.now) {
				end = later(end, eligibleAt)
			}
			soonest = rules.Earliest(soonest, end)
		}
		if r.hasDeadline() {
			soonest = rules.Earliest(soonest, r.DeadlineAt)
		}
	}
	return until(soonest, o.now)
}
