package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// slowPieces end after their input in minutes; a negative one fails.
func slowPieces() weaver.Handler {
	return piece.Handler(func(ctx context.Context, in int) (int, error) {
		if err := weaver.Sleep(ctx, "work", time.Duration(max(in, -in))*time.Minute); err != nil {
			return 0, err
		}
		if in < 0 {
			return 0, errors.New("below zero")
		}
		return 2 * in, nil
	})
}

// streams handles the children of inputs in the order of their ends, each in a step.
func streams(ins []int, do func(weaver.Ended[int]) error) weaver.Handler {
	return whole.Handler(func(ctx context.Context, _ int) (said string, _ error) {
		for child, err := range weaver.CallEach(ctx, "fan", piece, ins) {
			var failed *weaver.CallError
			switch {
			case errors.As(err, &failed):
				said += fmt.Sprintf("%d fails (%d) ", child.Index, failed.Index)
				continue
			case err != nil:
				return "", err
			}
			if err := weaver.Do(ctx, fmt.Sprint("handle ", child.Index), func(context.Context) error { return do(child) }); err != nil {
				return "", err
			}
			said += fmt.Sprintf("%d=%d ", child.Index, child.Output)
		}
		return said, nil
	})
}

func TestCallEach(t *testing.T) {
	nothing := func(weaver.Ended[int]) error { return nil }

	subtest(t, "gives children as they end, each once", func(fx *fixture) {
		began, at := time.Now(), map[int]time.Duration{}
		fx.runConfig(fx.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{slowPieces(), streams([]int{3, 1, -2}, func(c weaver.Ended[int]) error {
			if _, again := at[c.Index]; again {
				fx.Errorf("child %d is handled again", c.Index)
			}
			at[c.Index] = time.Since(began)
			return nil
		})}})
		h := enqueue(fx, whole, 0)
		equal(fx, "output", result(fx, h), "1=2 2 fails (2) 0=6 ")
		near(fx, "the first is handled after", at[1], time.Minute)
		near(fx, "the last is handled after", at[0], 3*time.Minute)
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuspended, task.OutcomeSuspended, task.OutcomeSuccess)
	})

	subtest(t, "the order stays in later attempts, whatever ended meanwhile", func(fx *fixture) {
		var orders []string
		tries := weaver.Define[int, string]("engine.children.tries.v1", weaver.Backoff(time.Hour))
		fx.run(slowPieces(), tries.Handler(func(ctx context.Context, _ int) (string, error) {
			order := ""
			for child, err := range weaver.CallEach(ctx, "fan", piece, []int{2, 3, 1}) {
				if err != nil {
					return "", err
				}
				order += fmt.Sprint(child.Index, " ")
				if len(orders) == 0 {
					orders = append(orders, order)
					return "", errors.New("not yet")
				}
			}
			orders = append(orders, order)
			return order, nil
		}))
		result(fx, enqueue(fx, tries, 0))
		equal(fx, "orders", fmt.Sprintf("%q", orders), `["2 " "2 0 1 "]`)
	})

	subtest(t, "a handler may leave the loop", func(fx *fixture) {
		fx.run(slowPieces(), whole.Handler(func(ctx context.Context, _ int) (string, error) {
			for child, err := range weaver.CallEach(ctx, "fan", piece, []int{600, 1}) {
				return fmt.Sprint(child.Index), err
			}
			return "", nil
		}))
		h := enqueue(fx, whole, 0)
		equal(fx, "the first", result(fx, h), "1")
		equal(fx, "the rest", fx.get(fx.history(h.ID()).Needs[0].ID).State, weaver.StateCancelled)
	})

	subtest(t, "a retry of the task has a child that failed run again", func(fx *fixture) {
		fails := true
		fx.run(piece.Handler(func(ctx context.Context, n int) (int, error) {
			if err := weaver.Sleep(ctx, "work", time.Duration(n)*time.Minute); err != nil {
				return 0, err
			}
			if fails && n == 2 {
				return 0, errors.New("the disk is full")
			}
			return n, nil
		}), whole.Handler(func(ctx context.Context, _ int) (said string, _ error) {
			for child, err := range weaver.CallEach(ctx, "fan", piece, []int{1, 2, 3}) {
				if err != nil {
					return "", err
				}
				said += fmt.Sprint(child.Index, " ")
			}
			return said, nil
		}))
		h := enqueue(fx, whole, 0)
		wantError(fx, failure(fx, h), nil, `call "fan"`, "the disk is full")
		fails = false
		time.Sleep(time.Second) // the third child is cancelled with the task
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		equal(fx, "output", result(fx, h), "0 1 2 ")
	})

	subtest(t, "a reply that is lost, and a worker that stops between two records", func(fx *fixture) {
		var e *engine
		n := 0
		s := storehook.New(fx.store, &storehook.Hooks{Record: func(_ context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			res, err := next()
			if n++; n == 2 {
				err = store.ErrUnavailable
			} else if n == 5 {
				e.StopNow()
				err = store.ErrUnavailable
			}
			return res, err
		}})
		e = fx.start(s, weaver.Config{Handlers: []weaver.Handler{streams([]int{1, 2, 3, 4, 5, 6, 7, 8}, nothing)}})
		h := enqueue(fx, whole, 0)
		<-e.ended
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{slowPieces(), streams([]int{1, 2, 3, 4, 5, 6, 7, 8}, nothing)}})
		equal(fx, "output", result(fx, h), "0=2 1=4 2=6 3=8 4=10 5=12 6=14 7=16 ")
		equal(fx, "children", len(fx.history(h.ID()).Needs), 8)
	})

	subtest(t, "a worker that stops before it is given what is recorded", func(fx *fixture) {
		var e *engine
		s := storehook.New(fx.store, &storehook.Hooks{Record: func(_ context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			res, err := next()
			if recs[0].Step != nil && recs[0].Step.Kind == task.KindEach {
				e.StopNow()
				err = store.ErrUnavailable
			}
			return res, err
		}})
		e = fx.start(s, weaver.Config{Handlers: []weaver.Handler{slowPieces(), streams([]int{3, 1, 2}, nothing)}})
		h := enqueue(fx, whole, 0)
		<-e.ended
		time.Sleep(time.Hour) // all end but the second
		fx.runConfig(fx.store, weaver.Config{Handlers: []weaver.Handler{slowPieces(), streams([]int{3, 1, 2}, nothing)}})
		equal(fx, "the recorded one is first", result(fx, h)[:4], "1=2 ")
	})

	subtest(t, "gives nothing to a handler that only cleans up", func(fx *fixture) {
		given := 0
		var got, cause error
		clean := weaver.Define[int, string]("engine.children.clean.v1", weaver.CleanupWhenCancelled(), weaver.Backoff(time.Hour))
		fx.run(slowPieces(), clean.Handler(func(ctx context.Context, _ int) (string, error) {
			defer func() { _ = weaver.Cleanup(ctx, "undo", func(context.Context) error { return nil }) }()
			for _, err := range weaver.CallEach(ctx, "fan", piece, []int{1}) {
				if err != nil {
					got, cause = err, context.Cause(ctx)
					return "", err
				}
				given++
			}
			return "", errors.New("not yet")
		}))
		h := enqueue(fx, clean, 0)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		equal(fx, "given", given, 1)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		_ = failure(fx, h)
		equal(fx, "given to an attempt that cleans up", given, 1)
		equal(fx, "the error is the cause", got, cause)
	})

	subtest(t, "a rerun from the call calls anew", func(fx *fixture) {
		fx.run(slowPieces(), streams([]int{2, 1}, nothing))
		h := enqueue(fx, whole, 0)
		result(fx, h)
		again, err := fx.client.RerunFrom(fx.Context(), h.ID(), "fan")
		fx.must(err)
		out, err := whole.Wait(fx.Context(), fx.client, again.ID)
		fx.must(err)
		equal(fx, "output", out, "1=2 0=4 ")
		equal(fx, "children", len(fx.history(again.ID).Needs), 2)
	})

	subtest(t, "no inputs, too many, and another number of them", func(fx *fixture) {
		ins := []int{}
		fx.run(slowPieces(), whole.Handler(func(ctx context.Context, _ int) (said string, _ error) {
			for _, err := range weaver.CallEach(ctx, "fan", piece, ins) {
				if err != nil {
					return "", err
				}
			}
			return "done", nil
		}))
		equal(fx, "nothing to do", result(fx, enqueue(fx, whole, 0)), "done")
		ins = make([]int, 1001)
		wantError(fx, failure(fx, enqueue(fx, whole, 0)), nil, `call "fan"`, "1001 inputs", "CallAll")
		ins = []int{0, 1}
		h := enqueue(fx, whole, 0)
		synctest.Wait()
		ins = []int{0, 1, 2}
		wantError(fx, blocked(fx, h), nil, `call "fan" was recorded with 2 inputs and has 3 now`)
	})
}
