package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// heartbeatLoop renews all leases of the process every TTL/3 in one call, and
// at once when a cancel may be waiting (R6).
func (e *Engine) heartbeatLoop(ctx context.Context) error {
	last := time.Now()
	seen := last.Round(0) // when the store last saw us
	interval := e.cfg.TTL / 3
	var held time.Time // when we last had a lease
	for ctx.Err() == nil {
		running := e.attempts()
		if len(running) > 0 {
			held = time.Now()
		}
		if e.complete && time.Since(held) > e.cfg.TTL {
			// Nobody outside this process can miss us, and nothing is leased.
			// (Of what was lost, by a restore for one, our silence would make
			// a crash.)
			wait(ctx, -1, e.beatKick)
			if ctx.Err() != nil {
				return nil
			}
			// Our row went unseen for lack of leases, not for lack of life.
			e.announce(ctx)
			last = time.Now()
			seen = last.Round(0)
			continue
		}
		due := interval - time.Since(last)
		if e.elsewhere.Load() {
			due = min(due, soon-time.Since(last))
		}
		if due > 0 {
			wait(ctx, due, e.beatKick)
		}
		if !e.needsBeat(last) {
			continue
		}
		// From before the call, or a slow store would see us less often than
		// it takes to be steady.
		asked := time.Now()
		if e.beat(ctx) {
			if asked.Round(0).Sub(seen) > e.cfg.TTL {
				// Our row may have been forgotten, and with it the proof that
				// we live. (By the clock on the wall: the other one stands
				// still while the machine sleeps.)
				e.announce(ctx)
			}
			last, seen = asked, asked.Round(0)
			continue
		}
		// Trouble, or rows that could not be told: again within a second.
		last = time.Now().Add(min(time.Second, e.cfg.TTL/12) - interval)
	}
	return nil
}

// announce joins again.
func (e *Engine) announce(ctx context.Context) {
	if err := e.join(ctx); err != nil && ctx.Err() == nil {
		e.log.Warn("announce this worker", "error", err)
	}
}

// soon is how long after a heartbeat the next one comes when another process
// wrote: it may have been a cancel. Not sooner, or busy processes that share a
// store would make each other beat all the time.
const soon = time.Second

// needsBeat keeps kicks of the claimer, which only say that attempts exist
// now, from becoming a heartbeat each.
func (e *Engine) needsBeat(last time.Time) bool {
	since := time.Since(last)
	elsewhere := since >= soon && e.elsewhere.Swap(false)
	return e.cancelAsked.Swap(false) || elsewhere || since >= e.cfg.TTL/3
}

// beat renews once and reports whether every lease got an answer.
func (e *Engine) beat(ctx context.Context) bool {
	running := slices.DeleteFunc(e.attempts(), func(a *Attempt) bool {
		return errors.Is(context.Cause(a.ctx), store.ErrLeaseLost)
	})
	req := store.HeartbeatRequest{Worker: e.worker, TTL: e.cfg.TTL, Leases: make([]task.Lease, len(running))}
	for i, a := range running {
		req.Leases[i] = a.lease
	}
	before := time.Now()
	// While a renewal hangs no lease is renewed: the next try must come while
	// they are trusted.
	call, cancel := context.WithTimeout(ctx, e.cfg.TTL/3)
	beats, err := e.cfg.Store.Heartbeat(call, e.cfg.Namespace, req)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("renew leases", "leases", len(running), "error", err)
		}
		return false
	}
	all := true
	for i, b := range beats {
		a := running[i]
		switch {
		case b.Lost:
			a.end(store.ErrLeaseLost)
			continue
		case b.Retry:
			all = false
			continue
		case b.Cancel != "":
			a.askCancel(b.Cancel, b.By, b.Reason)
		}
		a.trust(before)
	}
	return all
}
