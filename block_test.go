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

	scene(t, "waits for a person, whose input the handler reads", func(w *world) {
		w.run(handler)
		h := enqueue(w, typ, "")
		wantError(w, blocked(w, h), nil, h.ID().String(), "needs an approved budget")
		got := w.get(h.ID())
		equal(w, "it waits for", got.Waiting, task.WaitManual)
		time.Sleep(30 * 24 * time.Hour)
		w.wantState(h.ID(), weaver.StateBlocked)

		through := make(chan string, 1)
		go func() {
			out, err := h.Wait(w.Context(), weaver.WaitThroughBlocked())
			if err != nil {
				w.Error(err)
			}
			through <- out
		}()
		synctest.Wait()
		w.must(w.client.Unblock(w.Context(), h.ID(), approval{By: "ann"}, weaver.By("ann")))
		equal(w, "output", <-through, "ann")
		equal(w, "decision", w.history(h.ID()).Decisions[0].Kind, task.DecideBlock)
	})

	scene(t, "gets another attempt although they are used up", func(w *world) {
		w.run(handler)
		h := enqueue(w, typ, "")
		for range 4 { // of 2
			blocks(w, h)
			w.must(w.client.Unblock(w.Context(), h.ID(), nil))
		}
		blocks(w, h)
		w.must(w.client.Unblock(w.Context(), h.ID(), approval{By: "bob"}))
		equal(w, "output", result(w, h), "bob")
	})

	scene(t, "an input that does not decode blocks again", func(w *world) {
		w.run(handler)
		h := enqueue(w, typ, "")
		blocks(w, h)
		w.must(w.client.Unblock(w.Context(), h.ID(), "yes"))
		wantError(w, blocked(w, h), nil, "input given to unblock", "approval")
	})

	scene(t, "may be cancelled", func(w *world) {
		w.run(handler)
		h := enqueue(w, typ, "")
		blocks(w, h)
		w.must(w.client.Cancel(w.Context(), h.ID()))
		equal(w, "state", failure(w, h).State, weaver.StateCancelled)
	})
}

func TestUndecodable(t *testing.T) {
	type v1 struct{ Name string }
	type v2 struct{ Name int }
	in1 := weaver.Define[v1, string]("engine.decode.run.v1", weaver.MaxAttempts(2))
	in2 := weaver.Define[v2, string](in1.Name(), weaver.MaxAttempts(2))

	scene(t, "an input blocks the task and costs no attempt", func(w *world) {
		e := w.start(w.store, weaver.Config{Handlers: []weaver.Handler{in2.Handler(func(context.Context, v2) (string, error) {
			w.Error("the handler ran")
			return "", nil
		})}})
		h := enqueue(w, in1, v1{"ann"})
		wantError(w, blocked(w, h), nil, "does not decode", "v2")
		got := w.get(h.ID())
		equal(w, "kind", got.Error.Kind, task.KindDecode)
		equal(w, "attempts that count", got.AttemptCount, 0)
		w.wantOutcomes(h.ID(), task.OutcomeDecodeFailed)
		w.must(e.stop())

		// The program was mended.
		w.run(in1.Handler(func(_ context.Context, in v1) (string, error) { return in.Name, nil }))
		w.must(w.client.Unblock(w.Context(), h.ID(), nil))
		equal(w, "output", result(w, h), "ann")
	})

	scene(t, "a recorded step value blocks the task and is never run again", func(w *world) {
		ran := 0
		fetch := func(ctx context.Context) (string, error) {
			u, err := weaver.Step(ctx, "fetch", func(context.Context) (v1, error) { ran++; return v1{"ann"}, nil })
			return u.Name, err
		}
		e := w.start(w.store, weaver.Config{Handlers: []weaver.Handler{in1.Handler(func(ctx context.Context, _ v1) (string, error) {
			if _, err := fetch(ctx); err != nil {
				return "", err
			}
			return "", weaver.RetryAfter(time.Hour, errors.New("later"))
		})}})
		h := enqueue(w, in1, v1{})
		synctest.Wait()
		w.must(e.stop())

		e = w.start(w.store, weaver.Config{Handlers: []weaver.Handler{in1.Handler(func(ctx context.Context, _ v1) (string, error) {
			_, err := weaver.Step(ctx, "fetch", func(context.Context) (v2, error) {
				w.Error("the recorded step ran again")
				return v2{}, nil
			})
			if err == nil {
				w.Error("no error for a value of another shape")
			}
			return "swallowed", nil
		})}})
		time.Sleep(2 * time.Hour)
		wantError(w, blocked(w, h), nil, `step "fetch"`, "no longer decodes", "new name", "bring the old type back")
		got := w.get(h.ID())
		equal(w, "kind", got.Error.Kind, task.KindDecode)
		equal(w, "step", got.Error.Step, "fetch")
		w.must(e.stop())

		w.run(in1.Handler(func(ctx context.Context, _ v1) (string, error) { return fetch(ctx) }))
		w.must(w.client.Unblock(w.Context(), h.ID(), nil))
		equal(w, "output with the old type", result(w, h), "ann")
		equal(w, "runs of the step", ran, 1)
	})
}

func TestVerifySuccess(t *testing.T) {
	typ := weaver.Define[string, order]("engine.verify.run.v1", weaver.MaxAttempts(3))
	scene(t, "is not asked about a suspended attempt", func(w *world) {
		var verified []int
		w.run(typ.Handler(func(ctx context.Context, _ string) (order, error) {
			if weaver.Sleep(ctx, "nap", time.Hour) != nil {
				return order{ID: 1}, nil // swallowed
			}
			return order{ID: 2}, nil
		}, weaver.VerifySuccess(func(_ context.Context, o order) error { verified = append(verified, o.ID); return nil })))
		equal(w, "output", result(w, enqueue(w, typ, "")).ID, 2)
		equal(w, "verified", fmt.Sprint(verified), "[2]")
	})
	scene(t, "turns a success into a failure, which is decided", func(w *world) {
		attempts := 0
		w.run(typ.Handler(func(context.Context, string) (order, error) {
			attempts++
			return order{ID: attempts}, nil
		}, weaver.VerifySuccess(func(_ context.Context, o order) error {
			if o.ID < 3 {
				return fmt.Errorf("order %d is not settled", o.ID)
			}
			return nil
		})))
		h := enqueue(w, typ, "")
		equal(w, "output", result(w, h).ID, 3)
		w.wantOutcomes(h.ID(), task.OutcomeFailure, task.OutcomeFailure, task.OutcomeSuccess)
		first := w.history(h.ID()).Attempts[0].Error
		equal(w, "the first error", first.Message, "verify the output: order 1 is not settled")
	})
}

// pointed and valued check themselves by either kind of receiver.
type pointed struct{ N int }

func (p *pointed) Validate() error { return mustBePositive(p.N) }

type valued struct{ N int }

func (v valued) Validate() error { return mustBePositive(v.N) }

func mustBePositive(n int) error {
	if n <= 0 {
		return fmt.Errorf("N is %d", n)
	}
	return nil
}

func TestValidateWithAnyReceiver(t *testing.T) {
	inWorld(t, func(w *world) {
		checkValidate(w, "pointed", pointed{}, pointed{1})
		checkValidate(w, "pointer", &pointed{}, &pointed{1})
		checkValidate(w, "valued", valued{}, valued{1})
		checkValidate(w, "valuer", &valued{}, &valued{1})
		checkValidate[any](w, "iface", valued{}, valued{1})
	})
}

// checkValidate sends a bad and a good value both ways.
func checkValidate[T any](w *world, name string, bad, good T) {
	w.Helper()
	in := weaver.Define[T, int]("engine.validate." + name + ".v1")
	_, err := in.Enqueue(w.Context(), w.client, bad)
	wantError(w, err, weaver.ErrInvalidInput, in.Name(), "N is 0")
	enqueue(w, in, good)

	out := weaver.Define[int, T]("engine.validate." + name + "_out.v1")
	e := w.start(w.store, weaver.Config{Handlers: []weaver.Handler{out.Handler(func(_ context.Context, n int) (T, error) {
		if n == 0 {
			return bad, nil
		}
		return good, nil
	})}})
	te := failure(w, enqueue(w, out, 0))
	equal(w, "kind for "+name, te.Kind, task.KindValidation)
	result(w, enqueue(w, out, 1))
	w.must(e.stop())
}
