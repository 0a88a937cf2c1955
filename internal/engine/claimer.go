package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// claimLimit bounds one claim, whatever the number of slots.
const claimLimit = 1000

// claimLoop keeps the slots full until ctx ends or, with untilIdle, until a
// claim that began with no attempt running found nothing due, and no lease of
// others waits to be taken.
func (e *Engine) claimLoop(ctx context.Context, untilIdle bool) error {
	stop := context.AfterFunc(ctx, func() { kick(e.claimKick) })
	defer stop()
	for ctx.Err() == nil {
		req, idle := e.nextClaim()
		// Asked before the claim: what is taken over meanwhile it may miss.
		idle = idle && !e.waitsToJudge()
		if req.Limit == 0 {
			wait(ctx, -1, e.claimKick)
			continue
		}
		hold := time.Duration(0)
		if !untilIdle {
			hold = e.holdFor()
		}
		before := time.Now()
		res, err := e.claim(ctx, req, hold)
		if err != nil {
			continue // claim has waited and logged
		}
		before = before.Add(res.Waited)
		for _, c := range res.Tasks {
			e.start(c, before)
		}
		switch {
		case len(res.Tasks) > 0:
			kick(e.beatKick)
			if e.reapLate.Load() {
				kick(e.reapKick) // these leases may end before the reaper would look again
			}
			if res.Next == 0 {
				continue
			}
		case res.Waited > 0:
			continue // the store waited in our place
		case res.Next == 0:
			// Due, but not for us now: for a free slot of its queue, or for the
			// reaper, because its deadline passed.
			kick(e.reapKick)
			wait(ctx, e.cfg.Poll, e.claimKick)
			continue
		case untilIdle && idle:
			return nil
		}
		wait(ctx, e.pollAfter(res.Next), e.claimKick)
	}
	return nil
}

// nextClaim says what the free slots can take, and whether nothing runs.
func (e *Engine) nextClaim() (req store.ClaimRequest, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	req = store.ClaimRequest{
		Worker: e.worker,
		Name:   e.name,
		TTL:    e.cfg.TTL,
		Limit:  min(e.cfg.Slots-len(e.running), claimLimit),
		Types:  e.types,
		Slots:  e.cfg.Slots,
	}
	for a := range e.suspects {
		req.Quarantined++
		if req.QuarantineLimit == 0 || a.company < req.QuarantineLimit {
			req.QuarantineLimit = a.company
		}
	}
	if e.cfg.Queues != nil {
		req.Queues = make(map[string]int, len(e.cfg.Queues))
		free := 0
		for q, limit := range e.cfg.Queues {
			if n := limit - e.queues[q]; n > 0 {
				req.Queues[q] = n
				free += n
			}
		}
		req.Limit = min(req.Limit, free)
	}
	return req, len(e.running) == 0
}

// holdFor is how long the store may hold a claim that finds nothing: until we
// would look by ourselves.
func (e *Engine) holdFor() time.Duration {
	if d := e.pollAfter(-1); d >= 0 {
		return d
	}
	return e.cfg.TTL
}

// pollAfter is how long to sleep when the next row is due after next (< 0:
// none known). Stores that tell everything need no polling.
func (e *Engine) pollAfter(next time.Duration) time.Duration {
	if e.complete {
		return next
	}
	poll := e.cfg.Poll*9/10 + rand.N(e.cfg.Poll/5+1)
	if next >= 0 && next < poll {
		return next
	}
	return poll
}

// claim leases tasks. A call whose answer was lost is looked up by its lease
// id until the store answers, so that no lease is left without an attempt
// (R3). It returns an error only when ctx ended or the lookup found that
// nothing was claimed.
func (e *Engine) claim(ctx context.Context, req store.ClaimRequest, hold time.Duration) (store.ClaimResult, error) {
	req.LeaseID = task.NewLeaseID()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		limit := e.cfg.TTL + hold
		if req.Again {
			limit = e.cfg.TTL / 3 // a lookup that hangs for longer finds leases that are over
		}
		// Detached: a claim that commits while we drain must not be lost.
		call, cancel := context.WithTimeout(e.hard, limit)
		res, err := e.claimOnce(call, req, hold)
		cancel()
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return store.ClaimResult{}, err
		}
		e.log.Warn("claim tasks", "error", err, "retry_in", pause)
		req.Again = true
		wait(ctx, pause, nil)
	}
}

// claimOnce asks the store once, and lets it wait for up to hold if it can.
func (e *Engine) claimOnce(ctx context.Context, req store.ClaimRequest, hold time.Duration) (store.ClaimResult, error) {
	if w, ok := e.cfg.Store.(store.WaitingClaimer); ok && hold > 0 && !req.Again {
		return w.ClaimOrWait(ctx, e.cfg.Namespace, req, hold, e.claimKick)
	}
	return e.cfg.Store.Claim(ctx, e.cfg.Namespace, req)
}

// start gives a leased task to an executor. before is when the claim call
// began: the lease is trusted from then on (R5).
func (e *Engine) start(c store.Claimed, before time.Time) {
	a := e.newAttempt(c, before)
	e.mu.Lock()
	e.running[leaseKey{c.Task.ID, c.Task.Epoch}] = a
	e.queues[c.Task.Queue]++
	if c.Quarantined {
		e.suspects[a] = struct{}{}
	}
	e.mu.Unlock()
	if a.trustedFor() <= 0 {
		a.end(ErrLeaseUncertain) // the answer came too late
	}
	e.watch(a)
	e.work.Go("attempt", func(context.Context) error {
		e.execute(a)
		return nil
	})
}

// forget frees the slot of an attempt, once.
func (e *Engine) forget(a *Attempt) {
	key := leaseKey{a.task.ID, a.task.Epoch}
	e.mu.Lock()
	if e.running[key] != a {
		e.mu.Unlock()
		return
	}
	delete(e.running, key)
	if e.queues[a.task.Queue]--; e.queues[a.task.Queue] == 0 {
		delete(e.queues, a.task.Queue)
	}
	delete(e.suspects, a)
	e.mu.Unlock()
	kick(e.claimKick)
}
