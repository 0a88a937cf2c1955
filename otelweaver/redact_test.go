package otelweaver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goweaver/weaver"
)

// Text that Weaver masks in errors is also masked in spans.
func TestSpansMaskErrors(t *testing.T) {
	t.Parallel()
	type card struct {
		Number string `json:"number" weaver:"redact"`
	}
	const number = "4929-1234-5678"
	typ := weaver.Define[card, string]("acme.shop.card.v1", weaver.NoRetry())
	inBubble(t, func(fx *fixture) {
		eng := fx.with(typ.Handler(func(ctx context.Context, in card) (string, error) {
			return weaver.Step(ctx, "charge", func(context.Context) (string, error) { return "", fmt.Errorf("card %s is declined", in.Number) })
		}))
		h := enqueue(fx, fx.Context(), eng, typ, card{number})
		if _, err := h.Wait(fx.Context()); err == nil {
			fx.Fatal("the task succeeded")
		}
		spans, err := json.Marshal(fx.spans.GetSpans())
		if err != nil {
			fx.Fatal(err)
		}
		if text := string(spans); strings.Contains(text, number) || !strings.Contains(text, "card "+"[redacted]"+" is declined") {
			fx.Errorf("the spans are %s", text)
		}
	})
}
