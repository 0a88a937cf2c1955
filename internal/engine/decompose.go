package engine

import (
	"encoding/json"
	"errors"

	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Decompose is the error by which a handler asks for children. Like a wait it is not a failure: errors.Is matches
// ErrSuspended.
type Decompose struct {
	Join task.Join

	// Children returns the children, with new IDs. It is called once per attempt: a repeated report names the same
	// children.
	Children func(ids *task.IDs, inlineLimit int) ([]task.New, error)
}

// Error implements error.
func (d *Decompose) Error() string { return "the task waits for its children" }

// Is makes the error match ErrSuspended.
func (d *Decompose) Is(target error) bool { return target == ErrSuspended }

// asksForChildren reports whether a handler's error asks for children. It returns false when the attempt timed out.
func asksForChildren(err error) (*Decompose, bool) {
	var d *Decompose
	return d, errors.As(err, &d) && kindOf(err) != task.KindTimeout
}

// decompose completes a finish with the children that the handler asked for. Invalid children fail the task
// permanently. Crash before the store has it: no child is stored, and the handler runs again.
func (a *Attempt) decompose(fin store.Finish, out json.RawMessage, d *Decompose) store.Finish {
	children, err := d.Children(a.env.IDs, a.env.Values.Most())
	if err == nil {
		err = task.CheckChildren(a.task.Depth, 0, len(children))
	}
	a.injectInto(a.innermost(), children)
	if err != nil {
		return a.decide(fin, task.OutcomeFailure, &KindError{Kind: task.KindValidation, Err: err}, true)
	}
	fin.Outcome, fin.Join, fin.Children = task.OutcomeDecompose, d.Join, children
	if d.Join == task.JoinComplete {
		if large := a.env.checkSize("output", len(out)); large != nil {
			return a.decide(fin, task.OutcomeFailure, large, true)
		}
		fin.Output = out
	}
	return fin
}

// AddDependency is the error by which a handler asks to wait for another task. Like a wait it is not a failure:
// errors.Is matches ErrSuspended.
type AddDependency struct{ Task task.ID }

// Error implements error.
func (d *AddDependency) Error() string { return "the task waits for task " + d.Task.String() }

// Is makes the error match ErrSuspended.
func (d *AddDependency) Is(target error) bool { return target == ErrSuspended }

// asksForTask reports whether a handler's error asks for another task.
func asksForTask(err error) (*AddDependency, bool) {
	var d *AddDependency
	return d, errors.As(err, &d) && kindOf(err) != task.KindTimeout
}

// depend completes a finish with the task that the handler asked for.
func (a *Attempt) depend(fin store.Finish, d *AddDependency) store.Finish {
	if d.Task.IsZero() {
		return a.decide(fin, task.OutcomeFailure, &KindError{Kind: task.KindValidation, Err: errors.New("add dependency: no task is named: the id is zero")}, true)
	}
	fin.Outcome, fin.DependsOn = task.OutcomeAddDependency, d.Task
	return fin
}
