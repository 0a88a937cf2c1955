package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Each returns the children of calls, each with one child, in the order in which they ended. Each call is a step of
// its own, "name[i]". The children that ended since the last attempt form one round. The round is recorded as the
// next of the steps "name#1", "name#2" and so on before its children are returned. Every attempt therefore gets the
// same children first, and then new ones.
type Each struct {
	a     *Attempt
	name  string
	calls []*Call

	given []bool // by index
	list  []Ended
}

// Ended is a call whose child has ended.
type Ended struct {
	No   int
	Step *task.Step
}

// round is the value of a step of Each.
type round struct {
	Of    int   `json:"of"`    // number of children
	Ended []int `json:"ended"` // indexes
}

func (e *Each) roundName(no int) string { return fmt.Sprintf("%s#%d", e.name, no+1) }

// Each returns the calls known to have ended. open reports that there are more: call EachOpen after them.
func (a *Attempt) Each(ctx context.Context, name string, calls []*Call) (list []Ended, open bool, err error) {
	e := &Each{a: a, name: name, calls: calls, given: make([]bool, len(calls))}
	for no := 0; len(e.list) < len(calls); no++ {
		recorded, err := e.round(ctx, no)
		if err != nil {
			return nil, false, err
		}
		if !recorded {
			break
		}
	}
	return e.list, len(e.list) < len(calls), nil
}

// EachOpen ends the attempt until more children have ended.
func (a *Attempt) EachOpen() error {
	a.suspendWhenIdle()
	return ErrSuspended
}

// EachResults reads the results of the children of ended calls, in their order.
func (a *Attempt) EachResults(ctx context.Context, name string, list []Ended) ([]Called, error) {
	ctx = a.readContext(ctx)
	results, err := a.eachResults(ctx, name, list)
	return results, unreadCall(ctx, name, err)
}

func (a *Attempt) eachResults(ctx context.Context, name string, list []Ended) ([]Called, error) {
	if len(list) == 0 {
		return nil, nil
	}
	all, err := a.readNeeds(ctx, false)
	if err != nil {
		return nil, err
	}
	edges := make(map[string]store.Need, len(all))
	for _, n := range all {
		if n.Step != "" && n.Done {
			edges[n.Step] = n
		}
	}
	needs := make([]store.Need, len(list))
	for i, ended := range list {
		n, ok := edges[ended.Step.Name]
		if !ok {
			return nil, fmt.Errorf("the child of %q is not recorded", ended.Step.Name)
		}
		needs[i] = n
	}
	return a.called(ctx, name, needs)
}

// round takes the round recorded by an earlier attempt, or makes a new one. It reports whether another round may be
// recorded after it.
func (e *Each) round(ctx context.Context, no int) (recorded bool, err error) {
	a := e.a
	done, index, err := a.enter(ctx, e.roundName(no))
	if err != nil {
		return false, err
	}
	if done != nil {
		if cause := context.Cause(a.ctx); isCancel(cause) && !a.wentOnAfter(done.Index) {
			return false, cause // the task does not continue: its handler cleans up
		}
		return e.again(done)
	}
	defer a.leave()
	return false, e.next(ctx, no, index)
}

// again takes a recorded round, up to a call that waits again because a retry of the task reopened its child.
func (e *Each) again(done *task.Step) (whole bool, err error) {
	var r round
	if err := json.Unmarshal(done.Value, &r); err != nil {
		return false, e.a.Undecodable(done.Name, err)
	}
	if r.Of != len(e.calls) {
		return false, e.a.otherCall(e.name, r.Of, len(e.calls))
	}
	for _, i := range r.Ended {
		if i < 0 || i >= len(e.calls) || e.given[i] {
			return false, e.a.Undecodable(done.Name, fmt.Errorf("%s: child %d cannot have ended", done.Value, i))
		}
		step, waiting := e.a.recordedWait(caseName(e.name, i))
		switch {
		case step != nil:
			e.give(i, step)
		case waiting != nil:
			e.a.waitFor(task.WaitChildren, waiting.WakeAt)
			return false, nil
		default:
			return false, e.a.Undecodable(done.Name, fmt.Errorf("%s: child %d is not recorded", done.Value, i))
		}
	}
	return true, nil
}

func (e *Each) give(i int, step *task.Step) {
	e.given[i] = true
	e.list = append(e.list, Ended{No: i, Step: step})
}

// next records the children that ended since the last round, if any. It begins the calls that are not recorded yet.
func (e *Each) next(ctx context.Context, no, index int) error {
	a := e.a
	ended := make(map[int]*task.Step)
	r := round{Of: len(e.calls)}
	for i, c := range e.calls {
		if e.given[i] {
			continue
		}
		// Crash here: earlier calls are recorded, and the next attempt continues after them.
		step, over, err := a.look(ctx, caseName(e.name, i), c)
		switch {
		case err != nil:
			return err
		case over:
			ended[i] = step
			r.Ended = append(r.Ended, i)
		default:
			a.waitFor(task.WaitChildren, step.WakeAt)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	step := a.newStep(e.roundName(no), index, task.KindEach, task.StepCompleted)
	step.Value = value
	if _, err := a.record(ctx, store.Record{Step: step}); err != nil {
		return err
	}
	for _, i := range r.Ended {
		e.give(i, ended[i])
	}
	return nil
}

// recordedWait returns the step of a wait left by earlier attempts, and marks its name as used by the handler.
func (a *Attempt) recordedWait(name string) (done, waiting *task.Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.journal[name]
	if known == nil {
		return nil, nil
	}
	known.used = true
	return known.done, known.waiting
}

// otherCall ends the attempt of a handler whose number of children differs from the recorded call, because the
// recorded children belong to another call.
func (a *Attempt) otherCall(name string, recorded, now int) error {
	return a.failFatally(&Verdict{Kind: Blocked, Err: &KindError{Kind: task.KindDecode, Step: name, Err: fmt.Errorf(
		"call %q was recorded with %d inputs and has %d now: a handler that runs again must call the same; take what the inputs depend on from a step, or give the call a new name", name, recorded, now)}})
}
