package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// reapLimit bounds one call of the store.
const reapLimit = 1000

// reaper ends what time has ended, on every engine, every TTL/3 with jitter:
// it needs no leader and knows no task types.
type reaper struct {
	*env
	due        signal       // wakes the claimer
	chores     signal       // an operation left work to reapers
	wake       signal       // a lease or deadline may now be the next to expire
	choresLeft atomic.Int64 // how often chores were left that are not done yet; 0: there are none
	sleepsLong atomic.Bool  // run sleeps for longer than a new lease lasts
	warmingUp  atomic.Int64 // since when expired leases are there that this worker is not yet eligible to reap; an offset from the origin, 0: none are
}

func newReaper(e *env, due signal) *reaper {
	return &reaper{env: e, due: due, wake: newSignal(), chores: newSignal()}
}

// leaveChores says that an operation of this process left work to reapers.
func (r *reaper) leaveChores() {
	r.choresLeft.Add(1)
	r.chores.Set()
	r.wake.Set()
}

// leased says that leases began, which may end before run would look again.
func (r *reaper) leased() {
	if r.sleepsLong.Load() {
		r.wake.Set()
	}
}

func (r *reaper) run(ctx context.Context) error {
	for ctx.Err() == nil {
		next := r.reap(ctx)
		interval := r.TTL/3 + rand.N(r.TTL/30+1)
		if !r.complete {
			wait(ctx, interval, r.chores)
			continue
		}
		// Every change is notified: sleep until something can expire.
		if next >= 0 {
			next = max(next, time.Millisecond)
		}
		r.sleepsLong.Store(next < 0 || next > r.TTL)
		wait(ctx, next, r.wake)
	}
	return nil
}

// reap calls the store until there is nothing more to do now, and returns the
// time until something can expire (< 0: nothing known).
func (r *reaper) reap(ctx context.Context) time.Duration {
	if r.complete && r.slots.taken() == 0 {
		// An idle engine of a store in this process sends no heartbeats; joining
		// is sign of life enough.
		if err := r.join(ctx); err != nil {
			return r.retryAfter(ctx, err)
		}
	}
	for {
		left := r.choresLeft.Load()
		call, cancel := context.WithTimeout(ctx, r.TTL)
		res, err := r.Store.Reap(call, r.Namespace, store.ReapRequest{
			Worker: r.worker, TTL: r.TTL, CrashBudget: r.CrashBudget, Limit: reapLimit,
		})
		cancel()
		if err != nil {
			return r.retryAfter(ctx, err)
		}
		if len(res.Reaped) > 0 {
			r.logReaped(res.Reaped)
		}
		if res.Chores {
			r.choresLeft.CompareAndSwap(0, 1)
		}
		ended := !res.Chores && left > 0 && r.choresLeft.CompareAndSwap(left, 0) // unless another was left meanwhile
		if r.noteWarmUp(res.WarmingUp) || len(res.Reaped) > 0 || ended {
			r.due.Set()
		}
		switch {
		case len(res.Reaped) >= reapLimit || len(res.Expired) >= reapLimit || res.Chores:
		case res.WarmingUp && (res.Next < 0 || res.Next > r.TTL/3):
			return r.TTL / 3 // often enough for the warm-up to end in time
		default:
			return res.Next
		}
	}
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
	return since != 0 && time.Duration(r.offset(time.Now())-since) < 2*r.TTL
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
		r.Log.Warn("reap", "error", err)
	}
	return r.TTL / 3
}
