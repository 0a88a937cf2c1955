package weaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

func TestMisuseInHandlersFailsTheTask(t *testing.T) {
	typ := weaver.Define[string, string]("invalid.handler.run.v1")
	nothing := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		handler  func(ctx context.Context) error
		sentinel error
		words    []string
	}{
		"a step name used twice": {func(ctx context.Context) error {
			if err := weaver.Do(ctx, "save", nothing); err != nil {
				return err
			}
			return weaver.Do(ctx, "save", nothing)
		}, weaver.ErrDuplicateStep, []string{`step "save"`, "must be unique"}},
		"a sleep with a step's name": {func(ctx context.Context) error {
			if err := weaver.Do(ctx, "pause", nothing); err != nil {
				return err
			}
			return weaver.Sleep(ctx, "pause", time.Hour)
		}, weaver.ErrDuplicateStep, []string{`step "pause"`}},
		"a nested step": {func(ctx context.Context) error {
			return weaver.Do(ctx, "outer", func(ctx context.Context) error { return weaver.Do(ctx, "inner", nothing) })
		}, weaver.ErrNestedStep, []string{`step "inner" inside step "outer"`, "return from the outer one first"}},
		"a nested sleep": {func(ctx context.Context) error {
			return weaver.Do(ctx, "outer", func(ctx context.Context) error { return weaver.Sleep(ctx, "inner", time.Hour) })
		}, weaver.ErrNestedStep, []string{`step "inner" inside step "outer"`}},
		"a foreign context": {func(context.Context) error {
			return weaver.Do(context.Background(), "save", nothing)
		}, weaver.ErrNoTask, []string{`step "save"`, "pass the context that the handler was given"}},
		"a foreign context for Sleep": {func(context.Context) error {
			return weaver.Sleep(context.Background(), "pause", time.Hour)
		}, weaver.ErrNoTask, []string{`sleep "pause"`}},
		"a foreign context for Start": {func(context.Context) error {
			_, err := weaver.Start(context.Background(), "mail", typ, "")
			return err
		}, weaver.ErrNoTask, []string{`start "mail"`}},
		"a foreign context for Progress": {func(context.Context) error {
			return weaver.Progress(context.Background(), 1, 2)
		}, weaver.ErrNoTask, nil},
		"a step without a name": {func(ctx context.Context) error { return weaver.Do(ctx, "", nothing) }, nil, []string{"a step needs a name"}},
		"a step name too long":  {func(ctx context.Context) error { return weaver.Do(ctx, strings.Repeat("n", 256), nothing) }, nil, []string{"256 bytes", "255"}},
		"a step name with NUL":  {func(ctx context.Context) error { return weaver.Do(ctx, "a\x00b", nothing) }, nil, []string{"NUL"}},
		"a value that is no JSON": {func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "open", func(context.Context) (chan int, error) { return make(chan int), nil })
			return err
		}, nil, []string{`step "open": the value cannot be stored`, "chan int"}},
		"a started task that is invalid": {func(ctx context.Context) error {
			_, err := weaver.Start(ctx, "charge", weaver.Define[order, order]("invalid.handler.charge.v1"), order{Total: -1})
			return err
		}, weaver.ErrInvalidInput, []string{`start "charge"`, "Total is -1"}},
		"InStepTx outside of StepTx": {func(ctx context.Context) error {
			_, err := typ.Enqueue(ctx, weaver.InStepTx(ctx), "")
			return err
		}, weaver.ErrNoTask, []string{"InStepTx outside a StepTx"}},
		"an output of a need that is none": {func(ctx context.Context) error {
			_, err := typ.Output(ctx, "extract")
			return weaver.Permanent(err)
		}, weaver.ErrNoSuchNeed, []string{`"extract"`, "it needs []"}},
	} {
		subtest(t, name, func(fx *fixture) {
			var got error
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				got = c.handler(ctx)
				return "", got
			}))
			te := failure(fx, enqueue(fx, typ, ""))
			wantError(fx, got, c.sentinel, c.words...)
			wantError(fx, te, nil, c.words...)
			equal(fx, "attempts", te.Attempts, 1)
			equal(fx, "state", te.State, weaver.StateFailed)
		})
	}

	subtest(t, "is final for steps on record, too", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			recorded := func() error { return weaver.Do(ctx, "recorded", nothing) }
			if weaver.Current(ctx).AttemptNo == 1 {
				return "", errors.Join(recorded(), errors.New("again"))
			}
			mistake := errors.Join(weaver.Do(ctx, "twice", nothing), weaver.Do(ctx, "twice", nothing))
			wantError(fx, mistake, weaver.ErrDuplicateStep)
			wantError(fx, recorded(), weaver.ErrDuplicateStep, `"twice"`)
			return "swallowed", nil
		}))
		wantError(fx, failure(fx, enqueue(fx, typ, "")), nil, `"twice"`)
	})

	subtest(t, "a goroutine that outlives its handler", func(fx *fixture) {
		returned := make(chan struct{})
		late := make(chan error, 4)
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			go func() {
				<-returned
				late <- weaver.Do(ctx, "late", func(context.Context) error { fx.Error("the late step ran"); return nil })
				late <- weaver.Sleep(ctx, "late sleep", time.Hour)
				_, err := weaver.Start(ctx, "late start", typ, "")
				late <- err
				late <- weaver.Progress(ctx, 1, 2)
			}()
			return "done", nil
		}))
		h := enqueue(fx, typ, "")
		equal(fx, "output", result(fx, h), "done")
		close(returned)
		for range 4 {
			wantError(fx, <-late, weaver.ErrAttemptOver, "outlived its handler", "wait for it before returning")
		}
		fx.wantState(h.ID(), weaver.StateSucceeded)
	})

	subtest(t, "a step that ends after its handler is not recorded", func(fx *fixture) {
		returned := make(chan struct{})
		late := make(chan error, 1)
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			go func() {
				late <- weaver.Do(ctx, "slow", func(context.Context) error { <-returned; return nil })
			}()
			time.Sleep(time.Second)
			return "done", nil
		}))
		h := enqueue(fx, typ, "")
		result(fx, h)
		close(returned)
		wantError(fx, <-late, weaver.ErrAttemptOver)
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
	})
}
