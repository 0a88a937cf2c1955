package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Sleep lets the task wait without a worker: it records when to wake, blocks
// until no step of the attempt is in flight, and returns ErrSuspended. When
// the attempt that follows the wake-up gets here, it returns nil; in an attempt
// that was asked to end for good it returns the cause, unless an earlier
// attempt went on behind it. The wake-up time is given by the store's clock at
// the first call and never changes.
func (a *Attempt) Sleep(ctx context.Context, name string, d time.Duration, until time.Time) error {
	done, index, err := a.enter(ctx, name)
	if err != nil {
		return err
	}
	if done == nil {
		// Crash here: nothing is recorded, the sleep begins anew.
		step := task.Step{Name: name, Index: index, Kind: task.KindSleep, State: task.StepCompleted, AttemptNo: a.task.AttemptNo, Try: 1, WakeAt: until}
		res, err := a.record(ctx, store.Record{Step: &step, Sleep: d})
		a.leave()
		if err != nil {
			return err
		}
		done = &res.Step
	}
	awake := !done.WakeAt.After(a.storeNow())
	switch cause := context.Cause(a.ctx); {
	case isCancel(cause) && !(awake && a.wentOnAfter(done)):
		return cause // the task does not go on: its handler cleans up
	case awake:
		return nil
	}
	return a.suspend(done.WakeAt)
}

// wentOnAfter reports whether an earlier attempt recorded a step behind this one:
// it did not end there.
func (a *Attempt) wentOnAfter(step *task.Step) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.journal {
		if e.done != nil && e.done.Kind != task.KindCleanup && e.index > step.Index {
			return true
		}
	}
	return false
}

// storeNow estimates the store's clock: its reading at the claim plus what
// passed here since. Only instants depend on it, never leases.
func (a *Attempt) storeNow() time.Time { return a.now.Add(time.Since(a.begun)) }

// suspend ends the attempt for a wait: it lets steps that run beside it end
// and be recorded, and from then on nothing starts.
func (a *Attempt) suspend(wakeAt time.Time) error {
	a.mu.Lock()
	if a.wakeAt.IsZero() || wakeAt.Before(a.wakeAt) {
		a.wakeAt = wakeAt
	}
	a.mu.Unlock()
	a.suspendWhenIdle()
	return ErrSuspended
}

// suspendWhenIdle waits until no step of the attempt is in flight, and ends it.
func (a *Attempt) suspendWhenIdle() {
	a.mu.Lock()
	for a.inFlight > 0 {
		a.idle.Wait()
	}
	if !a.over {
		a.suspended = true
	}
	a.mu.Unlock()
	a.end(ErrSuspended)
}

// Start enqueues a task as a step: its id is the step's value, and the task
// exists exactly if the step is recorded.
func (a *Attempt) Start(ctx context.Context, name string, child task.New) (task.ID, error) {
	done, index, err := a.enter(ctx, name)
	if err != nil {
		return task.ID{}, err
	}
	if done == nil {
		value, err := json.Marshal(child.ID)
		if err != nil {
			return task.ID{}, err
		}
		step := task.Step{Name: name, Index: index, Kind: task.KindStart, State: task.StepCompleted, AttemptNo: a.task.AttemptNo, Try: 1, Value: value}
		res, err := a.record(ctx, store.Record{Step: &step, Tasks: []task.New{child}})
		a.leave()
		if err != nil {
			return task.ID{}, err
		}
		done = &res.Step
	}
	var id task.ID
	if err := json.Unmarshal(done.Value, &id); err != nil {
		return task.ID{}, a.Undecodable(name, err)
	}
	return id, nil
}
