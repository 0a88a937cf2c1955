package memstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Join implements store.Worker.
func (s *Store) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	return s.do(ctx, ns, func(o *op) {
		delete(o.dead, w.ID)
		o.seen(w.ID, w.TTL)
		o.workers[w.ID].ttl, o.workers[w.ID].joined = w.TTL, true
	})
}

// Leave implements store.Worker.
func (s *Store) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	return s.do(ctx, ns, func(o *op) { delete(o.workers, id) })
}

// Heartbeat implements store.Worker.
func (s *Store) Heartbeat(ctx context.Context, ns string, req store.HeartbeatRequest) ([]store.Beat, error) {
	beats := make([]store.Beat, len(req.Leases))
	err := s.do(ctx, ns, func(o *op) {
		o.seen(req.Worker, req.TTL)
		for i, l := range req.Leases {
			beats[i] = o.beat(l, req.TTL)
		}
	})
	return beats, err
}

// seen marks a worker as alive. A new one, and one that comes back after a gap,
// must be steady for a while before it may judge others (R7).
func (o *op) seen(id store.WorkerID, ttl time.Duration) {
	w, ok := o.workers[id]
	if !ok {
		w = &worker{ttl: ttl}
		o.workers[id] = w
	}
	if !ok || w.interrupted(o.now, ttl) {
		w.steady = o.now
	}
	w.lastSeen = o.now
}

// interrupted reports whether a heartbeat of the worker is missing: there is
// one every third of a TTL. A store that was away long enough to let the lease
// of a healthy worker expire, two thirds of a TTL, shows in every worker. A
// clock that went back says nothing about how long it was.
func (w *worker) interrupted(now time.Time, ttl time.Duration) bool {
	gap := now.Sub(w.lastSeen)
	return gap > ttl/2 || gap < 0
}

// beat extends one lease, never shortening it.
func (o *op) beat(l task.Lease, ttl time.Duration) store.Beat {
	r, ok := o.guard(l)
	if !ok {
		return store.Beat{Lost: true}
	}
	r.LeaseExpiresAt = later(r.LeaseExpiresAt, instant(o.now.Add(ttl)))
	if r.CancelRequested {
		return store.Beat{Cancel: r.CancelKind, By: r.CancelBy, Reason: r.CancelReason}
	}
	return store.Beat{}
}

// guard returns the task that a lease gives the right to write, and false
// when the lease is lost (R2, R17).
func (o *op) guard(l task.Lease) (*row, bool) {
	r, ok := o.tasks[l.Task]
	if !ok || r.State != task.Running || r.Epoch != l.Epoch || r.LeaseID != l.ID || o.generation != l.Generation {
		return nil, false
	}
	return r, true
}

// revoke takes the lease of a running task: nobody may write under it any
// more, and its key is free.
func (o *op) revoke(r *row) {
	r.LeaseID, r.LeasedBy, r.LeaseExpiresAt = task.LeaseID{}, "", time.Time{}
	r.worker, r.alone = "", false
	o.drop(r)
}

// attempt is the running attempt of a task.
func (r *row) attempt() task.Attempt {
	return task.Attempt{
		TaskID: r.ID, No: r.AttemptNo, Epoch: r.Epoch, LeaseID: r.LeaseID,
		Worker: r.LeasedBy, StartedAt: r.StartedAt,
	}
}

// recordAttempt keeps how an attempt ended.
func (o *op) recordAttempt(a task.Attempt, outcome task.Outcome, err *task.Error) {
	a.FinishedAt, a.Outcome, a.Error = o.now, outcome, copyPtr(err)
	o.attempts[a.TaskID] = append(o.attempts[a.TaskID], a)
}
