package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// claimLimit is the maximum size of one claim, whatever the number of slots.
const claimLimit = 1000

// claimer leases due tasks into free slots.
type claimer struct {
	*env
	types     map[string]int // code versions by task type
	untilIdle bool
	wake      signal // work may be due, or a slot became free

	executor    *executor
	heartbeater *heartbeater
	reaper      *reaper
	reader      *hintReader
}

func newClaimer(e *env, types map[string]int, untilIdle bool, wake signal, executor *executor, heartbeater *heartbeater, reaper *reaper, reader *hintReader) *claimer {
	return &claimer{env: e, types: types, untilIdle: untilIdle, wake: wake, executor: executor, heartbeater: heartbeater, reaper: reaper, reader: reader}
}

// lookAgain is the time after which RunUntilIdle asks a shared store once more whether a task is due.
const lookAgain = 100 * time.Millisecond

// run keeps the slots full until ctx ends. With untilIdle it also returns once a claim finds no due task, provided
// that the worker was idle before the claim: no attempt was running, no expired lease was waiting for this worker's
// warm-up, and no chores were left. It returns an error when the store was closed.
func (c *claimer) run(ctx context.Context) error {
	unwake := context.AfterFunc(ctx, c.wake.Set) // wakes a claim that waits in the store
	defer unwake()
	var behind store.ClaimPlace // position of the last claim
	var drain drainForAlone
	var asked ask
	var skewed time.Time // when compareClocks has logged
	looked := false      // the last claim found nothing, and the worker was idle
	for ctx.Err() == nil {
		asked = c.troubles.next(c.types, asked.probe)
		req := store.ClaimRequest{Worker: c.worker, Name: c.name, TTL: c.TTL, Types: asked.types, Schemas: c.schemas, Bound: c.bound(), Behind: behind}
		idle := c.slots.fill(&req)
		// Check before the claim, which may miss tasks that are taken over meanwhile.
		idle = idle && !c.reaper.waitsForWarmUp() && c.reaper.choresLeft.Load() == 0
		left := drain.left(req.Running == 0, time.Now())
		if c.reader.enabled() && asked.probe == "" {
			wanted := req
			if left > 0 || len(asked.types) == 0 {
				wanted.Limit = 0
			}
			req.IDs = c.reader.take(&wanted)
			req.LeaveSent = true
		}
		switch {
		case req.Limit == 0:
			wait(ctx, asked.again, c.wake)
			continue
		case left > 0:
			wait(ctx, left, c.wake)
			continue
		case len(asked.types) == 0 && c.untilIdle && idle && c.troubles.leaves():
			return nil
		case len(asked.types) == 0:
			wait(ctx, asked.again, c.wake)
			continue
		}
		hold := time.Duration(0)
		if !c.untilIdle {
			hold = asked.sooner(c.holdFor())
		}
		if asked.probe != "" {
			req.Limit, req.Behind, hold = min(req.Limit, asked.most), store.ClaimPlace{}, 0
		}
		if len(req.IDs) > 0 {
			req.Behind, hold = store.ClaimPlace{}, 0
		}
		before := time.Now()
		res, err := c.claim(ctx, req, hold)
		switch {
		case errors.Is(err, store.ErrClosed):
			return fmt.Errorf("%w: close it after Run has returned", err)
		case err != nil:
			continue // claim has already waited and logged
		}
		c.stats.setClock(res.Now)
		skewed = c.compareClocks(res.Now, before, skewed)
		before = before.Add(res.Waited)
		hinted := len(req.IDs) > 0
		if hinted {
			c.reader.claimed(len(req.IDs), len(res.Tasks))
		} else if asked.probe == "" {
			behind = res.Behind
		}
		c.executor.start(res.Tasks, before)
		if res.AloneDue {
			drain.begin(c.TTL, time.Now())
		}
		switch {
		case len(res.Tasks) > 0:
			looked = false
			c.heartbeater.leased()
			c.reaper.leased()
			if res.Next == 0 || asked.probe != "" { // ask for the other types too
				continue
			}
		case hinted:
			continue // claim directly before waiting
		case asked.probe != "":
			c.troubles.nothing(asked.probe, res.Next)
			continue
		case res.Stopped:
			continue // the claim read its maximum number of rows: the next one continues
		case res.Waited > 0:
			continue // the store waited instead
		case res.Next == 0:
			// Due, but not claimable: the task needs a free slot of its queue, or the reaper because its deadline
			// passed.
			c.reaper.changed(c.Poll)
			wait(ctx, asked.sooner(c.Poll), c.wake)
			continue
		case c.untilIdle && idle && c.troubles.leaves():
			if c.complete || looked {
				return nil
			}
			// A claim skips a row that another process, such as a publisher, has locked for a moment.
			looked = true
			wait(ctx, lookAgain, c.wake)
			continue
		}
		wait(ctx, asked.sooner(c.pollAfter(res.Next)), c.wake)
	}
	return nil
}

// holdFor returns the time for which the store may hold an empty claim: until the claimer would claim again by
// itself.
func (c *claimer) holdFor() time.Duration {
	if d := c.pollAfter(-1); d >= 0 {
		return d
	}
	return c.TTL
}

// pollAfter returns the delay before the next claim, given the time until the next due row (< 0: unknown). Stores
// that notify of every change need no polling.
func (c *claimer) pollAfter(next time.Duration) time.Duration {
	if c.complete {
		return next
	}
	poll := c.Poll*9/10 + rand.N(c.Poll/5+1)
	if next >= 0 && next < poll {
		return next
	}
	return poll
}

// claim leases tasks. After a lost answer it looks up the claim by its lease ID until the store answers, so that no
// lease is left without an attempt. It returns an error only when ctx ended or the lookup found that nothing was
// claimed.
func (c *claimer) claim(ctx context.Context, req store.ClaimRequest, hold time.Duration) (store.ClaimResult, error) {
	req.LeaseID = task.NewLeaseID()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		limit := c.lease().Call() + hold
		if req.Again {
			limit = c.lease().Lookup()
		}
		// Detached: a claim that commits during a drain must not be lost.
		call, cancel := context.WithTimeout(c.work, limit)
		res, err := c.ask(call, req, hold)
		cancel()
		switch {
		case err == nil && !req.Again:
			return res, nil
		case err == nil:
			// The lost call may have consumed a wake-up, and the free slots that it counted have changed: ignore the
			// lookup's answer about further work.
			c.wake.Set()
			if len(res.Tasks) == 0 {
				return store.ClaimResult{}, errNothingClaimed
			}
			return res, nil
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return store.ClaimResult{}, err
		}
		c.repeats.warn(c.Log, "claim tasks", err, "retry_in", pause)
		req.Again = true
		wait(ctx, pause, nil)
	}
}

var errNothingClaimed = errors.New("the claim with the lost answer leased no task")

// ask calls the store once; a store that can wait may hold the call for up to hold.
func (c *claimer) ask(ctx context.Context, req store.ClaimRequest, hold time.Duration) (store.ClaimResult, error) {
	began := time.Now()
	call := "claim"
	if hold > 0 && !req.Again && c.Store.Capabilities().Has(store.CanWait) {
		call, req.Wait, req.Wake = "claim_or_wait", hold, c.wake.C()
	}
	res, err := c.Store.Claim(ctx, c.Namespace, req)
	c.called(call, began, err)
	return res, err
}
