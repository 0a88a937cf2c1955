package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestCall(t *testing.T) {
	subtest(t, "leaves the worker and gets the output", func(fx *fixture) {
		attempts := 0
		cfg := weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{pieceHandler(), whole.Handler(func(ctx context.Context, n int) (string, error) {
			attempts++
			out, err := weaver.Call(ctx, "sub", piece, n)
			if err != nil {
				return "", err
			}
			again, err := weaver.Call(ctx, "sub 2", piece, out)
			return fmt.Sprint(again), err
		})}}
		fx.runConfig(fx.store, cfg) // one slot: a parent that kept it would wait forever
		h := enqueue(fx, whole, 3)
		equal(fx, "output", result(fx, h), "12")
		equal(fx, "attempts", attempts, 3)
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuspended, task.OutcomeSuccess)
		child := fx.get(fx.history(h.ID()).Needs[0].ID)
		equal(fx, "the child's name", child.Node, "sub[0]")
		equal(fx, "its parent", child.ParentID, h.ID())
	})

	subtest(t, "a child that fails fails the task at once", func(fx *fixture) {
		patient := weaver.Define[int, string]("engine.children.patient.v1") // would retry if that helped
		var got error
		fx.run(pieceHandler(), patient.Handler(func(ctx context.Context, _ int) (string, error) {
			_, err := weaver.Call(ctx, "sub", piece, -1)
			if !weaver.Suspended(err) {
				got = err
				equal(fx, "it is final", weaver.Final(ctx, err), true)
			}
			return "", err
		}))
		h := enqueue(fx, patient, 0)
		te := failure(fx, h)
		var ce *weaver.CallError
		if !errors.As(got, &ce) {
			fx.Fatalf("Call returned %v", got)
		}
		equal(fx, "state", ce.State, weaver.StateFailed)
		equal(fx, "message", ce.Message, "below zero")
		equal(fx, "child", ce.TaskID, fx.history(h.ID()).Needs[0].ID)
		wantError(fx, te, nil, `call "sub"`, ce.TaskID.String(), "below zero")
		equal(fx, "failed step", te.FailedStep, "sub")
		equal(fx, "attempts that count", te.Attempts, 1)

		// Later changes of the child have no effect.
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		again := failure(fx, h)
		equal(fx, "the same", again.Message, te.Message)
	})
}

func TestCallAll(t *testing.T) {
	all := func(ins []int, opts ...weaver.EnqueueOption) weaver.Handler {
		return whole.Handler(func(ctx context.Context, _ int) (string, error) {
			outs, err := weaver.CallAll(ctx, "fan", piece, ins, opts...)
			return fmt.Sprint(outs), err
		})
	}
	subtest(t, "in the order of the inputs", func(fx *fixture) {
		fx.run(pieceHandler(), all([]int{1, 2, 3}))
		h := enqueue(fx, whole, 0)
		equal(fx, "output", result(fx, h), "[2 4 6]")
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
	})
	subtest(t, "nothing to do", func(fx *fixture) {
		fx.run(all(nil))
		h := enqueue(fx, whole, 0)
		equal(fx, "output", result(fx, h), "[]")
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})
	subtest(t, "some fail", func(fx *fixture) {
		fx.run(pieceHandler(), whole.Handler(func(ctx context.Context, _ int) (string, error) {
			outs, err := weaver.CallAll(ctx, "fan", piece, []int{1, -1, 3, -2})
			children, rest := weaver.CallErrors(fmt.Errorf("wrapped: %w", err))
			if rest != nil {
				equal(fx, "the rest is a suspension", weaver.Suspended(rest), true)
				return "", rest
			}
			var failed []int
			for _, e := range children {
				failed = append(failed, e.Index)
			}
			wantError(fx, err, nil, `call "fan": 2 children did not succeed`, "below zero")
			return fmt.Sprint(outs, failed), nil
		}))
		equal(fx, "output", result(fx, enqueue(fx, whole, 0)), "[2 0 6 0] [1 3]")
	})
	subtest(t, "the options are those of each child", func(fx *fixture) {
		fx.run(pieceHandler(), all([]int{1, 2}, weaver.Delay(time.Hour), weaver.Priority(2)))
		began := time.Now()
		h := enqueue(fx, whole, 0)
		synctest.Wait()
		equal(fx, "it waits for", fx.get(h.ID()).Waiting, task.WaitChildren)
		result(fx, h)
		near(fx, "time", time.Since(began), time.Hour)
		equal(fx, "priority", fx.get(fx.history(h.ID()).Needs[1].ID).Priority, 2)
	})
	subtest(t, "in a job", func(fx *fixture) {
		fx.run(pieceHandler(), all([]int{1, 2}))
		j := weaver.NewJob("release")
		j.Add("build", whole.With(0))
		jh, err := fx.client.Submit(fx.Context(), j)
		fx.must(err)
		res, err := jh.Wait(fx.Context())
		fx.must(err)
		equal(fx, "job", res.State, task.JobSucceeded)
		names := make([]string, 0, len(res.Completed))
		for _, c := range res.Completed {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		equal(fx, "tasks", strings.Join(names, " "), "build build/fan[0] build/fan[1]")
	})
	subtest(t, "a cancel of the parent cancels its children", func(fx *fixture) {
		fx.run(all([]int{1, 2}, weaver.Delay(time.Hour)))
		h := enqueue(fx, whole, 0)
		synctest.Wait()
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		for _, n := range fx.history(h.ID()).Needs {
			equal(fx, "child", n.State, weaver.StateCancelled)
		}
	})
	subtest(t, "another number of inputs blocks the task", func(fx *fixture) {
		attempts := 0
		fx.run(pieceHandler(), whole.Handler(func(ctx context.Context, _ int) (string, error) {
			attempts++
			_, err := weaver.CallAll(ctx, "fan", piece, make([]int, 2*(attempts%3)))
			return "", err
		}))
		h := enqueue(fx, whole, 0)
		wantError(fx, blocked(fx, h), nil, `call "fan" was recorded with 2 inputs and has 4 now`, "new name")
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
		time.Sleep(time.Second)
		wantError(fx, blocked(fx, h), nil, "has 0 now")
	})
	const many = 1100
	fan := func(fx *fixture) weaver.Handler {
		ins := make([]int, many)
		for i := range ins {
			ins[i] = i
		}
		return whole.Handler(func(ctx context.Context, _ int) (string, error) {
			outs, err := weaver.CallAll(ctx, "fan", piece, ins)
			for i, out := range outs {
				equal(fx, "an output", out, 2*i)
			}
			return fmt.Sprint(len(outs)), err
		})
	}
	// records calls fail with the number of each record of a call, after it is written.
	records := func(fx *fixture, fail func(n int) error) store.Store {
		n := 0
		return storehook.New(fx.store, &storehook.Hooks{Record: func(_ context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			res, err := next()
			if err == nil && recs[0].Step != nil && recs[0].Step.Kind == task.KindCall {
				n++
				err = fail(n)
			}
			return res, err
		}})
	}
	subtest(t, "more than one record, and a reply that is lost", func(fx *fixture) {
		s := records(fx, func(n int) error {
			if n == 2 {
				return store.ErrUnavailable
			}
			return nil
		})
		fx.runConfig(s, weaver.Config{Concurrency: 200, Handlers: []weaver.Handler{pieceHandler(), fan(fx)}})
		h := enqueue(fx, whole, 0)
		equal(fx, "output", result(fx, h), "1100")
		equal(fx, "children", len(fx.history(h.ID()).Needs), many)
	})
	subtest(t, "a worker that stops between two records", func(fx *fixture) {
		var e *engine
		s := records(fx, func(n int) error {
			if n == 1 {
				e.StopNow()
				return store.ErrUnavailable
			}
			return nil
		})
		e = fx.start(s, weaver.Config{Handlers: []weaver.Handler{fan(fx)}})
		h := enqueue(fx, whole, 0)
		<-e.ended
		equal(fx, "children", len(fx.history(h.ID()).Needs), 1000)
		fx.runConfig(fx.store, weaver.Config{Concurrency: 200, Handlers: []weaver.Handler{pieceHandler(), fan(fx)}})
		equal(fx, "output", result(fx, h), "1100")
		equal(fx, "children", len(fx.history(h.ID()).Needs), many)
	})
}

func TestCallRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		do       func(ctx context.Context) error
		sentinel error
		words    []string
	}{
		"inside a step": {func(ctx context.Context) error {
			return weaver.Do(ctx, "outer", func(ctx context.Context) error { _, err := weaver.Call(ctx, "sub", piece, 1); return err })
		}, weaver.ErrNestedStep, []string{`"sub" inside step "outer"`}},
		"a wait inside a step": {func(ctx context.Context) error {
			return weaver.Do(ctx, "outer", func(ctx context.Context) error { _, _, err := approved.Wait(ctx, "sub", 0); return err })
		}, weaver.ErrNestedStep, []string{`"sub" inside step "outer"`}},
		"two waits under one name": {func(ctx context.Context) error {
			_, _, err := approved.Wait(ctx, "manager", -1)
			_, _, again := approved.Wait(ctx, "manager", -1)
			return errors.Join(err, again)
		}, weaver.ErrDuplicateStep, []string{`step "manager"`}},
		"two calls under one name": {func(ctx context.Context) error {
			_, err := weaver.CallAll(ctx, "fan", piece, nil)
			_, again := weaver.CallAll(ctx, "fan", piece, nil)
			return errors.Join(err, again)
		}, weaver.ErrDuplicateStep, []string{`step "fan"`}},
		"an idempotency key": {func(ctx context.Context) error {
			_, err := weaver.Call(ctx, "sub", piece, 1, weaver.IdempotencyKey("k"))
			return err
		}, weaver.ErrInvalidOption, []string{`call "sub": input 0`, "has no IdempotencyKey"}},
		"an input that is invalid": {func(ctx context.Context) error {
			_, err := weaver.CallAll(ctx, "fan", weaver.Define[order, order]("invalid.call.charge.v1"), []order{{Total: 1}, {Total: -1}})
			return err
		}, weaver.ErrInvalidInput, []string{`call "fan": input 1`, "Total is -1"}},
		"too many": {func(ctx context.Context) error {
			_, err := weaver.CallAll(ctx, "fan", piece, make([]int, task.MaxChildren+1))
			return err
		}, nil, []string{`call "fan"`, "asks for 10001", "10000 are allowed"}},
		"a foreign context": {func(context.Context) error {
			_, err := weaver.Call(context.Background(), "sub", piece, 1)
			return err
		}, weaver.ErrNoTask, []string{`call "sub"`}},
		"a foreign context for a signal": {func(context.Context) error {
			_, _, err := approved.Wait(context.Background(), "manager", 0)
			return err
		}, weaver.ErrNoTask, []string{`wait "manager"`, `"approved"`}},
		"a race of nothing": {func(ctx context.Context) error {
			_, err := weaver.Race(ctx, "first")
			return err
		}, weaver.ErrInvalidOption, []string{`race "first"`, "OnSignal"}},
		"a case that is none": {func(ctx context.Context) error {
			_, err := weaver.Race(ctx, "first", weaver.RaceCase{})
			return err
		}, weaver.ErrInvalidOption, []string{`race "first"`, "case 0 is empty"}},
	} {
		subtest(t, name, func(fx *fixture) {
			fx.run(whole.Handler(func(ctx context.Context, _ int) (string, error) {
				err := c.do(ctx)
				wantError(fx, err, c.sentinel, c.words...)
				return "", err
			}))
			wantError(fx, failure(fx, enqueue(fx, whole, 0)), nil, c.words...)
		})
	}
	subtest(t, "too deep", func(fx *fixture) {
		nest := weaver.Define[int, int]("engine.children.nest.v1", weaver.NoRetry())
		fx.run(nest.Handler(func(ctx context.Context, n int) (int, error) {
			out, err := weaver.Call(ctx, "deeper", nest, n+1)
			return out, err
		}))
		te := failure(fx, enqueue(fx, nest, 0))
		wantError(fx, te, nil, "depth 8")
	})
}
