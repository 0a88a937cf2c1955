package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// reapLoop ends what time has ended, every TTL/3 with jitter, on every
// engine: it needs no leader and knows no task types (R7).
func (e *Engine) reapLoop(ctx context.Context) error {
	for ctx.Err() == nil {
		next := e.reap(ctx)
		interval := e.cfg.TTL/3 + rand.N(e.cfg.TTL/30+1)
		if !e.complete {
			wait(ctx, interval, nil)
			continue
		}
		// Every change is noticed: sleep until something can expire.
		if next >= 0 {
			next = max(next, time.Millisecond)
		}
		e.reapLate.Store(next < 0 || next > e.cfg.TTL)
		wait(ctx, next, e.reapKick)
	}
	return nil
}

// reap runs the reaper until it finds nothing more to do now, and returns the
// time until something can expire (< 0: nothing known).
func (e *Engine) reap(ctx context.Context) time.Duration {
	if e.complete && e.Running() == 0 {
		// An idle engine of a store in this process does not beat; its being
		// here is sign of life enough.
		if err := e.join(ctx); err != nil {
			return e.reapTrouble(ctx, err)
		}
	}
	const limit = 1000
	for {
		call, cancel := context.WithTimeout(ctx, e.cfg.TTL)
		res, err := e.cfg.Store.Reap(call, e.cfg.Namespace, store.ReapRequest{
			Worker: e.worker, TTL: e.cfg.TTL, CrashBudget: e.cfg.CrashBudget, Limit: limit,
		})
		cancel()
		if err != nil {
			return e.reapTrouble(ctx, err)
		}
		if len(res.Reaped) > 0 {
			e.tellReaped(res.Reaped)
		}
		if e.notePause(res.WarmingUp) || len(res.Reaped) > 0 {
			kick(e.claimKick)
		}
		switch {
		case len(res.Reaped) >= limit || len(res.Expired) >= limit:
		case res.WarmingUp && (res.Next < 0 || res.Next > e.cfg.TTL/3):
			return e.cfg.TTL / 3 // show life often enough to be steady in time
		default:
			return res.Next
		}
	}
}

// notePause remembers since when the reaper is paused, and reports whether who
// waits for its end should look.
func (e *Engine) notePause(paused bool) (look bool) {
	if !paused {
		return e.reapPaused.Swap(0) != 0
	}
	e.reapPaused.CompareAndSwap(0, int64(max(time.Since(e.started), 1)))
	return !e.waitsToJudge()
}

// waitsToJudge reports whether there are expired leases that this worker may
// take soon. After two TTLs it should have been let to: a store that answers
// too slowly never lets it.
func (e *Engine) waitsToJudge() bool {
	since := time.Duration(e.reapPaused.Load())
	return since != 0 && time.Since(e.started)-since < 2*e.cfg.TTL
}

// tellReaped logs what was taken over: one line for what goes on, as it does
// after every restart, and one for each task that was given up.
func (e *Engine) tellReaped(reaped []store.Reaped) {
	e.log.Info("took over the leases of workers that are gone", "tasks", len(reaped))
	for _, r := range reaped {
		if r.State == task.Failed {
			e.log.Warn("gave up a task that lost its workers too often", "task_id", r.Task)
		}
	}
}

func (e *Engine) reapTrouble(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		e.log.Warn("reap", "error", err)
	}
	return e.cfg.TTL / 3
}
