package weaver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/task"
)

// RaceCase is one of the things that a Race waits for: OnSignal, OnSleep or OnCall.
type RaceCase struct {
	begin func(a *engine.Attempt) engine.Wait
	won   func(ctx context.Context, a *engine.Attempt, step *task.Step, w engine.Wait) error
}

// OnSignal waits for a signal, whose payload into gets (nil: nothing does).
func OnSignal[T any](s *Signal[T], into *T) RaceCase {
	return RaceCase{
		begin: func(*engine.Attempt) engine.Wait { return &engine.SignalWait{Signal: s.name} },
		won: func(_ context.Context, a *engine.Attempt, step *task.Step, _ engine.Wait) error {
			v, err := s.decode(a, step.Name, step.Value)
			if err == nil && into != nil {
				*into = v
			}
			return err
		},
	}
}

// OnSleep waits for d.
func OnSleep(d time.Duration) RaceCase {
	return RaceCase{
		begin: func(*engine.Attempt) engine.Wait { return &engine.Pause{For: max(d, 0)} },
		won:   func(context.Context, *engine.Attempt, *task.Step, engine.Wait) error { return nil },
	}
}

// OnCall waits for the end of a child, as Call does; into gets its output (nil:
// nothing does). A child that does not succeed comes first as any other: Race then
// returns its *CallError.
func OnCall[In, Out any](t *Type[In, Out], in In, into *Out, opts ...EnqueueOption) RaceCase {
	return RaceCase{
		begin: func(a *engine.Attempt) engine.Wait { return callOf(a, t, []In{in}, opts) },
		won: func(ctx context.Context, a *engine.Attempt, step *task.Step, w engine.Wait) error {
			children, err := a.Results(ctx, step, w.(*engine.Call))
			if err != nil {
				return err
			}
			out, err := one(outputs[Out](a, step.Name, children))
			if err == nil && into != nil {
				*into = out
			}
			return err
		},
	}
}

var errNoCase = errors.New("give it OnSignal, OnSleep or OnCall")

// Race waits for the first of several things, without a worker, and returns its
// number in the list:
//
//	var yes bool
//	switch first, err := weaver.Race(ctx, "decision", weaver.OnSignal(Approved, &yes), weaver.OnSleep(48*time.Hour)); {
//	case err != nil:
//		return err
//	case first == 1:
//		return remind(ctx)
//	}
//
// Which one came first is recorded under the step name, so that every attempt gets
// the same; each wait is a step of its own, "decision[0]" and so on. Of several that
// are over when the task looks, a signal comes first, and then the order of the list.
// What came later is ignored from then on: the others wait for their signals no more
// (of two signals that came before the task looked, the later case's is used up), and
// children of theirs go on until the task ends.
//
// The list has to be the same in every attempt. Errors are those of Step and Call.
func Race(ctx context.Context, name string, cases ...RaceCase) (first int, err error) {
	a, err := engine.From(ctx)
	if err != nil {
		return 0, fmt.Errorf("race %q: %w", name, err)
	}
	if len(cases) == 0 {
		return 0, Permanent(fmt.Errorf("race %q: %w: there is nothing to wait for: %w", name, ErrInvalidOption, errNoCase))
	}
	waits := make([]engine.Wait, len(cases))
	for i, c := range cases {
		if c.begin == nil {
			return 0, Permanent(fmt.Errorf("race %q: %w: number %d is no case: %w", name, ErrInvalidOption, i, errNoCase))
		}
		waits[i] = c.begin(a)
	}
	first, step, err := a.Race(ctx, name, waits...)
	if err != nil {
		return 0, err
	}
	return first, cases[first].won(ctx, a, step, waits[first])
}
