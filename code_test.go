package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/decide"
	"github.com/goweaver/weaver/task"
)

// A handler attaches a code to its failure, by which a Decider, and readers of
// the task, can distinguish it from others without reading its message.
func TestErrorCodes(t *testing.T) {
	typ := weaver.Define[string, string]("engine.code.run.v1", weaver.Backoff(time.Second))
	refused := errors.New("card refused")
	byCode := decide.Chain(decide.Func(func(in decide.Input) decide.Decision {
		switch in.Error.Code {
		case "card_refused":
			return decide.Decision{Kind: task.DecideMarkDead, Reason: task.Reason{Policy: "cards", Text: "a refused card stays refused"}}
		case "fraud":
			return decide.Decision{Kind: task.DecideBlock, Reason: task.Reason{Policy: "cards", Text: "a person looks at fraud"}}
		}
		return decide.Decision{}
	}))
	for how, c := range map[string]struct {
		handler func(ctx context.Context) error
		code    string
		state   weaver.State
	}{
		"of the handler": {func(context.Context) error { return weaver.WithCode("card_refused", refused) }, "card_refused", weaver.StateFailed},
		"wrapped":        {func(context.Context) error { return fmt.Errorf("charge: %w", weaver.WithCode("fraud", refused)) }, "fraud", weaver.StateBlocked},
		"with a verdict": {func(context.Context) error { return weaver.Permanent(weaver.WithCode("other", refused)) }, "other", weaver.StateFailed},
		"of a step": {func(ctx context.Context) error {
			return weaver.Do(ctx, "charge", func(context.Context) error { return weaver.WithCode("card_refused", refused) })
		}, "card_refused", weaver.StateFailed},
		"of a recorded error, in a later attempt": {func(ctx context.Context) error {
			err := weaver.Do(ctx, "charge", func(context.Context) error { return weaver.WithCode("fraud", refused) }, weaver.RecordError())
			if weaver.Current(ctx).AttemptNo == 1 {
				return errors.New("something else")
			}
			return err
		}, "fraud", weaver.StateBlocked},
		"of the outer one of two": {func(context.Context) error {
			return weaver.WithCode("outer", weaver.Permanent(weaver.WithCode("inner", refused)))
		}, "outer", weaver.StateFailed},
		"none": {func(context.Context) error { return weaver.Permanent(refused) }, "", weaver.StateFailed},
		"too long": {func(context.Context) error {
			return weaver.Permanent(weaver.WithCode(strings.Repeat("x", 300)+"\x00", refused))
		}, strings.Repeat("x", 255), weaver.StateFailed},
	} {
		subtest(t, how, func(fx *fixture) {
			fx.runConfig(fx.store, weaver.Config{Decider: byCode, Handlers: []weaver.Handler{
				typ.Handler(func(ctx context.Context, _ string) (string, error) { return "", c.handler(ctx) }),
			}})
			h := enqueue(fx, typ, "")
			_, err := h.Wait(fx.Context())
			got := fx.get(h.ID())
			equal(fx, "state", got.State, c.state)
			equal(fx, "the recorded code", got.Error.Code, c.code)
			if te, ok := errors.AsType[*weaver.TaskError](err); ok {
				equal(fx, "the code that Wait returns", te.Code, c.code)
			}
			if !strings.Contains(got.Error.Message, "card refused") {
				fx.Errorf("the message is %q", got.Error.Message)
			}
			for _, s := range fx.history(h.ID()).Steps {
				equal(fx, "the code of step "+s.Name, s.Error.Code, c.code)
			}
		})
	}
	equal(t, "the code of an error", weaver.ErrorCode(fmt.Errorf("x: %w", weaver.WithCode("a", refused))), "a")
	equal(t, "the code of one without", weaver.ErrorCode(refused), "")
	equal(t, "no error with a code", weaver.WithCode("a", nil), nil)
}
