package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/rules"
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
		o.propagate() // what ends for a need has no deadline to miss any more
		for _, r := range o.pastDeadline(req.Limit) {
			o.expire(r)
			res.Expired = append(res.Expired, r.ID)
		}
		o.propagate()
		o.forgetWorkers(req, eligible)
		res.WarmingUp = passedOver
		res.Next, res.NextDeadline = o.nextReap(eligibleAt), o.nextDeadline()
	})
	return res, err
}

// observed returns what is known of a worker, nil if it is not known.
func (o *op) observed(id store.WorkerID) *rules.Worker {
	if w, ok := o.workers[id]; ok {
		return &w.Worker
	}
	return nil
}

// seenDead reports whether a worker's process is known to be dead: it is observed
// from the worker's Join until the worker is forgotten.
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

// lostLeases returns the running tasks whose leases are over: held by a process
// known to be dead, or expired. It reports whether expired ones were passed over
// because the worker that asks is not eligible to reap them.
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

// reap takes one lease away and says what becomes of the task (R7).
func (o *op) reap(r *row, budget int) store.Reaped {
	stopped := o.seenDead(r.worker) || o.observed(r.worker).Stopped(r.LeaseExpiresAt)
	return o.take(r, stopped, budget, rules.LeaseLostFailure(r.LeasedBy, r.LeaseExpiresAt, o.now), held{})
}

// held is a lease under which an attempt may run on though it was taken; zero: there is
// none.
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

// pastDeadline returns the unfinished tasks whose deadline has passed and
// that were not yet asked to end.
func (o *op) pastDeadline(limit int) []*row {
	rows := o.sorted(func(r *row) bool {
		return r.hasDeadline() && rules.Past(r.DeadlineAt, o.now)
	})
	slices.SortStableFunc(rows, func(a, b *row) int { return a.DeadlineAt.Compare(b.DeadlineAt) })
	return rows[:min(limit, len(rows))]
}

// hasDeadline reports whether the deadline of a task, if it has one, will end it.
func (r *row) hasDeadline() bool {
	return !r.State.Terminal() && !r.CancelRequested && r.Undo == nil && !r.DeadlineAt.IsZero()
}

// expire ends a task whose deadline has passed, or asks it to end.
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

// holds reports whether a revoked lease holds the undo of a task back.
func (o *op) holds(r *row) bool {
	return r.State == task.Pending && r.Undo != nil && rules.Holds(r.Undo, r.Undo.Hold, o.now)
}

// freeHolds has undos begin that wait for the end of a lease whose process is dead.
func (o *op) freeHolds() {
	for _, r := range o.sorted(func(r *row) bool { return o.holds(r) && o.seenDead(r.held) }) {
		to := rules.FreeHold(r.Undo, o.now)
		o.leave(r, &to)
	}
}

// forgetWorkers removes workers that hold nothing and are gone: dead, or silent
// for long, if the worker that asks is eligible to reap.
func (o *op) forgetWorkers(req store.ReapRequest, eligible bool) {
	holds := map[store.WorkerID]bool{}
	for _, r := range o.tasks {
		if r.State == task.Running {
			holds[r.worker] = true
		}
	}
	for id, w := range o.workers {
		if !holds[id] && (o.seenDead(id) || eligible && w.Forgettable(req.TTL, o.now)) {
			delete(o.workers, id)
		}
	}
}

// watch announces the deadline of a task that has got one.
func (o *op) watch(r *row) {
	if !r.DeadlineAt.IsZero() {
		o.notice.DeadlineIn(r.DeadlineAt.Sub(o.now))
	}
}

// nextDeadline returns how long until the next deadline passes; 0: there is none.
func (o *op) nextDeadline() time.Duration {
	var n store.Notice
	for _, r := range o.tasks {
		if r.hasDeadline() {
			n.DeadlineIn(r.DeadlineAt.Sub(o.now))
		}
	}
	return n.Deadline
}

// nextReap returns how long until the next lease or deadline can expire. To a
// worker that is not eligible yet a lease is not over before it is.
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
