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

// heartbeater renews all leases of the process every TTL/3 in one call, and at
// once when a cancel may wait: the answer says which tasks are to be cancelled.
type heartbeater struct {
	*env
	wake          signal
	cancelAsked   atomic.Bool // a running task was asked to cancel
	externalWrite atomic.Bool // another process wrote: it may have asked for a cancel

	// Accessed by run only.
	last time.Time // the next heartbeat is due TTL/3 after it
	seen time.Time // when the store last saw this worker, by the wall clock
	held time.Time // when an attempt last ran
}

func newHeartbeater(e *env) *heartbeater {
	return &heartbeater{env: e, wake: newSignal()}
}

// leased says that attempts run now.
func (h *heartbeater) leased() { h.wake.Set() }

// notify says that a running task was asked to cancel, or that another process
// wrote.
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
			// No other process can miss this worker, and nothing is leased. (For
			// leases that were lost, by a restore for one, silence would make a
			// crash.)
			wait(ctx, -1, h.wake)
			if ctx.Err() != nil {
				return nil
			}
			// The worker's row was not renewed for lack of leases only.
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
		// From before the call, or a slow store would see this worker less often
		// than its warm-up asks for.
		asked := time.Now()
		if h.beat(ctx) {
			if asked.Round(0).Sub(h.seen) > h.TTL {
				// The store may have forgotten this worker's row, and with it the
				// proof that it lives. (By the wall clock: the monotonic one stands
				// still while the machine sleeps.)
				h.announce(ctx)
			}
			h.last, h.seen = asked, asked.Round(0)
			continue
		}
		// A store error, or rows without an answer: again within a second.
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

// externalDelay is how long after a heartbeat the next one comes when another
// process wrote: it may have asked for a cancel. Not sooner, or busy processes
// that share a store would make each other renew all the time.
const externalDelay = time.Second

// isDue keeps wake-ups by the claimer, which only say that attempts run now,
// from becoming a heartbeat each.
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
