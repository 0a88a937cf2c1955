package engine

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

const (
	// reapLimit bounds one call of the store.
	reapLimit = 1000
	// reapPause is the minimum pause between two looks: leases that expire meanwhile end together.
	reapPause = 20 * time.Millisecond
)

// reaper handles expired leases, passed deadlines and chores, on every engine: it needs no leader and knows no task
// types. It looks every TTL/3 with jitter or, with complete notices, when something can expire. It also looks at the
// next deadline.
type reaper struct {
	*env
	due        signal       // wakes the claimer
	wake       signal       // lookAt is earlier than run knows
	lookAt     atomic.Int64 // time of run's next look; an offset from the origin
	looked     atomic.Int64 // time of the store's last answer; an offset from the origin
	choresLeft atomic.Int64 // number of reports of chores that are not done yet; 0: no chores
	warmingUp  atomic.Int64 // since when there are expired leases that this worker is not yet eligible to reap; an offset from the origin, 0: there are no such leases
}

// never is an offset that is never reached.
const never = math.MaxInt64

func newReaper(e *env, due signal) *reaper {
	return &reaper{env: e, due: due, wake: newSignal()}
}

// leased reports new leases, which may end before run would look again.
func (r *reaper) leased() { r.lookBy(time.Now().Add(r.TTL)) }

// notify reports a commit.
func (r *reaper) notify(n *store.Notice) {
	if n.Deadline > 0 {
		r.lookBy(time.Now().Add(n.Deadline))
	}
	if n.Chores {
		r.choresLeft.Add(1)
		r.lookBy(time.Now())
	}
	if n.Dead {
		r.lookBy(time.Now())
	}
	switch {
	case n.External: // it may have set a deadline
		r.changed(r.Poll)
	case n.Due: // others in this process may hold leases
		r.changed(r.lease().Reap())
	}
}

// changed reports that something unknown to run may expire. Run looks again the given time after its last look, or at
// once if that time has passed.
func (r *reaper) changed(after time.Duration) {
	r.lookBy(r.origin.Add(time.Duration(r.looked.Load()) + after))
}

// lookBy makes run look at an instant, if it would not look earlier.
func (r *reaper) lookBy(at time.Time) {
	for by := max(r.offset(at), r.looked.Load()+int64(reapPause)); ; {
		old := r.lookAt.Load()
		if old <= by {
			return
		}
		if r.lookAt.CompareAndSwap(old, by) {
			r.wake.Set()
			return
		}
	}
}

func (r *reaper) run(ctx context.Context) error {
	for ctx.Err() == nil {
		// A notice during the call of the store lowers it again.
		r.lookAt.Store(never)
		if next := r.reap(ctx, false); next >= 0 {
			r.lookBy(time.Now().Add(next))
		}
		r.sleep(ctx)
	}
	return nil
}

// sleep waits until the next look.
func (r *reaper) sleep(ctx context.Context) {
	for ctx.Err() == nil {
		d := time.Duration(-1)
		if at := r.lookAt.Load(); at != never {
			if d = time.Duration(at - r.offset(time.Now())); d <= 0 {
				return
			}
		}
		wait(ctx, d, r.wake)
	}
}

// reap calls the store until it has nothing more to do, and returns the time until the next look (< 0: no look
// needed). once: call the store only once.
func (r *reaper) reap(ctx context.Context, once bool) time.Duration {
	defer func() { r.looked.Store(r.offset(time.Now())) }()
	if r.complete && r.slots.taken() == 0 {
		// An idle engine of a store in this process sends no heartbeats; joining proves that it lives.
		if err := r.join(ctx); err != nil {
			return r.retryAfter(ctx, err)
		}
	}
	for {
		left := r.choresLeft.Load()
		call, cancel := context.WithTimeout(ctx, r.lease().Call())
		began := time.Now()
		res, err := r.Store.Reap(call, r.Namespace, store.ReapRequest{
			Worker: r.worker, TTL: r.TTL, CrashBudget: r.CrashBudget, Limit: reapLimit,
		})
		cancel()
		r.called("reap", began, err)
		if err != nil {
			return r.retryAfter(ctx, err)
		}
		if len(res.Reaped) > 0 {
			r.logReaped(res.Reaped)
			r.emitReaped(ctx, res.Reaped)
			r.countReaped(ctx, res.Reaped)
		}
		if res.Chores {
			r.choresLeft.CompareAndSwap(0, 1)
		}
		ended := !res.Chores && left > 0 && r.choresLeft.CompareAndSwap(left, 0) // unless more chores were left meanwhile
		if r.noteWarmUp(res.WarmingUp) || len(res.Reaped) > 0 || ended {
			r.due.Set()
		}
		if len(res.Reaped) < reapLimit && len(res.Expired) < reapLimit && !res.Chores || once {
			return r.next(&res)
		}
	}
}

// next returns the time until the look that follows an answer of the store (< 0: no look needed).
func (r *reaper) next(res *store.ReapResult) time.Duration {
	if r.complete { // every change is notified
		if res.WarmingUp && (res.Next < 0 || res.Next > r.lease().Reap()) {
			return r.lease().Reap() // often enough for the warm-up to end in time
		}
		return res.Next
	}
	next := r.lease().Reap() + rand.N(r.lease().ReapJitter()+1)
	if r.unnoticed {
		next = min(next, r.Poll*9/10+rand.N(r.Poll/5+1))
	}
	if res.NextDeadline > 0 {
		next = min(next, res.NextDeadline)
	}
	return next
}

// noteWarmUp records since when expired leases wait for this worker's warm-up. It reports whether a claimer that
// waits for the end of the warm-up should claim.
func (r *reaper) noteWarmUp(warming bool) (look bool) {
	if !warming {
		return r.warmingUp.Swap(0) != 0
	}
	r.warmingUp.CompareAndSwap(0, max(r.offset(time.Now()), 1))
	return !r.waitsForWarmUp()
}

// waitsForWarmUp reports whether there are expired leases that this worker will soon be eligible to reap. The limit
// is two TTLs: with a store that answers too slowly it never becomes eligible.
func (r *reaper) waitsForWarmUp() bool {
	since := r.warmingUp.Load()
	return since != 0 && time.Duration(r.offset(time.Now())-since) < r.lease().WarmUpLimit()
}

// logReaped logs reaped tasks: one line for all that continue, as after every restart, and one for each task that was
// given up.
func (r *reaper) logReaped(reaped []store.Reaped) {
	r.Log.Info("took over the leases of workers that are gone", "tasks", len(reaped))
	for _, t := range reaped {
		if t.State == task.Failed {
			r.Log.Warn("gave up a task that lost its workers too often", "task_id", t.Task)
		}
	}
}

// retryAfter logs an error of the store and returns the delay of the next try.
func (r *reaper) retryAfter(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		r.repeats.warn(r.Log, "reap", err)
	}
	return r.lease().Reap()
}
