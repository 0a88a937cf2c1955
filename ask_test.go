package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestAsk(t *testing.T) {
	typ := weaver.Define[string, string]("engine.ask.run.v1", weaver.NoRetry())
	retried := weaver.Define[string, string]("engine.ask.again.v1")
	type approval struct{ By string }
	const warning = "UnblockInput returns nothing: the last input was given for an Ask"
	unblock := func(fx *fixture, h *weaver.Handle[string], input any, opts ...weaver.OperateOption) {
		fx.Helper()
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), input, opts...))
	}
	// asks blocks once per approval.
	asks := func(ctx context.Context, names ...string) (all string, err error) {
		for _, name := range names {
			got, err := weaver.Ask[approval](ctx, name, "who pays for "+name+"?")
			if err != nil {
				return "", err
			}
			all += got.By + " "
		}
		return all, nil
	}

	subtest(t, "two approvals are two questions, and a replay has their answers", func(fx *fixture) {
		again := true
		fx.run(retried.Handler(func(ctx context.Context, _ string) (string, error) {
			out, err := asks(ctx, "flight", "hotel")
			if err == nil && again {
				again = false
				err = errors.New("once more, from memory")
			}
			return out, err
		}))
		h := enqueue(fx, retried, "")
		wantError(fx, blocked(fx, h), nil, "flight", "who pays for flight?")
		equal(fx, "the question", fx.get(h.ID()).Error.Ask, "flight")
		unblock(fx, h, approval{"ann"})
		wantError(fx, blocked(fx, h), nil, "hotel", "who pays for hotel?")
		equal(fx, "the question", fx.get(h.ID()).Error.Ask, "hotel")
		equal(fx, "the input was given for", fx.get(h.ID()).UnblockFor, "flight")
		unblock(fx, h, approval{"bob"})
		equal(fx, "output", result(fx, h), "ann bob ")
		var steps []string
		for _, s := range fx.history(h.ID()).Steps {
			steps = append(steps, fmt.Sprint(s.Index, s.Name, s.Kind, s.State, string(s.Value)))
		}
		equal(fx, "steps", fmt.Sprint(steps), `[0flightaskcompleted{"By":"ann"} 1hotelaskcompleted{"By":"bob"}]`)
		fx.wantOutcomes(h.ID(), task.OutcomeBlocked, task.OutcomeBlocked, task.OutcomeFailure, task.OutcomeSuccess)
	})

	subtest(t, "costs no attempt", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return asks(ctx, "a", "b", "c") }))
		h := enqueue(fx, typ, "")
		for _, by := range []string{"ann", "bob", "eve"} {
			blocks(fx, h)
			unblock(fx, h, approval{by})
		}
		equal(fx, "output", result(fx, h), "ann bob eve ")
		equal(fx, "attempts that count", fx.get(h.ID()).AttemptCount, 1)
	})

	subtest(t, "asks again when the unblock has no input, or one that does not decode", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return asks(ctx, "flight", "hotel") }))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		unblock(fx, h, nil)
		wantError(fx, blocked(fx, h), nil, "who pays for flight?")
		for _, input := range []any{"yes", 7, []string{}} {
			err := fx.client.Unblock(fx.Context(), h.ID(), input)
			wantError(fx, err, weaver.ErrInvalidInput, `the question "flight" takes {"By":"string"}: want an object`)
			wantError(fx, fx.client.Unblock(fx.Context(), h.ID(), input, weaver.ForAsk("flight")), weaver.ErrInvalidInput)
			wantError(fx, fx.client.Unblock(fx.Context(), h.ID(), input, weaver.ForAsk("hotel")), store.ErrChanged)
		}
		wantError(fx, blocked(fx, h), nil, "who pays for flight?")
		fx.wantOutcomes(h.ID(), task.OutcomeBlocked, task.OutcomeBlocked)
		unblock(fx, h, json.RawMessage("null"))
		wantError(fx, blocked(fx, h), nil, "who pays for flight?")
		wantError(fx, fx.client.Unblock(fx.Context(), h.ID(), map[string]string{"Who": "ann"}), weaver.ErrInvalidInput, `there is no field "Who"`)
		unblock(fx, h, approval{"ann"})
		wantError(fx, blocked(fx, h), nil, "who pays for hotel?")
		unblock(fx, h, nil) // the answer to the first question does not answer the second
		wantError(fx, blocked(fx, h), nil, "who pays for hotel?")
		unblock(fx, h, approval{"bob"})
		equal(fx, "output", result(fx, h), "ann bob ")
	})

	subtest(t, "a type that decodes itself judges its answer in the handler", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			at, err := weaver.Ask[map[int]string](ctx, "who", "who?")
			return at[1], err
		}))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		unblock(fx, h, "yes")
		wantError(fx, blocked(fx, h), nil, "who", "does not decode", "who?")
		unblock(fx, h, map[string]string{"1": "ann"})
		equal(fx, "output", result(fx, h), "ann")
	})

	subtest(t, "keeps its answer through attempts that do not get there", func(fx *fixture) {
		attempts := 0
		fx.run(retried.Handler(func(ctx context.Context, _ string) (string, error) {
			if attempts++; attempts == 2 || attempts == 3 {
				return "", errors.New("the mail server is down")
			}
			return asks(ctx, "flight")
		}))
		h := enqueue(fx, retried, "")
		blocks(fx, h)
		unblock(fx, h, approval{"ann"})
		equal(fx, "output", result(fx, h), "ann ")
		equal(fx, "attempts", attempts, 4)
	})

	subtest(t, "waits for the steps beside it, ends the attempt, and no handler can overrule that", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			beside := make(chan error, 1)
			go func() {
				beside <- weaver.Do(ctx, "beside", func(ctx context.Context) error {
					time.Sleep(time.Minute)
					return ctx.Err()
				})
			}()
			if weaver.Current(ctx).AttemptNo == 1 {
				time.Sleep(time.Second)
			}
			out, err := asks(ctx, "flight")
			if err != nil {
				if !weaver.Suspended(err) || !weaver.Suspended(context.Cause(ctx)) {
					fx.Errorf("Ask returned %v, and the context ended with %v: undo code would run", err, context.Cause(ctx))
				}
				wantError(fx, weaver.Do(ctx, "later", func(context.Context) error { fx.Error("a step began after the Ask"); return nil }), weaver.ErrSuspended)
				out = "swallowed"
			}
			fx.must(<-beside)
			return out, nil
		}))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		unblock(fx, h, approval{"ann"})
		equal(fx, "output", result(fx, h), "ann ")
	})

	subtest(t, "two at once are asked one after the other", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			errs := make(chan error, 2)
			for _, name := range []string{"flight", "hotel"} {
				go func() {
					got, err := weaver.Ask[approval](ctx, name, "")
					if err == nil && got.By != "for the "+name {
						fx.Errorf("%s was answered by %q", name, got.By)
					}
					errs <- err
				}()
			}
			return "done", errors.Join(<-errs, <-errs)
		}))
		h := enqueue(fx, typ, "")
		for range 2 {
			blocks(fx, h)
			unblock(fx, h, approval{"for the " + fx.get(h.ID()).Error.Ask})
		}
		equal(fx, "output", result(fx, h), "done")
	})

	subtest(t, "keeps an answer that the next attempt comes to only after another question", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			names := []string{"flight", "hotel"}
			if weaver.Current(ctx).AttemptNo > 1 {
				slices.Reverse(names)
			}
			for _, name := range names {
				if got, err := asks(ctx, name); err != nil {
					return "", err
				} else if got != "for the "+name+" " {
					fx.Errorf("%s was answered by %q", name, got)
				}
			}
			return "done", nil
		}))
		h := enqueue(fx, typ, "")
		for _, name := range []string{"flight", "hotel"} {
			blocks(fx, h)
			equal(fx, "the question", fx.get(h.ID()).Error.Ask, name)
			unblock(fx, h, approval{"for the " + name})
		}
		equal(fx, "output", result(fx, h), "done")
	})

	subtest(t, "leaves the answer of a Blocked to UnblockInput, and keeps its own from it", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, err := asks(ctx, "flight"); err != nil {
				return "", err
			}
			plain, ok, err := weaver.UnblockInput[approval](ctx)
			if err != nil {
				return "", err
			}
			if !ok {
				return "", weaver.Blocked("and the budget?")
			}
			more, err := asks(ctx, "hotel")
			return plain.By + " " + more, err
		}))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		unblock(fx, h, approval{"ann"})
		wantError(fx, blocked(fx, h), nil, "and the budget?")
		lines := fx.log.lines(fx, warning)
		if len(lines) != 1 || lines[0]["level"] != "WARN" || lines[0]["ask"] != "flight" || lines[0]["task_id"] != h.ID().String() {
			fx.Errorf("the log has %v, want a warning that names the Ask", lines)
		}
		unblock(fx, h, approval{"cfo"})
		wantError(fx, blocked(fx, h), nil, "who pays for hotel?") // not paid by the answer to Blocked
		unblock(fx, h, approval{"bob"})
		wantError(fx, blocked(fx, h), nil, "and the budget?") // its answer was not recorded
	})

	subtest(t, "can be answered by name: an answer that comes twice is none to the next question", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return asks(ctx, "flight", "hotel") }))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		unblock(fx, h, approval{"ann"}, weaver.ForAsk("flight"))
		blocks(fx, h)
		err := fx.client.Unblock(fx.Context(), h.ID(), approval{"ann"}, weaver.ForAsk("flight"))
		wantError(fx, err, store.ErrChanged, `"flight"`, `"hotel"`)
		fx.wantState(h.ID(), weaver.StateBlocked)
		wantError(fx, fx.client.Cancel(fx.Context(), h.ID(), weaver.ForAsk("hotel")), weaver.ErrInvalidOption, "ForAsk", "Unblock")
		unblock(fx, h, approval{"bob"}, weaver.ForAsk("hotel"))
		equal(fx, "output", result(fx, h), "ann bob ")
	})

	subtest(t, "can be cancelled", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return asks(ctx, "flight") }))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		equal(fx, "state", failure(fx, h).State, weaver.StateCancelled)
	})

	for name, c := range map[string]struct {
		run      func(ctx context.Context) error
		sentinel error
	}{
		"a name used twice": {func(ctx context.Context) error {
			return errors.Join(weaver.Do(ctx, "a", func(context.Context) error { return nil }), second(weaver.Ask[int](ctx, "a", "")))
		}, weaver.ErrDuplicateStep},
		"inside a step": {func(ctx context.Context) error {
			return weaver.Do(ctx, "a", func(ctx context.Context) error { return second(weaver.Ask[int](ctx, "b", "")) })
		}, weaver.ErrNestedStep},
		"a foreign context": {func(context.Context) error { return second(weaver.Ask[int](context.Background(), "a", "")) }, weaver.ErrNoTask},
	} {
		subtest(t, "fails the task: "+name, func(fx *fixture) {
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				err := c.run(ctx)
				wantError(fx, err, c.sentinel)
				return "", err
			}))
			fails(fx, enqueue(fx, typ, ""))
		})
	}
}

func second[T any](_ T, err error) error { return err }

// One input read in two places of an attempt may answer two questions.
func TestUnblockInputThatIsReadTwice(t *testing.T) {
	typ := weaver.Define[string, string]("engine.unblockinput.run.v1")
	subtest(t, "is warned about", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			for _, question := range []string{"flight?", "hotel?"} {
				if _, ok, err := weaver.UnblockInput[string](ctx); err != nil || !ok {
					return "", errors.Join(err, weaver.Blocked(question))
				}
			}
			return "both by one answer", nil
		}))
		h := enqueue(fx, typ, "")
		blocks(fx, h)
		const warning = "UnblockInput was called twice in an attempt: one input answers both"
		equal(fx, "warnings", len(fx.log.lines(fx, warning)), 0)
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), "yes"))
		equal(fx, "output", result(fx, h), "both by one answer")
		equal(fx, "warnings", len(fx.log.lines(fx, warning)), 1)
	})
}
