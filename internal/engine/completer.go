package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// completer writes the ends of attempts, several in one call.
type completer struct {
	*env
	finishes *combiner[store.Finish, store.FinishResult]
	draining atomic.Bool
	settled  settledJobs
}

func newCompleter(e *env) *completer {
	c := &completer{env: e}
	c.finishes = newCombiner(c.write, func(err error) store.FinishResult { return store.FinishResult{Err: err} })
	return c
}

// drain makes the completer give up earlier on a store that cannot be written.
func (c *completer) drain() { c.draining.Store(true) }

// outcome returns the end of an attempt whose handler returned; false if the attempt may not write.
func (c *completer) outcome(a *Attempt, out json.RawMessage, err error) (fin store.Finish, ok bool) {
	a.stopProgress()
	if fin, ok = a.outcome(out, err); !ok {
		// A worker that lost its lease writes nothing, not even a failure.
		a.logger().Info("the lease was lost: the attempt's result is dropped", "epoch", a.lease.Epoch)
		c.emitLost(a)
		return fin, false
	}
	c.slowDown(a, err)
	a.closeEvents(&fin)
	// Crash here: the lease expires and the reaper requeues the task; its completed steps remain.
	return fin, true
}

// ended emits the event of an attempt whose end was written, or logs why it was not. again: the end was written more
// than once.
func (c *completer) ended(a *Attempt, fin *store.Finish, res store.FinishResult, again bool) {
	switch {
	case errors.Is(res.Err, store.ErrLeaseLost):
		a.logger().Info("the lease was lost before the result was written", "epoch", a.lease.Epoch)
		c.emitLost(a)
		return
	case res.Err != nil:
		a.logger().Error("the result of an attempt could not be written", "epoch", a.lease.Epoch, "error", res.Err)
		return
	}
	if res.State == task.Pending && (res.Waiting == task.WaitChildren || res.Waiting == task.WaitRepair) {
		a.stored(a.innermost(), fin.Children)
	}
	if res.State == task.Blocked && fin.Error != nil {
		c.questions.asked(fin.Error.AskUntil, a.storeNow())
	}
	c.stats.count(a, fin)
	logEnd(a, fin, res)
	c.emitEnd(a, fin, res)
	c.emitSettled(a, res, again)
}

// finishKept is finish for values that may have to go to the bucket. fin keeps the values themselves, for listeners.
// refused is the store's error for the first try; nil: there was no try.
func (c *completer) finishKept(a *Attempt, fin *store.Finish, refused error) (res store.FinishResult, again bool) {
	for range keepTries {
		kept := *fin
		if err := c.Values.keepFinish(c.work, &kept); err != nil {
			c.repeats.warn(a.logger(), "put a value into the bucket", err)
			if store.Refused(err) {
				return c.finishRefused(a, fin, store.FinishResult{Err: err})
			}
			*fin = a.unkept(*fin, err)
			return c.finish(*fin, refused)
		}
		res, again = c.finish(kept, refused)
		if store.Refused(res.Err) {
			return c.finishRefused(a, fin, res)
		}
		if !errors.Is(res.Err, store.ErrBlobGone) {
			return res, again
		}
		refused = nil
	}
	return res, again
}

// finishRefused ends an attempt whose end the store refuses permanently: with that error, and if the store refuses
// this too, with only that error. If it refuses everything, the lease expires and the reaper ends the attempt.
func (c *completer) finishRefused(a *Attempt, fin *store.Finish, res store.FinishResult) (store.FinishResult, bool) {
	for _, end := range []func(store.Finish, error) store.Finish{a.refusedEnd, a.bareEnd} {
		refused := res.Err
		a.logger().Error("the store refuses the result of an attempt: the attempt ends with that error", "error", refused)
		kept := end(*fin, refused)
		*fin = kept
		if err := c.Values.keepFinish(c.work, &kept); err != nil {
			continue
		}
		if res, _ = c.finish(kept, nil); !store.Refused(res.Err) {
			break
		}
	}
	return res, true
}

// refusedTries is the number of tries of a write that the store refuses permanently: two concurrent transactions
// together can break a constraint that each satisfies alone.
const refusedTries = 3

// finish writes the end of one attempt. It reports whether it wrote more than once, in which case the result may be
// that of a repeated call. It does not give up while the process lives, because a short outage must not lose the
// result of a handler, and a late finish is fenced. refused is the error of an earlier first try, if any.
func (c *completer) finish(fin store.Finish, refused error) (res store.FinishResult, again bool) {
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		if try > 1 || refused == nil {
			if res, refused = c.finishes.do(fin, try); refused == nil {
				return res, try > 1
			}
		}
		if c.givesUp(refused, pause) || try >= refusedTries && store.Refused(refused) {
			return store.FinishResult{Err: refused}, true
		}
		wait(c.work, pause, nil)
		pause = min(2*pause, 5*time.Second)
	}
}

// givesUp reports whether a refused finish is not retried.
func (c *completer) givesUp(err error, pause time.Duration) bool {
	return c.work.Err() != nil || c.draining.Load() && pause > time.Second || errors.Is(err, store.ErrClosed)
}

// write is the combiner's call.
func (c *completer) write(fins []store.Finish) ([]store.FinishResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.work), c.lease().Finish())
	defer cancel()
	began := time.Now()
	res, err := c.Store.Finish(ctx, c.Namespace, fins...)
	c.called("finish", began, err)
	if err != nil {
		c.repeats.warn(c.Log, "write the results of attempts", err, "attempts", len(fins))
	}
	return res, err
}

// emitEnd emits the event of a durable outcome.
func (c *completer) emitEnd(a *Attempt, fin *store.Finish, res store.FinishResult) {
	if !c.listens() {
		return
	}
	if a.lastProgress != nil {
		c.emit(a.lastProgress)
	} else {
		a.emitProgress(fin.Progress)
	}
	end := a.endingOf(fin, &res)
	c.emit(a.masked(end.Event(a.headerOf(end.Sequence(a.lease.Epoch)))))
}

// endingOf returns the ending of an attempt once it is durable.
func (a *Attempt) endingOf(fin *store.Finish, res *store.FinishResult) event.Ending {
	end := event.Ending{
		Outcome: fin.Outcome, State: res.State, Waiting: res.Waiting, Output: fin.Output, Error: fin.Error, Allowed: a.task.AllowFailure,
		Delay: fin.Delay, WakeAt: fin.WakeAt, Duration: fin.Elapsed,
	}
	if fin.Decision != nil {
		end.Decision = fin.Decision.Kind
	}
	if o := res.Overruled; o != nil {
		end.Outcome, end.Decision, end.Error, end.EndsAs = o.Outcome, o.Decision, o.Error, o.EndsAs
	}
	if end.Outcome == task.OutcomeSuspended {
		end.Waiting = cmp.Or(end.Waiting, fin.Waiting) // even if the wait was over at once
	}
	return end
}
