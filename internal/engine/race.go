package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Race waits for the first of several waits and records the winner, so that every later attempt gets the same. Each
// wait is a step of its own, "name[i]". If several are over, a signal wins before other waits, and then the first in
// the list. Other waits for a signal are withdrawn.
func (a *Attempt) Race(ctx context.Context, name string, waits ...Wait) (winner int, step *task.Step, err error) {
	done, index, err := a.enter(ctx, name)
	if err != nil {
		return 0, nil, err
	}
	if done != nil {
		return a.decided(done, name, len(waits))
	}
	winner, step, err = a.race(ctx, name, index, waits)
	a.leave()
	switch cause := context.Cause(a.ctx); {
	case err != nil:
		return 0, nil, err
	case step != nil:
		return winner, step, nil
	case isCancel(cause):
		return 0, nil, cause
	}
	a.suspendWhenIdle()
	return 0, nil, ErrSuspended
}

func caseName(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// decided returns the winner of a race that an earlier attempt recorded.
func (a *Attempt) decided(done *task.Step, name string, n int) (winner int, step *task.Step, err error) {
	if err := json.Unmarshal(done.Value, &winner); err != nil {
		return 0, nil, a.Undecodable(name, err)
	}
	last := done.Index
	var again *task.Step // the winner waits again: a retry of the task reopened its children
	a.mu.Lock()
	for i := range n {
		if known := a.journal[caseName(name, i)]; known != nil {
			known.used = true
			last = max(last, known.index)
			if i == winner {
				step, again = known.done, known.waiting
			}
		}
	}
	a.mu.Unlock()
	if step == nil && again != nil {
		a.waitFor(task.WaitChildren, again.WakeAt)
		a.suspendWhenIdle()
		return 0, nil, ErrSuspended
	}
	if step == nil {
		return 0, nil, a.Undecodable(name, fmt.Errorf("number %d of its %d waits came first, which is not recorded", winner, n))
	}
	if cause := context.Cause(a.ctx); isCancel(cause) && !a.wentOnAfter(last) {
		return 0, nil, cause
	}
	return winner, step, nil
}

// race checks the waits and records the winner. step is nil while no wait is over.
func (a *Attempt) race(ctx context.Context, name string, index int, waits []Wait) (winner int, step *task.Step, err error) {
	first := func(i int, s *task.Step) {
		withdrawn := signals(waits[i]) && len(s.Value) == 0
		if !withdrawn && (step == nil || signals(waits[i]) && !signals(waits[winner])) {
			winner, step = i, s
		}
	}
	open := make(map[int]*task.Step)
	for i, w := range waits {
		if step != nil && !a.onRecord(caseName(name, i)) {
			continue // it does not begin any more
		}
		known, over, err := a.look(ctx, caseName(name, i), w)
		if err != nil {
			return 0, nil, err
		}
		if over {
			first(i, known)
		} else {
			open[i] = known
		}
	}
	if step == nil || isCancel(context.Cause(a.ctx)) {
		for i, s := range open {
			a.waitFor(waits[i].reason(), s.WakeAt)
		}
		return 0, nil, nil
	}
	// Crash before the winner is recorded: it is over and wins in the next attempt too, unless a signal comes first.
	for i, s := range open {
		if w, ok := waits[i].(*SignalWait); ok {
			got, err := w.withdraw(ctx, a, s)
			if err != nil {
				return 0, nil, err
			}
			first(i, got) // a signal that arrived meanwhile is not lost
		}
	}
	decided := a.newStep(name, index, task.KindRace, task.StepCompleted)
	decided.Value = json.RawMessage(strconv.Itoa(winner))
	if _, err := a.record(ctx, store.Record{Step: decided}); err != nil {
		return 0, nil, err
	}
	return winner, step, nil
}

func signals(w Wait) bool {
	_, ok := w.(*SignalWait)
	return ok
}

// onRecord reports whether an earlier attempt recorded a step under a name.
func (a *Attempt) onRecord(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.journal[name]
	return known != nil && (known.done != nil || known.waiting != nil)
}

// withdraw ends a wait for a signal, unless the signal has arrived.
func (s *SignalWait) withdraw(ctx context.Context, a *Attempt, waiting *task.Step) (*task.Step, error) {
	step := a.newStep(waiting.Name, waiting.Index, task.KindSignal, task.StepCompleted)
	step.Signal = s.Signal
	res, err := a.record(ctx, store.Record{Step: step})
	return &res.Step, err
}
