package weaver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/task"
)

// RaceCase is one case of a Race: OnSignal, OnSleep or OnCall.
type RaceCase struct {
	begin func(a *engine.Attempt) engine.Wait
	won   func(ctx context.Context, a *engine.Attempt, step *task.Step, w engine.Wait) error
}

// OnSignal waits for a signal and stores its payload in into, unless into is nil.
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

// OnCall waits for the end of a child, as Call does, and stores its output in into, unless into is
// nil. A child that does not succeed can win like any other case: Race then returns its *CallError.
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

// Race waits for the first of several cases, without a worker, and returns its index:
//
//	var yes bool
//	switch first, err := weaver.Race(ctx, "decision", weaver.OnSignal(Approved, &yes), weaver.OnSleep(48*time.Hour)); {
//	case err != nil:
//		return err
//	case first == 1:
//		return remind(ctx)
//	}
//
// The winner is recorded under the step name, so every attempt gets the same one; each wait is a step
// of its own, "decision[0]" and so on. If several are ready when the task checks, signals come first,
// then the order of the list. Later results are ignored: the other cases no longer wait for their
// signals (of two signals sent before the check, the later case's is consumed), and their children run
// until the task ends.
//
// Every attempt must pass the same list. Errors are those of Step and Call.
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
			return 0, Permanent(fmt.Errorf("race %q: %w: case %d is empty: %w", name, ErrInvalidOption, i, errNoCase))
		}
		waits[i] = c.begin(a)
	}
	first, step, err := a.Race(ctx, name, waits...)
	if err != nil {
		return 0, err
	}
	return first, cases[first].won(ctx, a, step, waits[first])
}
