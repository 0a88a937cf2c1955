package weaver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/task"
)

// Call runs a task of another type and returns its output. The task becomes a child of this one, under
// the step name, and this one waits for its end without a worker: like a Sleep, Call returns
// ErrSuspended. An attempt that begins after the child has ended gets the output from the same Call. A
// child that does not succeed returns a *CallError. Every attempt gets the same result, even if the
// child changes later: a handler that returns the error fails its task at once, as with Permanent. A
// retry of the task by an operator (Retry, RetryJob) repeats such calls: their failed or cancelled
// children are retried with it, and the call waits for them again, even if the handler tolerated the
// failure.
//
// A child belongs to the task's job, ends with its deadline at the latest, and may fail if the task
// may (AllowFailure); its other options are those given. It is cancelled if the task ends first;
// [UndoChildren] undoes a child that succeeded before. Its failure counts against the job. A task has
// at most 10,000 children, nested at most 8 deep; more, and an IdempotencyKey, fail the task at once.
//
// An output that does not decode as Out any more blocks the task (decode_error).
// Other errors are those of Step.
func Call[In, Out any](ctx context.Context, name string, t *Type[In, Out], in In, opts ...EnqueueOption) (Out, error) {
	outs, err := callAll(ctx, name, t, []In{in}, opts)
	return one(outs, err)
}

// one returns the result of a call with one child.
func one[Out any](outs []Out, err error) (out Out, _ error) {
	var failed *CallError
	switch {
	case errors.As(err, &failed):
		return out, failed
	case err != nil:
		return out, err
	}
	return outs[0], nil
}

// CallAll is Call for one child per input; the children run concurrently. It returns the outputs in
// the order of the inputs. If children did not succeed, the error joins a *CallError for each, whose
// Index is that of its input; the slice still has the other outputs. [CallErrors] splits the error.
//
// Every attempt must pass the same inputs: compute them in a step. A different number blocks the task.
// Without inputs CallAll returns at once and records nothing.
func CallAll[In, Out any](ctx context.Context, name string, t *Type[In, Out], ins []In, opts ...EnqueueOption) ([]Out, error) {
	return callAll(ctx, name, t, ins, opts)
}

// CallError is the error of Call, CallAll and Race for a child that failed or was cancelled.
type CallError = task.CallError

// CallErrors splits the error of a CallAll, so that a handler can use the outputs of the other
// children. failed are the children that did not succeed, in the order of their inputs; all other
// outputs are valid. rest is any other error, including ErrSuspended, and the handler must return it.
//
//	outs, err := weaver.CallAll(ctx, "convert", Convert, files)
//	failed, err := weaver.CallErrors(err)
//	if err != nil {
//		return nil, err
//	}
func CallErrors(err error) (failed []*CallError, rest error) {
	var all callErrors
	var alone *CallError
	switch {
	case Suspended(err):
		return nil, err
	case errors.As(err, &all):
		return slices.Clone(all), nil
	case errors.As(err, &alone):
		return []*CallError{alone}, nil
	}
	return nil, err
}

func callAll[In, Out any](ctx context.Context, name string, t *Type[In, Out], ins []In, opts []EnqueueOption) ([]Out, error) {
	a, err := engine.From(ctx)
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	opts, undo := cutUndoChildren(opts)
	call := callOf(a, t, ins, opts)
	call.Undo = undo
	children, err := a.CallOf(ctx, name, call)
	if err != nil {
		return nil, err
	}
	return outputs[Out](a, name, children)
}

// callOf builds the call of a type with inputs.
func callOf[In, Out any](a *engine.Attempt, t *Type[In, Out], ins []In, opts []EnqueueOption) *engine.Call {
	return &engine.Call{N: len(ins), Children: func() ([]task.New, error) {
		c := Client{ids: a.IDs(), limit: a.Values().Most()}
		children := make([]task.New, len(ins))
		for i, in := range ins {
			n, err := c.toNew(t.With(in, opts...))
			if err == nil && n.IdempotencyKey != "" {
				err = fmt.Errorf("%w of %s: a child has no IdempotencyKey: it is stored once under the name of its call", ErrInvalidOption, t.name)
			}
			if err == nil && n.Coalesce {
				err = fmt.Errorf("%w of %s: a child has no Coalesce: its caller waits for it", ErrInvalidOption, t.name)
			}
			if err != nil {
				return nil, fmt.Errorf("input %d: %w", i, err)
			}
			children[i] = n
		}
		return children, nil
	}}
}

// outputs decodes the outputs of children and joins the errors of those that did not succeed.
func outputs[Out any](a *engine.Attempt, name string, children []engine.Called) ([]Out, error) {
	if len(children) == 0 {
		return nil, nil
	}
	outs := make([]Out, len(children))
	var failed callErrors
	for i, c := range children {
		if c.State != StateSucceeded {
			failed = append(failed, callError(name, i, c))
			continue
		}
		if err := json.Unmarshal(c.Output, &outs[i]); err != nil {
			return nil, a.Undecodable(name, fmt.Errorf("the output of task %s: %w", c.ID, err))
		}
	}
	if failed != nil {
		return outs, failed
	}
	return outs, nil
}

func callError(name string, i int, c engine.Called) *CallError {
	e := &CallError{Call: name, Index: i, TaskID: c.ID, State: c.State}
	if c.Error != nil {
		e.Kind, e.Code, e.Message = c.Error.Kind, c.Error.Code, c.Error.Message
	}
	return e
}

// callErrors are the errors of a call, in the order of its inputs; at least one.
type callErrors []*CallError

// maxCallErrors is the maximum number of children named in the text of an error.
const maxCallErrors = 5

// Error implements error.
func (all callErrors) Error() string {
	if len(all) == 1 {
		return all[0].Error()
	}
	texts := make([]string, 0, maxCallErrors+1)
	for i, e := range all {
		if i == maxCallErrors {
			texts = append(texts, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		texts = append(texts, strings.TrimPrefix(e.Error(), fmt.Sprintf("call %q: ", e.Call)))
	}
	return fmt.Sprintf("call %q: %d children did not succeed: %s", all[0].Call, len(all), strings.Join(texts, "; "))
}

// Unwrap returns the errors of the children.
func (all callErrors) Unwrap() []error {
	errs := make([]error, len(all))
	for i, e := range all {
		errs[i] = e
	}
	return errs
}
