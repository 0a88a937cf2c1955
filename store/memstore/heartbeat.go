package memstore

import (
	"context"
	"time"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Join implements store.Core.
func (s *Store) Join(ctx context.Context, ns string, w store.WorkerInfo) error {
	return s.do(ctx, ns, func(o *op) {
		delete(o.dead, w.ID)
		o.notice.Changed = true
		o.seen(w.ID, w.TTL)
		known := o.workers[w.ID]
		known.TTL, known.info, known.joined = w.TTL, w, true
		known.info.Types, known.info.Queues = copyList(w.Types), copyList(w.Queues)
		known.info.Sender = copyPtr(w.Sender)
		known.info.SessionGrace, known.info.Connection = 0, ""
	})
}

// Leave implements store.Core.
func (s *Store) Leave(ctx context.Context, ns string, id store.WorkerID) error {
	return s.do(ctx, ns, func(o *op) {
		delete(o.workers, id)
		o.notice.Changed = true
	})
}

// Heartbeat implements store.Core.
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

// seen records that a worker is alive.
func (o *op) seen(id store.WorkerID, ttl time.Duration) {
	w, ok := o.workers[id]
	if !ok {
		w = &worker{Worker: rules.Worker{TTL: ttl}}
		o.workers[id] = w
	}
	w.Worker = w.Seen(ttl, o.now)
}

// beat extends one lease and never shortens it.
func (o *op) beat(l task.Lease, ttl time.Duration) store.Beat {
	r, err := o.guard(l)
	if err != nil {
		return store.Beat{Lost: true}
	}
	r.LeaseExpiresAt = later(r.LeaseExpiresAt, rules.Instant(o.now.Add(ttl)))
	if r.CancelRequested {
		return store.Beat{Cancel: r.CancelKind, By: r.CancelBy, Reason: r.CancelReason}
	}
	return store.Beat{}
}

// guard returns the task that a lease permits to write (R2, R17), or store.ErrLeaseLost.
func (o *op) guard(l task.Lease) (*row, error) {
	r, ok := o.tasks[l.Task]
	switch {
	case o.generation != l.Generation:
		return nil, rules.LeaseLost(&l, rules.LostToRestore)
	case !ok || r.State != task.Running || r.Epoch != l.Epoch || r.LeaseID != l.ID:
		return nil, rules.LeaseLost(&l, rules.LostToAnother)
	}
	return r, nil
}

// endLease ends the lease of a running task: later writes under it are rejected, and the
// task's key is free.
func (o *op) endLease(r *row) {
	r.LeaseID, r.LeasedBy, r.LeaseExpiresAt = task.LeaseID{}, "", time.Time{}
	r.held, r.worker, r.alone = r.worker, "", false
	o.drop(r)
}

// attempt returns the running attempt of a task.
func (r *row) attempt() task.Attempt {
	return task.Attempt{
		TaskID: r.ID, No: r.AttemptNo, Epoch: r.Epoch, LeaseID: r.LeaseID,
		Worker: r.LeasedBy, StartedAt: r.StartedAt,
	}
}

// recordAttempt stores the outcome of an attempt.
func (o *op) recordAttempt(a task.Attempt, outcome task.Outcome, err *task.Error) {
	a.FinishedAt, a.Outcome, a.Error = o.now, outcome, copyPtr(err)
	o.attempts[a.TaskID] = append(o.attempts[a.TaskID], a)
}
