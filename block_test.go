package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestBlocked(t *testing.T) {
	typ := weaver.Define[string, string]("engine.block.run.v1", weaver.MaxAttempts(2))
	type approval struct{ By string }
	handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
		got, ok, err := weaver.UnblockInput[approval](ctx)
		if err != nil || ok {
			return got.By, err
		}
		return "", weaver.Blocked("needs an approved budget")
	})

	subtest(t, "waits for a person, whose input the handler reads", func(fx *fixture) {
		fx.run(handler)
		h := enqueue(fx, typ, "")
		wantError(fx, blocked(fx, h), nil, h.ID().String(), "needs an approved budget")
		got := fx.get(h.ID())
		equal(fx, "it waits for", got.Waiting, task.WaitManual)
		time.Sleep(24 * time.Hour)
		fx.wantState(h.ID(), weaver.StateBlocked)

		through := make(chan string, 1)
		go func() {
			out, err := h.Wait(fx.Context(), weaver.WaitThroughBlocked())
			if err != nil {
				fx.Error(err)
			}
			through <- out
		}()
		synctest.Wait()
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), approval{By: "ann"}, weaver.By("ann")))
		equal(fx, "output", <-through, "ann")
		equal(fx, "decision", fx.history(h.ID()).Decisions[0].Kind, task.DecideBlock)
	})

	subtest(t, "gets another attempt although they are used up", func(fx *fixture) {
		fx.run(handler)
		h := enqueue(fx, typ, "")
		for range 4 { // of 2
			blocks(fx, h)
			fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
		}
		blocks(fx, h)
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), approval{By: "bob"}))
		equal(fx, "output", result(fx, h), "bob")
	})

	subtest(t, "is no failure: it does not count against MaxAttempts", func(fx *fixture) {
		failed := false
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			switch no := weaver.Current(ctx).AttemptNo; {
			case no <= 3:
				return "", weaver.Blocked("not yet")
			case !failed:
				failed = true
				return "", errors.New("the first failure, of two attempts")
			}
			return "done", nil
		}))
		h := enqueue(fx, typ, "")
		for range 3 {
			blocks(fx, h)
			equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 0)
			fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
		}
		equal(fx, "output", result(fx, h), "done")
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 2)
		d := fx.history(h.ID()).Decisions
		equal(fx, "attempts that the block counted", fmt.Sprint(d[2].Reason.Evidence["attempt_count"]), "0")
		equal(fx, "attempts that the failure counted", fmt.Sprint(d[3].Reason.Evidence["attempt_count"]), "1")
	})

	subtest(t, "an input that does not decode blocks again", func(fx *fixture) {
		fx.run(handler)
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), "yes"))
		wantError(fx, blocked(fx, h), nil, "input given to unblock", "approval")
	})

	subtest(t, "may be cancelled", func(fx *fixture) {
		fx.run(handler)
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
	})
}
