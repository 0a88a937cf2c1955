package weaver_test

import (
	"context"
	"errors"
	"fmt"
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

	scene(t, "StepRetry tries inside the attempt, with a growing pause, and records each try", func(w *world) {
		var tries []time.Time
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				if tries = append(tries, time.Now()); len(tries) < 4 {
					return "", fmt.Errorf("try %d: %w", len(tries), errNo)
				}
				return "got it", nil
			}, weaver.StepRetry(5, time.Second))
		}))
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "got it")
		for i, want := range []time.Duration{1, 2, 4} {
			equal(w, "pause", tries[i+1].Sub(tries[i]), want*time.Second)
		}
		w.wantOutcomes(h.ID(), task.OutcomeSuccess)
		hist := w.history(h.ID())
		equal(w, "recorded tries", len(hist.Steps), 4)
		for _, s := range hist.Steps {
			equal(w, "index", s.Index, 0)
			if s.State == task.StepFailed {
				equal(w, "message", s.Error.Message, fmt.Sprintf("try %d: no", s.Try))
			}
		}
		equal(w, "completed steps", hist.Task.StepCount, 1)
		equal(w, "runs in the attempt", len(hist.Attempts[0].StepsRun), 4)
	})

	scene(t, "StepRetry gives up after its tries, and what is permanent at once", func(w *world) {
		tries := 0
		w.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				tries++
				if in == "permanent" {
					return "", weaver.Permanent(errNo)
				}
				return "", errNo
			}, weaver.StepRetry(3, 0))
		}))
		te := failure(w, enqueue(w, typ, ""))
		equal(w, "tries in two attempts", tries, 6)
		equal(w, "failed step", te.FailedStep, "fetch")
		tries = 0
		te = failure(w, enqueue(w, typ, "permanent"))
		equal(w, "tries", tries, 1)
		equal(w, "attempts", te.Attempts, 1)
	})

	scene(t, "an error of a step is the caller's to judge", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "fetch", func(context.Context) (string, error) { return "", errNo })
			var se *weaver.StepError
			if !errors.As(err, &se) || se.Step != "fetch" || !errors.Is(err, errNo) {
				w.Errorf("Step returned %#v", err)
			}
			return "without it", nil
		}))
		equal(w, "output", result(w, enqueue(w, typ, "")), "without it")
	})

	scene(t, "RecordError makes the last error the result", func(w *world) {
		ran, attempts := 0, 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.Step(ctx, "probe", func(context.Context) (string, error) {
				ran++
				return "", fmt.Errorf("answer %d: %w", ran, errNo)
			}, weaver.RecordError(), weaver.StepRetry(2, 0))
			var se *weaver.StepError
			if !errors.As(err, &se) {
				return "", fmt.Errorf("Step returned %w", err)
			}
			if attempts++; attempts == 1 {
				return "", errors.New("again")
			}
			return se.Message, nil
		}))
		h := enqueue(w, typ, "")
		equal(w, "the replayed error", result(w, h), "answer 2: no")
		equal(w, "runs of the step", ran, 2)
		equal(w, "completed steps", w.get(h.ID()).StepCount, 1)
	})

	scene(t, "a step that fails is run again by the next attempt", func(w *world) {
		ran := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				if ran++; ran == 1 {
					return "", errNo
				}
				return "ok", nil
			})
		}))
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "ok")
		var states []string
		for _, s := range w.history(h.ID()).Steps {
			states = append(states, fmt.Sprint(s.AttemptNo, s.State))
		}
		equal(w, "recorded", fmt.Sprint(states), "[1failed 2completed]")
	})

	scene(t, "steps that an attempt no longer reaches are named", func(w *world) {
		attempts := 0
		w.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			if err := weaver.Do(ctx, fmt.Sprint("at ", attempts), func(context.Context) error { return nil }); err != nil || attempts > 1 {
				return "", err
			}
			return "", errNo
		}))
		h := enqueue(w, typ, "")
		result(w, h)
		equal(w, "unreached", fmt.Sprint(w.history(h.ID()).Attempts[1].StepsUnreached), "[at 1]")
	})

	scene(t, "a short trouble of the store is waited out", func(w *world) {
		f := newFaults(w)
		ran := 0
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return weaver.Step(ctx, "fetch", func(context.Context) (string, error) {
				ran++
				f.cut()
				time.AfterFunc(10*time.Second, f.mend)
				return "ok", nil
			})
		})}})
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "ok")
		equal(w, "runs of the step", ran, 1)
		w.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})

	scene(t, "a lost answer of the store is asked for again", func(w *world) {
		f := newFaults(w)
		lost := map[string]bool{}
		f.set(nil, func(call string) error {
			if lost[call] || call == "Ready" || call == "Join" || call == "Leave" {
				return nil
			}
			lost[call] = true
			return fmt.Errorf("%s: %w: the answer was lost", call, store.ErrUnavailable)
		})
		ran, attempts := 0, 0
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			if err := weaver.Do(ctx, "first", func(context.Context) error { ran++; return nil }); err != nil {
				return "", err
			}
			_, err := weaver.Start(ctx, "child", weaver.Define[int, int]("engine.step.child.v1"), 1)
			return "ok", err
		})}})
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h), "ok")
		equal(w, "runs of the step", ran, 1)
		equal(w, "attempts", attempts, 1)
		w.wantOutcomes(h.ID(), task.OutcomeSuccess)
		synctest.Wait()
		for _, call := range []string{"Claim", "Record", "Finish"} {
			equal(w, "an answer was lost to "+call, lost[call], true)
		}
		list, _, err := w.client.List(w.Context(), weaver.Filter{Types: []string{"engine.step.child.v1"}})
		w.must(err)
		equal(w, "children", len(list), 1)
	})
}

func TestParallelSteps(t *testing.T) {
	typ := weaver.Define[int, int]("engine.parallel.run.v1")
	scene(t, "a hundred goroutines record their values", func(w *world) {
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			sum, err := parallel(ctx, n, func(ctx context.Context, i int) (int, error) {
				return weaver.Step(ctx, fmt.Sprint("part ", i), func(context.Context) (int, error) { return i, nil })
			})
			if err == nil && weaver.Current(ctx).AttemptNo == 1 {
				err = errors.New("once more, from memory")
			}
			return sum, err
		}))
		h := enqueue(w, typ, 100)
		equal(w, "sum", result(w, h), 4950)
		hist := w.history(h.ID())
		equal(w, "recorded steps", hist.Task.StepCount, 100)
		equal(w, "runs in the second attempt", len(hist.Attempts[1].StepsRun), 0)
		indexes := map[int]bool{}
		for _, s := range hist.Steps {
			indexes[s.Index] = true
		}
		equal(w, "different indexes", len(indexes), 100)
	})
}

func TestProgress(t *testing.T) {
	typ := weaver.Define[int, int]("engine.progress.run.v1")

	scene(t, "is written every 200 ms at most, and the latest always", func(w *world) {
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			for i := range 1000 { // for ten seconds
				if err := weaver.Progress(ctx, float64(i), 1000); err != nil {
					return 0, err
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Minute) // quiet: the last report must not wait for the end
			return n, nil
		})}})
		h := enqueue(w, typ, 1)
		time.Sleep(5*time.Second + time.Millisecond)
		if got := w.get(h.ID()).Progress; got == nil || got.Current < 470 || got.Current > 501 {
			w.Errorf("progress after 5s = %+v, want about 500", got)
		}
		time.Sleep(10 * time.Second)
		if got := w.get(h.ID()).Progress; got == nil || got.Current != 999 {
			w.Errorf("progress of a quiet handler = %+v, want the last report", got)
		}
		if n := f.count("Record"); n < 45 || n > 55 {
			w.Errorf("%d writes for 1000 reports in 10s, want about 50", n)
		}
		result(w, h)
	})

	scene(t, "of the end comes with the end", func(w *world) {
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			return n, errors.Join(weaver.Progress(ctx, 1, 2), weaver.Progress(ctx, 2, 2, "done"))
		})}})
		h := enqueue(w, typ, 1)
		result(w, h)
		equal(w, "progress", *w.get(h.ID()).Progress, task.Progress{Current: 2, Total: 2, Message: "done"})
		equal(w, "writes", f.count("Record"), 1)
	})

	scene(t, "that is no number is refused", func(w *world) {
		var errs []error
		w.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			zero := 0.0
			errs = append(errs, weaver.Progress(ctx, zero/zero, 1), weaver.Progress(ctx, 1, 1/zero))
			return n, nil
		}))
		h := enqueue(w, typ, 1)
		result(w, h)
		for _, err := range errs {
			wantError(w, err, nil, "progress", "want finite numbers")
		}
		equal(w, "progress", w.get(h.ID()).Progress, nil)
	})

	scene(t, "that could not be written comes with the end", func(w *world) {
		f := newFaults(w)
		w.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			f.cut()
			if err := weaver.Progress(ctx, 1, 2); err != nil {
				w.Errorf("Progress ends an attempt for %v", err)
			}
			f.mend()
			return n, nil
		})}})
		h := enqueue(w, typ, 1)
		result(w, h)
		equal(w, "progress", *w.get(h.ID()).Progress, task.Progress{Current: 1, Total: 2})
	})
}
