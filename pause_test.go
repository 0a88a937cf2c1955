package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestPause(t *testing.T) {
	typ := weaver.Define[string, string]("engine.pause.run.v1", weaver.Backoff(time.Second))
	other := weaver.Define[string, string]("engine.pause.other.v1")
	echo := func(_ context.Context, in string) (string, error) { return in, nil }

	subtest(t, "a paused type starts nothing, and goes on when resumed", func(fx *fixture) {
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(echo), other.Handler(echo)}})
		fx.must(fx.client.PauseType(fx.Context(), typ.Name(), weaver.By("ops")))
		h, o := enqueue(fx, typ, "a"), enqueue(fx, other, "b")
		equal(fx, "of another type", result(fx, o), "b")
		time.Sleep(time.Hour)
		got := fx.get(h.ID())
		equal(fx, "it waits for", got.Waiting, task.WaitPaused)
		equal(fx, "what is paused", got.Pause, task.PauseType)
		fx.must(fx.client.ResumeType(fx.Context(), typ.Name()))
		equal(fx, "after the resume", result(fx, h), "a")
	})

	subtest(t, "a paused type has its inputs repaired when it is resumed", func(fx *fixture) {
		var repairs atomic.Int32
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{repairType.Handler(cents, weaver.Repair(func(ctx context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
			if repairs.Add(1) == 1 {
				return nil, weaver.RetryAfter(time.Minute, errors.New("later"))
			}
			return toInt(ctx, r)
		}))}})
		h := enqueue(fx, wrongCharge, map[string]any{"cents": "7"})
		time.Sleep(time.Second)
		equal(fx, "repairs", repairs.Load(), 1)
		fx.must(fx.client.PauseType(fx.Context(), repairName, weaver.By("ops")))
		time.Sleep(time.Hour)
		equal(fx, "repairs while the type is paused", repairs.Load(), 1)
		equal(fx, "what is paused", fx.repairsOf(h.ID())[0].Pause, task.PauseQueue)
		fx.must(fx.client.ResumeType(fx.Context(), repairName))
		equal(fx, "after the resume", result(fx, h), 7)
		equal(fx, "repairs", repairs.Load(), 2)
	})

	subtest(t, "a paused task waits alone, and one that runs is paused afterwards", func(fx *fixture) {
		running, goOn := make(chan struct{}, 9), make(chan struct{})
		fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{
			typ.Handler(func(ctx context.Context, in string) (string, error) {
				if in == "runs" && weaver.Current(ctx).AttemptNo == 1 {
					running <- struct{}{}
					<-goOn
					return "", context.DeadlineExceeded
				}
				return in, nil
			}),
		}})
		paused, err := typ.Enqueue(fx.Context(), fx.client, "waits", weaver.Delay(time.Second))
		fx.must(err)
		fx.must(fx.client.PauseTask(fx.Context(), paused.ID()))
		runs, free := enqueue(fx, typ, "runs"), enqueue(fx, typ, "free")
		<-running
		fx.must(fx.client.PauseTask(fx.Context(), runs.ID()))
		equal(fx, "it goes on", fx.get(runs.ID()).State, task.Running)
		close(goOn)
		equal(fx, "the one that is not paused", result(fx, free), "free")
		time.Sleep(time.Hour)
		for _, h := range []*weaver.Handle[string]{paused, runs} {
			got := fx.get(h.ID())
			equal(fx, "the pause", got.Pause, task.PauseTask)
			equal(fx, "it waits for", got.Waiting, task.WaitPaused)
			fx.must(fx.client.ResumeTask(fx.Context(), h.ID()))
		}
		equal(fx, "after the resume", result(fx, paused)+" "+result(fx, runs), "waits runs")
		wantError(fx, fx.client.PauseTask(fx.Context(), runs.ID()), weaver.ErrState, "pause", "ended")
	})

	subtest(t, "mistakes", func(fx *fixture) {
		wantError(fx, fx.client.PauseType(fx.Context(), "no type"), weaver.ErrInvalidOption, "pause type")
		wantError(fx, fx.client.ResumeType(fx.Context(), ""), weaver.ErrInvalidOption, "resume type")
		wantError(fx, fx.client.PauseTask(fx.Context(), task.ID{1}), weaver.ErrNotFound, "pause")
		wantError(fx, fx.client.ResumeTask(fx.Context(), task.ID{1}, weaver.Force()), weaver.ErrInvalidOption, "Force")
	})
}
