package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/task/event"
)

// complete1 writes the end of one attempt, batched with those of others, and
// tells the events. The slot stays taken until the outcome is durable, so
// that slots bound the leases a process holds.
func (e *Engine) complete1(a *Attempt, out json.RawMessage, err error) {
	a.stopProgress()
	fin, ok := a.outcome(out, err)
	if !ok {
		// R9: a worker that lost its lease writes nothing, not even "failed".
		e.log.Info("the lease was lost: the attempt's result is dropped", "task_id", a.task.ID, "task_type", a.task.Type, "epoch", a.lease.Epoch)
		return
	}
	// Crash here: the lease expires and the reaper requeues the task; its
	// completed steps stay.
	res := e.finishes.do(fin)
	switch {
	case errors.Is(res.Err, store.ErrLeaseLost):
		e.log.Info("the lease was lost before the result was written", "task_id", a.task.ID, "task_type", a.task.Type, "epoch", a.lease.Epoch)
		return
	case res.Err != nil:
		e.log.Error("the result of an attempt could not be written", "task_id", a.task.ID, "task_type", a.task.Type, "epoch", a.lease.Epoch, "error", res.Err)
		return
	}
	e.tellEnd(a, fin, res)
}

// finishBatch is the combiner's call: it does not give up while the process
// lives, because the answer of the handlers must not be lost to a short
// outage, and a finish that arrives late is fenced.
func (e *Engine) finishBatch(fins []store.Finish) []store.FinishResult {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.hard), max(e.cfg.TTL, 10*time.Second))
		res, err := e.cfg.Store.Finish(ctx, e.cfg.Namespace, fins...)
		cancel()
		if err == nil {
			return res
		}
		gone := e.hard.Err() != nil || e.draining.Load() && pause > time.Second
		if gone || errors.Is(err, store.ErrClosed) {
			res = make([]store.FinishResult, len(fins))
			for i := range res {
				res[i].Err = err
			}
			return res
		}
		e.log.Warn("write the results of attempts", "attempts", len(fins), "error", err, "retry_in", pause)
		wait(e.hard, pause, nil)
	}
}

func (e *Engine) tellEnd(a *Attempt, fin store.Finish, res store.FinishResult) {
	if e.cfg.Sink == nil {
		return
	}
	h, d := a.header(), fin.Elapsed
	var te task.Error
	if fin.Error != nil {
		te = *fin.Error
	}
	switch res.State {
	case task.Succeeded:
		e.emit(event.TaskSucceeded{Header: h, Output: fin.Output, Duration: d})
	case task.Failed:
		e.emit(event.TaskFailed{Header: h, Error: te, Duration: d})
	case task.Cancelled:
		e.emit(event.TaskCancelled{Header: h, Error: te, Duration: d})
	case task.Blocked:
		e.emit(event.TaskBlocked{Header: h, Error: te, Duration: d})
	default:
		if fin.Outcome == task.OutcomeFailure {
			e.emit(event.TaskRetrying{Header: h, Error: te, Delay: fin.Delay, Duration: d})
			return
		}
		if fin.Outcome == task.OutcomeSuspended {
			e.emit(event.TaskSuspended{Header: h, WakeAt: fin.WakeAt, Duration: d})
		}
	}
}
