package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

// deciderFunc is a Decider that turns some failures into successes with an output.
func deciderFunc(output func(kind task.ErrorKind, message string) string) decide.Decider {
	return decide.Func(func(in decide.Input) decide.Decision {
		out := output(in.Error.Kind, in.Error.Message)
		if out == "" {
			return decide.Decision{}
		}
		return decide.Decision{Kind: task.DecideSucceed, Output: []byte(out), Reason: task.Reason{Policy: "sweep", Text: "let it pass"}}
	})
}

// stepCases test the steps of a task.
var stepCases = []testCase{
	{
		name:   "steps",
		onFile: true,
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			for i := range 3 {
				v, err := value(ctx, fmt.Sprint("add ", i), n+i)
				if err != nil {
					return 0, err
				}
				n = v
			}
			return n, nil
		}),
		run: func(fx *fixture) {
			succeeds(fx, enqueue(fx, typeN, 1), 4)
		},
	},
	{
		name: "parallel steps",
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			var wg sync.WaitGroup
			got, errs := make([]int, n), make([]error, n)
			for i := range n {
				wg.Go(func() { got[i], errs[i] = value(ctx, fmt.Sprint("part ", i), i) })
			}
			wg.Wait()
			sum := 0
			for _, v := range got {
				sum += v
			}
			return sum, errors.Join(errs...)
		}),
		run: func(fx *fixture) {
			a, b := enqueue(fx, typeN, 4), enqueue(fx, typeN, 3)
			succeeds(fx, a, 6)
			succeeds(fx, b, 3)
		},
	},
	{
		name: "failed tries of a step",
		handlers: handles(typeN, func(ctx context.Context, fx *fixture, n int) (int, error) {
			before, err := value(ctx, "before", 10)
			if err != nil {
				return 0, err
			}
			tries := 0
			v, err := step(ctx, "flaky", func(context.Context) (int, error) {
				if tries++; tries < 3 || weaver.Current(ctx).AttemptCount == 0 {
					return 0, fmt.Errorf("try %d", tries)
				}
				return n, nil
			}, weaver.StepRetry(3, 50*time.Millisecond))
			return before + v, err
		}),
		run: func(fx *fixture) {
			succeeds(fx, enqueue(fx, typeN, 5), 15)
		},
	},
	{
		name: "a recorded error",
		handlers: handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
			_, err := step(ctx, "refused", func(context.Context) (string, error) {
				return "", errors.New("the partner said no")
			}, weaver.RecordError(), weaver.StepRetry(2, time.Millisecond))
			se, ok := errors.AsType[*task.StepError](err)
			if !ok || se.Message != "the partner said no" {
				return "", err
			}
			if weaver.Current(ctx).AttemptCount == 0 {
				return "", errors.New("once more, with the error on record")
			}
			return in, nil
		}),
		run: func(fx *fixture) {
			succeeds(fx, enqueue(fx, typeA, "x"), "x")
		},
	},
	{
		name:      "steps inside the store's transaction",
		tolerates: "a store error inside a step's transaction ends the attempt, at no cost",
		handlers: handleBoth(handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
			one, err := stepTx(ctx, "one", func(ctx context.Context, insert func(string) error) (string, error) {
				if _, err := typeB.Enqueue(ctx, weaver.InStepTx(ctx), in+" child"); err != nil {
					return "", err
				}
				return "1", insert(in + " one")
			})
			if err != nil {
				return "", err
			}
			two, err := stepTx(ctx, "two", func(_ context.Context, insert func(string) error) (string, error) {
				return "2", insert(in + " two")
			})
			return one + two, err
		}), handles(typeB, echo)),
		run: func(fx *fixture) {
			fx.table()
			a, b := enqueue(fx, typeA, "a"), enqueue(fx, typeA, "b")
			succeeds(fx, a, "12")
			succeeds(fx, b, "12")
			fx.rows("a one", "a two", "b one", "b two")
			fx.children(typeB, 2)
		},
	},
	{
		name:      "a step's transaction that is rolled back",
		tolerates: "a store error inside a step's transaction ends the attempt, at no cost",
		handlers: handleBoth(handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
			return stepTx(ctx, "save", func(ctx context.Context, insert func(string) error) (string, error) {
				if _, err := typeB.Enqueue(ctx, weaver.InStepTx(ctx), "child"); err != nil {
					return "", err
				}
				if err := insert(in); err != nil {
					return "", err
				}
				if weaver.Current(ctx).AttemptCount == 0 {
					return "", errors.New("roll it back")
				}
				return in, nil
			})
		}), handles(typeB, echo)),
		run: func(fx *fixture) {
			fx.table()
			succeeds(fx, enqueue(fx, typeA, "x"), "x")
			fx.rows("x")
			fx.children(typeB, 1)
		},
	},
	{
		name: "tasks that a step starts",
		handlers: handleBoth(handles(typeA, func(ctx context.Context, _ *fixture, in string) (string, error) {
			one, err := weaver.Start(ctx, "one", typeB, in)
			if err != nil {
				return "", err
			}
			keyed, err := weaver.Start(ctx, "keyed", typeB, in, weaver.IdempotencyKey("k"))
			if err != nil {
				return "", err
			}
			again, err := weaver.Start(ctx, "again", typeB, in, weaver.IdempotencyKey("k"))
			if err != nil {
				return "", err
			}
			if again.ID != keyed.ID || one.ID == keyed.ID {
				return "", weaver.Permanent(errors.New("one key names two tasks"))
			}
			if weaver.Current(ctx).AttemptCount == 0 {
				return "", errors.New("once more")
			}
			return in, nil
		}), handles(typeB, echo)),
		run: func(fx *fixture) {
			succeeds(fx, enqueue(fx, typeA, "x"), "x")
			fx.children(typeB, 2)
		},
	},
	{
		name:   "sleeps",
		onFile: true,
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			v, err := value(ctx, "before", n+1)
			if err != nil {
				return 0, err
			}
			if err := weaver.Sleep(ctx, "nap", 10*time.Second); err != nil {
				return 0, err
			}
			wake, err := step(ctx, "@wake", func(context.Context) (time.Time, error) {
				return time.Now().Add(5 * time.Second).Truncate(time.Microsecond), nil // the precision of stores
			})
			if err != nil {
				return 0, err
			}
			if err := weaver.SleepUntil(ctx, "until", wake); err != nil {
				return 0, err
			}
			if time.Now().Before(wake) {
				return 0, weaver.Permanent(errors.New("woken too early"))
			}
			return value(ctx, "after", v+1)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 1)
			succeeds(fx, h, 3)
		},
	},
	{
		name:      "progress",
		tolerates: "a report that cannot be stored ends the attempt",
		handlers: handles(typeN, func(ctx context.Context, _ *fixture, n int) (int, error) {
			for i := range n {
				if err := weaver.Progress(ctx, float64(i+1), float64(n), "on it"); err != nil {
					return 0, err
				}
				if err := rest(ctx, 150*time.Millisecond); err != nil {
					return 0, err
				}
			}
			return n, nil
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeN, 5)
			succeeds(fx, h, 5)
			info, err := h.Get(fx.ctx)
			fx.must(err)
			if p := info.Progress; p == nil || p.Current != 5 || p.Total != 5 {
				fx.errorf("the progress is %+v, want 5 of 5", p)
			}
		},
	},
}

// children waits for the tasks of a type started by another task, and checks their number.
func (fx *fixture) children(typ *weaver.Type[string, string], want int) {
	got, _, err := typ.List(fx.ctx, fx.client, weaver.Filter{})
	fx.must(err)
	if len(got) != want {
		fx.errorf("%d tasks were started, want %d", len(got), want)
	}
	for _, t := range got {
		_, err := fx.client.Wait(fx.ctx, t.ID)
		fx.must(err)
	}
}
