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
	// reapPause is between two looks at least: what expires meanwhile ends together.
	reapPause = 20 * time.Millisecond
)

// reaper ends what time has ended, on every engine: it needs no leader and knows
// no task types. It looks every TTL/3 with jitter, or, where every change is
// notified, when something can expire; and always when the next deadline passes.
type reaper struct {
	*env
	due        signal       // wakes the claimer
	wake       signal       // lookAt is earlier than run knows
	lookAt     atomic.Int64 // when run looks next; an offset from the origin
	looked     atomic.Int64 // when the store last answered; an offset from the origin
	choresLeft atomic.Int64 // how often chores were left that are not done yet; 0: there are none
	warmingUp  atomic.Int64 // since when expired leases are there that this worker is not yet eligible to reap; an offset from the origin, 0: none are
}

// never is an offset that does not come.
const never = math.MaxInt64

func newReaper(e *env, due signal) *reaper {
	return &reaper{env: e, due: due, wake: newSignal()}
}

// leased says that leases began, which may end before run would look again.
func (r *reaper) leased() { r.lookBy(time.Now().Add(r.TTL)) }

// notify says what was committed.
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

// changed says that something may expire that run does not know of. It looks so
// long after it last looked, at once if that is over.
func (r *reaper) changed(after time.Duration) {
	r.lookBy(r.origin.Add(time.Duration(r.looked.Load()) + after))
}

// lookBy has run look at an instant, if it would not look before.
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
		// What is notified while the store answers lowers it again.
		r.lookAt.Store(never)
		if next := r.reap(ctx, false); next >= 0 {
			r.lookBy(time.Now().Add(next))
		}
		r.sleep(ctx)
	}
	return nil
}

// sleep waits until it is time to look.
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

// reap calls the store until there is nothing more to do now, and returns the
// time until the next look (< 0: none is needed). once: it calls the store once.
func (r *reaper) reap(ctx context.Context, once bool) time.Duration {
	defer func() { r.looked.Store(r.offset(time.Now())) }()
	if r.complete && r.slots.taken() == 0 {
		// An idle engine of a store in this process sends no heartbeats; joining
		// is sign of life enough.
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
		ended := !res.Chores && left > 0 && r.choresLeft.CompareAndSwap(left, 0) // unless another was left meanwhile
		if r.noteWarmUp(res.WarmingUp) || len(res.Reaped) > 0 || ended {
			r.due.Set()
		}
		if len(res.Reaped) < reapLimit && len(res.Expired) < reapLimit && !res.Chores || once {
			return r.next(&res)
		}
	}
}

// next returns the time until the look that follows an answer of the store (< 0:
// none is needed).
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

// noteWarmUp remembers since when expired leases wait for this worker's
// warm-up, and reports whether a claimer that waits for its end should look.
func (r *reaper) noteWarmUp(warming bool) (look bool) {
	if !warming {
		return r.warmingUp.Swap(0) != 0
	}
	r.warmingUp.CompareAndSwap(0, max(r.offset(time.Now()), 1))
	return !r.waitsForWarmUp()
}

// waitsForWarmUp reports whether there are expired leases that this worker
// will be eligible to reap soon. After two TTLs it should have been: a store
// that answers too slowly never makes it eligible.
func (r *reaper) waitsForWarmUp() bool {
	since := r.warmingUp.Load()
	return since != 0 && time.Duration(r.offset(time.Now())-since) < r.lease().WarmUpLimit()
}

// logReaped logs what was taken over: one line for what goes on, as it does
// after every restart, and one for each task that was given up.
func (r *reaper) logReaped(reaped []store.Reaped) {
	r.Log.Info("took over the leases of workers that are gone", "tasks", len(reaped))
	for _, t := range reaped {
		if t.State == task.Failed {
			r.Log.Warn("gave up a task that lost its workers too often", "task_id", t.Task)
		}
	}
}

// retryAfter logs an error of the store and returns when to try again.
func (r *reaper) retryAfter(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		r.repeats.warn(r.Log, "reap", err)
	}
	return r.lease().Reap()
}
