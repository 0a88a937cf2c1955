package weaver

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/goweaver/weaver/internal/engine"
)

// Ended is a finished child of CallEach.
type Ended[Out any] struct {
	Index  int // index of its input
	TaskID TaskID
	Output Out
}

// maxEach is the maximum number of children of a CallEach: each is a step of its own.
const maxEach = 1_000

// CallEach is CallAll that yields the children one by one as they end:
//
//	for page, err := range weaver.CallEach(ctx, "fetch", Fetch, urls) {
//		if err != nil {
//			return err
//		}
//		if err := weaver.Do(ctx, fmt.Sprint("index ", page.Index), index(page.Output)); err != nil {
//			return err
//		}
//	}
//
// The task leaves its worker while no further child has ended, and its handler starts again when one
// has: every attempt gets the same children first, in the same order, and then those that ended since.
// Steps "fetch#1", "fetch#2" and so on record that order, and each child has a step of its own,
// "fetch[0]": other steps must not use such names. A handler that leaves the loop does not wait for
// the rest; children unfinished when the task ends are cancelled.
//
// A child that does not succeed is yielded with its *CallError, and the loop may continue. Any other
// error, including ErrSuspended, is yielded last, with an empty Ended. Every attempt must pass the
// same inputs, at most 1,000. Retries work as with Call. For many children, or if order matters, use
// CallAll: it records one step and wakes the task once.
func CallEach[In, Out any](ctx context.Context, name string, t *Type[In, Out], ins []In, opts ...EnqueueOption) iter.Seq2[Ended[Out], error] {
	return func(yield func(Ended[Out], error) bool) {
		a, err := engine.From(ctx)
		if err == nil && len(ins) > maxEach {
			err = Permanent(fmt.Errorf("%w: it has %d inputs, and CallEach takes at most %d: use CallAll", ErrInvalidOption, len(ins), maxEach))
		}
		if err != nil {
			yield(Ended[Out]{}, fmt.Errorf("call %q: %w", name, err))
			return
		}
		if err := callEach(ctx, a, name, eachOf(a, t, ins, opts), yield); err != nil {
			yield(Ended[Out]{}, err)
		}
	}
}

// eachOf returns calls with one child each.
func eachOf[In, Out any](a *engine.Attempt, t *Type[In, Out], ins []In, opts []EnqueueOption) []*engine.Call {
	calls := make([]*engine.Call, len(ins))
	for i := range ins {
		calls[i] = callOf(a, t, ins[i:i+1], opts)
	}
	return calls
}

// callEach yields finished children and returns the error that ends the loop, or nil.
func callEach[Out any](ctx context.Context, a *engine.Attempt, name string, calls []*engine.Call, yield func(Ended[Out], error) bool) error {
	list, open, err := a.Each(ctx, name, calls)
	if err != nil {
		return err
	}
	children, err := a.EachResults(ctx, name, list)
	if err != nil {
		return err
	}
	for n, ended := range list {
		child := children[n]
		out, err := one(outputs[Out](a, ended.Step.Name, []engine.Called{child}))
		var failed *CallError
		switch {
		case errors.As(err, &failed):
			failed.Call, failed.Index = name, ended.No
		case err != nil:
			return err
		}
		if !yield(Ended[Out]{Index: ended.No, TaskID: child.ID, Output: out}, err) {
			return nil
		}
	}
	if open {
		return a.EachOpen()
	}
	return nil
}
