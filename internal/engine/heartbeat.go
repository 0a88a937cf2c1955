package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// heartbeater renews all leases of the process every TTL/3 in one call, and at once when a cancel may be waiting: the
// answer lists the tasks to cancel.
type heartbeater struct {
	*env
	wake          signal
	cancelAsked   atomic.Bool // the cancel of a running task was requested
	externalWrite atomic.Bool // another process wrote and may have requested a cancel

	// Accessed by run only.
	last time.Time // the next heartbeat is due TTL/3 after it
	seen time.Time // when the store last saw this worker, by the wall clock
	held time.Time // when an attempt was last running
}

func newHeartbeater(e *env) *heartbeater {
	return &heartbeater{env: e, wake: newSignal()}
}

// leased reports that attempts are running.
func (h *heartbeater) leased() { h.wake.Set() }

// notify reports that the cancel of a running task was requested, or that another process wrote.
func (h *heartbeater) notify(cancelAsked, externalWrite bool) {
	if cancelAsked {
		h.cancelAsked.Store(true)
	}
	if externalWrite {
		h.externalWrite.Store(true)
	}
	if cancelAsked || externalWrite {
		h.wake.Set()
	}
}

func (h *heartbeater) run(ctx context.Context) error {
	interval := h.lease().Heartbeat()
	h.last = time.Now()
	h.seen = h.last.Round(0)
	for ctx.Err() == nil {
		if h.slots.taken() > 0 {
			h.held = time.Now()
		}
		if h.complete && time.Since(h.held) > h.TTL {
			// No other process can miss this worker, and it holds no lease. (With leases that were lost, for example
			// by a restore, silence would count as a crash.)
			wait(ctx, -1, h.wake)
			if ctx.Err() != nil {
				return nil
			}
			// The worker's row was not renewed, only because there were no leases.
			h.announce(ctx)
			h.last = time.Now()
			h.seen = h.last.Round(0)
			continue
		}
		due := interval - time.Since(h.last)
		if h.externalWrite.Load() {
			due = min(due, externalDelay-time.Since(h.last))
		}
		if due > 0 {
			wait(ctx, due, h.wake)
		}
		if !h.isDue() {
			continue
		}
		// Use the time before the call; otherwise a slow store would see this worker less often than its warm-up
		// requires.
		asked := time.Now()
		if h.beat(ctx) {
			if asked.Round(0).Sub(h.seen) > h.TTL {
				// The store may have deleted this worker's row, and with it the proof that it lives. (By the wall
				// clock: the monotonic clock stands still while the machine sleeps.)
				h.announce(ctx)
			}
			h.last, h.seen = asked, asked.Round(0)
			continue
		}
		// A store error, or rows without an answer: try again within a second.
		h.last = time.Now().Add(h.lease().HeartbeatAgain() - interval)
	}
	return nil
}

// announce joins again.
func (h *heartbeater) announce(ctx context.Context) {
	if err := h.join(ctx); err != nil && ctx.Err() == nil {
		h.Log.Warn("announce this worker", "error", err)
	}
}

// externalDelay is the time from a heartbeat to the next one when another process wrote, which may have requested a
// cancel. Without the delay, busy processes that share a store would make each other renew all the time.
const externalDelay = time.Second

// isDue prevents a heartbeat for each wake-up by the claimer, which only reports running attempts.
func (h *heartbeater) isDue() bool {
	since := time.Since(h.last)
	external := since >= externalDelay && h.externalWrite.Swap(false)
	return h.cancelAsked.Swap(false) || external || since >= h.lease().Heartbeat()
}

// beat renews once and reports whether every lease got an answer.
func (h *heartbeater) beat(ctx context.Context) bool {
	running := slices.DeleteFunc(h.slots.all(), func(a *Attempt) bool {
		return errors.Is(context.Cause(a.held), store.ErrLeaseLost)
	})
	req := store.HeartbeatRequest{Worker: h.worker, TTL: h.TTL, Leases: make([]task.Lease, len(running))}
	for i, a := range running {
		req.Leases[i] = a.lease
	}
	before := time.Now()
	call, cancel := context.WithTimeout(ctx, h.lease().HeartbeatCall())
	beats, err := h.Store.Heartbeat(call, h.Namespace, req)
	h.called("heartbeat", before, err)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			h.repeats.warn(h.Log, "renew leases", err, "leases", len(running))
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
		a.extendValidity(before)
	}
	return all
}
