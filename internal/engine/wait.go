package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Wait is a wait of a task without a worker: a [Pause], a [SignalWait] or a [Call].
type Wait interface {
	// record stores the wait under the step's name and index, and returns the resulting step. known is the step of a
	// wait left by an earlier attempt, else nil.
	record(ctx context.Context, a *Attempt, name string, index int, known *task.Step) (*task.Step, error)
	// over reports whether the wait has ended.
	over(a *Attempt, step *task.Step) bool
	// reason returns the waiting reason of the task.
	reason() task.Waiting
}

// Await makes the task wait without a worker: it records the wait, blocks until no step of the attempt is in flight,
// and returns ErrSuspended. When a later attempt gets here and the wait is over, it returns the step. In an attempt
// whose task was asked to end it returns the cause, unless an earlier attempt continued after the wait.
func (a *Attempt) Await(ctx context.Context, name string, w Wait) (*task.Step, error) {
	a.hold() // until the wait is registered, so that another wait does not suspend the attempt without it
	step, over, err := a.look(ctx, name, w)
	if err == nil && !over {
		a.waitFor(w.reason(), step.WakeAt)
	}
	a.leave()
	if err != nil {
		return nil, err
	}
	switch cause := context.Cause(a.ctx); {
	case isCancel(cause) && !(over && a.wentOnAfter(step.Index)):
		return nil, cause // the task does not continue: its handler cleans up
	case over:
		return step, nil
	}
	a.suspendWhenIdle()
	return nil, ErrSuspended
}

// hold prevents the suspension of the attempt. The caller must call leave.
func (a *Attempt) hold() {
	a.mu.Lock()
	a.inFlight++
	a.mu.Unlock()
}

// look returns the step of a wait and whether the wait is over. It records the step unless it is completed.
func (a *Attempt) look(ctx context.Context, name string, w Wait) (step *task.Step, over bool, err error) {
	step, index, err := a.enter(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if step == nil {
		// Crash here: nothing is recorded, and the wait starts again.
		step, err = w.record(ctx, a, name, index, a.waitingStep(name))
		a.leave()
		if err != nil {
			return nil, false, err
		}
	}
	return step, w.over(a, step), nil
}

// waitingStep returns the step that an earlier attempt left waiting under a name, or nil.
func (a *Attempt) waitingStep(name string) *task.Step {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.entryOf(name).waiting
}

// waitFor adds a wait to the suspension of the attempt, with its end; zero: it has no time limit. Of several, the
// earliest end counts. Of the reasons a signal comes first, because a person may have to send it, and a time last.
func (a *Attempt) waitFor(why task.Waiting, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !until.IsZero() && (a.wakeAt.IsZero() || until.Before(a.wakeAt)) {
		a.wakeAt = until
	}
	if a.waiting != task.WaitSignal && (a.waiting != task.WaitChildren || why != task.WaitSleep) {
		a.waiting = why
	}
}

// wentOnAfter reports whether an earlier attempt continued after the step with an index. A sign of that is a later
// step, the beginning of a step with an undo or, in an undo phase, a failed try.
func (a *Attempt) wentOnAfter(index int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.journal {
		last := cmp.Or(e.done, e.begun, e.failed)
		if last != nil && last.Kind != task.KindCleanup && e.index > index {
			return true
		}
	}
	return false
}

// storeNow estimates the store's clock: its reading at the claim plus the time that passed here since. Only instants
// depend on it, never leases.
func (a *Attempt) storeNow() time.Time { return a.now.Add(time.Since(a.begun)) }

// suspendWhenIdle ends the attempt for a wait: concurrent steps end and are recorded, and nothing starts after that.
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

// Pause waits for a time. The wake-up time is fixed by the store's clock at the first call and never changes.
type Pause struct {
	For   time.Duration
	Until time.Time // zero: For applies
}

func (p *Pause) record(ctx context.Context, a *Attempt, name string, index int, _ *task.Step) (*task.Step, error) {
	step := a.newStep(name, index, task.KindSleep, task.StepCompleted)
	step.WakeAt = p.Until
	res, err := a.record(ctx, store.Record{Step: step, Sleep: p.For})
	return &res.Step, err
}

func (*Pause) over(a *Attempt, step *task.Step) bool { return !step.WakeAt.After(a.storeNow()) }
func (*Pause) reason() task.Waiting                  { return task.WaitSleep }

// SignalWait waits for a signal. The value of its step is the payload, or empty if the wait timed out.
type SignalWait struct {
	Signal  string
	Timeout time.Duration // 0: no timeout
}

func (s *SignalWait) record(ctx context.Context, a *Attempt, name string, index int, _ *task.Step) (*task.Step, error) {
	step := a.newStep(name, index, task.KindSignal, task.StepWaiting)
	step.Signal = s.Signal
	res, err := a.record(ctx, store.Record{Step: step, Timeout: s.Timeout})
	return &res.Step, err
}

func (*SignalWait) over(_ *Attempt, step *task.Step) bool { return step.State == task.StepCompleted }
func (*SignalWait) reason() task.Waiting                  { return task.WaitSignal }

// newStep returns the step of a wait, or of another record without a function.
func (a *Attempt) newStep(name string, index int, kind task.StepKind, state task.StepState) *task.Step {
	return &task.Step{Name: name, Index: index, Kind: kind, State: state, AttemptNo: a.task.AttemptNo, Try: 1}
}

// Start enqueues a task as a step: its ID is the step's value, and the task exists if and only if the step is
// recorded.
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
		step := a.newStep(name, index, task.KindStart, task.StepCompleted)
		step.Value = value
		children := []task.New{child}
		a.injectInto(ctx, children)
		res, err := a.record(ctx, store.Record{Step: step, Tasks: children})
		a.leave()
		if err != nil {
			return task.ID{}, err
		}
		if done = &res.Step; bytes.Equal(done.Value, value) { // otherwise an earlier record stored another task
			a.stored(ctx, children)
		}
	}
	var id task.ID
	if err := json.Unmarshal(done.Value, &id); err != nil {
		return task.ID{}, a.Undecodable(name, err)
	}
	return id, nil
}
