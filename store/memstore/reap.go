package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// defaultReapLimit is how many rows of each kind one reap ends at most.
const defaultReapLimit = 1000

// silentTTLs is after how many TTLs of silence a worker is forgotten.
const silentTTLs = 10

// Reap implements store.Worker.
func (s *Store) Reap(ctx context.Context, ns string, req store.ReapRequest) (store.ReapResult, error) {
	if req.Limit <= 0 {
		req.Limit = defaultReapLimit
	}
	var res store.ReapResult
	err := s.do(ctx, ns, func(o *op) {
		judges, steadyIn := o.judges(req)
		lost, left := o.lostLeases(judges)
		for _, r := range lost[:min(req.Limit, len(lost))] {
			res.Reaped = append(res.Reaped, o.reap(r, req.CrashBudget))
		}
		o.settle() // those who end for a need have no deadline to miss any more
		for _, r := range o.pastDeadline(req.Limit) {
			o.expire(r)
			res.Expired = append(res.Expired, r.ID)
		}
		o.settle()
		o.forgetWorkers(req, judges)
		res.WarmingUp = left
		res.Next = o.nextReap(judges, steadyIn)
	})
	return res, err
}

// judges reports whether the asker may take the silence of others for theirs,
// and not for the store's: it has itself been heard of without a gap for a
// TTL. If not, it also tells when it may at the earliest.
func (o *op) judges(req store.ReapRequest) (bool, time.Duration) {
	w, ok := o.workers[req.Worker]
	switch {
	case !ok || w.interrupted(o.now, req.TTL):
		return false, req.TTL
	case o.now.Sub(w.steady) < req.TTL:
		return false, req.TTL - o.now.Sub(w.steady)
	}
	return true, 0
}

// seenDead reports whether a worker's process is known to be dead: it is
// watched from the worker's Join until the worker is forgotten.
func (o *op) seenDead(id store.WorkerID) bool {
	w, ok := o.workers[id]
	return ok && w.joined && o.dead[id]
}

// lostLeases returns the running tasks whose leases are over: held by a
// process known to be dead, or expired. It reports whether expired ones had to
// be left because the asker may not judge their workers.
func (o *op) lostLeases(judges bool) (lost []*row, left bool) {
	lost = o.sorted(func(r *row) bool {
		switch {
		case r.State != task.Running:
			return false
		case o.seenDead(r.worker):
			return true
		case r.LeaseExpiresAt.After(o.now):
			return false
		}
		left = left || !judges
		return judges
	})
	slices.SortStableFunc(lost, func(a, b *row) int { return a.LeaseExpiresAt.Compare(b.LeaseExpiresAt) })
	return lost, left
}

// reap takes one lease away and says what becomes of the task (R7).
func (o *op) reap(r *row, budget int) store.Reaped {
	crash := o.countCrash(r)
	o.recordAttempt(r.attempt(), task.OutcomeLeaseLost, store.LeaseLostError(r.LeasedBy, r.LeaseExpiresAt))
	r.Epoch++
	o.revoke(r)
	o.notice.Cancels = append(o.notice.Cancels, r.ID)
	switch {
	case r.CancelRequested:
		o.end(r, task.Cancelled, r.cancelError())
	case !r.DeadlineAt.IsZero() && !r.DeadlineAt.After(o.now):
		o.end(r, task.Cancelled, r.deadlineError())
	case crash && budget >= 0 && r.CrashCount >= budget:
		o.end(r, task.Failed, store.PoisonError(r.CrashCount))
	default:
		o.offer(r, o.now, task.WaitNone, r.Error)
	}
	return store.Reaped{Task: r.ID, State: r.State, Crash: crash}
}

// countCrash counts the loss of a lease against the task, and reports whether
// it was held to have caused it: only if its process stopped, and, once the
// task is a suspect, only if it ran alone.
func (o *op) countCrash(r *row) bool {
	ending := r.CancelRequested || !r.DeadlineAt.IsZero() && !r.DeadlineAt.After(o.now)
	switch {
	case ending || !o.stopped(r):
		return false
	case r.CrashCount < suspectCrashes || r.alone:
		r.CrashCount++
		return true
	}
	r.QuarantineLosses++
	return false
}

// stopped reports whether the process that held a lease is known to have
// stopped before the lease's end. Who was heard of when he should have renewed
// it lives, and lost it for another reason: he never learned of it, or the
// store was restored. Who left, or whose row a restore took, did not crash.
func (o *op) stopped(r *row) bool {
	w, ok := o.workers[r.worker]
	return ok && (o.seenDead(r.worker) || w.lastSeen.Before(r.LeaseExpiresAt.Add(-w.ttl/2)))
}

// pastDeadline returns the unfinished tasks whose deadline has passed and
// that were not yet asked to end.
func (o *op) pastDeadline(limit int) []*row {
	rows := o.sorted(func(r *row) bool {
		return !r.State.Terminal() && !r.CancelRequested && !r.DeadlineAt.IsZero() && !r.DeadlineAt.After(o.now)
	})
	slices.SortStableFunc(rows, func(a, b *row) int { return a.DeadlineAt.Compare(b.DeadlineAt) })
	return rows[:min(limit, len(rows))]
}

// expire ends a task whose deadline has passed, or asks it to end.
func (o *op) expire(r *row) {
	if r.State != task.Running {
		o.end(r, task.Cancelled, r.deadlineError())
		return
	}
	r.CancelRequested, r.CancelKind = true, task.KindDeadline
	o.notice.Cancels = append(o.notice.Cancels, r.ID)
}

// forgetWorkers removes workers that hold nothing and are gone: dead, or silent
// for long to somebody who may judge that.
func (o *op) forgetWorkers(req store.ReapRequest, judges bool) {
	holds := map[store.WorkerID]bool{}
	for _, r := range o.tasks {
		if r.State == task.Running {
			holds[r.worker] = true
		}
	}
	for id, w := range o.workers {
		silent := judges && o.now.Sub(w.lastSeen) > silentTTLs*max(w.ttl, req.TTL)
		if !holds[id] && (o.seenDead(id) || silent) {
			delete(o.workers, id)
		}
	}
}

// nextReap tells when the next lease or deadline can expire. To one who may
// not judge yet a lease is not over before he may.
func (o *op) nextReap(judges bool, steadyIn time.Duration) time.Duration {
	var soonest time.Time
	for _, r := range o.tasks {
		if r.State == task.Running {
			end := r.LeaseExpiresAt
			if !judges && !end.After(o.now) {
				end = o.now.Add(steadyIn)
			}
			soonest = earliest(soonest, end)
		}
		if !r.State.Terminal() && !r.CancelRequested && !r.DeadlineAt.IsZero() {
			soonest = earliest(soonest, r.DeadlineAt)
		}
	}
	return until(soonest, o.now)
}
