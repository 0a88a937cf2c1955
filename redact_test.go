package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/redact"
	"github.com/goweaver/weaver/task/event"
)

type cardPayment struct {
	Card   string `json:"card" weaver:"redact"`
	Amount int    `json:"amount"`
	Note   string `json:"note"`
}

type slip struct {
	Lines []cardPayment     `json:"lines"`
	ByKey map[string]string `json:"by_key"`
}

const (
	cardNumber = "4929-1234-5678"
	pinNumber  = "pin-987654"
	password   = "hunter-2-x"
)

// pay uses its secrets in every way open to a handler.
func pay(ctx context.Context, in cardPayment) (slip, error) {
	var out slip
	if in.Card != cardNumber || in.Note != "to "+password {
		return out, fmt.Errorf("the handler got %+v", in)
	}
	log := weaver.Log(ctx).With("password", password)
	log.Info("pays with "+cardNumber, "card", in.Card, "payment", in, "error", errors.New("no "+cardNumber))
	if err := weaver.Progress(ctx, 1, 2, "card "+cardNumber); err != nil {
		return out, err
	}
	if err := weaver.Emit(ctx, "out", "card "+cardNumber); err != nil {
		return out, err
	}
	if err := weaver.Emit(ctx, "out", in); err != nil {
		return out, err
	}
	if err := weaver.Checkpoint(ctx, "c", map[string]string{"password": password}); err != nil {
		return out, err
	}
	type pin struct {
		Pin string `json:"pin" weaver:"redact"`
	}
	got, err := weaver.Step(ctx, "pin", func(context.Context) (*pin, error) { return &pin{pinNumber}, nil })
	if err != nil || got.Pin != pinNumber {
		return out, fmt.Errorf("the step gave %+v, %w", got, err)
	}
	_, err = weaver.Step(ctx, "refused", func(context.Context) (int, error) {
		return 0, errors.New(cardNumber + " with " + pinNumber)
	}, weaver.RecordError())
	if err == nil {
		return out, errors.New("the step succeeded")
	}
	if weaver.Current(ctx).AttemptNo == 1 {
		return out, fmt.Errorf("card %s, %s: %w", cardNumber, pinNumber, err)
	}
	out.Lines, out.ByKey = []cardPayment{in}, map[string]string{"password": password}
	return out, nil
}

// Masked data is complete for the handler and for typed results only.
func TestRedact(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[cardPayment, slip]("acme.privacy.pay.v1", weaver.Backoff(time.Second))
	keys := []string{"password", "note"}
	subtest(t, "masks all but handlers and typed results", func(fx *fixture) {
		var seen []event.Event
		eng := fx.start(fx.store, weaver.Config{
			Handlers: []weaver.Handler{typ.Handler(pay)}, Plugins: persist, Redact: keys,
			Sink: event.SinkFunc(func(ev event.Event) { seen = append(seen, ev) }),
		})
		h, err := typ.Enqueue(fx.Context(), eng, cardPayment{Card: cardNumber, Amount: 5, Note: "to " + password})
		fx.must(err)
		out, err := h.Wait(fx.Context())
		fx.must(err)
		if len(out.Lines) != 1 || out.Lines[0].Card != cardNumber || out.ByKey["password"] != password {
			fx.Errorf("Wait = %+v", out)
		}
		fx.must(eng.stop())
		clean := func(what string, v any) {
			fx.Helper()
			b, err := json.Marshal(v)
			fx.must(err)
			for _, secret := range []string{cardNumber, pinNumber, password} {
				if strings.Contains(string(b), secret) {
					fx.Errorf("%s has %s: %s", what, secret, b)
				}
			}
		}
		types := map[string]bool{}
		for _, ev := range seen {
			types[ev.Type()] = true
			clean("an event of the sink "+ev.Type(), ev)
		}
		if len(types) < 9 {
			fx.Errorf("the sink saw only %v", types)
		}
		n := 0
		for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: h.ID()}) {
			fx.must(err)
			n++
			clean("an event of Subscribe "+ev.Type(), ev)
		}
		if n < 10 {
			fx.Errorf("Subscribe gave %d events", n)
		}
		rows, err := fx.store.Events(fx.Context(), weaver.DefaultNamespace, h.ID(), 0, 0)
		fx.must(err)
		clean("the stored events", rows)
		clean("the log", fx.log.buf.String())
		hist := fx.history(h.ID())
		clean("the errors", hist.Attempts)
		clean("the progress", hist.Task.Progress)
		if !strings.Contains(string(hist.Task.Input), cardNumber) {
			fx.Errorf("the stored input is %s: it is to be whole", hist.Task.Input)
		}
		redact.History(&hist)
		clean("what readers show", hist)
		if !strings.Contains(string(hist.Task.Output), `"amount":5`) {
			fx.Errorf("too much of the output was masked: %s", hist.Task.Output)
		}
	})
}

// The input of a rerun stays masked, and so does the data that another type derived from it.
func TestRedactRerun(t *testing.T) {
	t.Parallel()
	subtest(t, "keeps the rules", func(fx *fixture) {
		typ := weaver.Define[cardPayment, cardPayment]("acme.privacy.repeat.v1")
		fx.run(typ.Handler(func(_ context.Context, in cardPayment) (cardPayment, error) { return in, nil }))
		h := enqueue(fx, typ, cardPayment{Card: cardNumber})
		_ = result(fx, h)
		again, err := fx.client.Rerun(fx.Context(), h.ID())
		fx.must(err)
		info := fx.get(again.ID)
		if redact.Task(&info); strings.Contains(string(info.Input), cardNumber) {
			fx.Errorf("the input of the rerun reads as %s", info.Input)
		}
	})
}

func TestRedactMistakes(t *testing.T) {
	t.Parallel()
	func() {
		defer func() {
			if p := fmt.Sprint(recover()); !strings.Contains(p, `want weaver:"redact"`) || !strings.Contains(p, "field A") {
				t.Errorf("Define of a type with a wrong tag panics with %q", p)
			}
		}()
		_ = weaver.Define[struct {
			A string `weaver:"hide"`
		}, weaver.None]("acme.privacy.wrong.v1")
	}()
	subtest(t, "are named", func(fx *fixture) {
		_, err := weaver.NewClient(fx.store, weaver.ClientConfig{Redact: []string{"a/b", "[", "ok"}})
		wantError(fx, err, weaver.ErrConfig, "a path begins with a slash", "is not a pattern")
		_, err = weaver.New(fx.store, weaver.Config{Redact: []string{""}})
		wantError(fx, err, weaver.ErrConfig, "want a key")
		typ := weaver.Define[string, string]("acme.privacy.step.v1")
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			type wrong struct {
				A string `weaver:"hide"`
			}
			_, err := weaver.Step(ctx, "s", func(context.Context) (wrong, error) { return wrong{}, nil })
			return "", err
		}))
		te := failure(fx, enqueue(fx, typ, ""))
		if !strings.Contains(te.Message, "field A") {
			fx.Errorf("the task failed with %q", te.Message)
		}
	})
}
