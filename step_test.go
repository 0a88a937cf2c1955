package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestStep(t *testing.T) {
	typ := weaver.Define[string, string]("engine.step.run.v1", weaver.MaxAttempts(2))
	errNo := errors.New("no")

	subtest(t, "StepRetry tries inside the attempt, with a growing pause, and records each try", func(fx *fixture) {
		var tries []time.Time
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				if tries = append(tries, time.Now()); len(tries) < 4 {
					return "", fmt.Errorf("try %d: %w", len(tries), errNo)
				}
				return "got it", nil
			}, weaver.StepRetry(5, time.Second))
		}))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "got it")
		for i, want := range []time.Duration{1, 2, 4} {
			equal(fx, "pause", tries[i+1].Sub(tries[i]), want*time.Second)
		}
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
		hist := fx.history(h.ID())
		equal(fx, "recorded tries", len(hist.Steps), 4)
		for _, s := range hist.Steps {
			equal(fx, "index", s.Index, 0)
			if s.State == task.StepFailed {
				equal(fx, "message", s.Error.Message, fmt.Sprintf("try %d: no", s.Try))
			}
		}
		equal(fx, "completed steps", hist.Task.StepCount, 1)
		equal(fx, "runs in the attempt", len(hist.Attempts[0].StepsRun), 4)
	})

	subtest(t, "StepRetry gives up after its tries, and what is permanent at once", func(fx *fixture) {
		tries := 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				tries++
				if in == "permanent" {
					return "", weaver.Permanent(errNo)
				}
				return "", errNo
			}, weaver.StepRetry(3, 0))
		}))
		te := failure(fx, enqueue(fx, typ, ""))
		equal(fx, "tries in two attempts", tries, 6)
		equal(fx, "failed step", te.FailedStep, "fetch")
		tries = 0
		te = failure(fx, enqueue(fx, typ, "permanent"))
		equal(fx, "tries", tries, 1)
		equal(fx, "attempts", te.Attempts, 1)
	})

	subtest(t, "an error of a step is returned to the handler", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return "", errNo })
			var se *task.StepError
			if !errors.As(err, &se) || se.Step != "fetch" || !errors.Is(err, errNo) {
				fx.Errorf("Step returned %#v", err)
			}
			return "without it", nil
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "without it")
	})

	subtest(t, "RecordError makes the last error the result", func(fx *fixture) {
		ran, attempts := 0, 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "probe", func(context.Context) (string, error) {
				ran++
				return "", fmt.Errorf("answer %d: %w", ran, errNo)
			}, weaver.RecordError(), weaver.StepRetry(2, 0))
			var se *task.StepError
			if !errors.As(err, &se) {
				return "", fmt.Errorf("Step returned %w", err)
			}
			if attempts++; attempts == 1 {
				return "", errors.New("again")
			}
			return se.Message, nil
		}))
		h := enqueue(fx, typ, "")
		equal(fx, "the replayed error", result(fx, h), "answer 2: no")
		equal(fx, "runs of the step", ran, 2)
		equal(fx, "completed steps", fx.get(h.ID()).StepCount, 1)
	})

	subtest(t, "a step that fails is run again by the next attempt", func(fx *fixture) {
		ran := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				if ran++; ran == 1 {
					return "", errNo
				}
				return "ok", nil
			})
		}))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "ok")
		var states []string
		for _, s := range fx.history(h.ID()).Steps {
			states = append(states, fmt.Sprint(s.AttemptNo, s.State))
		}
		equal(fx, "recorded", fmt.Sprint(states), "[1failed 2completed]")
	})

	subtest(t, "steps that an attempt no longer reaches are named", func(fx *fixture) {
		attempts := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			if err := weaver.Do(ctx, fmt.Sprint("at ", attempts), func(context.Context) error { return nil }); err != nil || attempts > 1 {
				return "", err
			}
			return "", errNo
		}))
		h := enqueue(fx, typ, "")
		result(fx, h)
		equal(fx, "unreached", fmt.Sprint(fx.history(h.ID()).Attempts[1].StepsUnreached), "[at 1]")
	})

	subtest(t, "a transient store error is waited out", func(fx *fixture) {
		f := newFaults(fx)
		ran := 0
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				ran++
				f.cut()
				time.AfterFunc(10*time.Second, f.mend)
				return "ok", nil
			})
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "ok")
		equal(fx, "runs of the step", ran, 1)
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})

	subtest(t, "a lost answer of the store is asked for again", func(fx *fixture) {
		f := newFaults(fx)
		lost := map[string]bool{}
		f.set(nil, func(call string) error {
			if lost[call] || call == "Ready" || call == "Join" || call == "Leave" {
				return nil
			}
			lost[call] = true
			return fmt.Errorf("%s: %w: the answer was lost", call, store.ErrUnavailable)
		})
		ran, attempts := 0, 0
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			if err := weaver.Do(ctx, "first", func(context.Context) error { ran++; return nil }); err != nil {
				return "", err
			}
			_, err := weaver.Start(ctx, "child", weaver.Define[int, int]("engine.step.child.v1"), 1)
			return "ok", err
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "ok")
		equal(fx, "runs of the step", ran, 1)
		equal(fx, "attempts", attempts, 1)
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
		synctest.Wait()
		for _, call := range []string{"Claim", "Record", "Finish"} {
			equal(fx, "an answer was lost to "+call, lost[call], true)
		}
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{Types: []string{"engine.step.child.v1"}})
		fx.must(err)
		equal(fx, "children", len(list), 1)
	})
}

func TestStepReplay(t *testing.T) {
	typ := weaver.Define[string, string]("engine.steps.run.v1")

	subtest(t, "a completed step is not run again", func(fx *fixture) {
		ran, attempts := 0, 0
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			attempts++
			value, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				ran++
				return fmt.Sprintf("%s fetched in run %d", in, ran), nil
			})
			if err != nil {
				return "", err
			}
			if attempts < 3 {
				return "", errors.New("after the step")
			}
			return value, nil
		}))
		equal(fx, "the value", result(fx, enqueue(fx, typ, "users")), "users fetched in run 1")
		equal(fx, "runs of the step", ran, 1)
		equal(fx, "runs of the handler", attempts, 3)
	})

	subtest(t, "a step name used twice is an error", func(fx *fixture) {
		ran := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			for range 2 {
				// Swallowed on purpose: the mistake must still be reported.
				_ = weaver.Do(ctx, "save", func(context.Context) error { ran++; return nil })
			}
			return "ignored", nil
		}))
		te := failure(fx, enqueue(fx, typ, ""))
		wantError(fx, te, nil, `"save"`, "used twice", "must be unique")
		equal(fx, "runs of the step", ran, 1)
		equal(fx, "attempts", te.Attempts, 1)
	})

	subtest(t, "the types of step values are inferred", func(fx *fixture) {
		type user struct {
			Name string
			Tags []string
		}
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			users, err := weaver.Step(ctx, "users", func(context.Context) ([]user, error) {
				return []user{{"ann", []string{"a", "b"}}, {"bob", nil}}, nil
			})
			if err != nil {
				return "", err
			}
			count, err := weaver.Step(ctx, "count", func(context.Context) (int, error) { return len(users), nil })
			if err != nil {
				return "", err
			}
			return fmt.Sprint(users[0].Name, users[0].Tags, count+1), nil
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "")), "ann[a b] 3")
	})

	subtest(t, "a failing step ends the attempt, and with NoRetry the task, without hidden retries", func(fx *fixture) {
		once := weaver.Define[string, string]("engine.steps.once.v1", weaver.NoRetry())
		ran := 0
		handler := func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "pay", func(context.Context) (string, error) {
				ran++
				return "", errors.New("card refused")
			})
		}
		fx.run(once.Handler(handler), typ.Handler(handler))
		h := enqueue(fx, once, "")
		te := failure(fx, h)
		equal(fx, "runs of the step", ran, 1)
		equal(fx, "failed step", te.FailedStep, "pay")
		wantError(fx, te, nil, `step "pay"`, "card refused")
		steps := fx.history(h.ID()).Steps
		if len(steps) != 1 || steps[0].State != task.StepFailed || steps[0].Error.Message != "card refused" {
			fx.Errorf("recorded steps: %+v, want the failed one", steps)
		}

		ran = 0
		te = failure(fx, enqueue(fx, typ, ""))
		equal(fx, "runs of the step with the default of five attempts", ran, 5)
		equal(fx, "attempts", te.Attempts, 5)
	})

	subtest(t, "the index of a step is stable across resumes", func(fx *fixture) {
		attempts := 0
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			names := []string{"a", "b", "c"}
			if attempts > 1 {
				names = []string{"new", "c", "a", "b", "d"} // replay matches by name, not by order
			}
			for _, name := range names {
				err := weaver.Do(ctx, name, func(context.Context) error {
					if name == "c" && attempts == 1 {
						return errors.New("not yet")
					}
					return nil
				})
				if err != nil {
					return "", err
				}
			}
			return "", nil
		}))
		h := enqueue(fx, typ, "")
		result(fx, h)
		var got []string
		for _, s := range fx.history(h.ID()).Steps {
			got = append(got, fmt.Sprintf("%d %s %s", s.Index, s.Name, s.State))
		}
		want := []string{"0 a completed", "1 b completed", "2 c failed", "2 c completed", "3 new completed", "4 d completed"}
		if !slices.Equal(got, want) {
			fx.Errorf("steps:\n got %q\nwant %q", got, want)
		}
	})
}

func TestParallelSteps(t *testing.T) {
	typ := weaver.Define[int, int]("engine.parallel.run.v1")
	subtest(t, "a hundred goroutines record their values", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			sum, err := parallel(ctx, n, func(ctx context.Context, i int) (int, error) {
				return weaver.Step(ctx, fmt.Sprint("part ", i), func(context.Context) (int, error) { return i, nil })
			})
			if err == nil && weaver.Current(ctx).AttemptNo == 1 {
				err = errors.New("once more, from memory")
			}
			return sum, err
		}))
		h := enqueue(fx, typ, 100)
		equal(fx, "sum", result(fx, h), 4950)
		hist := fx.history(h.ID())
		equal(fx, "recorded steps", hist.Task.StepCount, 100)
		equal(fx, "runs in the second attempt", len(hist.Attempts[1].StepsRun), 0)
		indexes := map[int]bool{}
		for _, s := range hist.Steps {
			indexes[s.Index] = true
		}
		equal(fx, "different indexes", len(indexes), 100)
	})
}

func TestParallelStepsKeepTheirValues(t *testing.T) {
	typ := weaver.Define[int, int]("engine.siblings.run.v1")

	subtest(t, "finished parallel steps keep their values when a sibling fails", func(fx *fixture) {
		ran, attempts := [5]int{}, 0
		fx.run(typ.Handler(func(ctx context.Context, _ int) (int, error) {
			attempts++
			return parallel(ctx, 5, func(ctx context.Context, i int) (int, error) {
				return weaver.Step(ctx, fmt.Sprint("part ", i), func(context.Context) (int, error) {
					ran[i]++
					if i == 2 && attempts == 1 {
						return 0, errors.New("part 2 broke")
					}
					time.Sleep(time.Duration(i) * time.Second) // siblings finish before and after it failed
					return i, nil
				})
			})
		}))
		equal(fx, "sum", result(fx, enqueue(fx, typ, 1)), 10)
		equal(fx, "runs of the parts", ran, [5]int{1, 1, 2, 1, 1})
	})
}

// parallel runs n functions in goroutines and sums their values.
func parallel(ctx context.Context, n int, fn func(ctx context.Context, i int) (int, error)) (sum int, err error) {
	type answer struct {
		n   int
		err error
	}
	answers := make(chan answer, n)
	for i := range n {
		go func() {
			v, err := fn(ctx, i)
			answers <- answer{v, err}
		}()
	}
	for range n {
		a := <-answers
		sum += a.n
		err = errors.Join(err, a.err)
	}
	return sum, err
}
