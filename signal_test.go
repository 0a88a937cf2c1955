package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var (
	approved  = weaver.DefineSignal[bool]("approved")
	approving = weaver.Define[string, string]("engine.signal.approve.v1", weaver.NoRetry())
)

// approveHandler waits for an approval and returns the result.
func approveHandler(timeout time.Duration) weaver.Handler {
	return approving.Handler(func(ctx context.Context, _ string) (string, error) {
		yes, ok, err := approved.Wait(ctx, "manager", timeout)
		return fmt.Sprint(yes, " ", ok), err
	})
}

func TestSignal(t *testing.T) {
	subtest(t, "wakes the task that waits for it", func(fx *fixture) {
		fx.runConfig(fx.store, weaver.Config{Concurrency: 1, Handlers: []weaver.Handler{approveHandler(48 * time.Hour), piece.Handler(func(_ context.Context, n int) (int, error) { return n, nil })}})
		h := enqueue(fx, approving, "")
		synctest.Wait()
		got := fx.get(h.ID())
		equal(fx, "state", got.State, weaver.StatePending)
		equal(fx, "it waits for", got.Waiting, task.WaitSignal)
		near(fx, "time to its timeout", time.Until(got.ReadyAt), 48*time.Hour)
		equal(fx, "the only slot is free", result(fx, enqueue(fx, piece, 7)), 7)

		began := time.Now()
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "click-77", true, weaver.By("ann")))
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "click-77", true)) // no further effect
		equal(fx, "output", result(fx, h), "true true")
		equal(fx, "it woke at once", time.Since(began) < time.Second, true)
		fx.wantOutcomes(h.ID(), task.OutcomeSuspended, task.OutcomeSuccess)
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
		hist := fx.history(h.ID())
		equal(fx, "signals", len(hist.Signals), 1)
		equal(fx, "taken by", hist.Signals[0].Step, "manager")
		equal(fx, "sent by", hist.Signals[0].Actor, "ann")
	})

	subtest(t, "is kept when it comes early", func(fx *fixture) {
		h := enqueue(fx, approving, "")
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "a", true))
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "b", false))
		fx.idle(approveHandler(0))
		equal(fx, "output", result(fx, h), "true true")
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})

	subtest(t, "is waited for as long as the timeout, and that is recorded", func(fx *fixture) {
		attempts := 0
		fx.run(approving.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			yes, ok, err := approved.Wait(ctx, "manager", time.Hour)
			if err != nil {
				return "", err
			}
			if attempts == 2 { // a signal sent now is too late for this wait
				fx.must(approved.Send(ctx, fx.client, weaver.Current(ctx).TaskID, "late", true))
				return "", weaver.Sleep(ctx, "nap", time.Hour)
			}
			return fmt.Sprint(yes, " ", ok), nil
		}))
		began := time.Now()
		h := enqueue(fx, approving, "")
		equal(fx, "output", result(fx, h), "false false")
		near(fx, "time", time.Since(began), 2*time.Hour)
		equal(fx, "attempts", attempts, 3)
	})

	subtest(t, "without time is looked for once", func(fx *fixture) {
		h := enqueue(fx, approving, "")
		fx.idle(approveHandler(-time.Second))
		equal(fx, "output", result(fx, h), "false false")
		fx.wantOutcomes(h.ID(), task.OutcomeSuccess)
	})

	subtest(t, "is waited for without end", func(fx *fixture) {
		fx.run(approveHandler(0))
		h := enqueue(fx, approving, "")
		time.Sleep(100 * time.Hour)
		equal(fx, "due", fx.get(h.ID()).ReadyAt, time.Time{})
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "k", true))
		equal(fx, "output", result(fx, h), "true true")
	})

	subtest(t, "several waits at once, with a step beside them", func(fx *fixture) {
		ran, begun := 0, make(chan struct{})
		fx.run(approving.Handler(func(ctx context.Context, _ string) (string, error) {
			said, errs := make([]string, 3), make(chan error, 3)
			go func() {
				errs <- weaver.Do(ctx, "beside", func(ctx context.Context) error {
					ran++
					close(begun)
					time.Sleep(time.Minute)
					return ctx.Err()
				})
			}()
			<-begun // a wait without running steps does not wait for the others
			for i, name := range []string{"manager", "budget"} {
				go func() {
					yes, ok, err := approved.Wait(ctx, name, time.Duration(i+1)*time.Hour)
					said[i] = fmt.Sprint(name, " ", yes, " ", ok)
					errs <- err
				}()
			}
			err := errors.Join(<-errs, <-errs, <-errs)
			return strings.Join(said[:2], ", "), err
		}))
		h := enqueue(fx, approving, "")
		time.Sleep(2 * time.Minute)
		near(fx, "the earliest timeout", time.Until(fx.get(h.ID()).ReadyAt), time.Hour)
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "one", true))
		time.Sleep(time.Minute)
		equal(fx, "state", fx.get(h.ID()).State, weaver.StatePending)
		fx.must(approved.Send(fx.Context(), fx.client, h.ID(), "two", false))
		out := result(fx, h)
		if out != "manager true true, budget false true" && out != "manager false true, budget true true" { // in any order
			fx.Errorf("output %q", out)
		}
		equal(fx, "runs of the step", ran, 1)
	})

	subtest(t, "in each of a handler's waits goes to the oldest", func(fx *fixture) {
		fx.run(approving.Handler(func(ctx context.Context, _ string) (string, error) {
			var said []string
			for i := range 3 {
				yes, _, err := approved.Wait(ctx, fmt.Sprint("round ", i), 0)
				if err != nil {
					return "", err
				}
				said = append(said, fmt.Sprint(yes))
			}
			return strings.Join(said, " "), nil
		}))
		h := enqueue(fx, approving, "")
		for i := range 3 {
			fx.must(approved.Send(fx.Context(), fx.client, h.ID(), fmt.Sprint(i), i == 1))
		}
		equal(fx, "output", result(fx, h), "false true false")
	})

	subtest(t, "between the look and the suspension wakes the task", func(fx *fixture) {
		fx.run(approving.Handler(func(ctx context.Context, _ string) (string, error) {
			id := weaver.Current(ctx).TaskID
			_, ok, err := approved.Wait(ctx, "manager", 0)
			if err != nil {
				fx.must(approved.Send(context.Background(), fx.client, id, "k", true))
			}
			return fmt.Sprint(ok), err
		}))
		equal(fx, "output", result(fx, enqueue(fx, approving, "")), "true")
	})

	subtest(t, "of another type blocks the task", func(fx *fixture) {
		fx.run(approveHandler(0))
		h := enqueue(fx, approving, "")
		fx.must(fx.client.SendSignal(fx.Context(), h.ID(), "approved", "k", json.RawMessage(`"yes"`)))
		wantError(fx, blocked(fx, h), nil, "manager", `the signal "approved"`, "does not decode as bool", "rerun the task from")
		equal(fx, "kind", fx.get(h.ID()).Error.Kind, task.KindDecode)
	})
}

func TestSendSignalRefuses(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		h := enqueue(fx, approving, "")
		ctx, id := fx.Context(), h.ID()
		send := func(name, key, payload string) error {
			return fx.client.SendSignal(ctx, id, name, key, json.RawMessage(payload))
		}
		fx.must(send("approved", "k", "true"))
		fx.must(send("approved", "k", " true\n"))
		wantError(fx, send("approved", "k", "false"), weaver.ErrConflict, `"k"`)
		fx.must(send("refused", "k", "false")) // a key of another signal
		wantError(fx, send("", "k", "true"), weaver.ErrInvalidOption, "name of a signal", "empty")
		wantError(fx, send("approved", "", "true"), weaver.ErrInvalidOption, "key of a signal", "empty")
		wantError(fx, send("approved", "k2", "yes"), weaver.ErrInvalidInput, "not JSON")
		wantError(fx, send("approved", "k2", `"`+strings.Repeat("x", weaver.DefaultInlineLimit)+`"`), weaver.ErrTooLarge, "payload", "65538 bytes")
		unknown := task.NewIDs(nil).New()
		wantError(fx, approved.Send(ctx, fx.client, unknown, "k", true), weaver.ErrNotFound, unknown.String())
		for i := range task.MaxSignals - 2 {
			fx.must(send("many", fmt.Sprint(i), "1"))
		}
		wantError(fx, send("many", "last", "1"), store.ErrLimit, "1000 signals", "no wait took")
		wantError(fx, fx.client.InTx(nil).SendSignal(ctx, id, "approved", "k", nil), nil, "after the commit")
		wantError(fx, approved.Send(ctx, fx.client, id, "k3", true, weaver.Force()), weaver.ErrInvalidOption, "Force")

		fx.idle(approveHandler(0))
		wantError(fx, approved.Send(ctx, fx.client, id, "after", true), weaver.ErrState, "succeeded")

		for _, name := range []string{"", "a\x00b", strings.Repeat("n", 256)} {
			func() {
				defer func() {
					if recover() == nil {
						fx.Errorf("DefineSignal(%q) did not panic", name)
					}
				}()
				weaver.DefineSignal[bool](name)
			}()
		}
	})
}
