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

func TestRace(t *testing.T) {
	refused := weaver.DefineSignal[string]("refused")
	// race returns which of a call, two signals and a sleep came first, and its value.
	race := func(child time.Duration, childIn int) weaver.Handler {
		return whole.Handler(func(ctx context.Context, _ int) (string, error) {
			var out int
			var yes bool
			var why string
			first, err := weaver.Race(ctx, "decision",
				weaver.OnCall(piece, childIn, &out, weaver.Delay(child)),
				weaver.OnSignal(approved, &yes), weaver.OnSignal(refused, &why), weaver.OnSleep(48*time.Hour))
			if err != nil {
				return "", err
			}
			if err := weaver.Sleep(ctx, "nap", time.Minute); err != nil { // so that the winner is replayed
				return "", err
			}
			return fmt.Sprint(first, " ", out, " ", yes, " ", why), nil
		})
	}
	subtest(t, "the call", func(fx *fixture) {
		fx.run(pieceHandler(), race(time.Hour, 4))
		h := enqueue(fx, whole, 0)
		synctest.Wait()
		equal(fx, "it waits for", fx.get(h.ID()).Waiting, task.WaitSignal)
		equal(fx, "output", result(fx, h), "0 8 false ")
	})
	subtest(t, "a signal", func(fx *fixture) {
		fx.run(pieceHandler(), race(time.Hour, 4))
		h := enqueue(fx, whole, 0)
		synctest.Wait()
		fx.must(refused.Send(fx.Context(), fx.client, h.ID(), "k", "too late"))
		time.Sleep(time.Second)
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "k", true)) // ignored
		equal(fx, "output", result(fx, h), "2 0 false too late")
		for _, n := range fx.history(h.ID()).Needs {
			equal(fx, "the child of the call that lost", n.State, weaver.StateCancelled)
		}
	})
	subtest(t, "the time", func(fx *fixture) {
		fx.run(pieceHandler(), race(1000*time.Hour, 4))
		equal(fx, "output", result(fx, enqueue(fx, whole, 0)), "3 0 false ")
	})
	subtest(t, "a call that fails", func(fx *fixture) {
		fx.run(pieceHandler(), race(time.Hour, -4))
		te := failure(fx, enqueue(fx, whole, 0))
		wantError(fx, te, nil, `call "decision[0]"`, "below zero")
	})
	subtest(t, "a signal goes to the next race when the one before is over", func(fx *fixture) {
		fx.run(whole.Handler(func(ctx context.Context, _ int) (string, error) {
			for round := range 5 {
				var yes bool
				first, err := weaver.Race(ctx, fmt.Sprint("round ", round), weaver.OnSleep(time.Hour), weaver.OnSignal(approved, &yes))
				if err != nil {
					return "", err
				}
				if first == 1 {
					return fmt.Sprint("round ", round, " ", yes), nil
				}
			}
			return "nobody", nil
		}))
		h := enqueue(fx, whole, 0)
		time.Sleep(2*time.Hour + time.Minute)
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "k", true))
		equal(fx, "output", result(fx, h), "round 2 true")
	})
	subtest(t, "a signal that comes when the time is over counts before it", func(fx *fixture) {
		handler := whole.Handler(func(ctx context.Context, _ int) (string, error) {
			first, err := weaver.Race(ctx, "decision", weaver.OnSleep(time.Hour), weaver.OnSignal[bool](approved, nil))
			return fmt.Sprint(first), err
		})
		h := enqueue(fx, whole, 0)
		fx.idle(handler)
		time.Sleep(2 * time.Hour) // no worker is there
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "k", true))
		fx.idle(handler)
		equal(fx, "output", result(fx, h), "1")
	})
	subtest(t, "a signal that comes while it is decided counts before the time", func(fx *fixture) {
		sent := false
		s := storehook.New(fx.store, &storehook.Hooks{Record: func(ctx context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			if step := recs[0].Step; step != nil && step.Kind == task.KindSignal && step.State == task.StepCompleted && !sent { // the wait is withdrawn
				sent = true
				fx.must(approved.Send(ctx, fx.client, recs[0].Lease.Task, "k", true))
			}
			return next()
		}})
		fx.runConfig(s, weaver.Config{Handlers: []weaver.Handler{whole.Handler(func(ctx context.Context, _ int) (string, error) {
			var yes bool
			first, err := weaver.Race(ctx, "decision", weaver.OnSleep(time.Hour), weaver.OnSignal(approved, &yes))
			return fmt.Sprint(first, " ", yes), err
		})}})
		equal(fx, "output", result(fx, enqueue(fx, whole, 0)), "1 true")
		equal(fx, "the signal was sent", sent, true)
	})
	subtest(t, "another list blocks the task", func(fx *fixture) {
		attempts := 0
		fx.run(whole.Handler(func(ctx context.Context, _ int) (string, error) {
			attempts++
			cases := []weaver.RaceCase{weaver.OnSignal[bool](approved, nil), weaver.OnSleep(0)}
			if attempts > 1 {
				cases = cases[:1]
			}
			first, err := weaver.Race(ctx, "decision", cases...)
			return fmt.Sprint(first), errors.Join(err, weaver.Sleep(ctx, "nap", time.Minute))
		}))
		wantError(fx, blocked(fx, enqueue(fx, whole, 0)), nil, `"decision"`, "number 1 of its 1 waits")
	})
}
