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
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestRunUntilIdle(t *testing.T) {
	typ := weaver.Define[int, int]("engine.idle.run.v1")
	subtest(t, "runs what its own tasks make due", func(fx *fixture) {
		ran := 0
		handler := typ.Handler(func(ctx context.Context, n int) (int, error) {
			ran++
			if n > 0 {
				_, err := weaver.Start(ctx, "next", typ, n-1)
				return n, err
			}
			return n, nil
		})
		enqueue(fx, typ, 50)
		fx.must(fx.newEngine(fx.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{handler}}).RunUntilIdle(fx.Context()))
		equal(fx, "tasks that ran", ran, 51)
	})
	subtest(t, "runs dependents that are left to reapers", func(fx *fixture) {
		j := weaver.NewJob("fan")
		first := j.Add("first", typ.With(1))
		for i := range 1001 {
			j.Add(fmt.Sprint("n", i), typ.With(1), weaver.Needs(first))
		}
		h := submit(fx, j)
		slow := newFaults(fx)
		slow.hooks.Reap = func(_ context.Context, _ store.ReapRequest, next func() (store.ReapResult, error)) (store.ReapResult, error) {
			time.Sleep(time.Second)
			return next()
		}
		cfg := weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil })}}
		fx.must(fx.newEngine(slow.store, cfg).RunUntilIdle(fx.Context()))
		res, err := fx.client.JobResult(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the job", res.State, task.JobSucceeded)
	})
	subtest(t, "waits for keys of its own tasks", func(fx *fixture) {
		c := newConcurrency()
		for range 5 {
			enqueue(fx, typ, 1, weaver.ConcurrencyKey("k"))
		}
		fx.idle(typ.Handler(func(_ context.Context, n int) (int, error) { c.stay("k"); return n, nil }))
		list, _, err := fx.client.List(fx.Context(), weaver.Filter{States: []weaver.State{weaver.StateSucceeded}})
		fx.must(err)
		equal(fx, "succeeded", len(list), 5)
		equal(fx, "most at once", c.most["k"], 1)
	})
	subtest(t, "ends with its context", func(fx *fixture) {
		ctx, cancel := context.WithTimeout(fx.Context(), time.Minute)
		defer cancel()
		h := enqueue(fx, typ, 1)
		began := time.Now()
		fx.must(fx.newEngine(fx.store, weaver.Config{DrainTimeout: time.Second, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})}}).RunUntilIdle(ctx))
		equal(fx, "time", time.Since(began), 61*time.Second)
		fx.wantState(h.ID(), weaver.StateReady)
	})
	subtest(t, "leaves a task alone that another worker runs", func(fx *fixture) {
		g := newGate()
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) { return n, g.pass(ctx) }))
		h := enqueue(fx, typ, 1)
		<-g.in
		began := time.Now()
		fx.idle(typ.Handler(func(context.Context, int) (int, error) { fx.Error("it ran twice"); return 0, nil }))
		equal(fx, "time", time.Since(began), 0)
		g.open()
		result(fx, h)
	})
}

func TestRunUntilIdleTwice(t *testing.T) {
	typ := weaver.Define[int, int]("engine.idle.run.v1")

	subtest(t, "run until idle and return", func(fx *fixture) {
		var ran []int
		eng := fx.newEngine(fx.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			ran = append(ran, n)
			switch n {
			case 1: // starts another task, due at once
				_, err := weaver.Start(ctx, "next", typ, 4)
				return n, err
			case 2:
				return 0, errors.New("later, please")
			}
			return n, nil
		})}})
		for n := range 3 {
			enqueue(fx, typ, n)
		}
		enqueue(fx, typ, 3, weaver.Delay(time.Hour))
		foreign := weaver.Define[int, int]("engine.idle.foreign.v1")
		enqueue(fx, foreign, 9)

		began := time.Now()
		fx.must(eng.RunUntilIdle(fx.Context()))
		equal(fx, "time it took", time.Since(began), 0)
		equal(fx, "tasks that ran", len(ran), 4)
		for state, want := range map[weaver.State]int{weaver.StateSucceeded: 3, weaver.StatePending: 2, weaver.StateReady: 1} {
			list, _, err := fx.client.List(fx.Context(), weaver.Filter{States: []weaver.State{state}})
			fx.must(err)
			equal(fx, string(state)+" afterwards", len(list), want)
		}
		time.Sleep(2 * time.Hour)
		fx.must(eng.RunUntilIdle(fx.Context())) // the next night
		equal(fx, "tasks that ran in both nights", len(ran), 6)
	})
}

// RunUntilIdle looks twice: a claim skips a task whose row another process has locked for a moment.
func TestRunUntilIdle_LockedRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locked := true
		hooks := storehook.Hooks{Hide: store.CanNotify, Claim: func(_ context.Context, _ store.ClaimRequest, next func() (store.ClaimResult, error)) (store.ClaimResult, error) {
			if locked {
				locked = false
				return store.ClaimResult{Now: time.Now(), Next: -1}, nil
			}
			return next()
		}}
		eng, err := weaver.New(storehook.New(memstore.New(), &hooks), weaver.Config{
			Handlers: []weaver.Handler{hintedType.Handler(func(_ context.Context, n int) (int, error) { return n, nil })},
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := hintedType.Enqueue(t.Context(), eng, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Get(t.Context()); err != nil || got.State != weaver.StateSucceeded || locked {
			t.Errorf("the task is %v, %v", got.State, err)
		}
	})
}
