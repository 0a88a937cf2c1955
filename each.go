package weaver

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/goweaver/weaver/internal/engine"
)

// Ended is a child of CallEach that has ended.
type Ended[Out any] struct {
	Index  int // of its input
	TaskID TaskID
	Output Out
}

// maxEach is the most children of a CallEach: each is a step of its own.
const maxEach = 1_000

// CallEach is CallAll that gives the children one after the other, as they end:
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
// The task leaves its worker while none has ended that it was not given, and begins
// anew when one has: every attempt gets the same ones first, in the same order, and
// then those that ended since. That order is recorded as steps "fetch#1", "fetch#2" and
// so on, and each child under a step of its own, "fetch[0]": a name with such a number
// must not be used for another step. A handler that leaves the loop does not wait
// for the rest; what has not ended when the task ends is cancelled.
//
// A child that does not succeed comes with its *CallError, and the loop may go on.
// Every other error, ErrSuspended among them, comes last, with an Ended that is empty.
// The inputs, at most 1,000, have to be the same in every attempt. What is said of
// Call about retries holds for each child. For many children, or if order matters,
// take CallAll: it records one step, and wakes the task once.
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

// eachOf are calls with one child each.
func eachOf[In, Out any](a *engine.Attempt, t *Type[In, Out], ins []In, opts []EnqueueOption) []*engine.Call {
	calls := make([]*engine.Call, len(ins))
	for i := range ins {
		calls[i] = callOf(a, t, ins[i:i+1], opts)
	}
	return calls
}

// callEach gives what has ended, and returns what ends the loop; nil if nothing does.
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
