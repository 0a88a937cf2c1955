package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/blob"
	"github.com/goweaver/weaver/internal/redact"
)

// An input in the bucket has another hash in its row when it is sealed.
func TestRepairOfASealedInput(t *testing.T) {
	for name, size := range map[string]int{"in its row": 10, "in the bucket": weaver.DefaultInlineLimit} {
		subtest(t, name, func(fx *fixture) {
			tags := []string{strings.Repeat("x", size)}
			e := fx.runConfig(fx.store, weaver.Config{
				Bucket: blob.NewMemory(), Codec: aesCodec(fx, aesKeys(fx, "k1")...),
				Handlers: []weaver.Handler{repairType.Handler(func(_ context.Context, c repairCharge) (int, error) { return len(c.Tags[0]), nil }, weaver.Repair(toInt))},
			})
			h, err := wrongCharge.Enqueue(fx.Context(), e, map[string]any{"cents": "7", "tags": tags})
			fx.must(err)
			out, err := h.Wait(fx.Context())
			fx.must(err)
			equal(fx, "the output", out, size)
		})
	}
}

// shows fails if readers of a task see a text.
func (fx *fixture) shows(what string, id weaver.TaskID, secret string) {
	fx.Helper()
	h := fx.history(id)
	redact.History(&h)
	shown, err := json.Marshal(h)
	fx.must(err)
	events := 0
	for ev, err := range fx.client.Subscribe(fx.Context(), weaver.EventFilter{TaskID: id, NoWait: true}) {
		fx.must(err)
		b, err := json.Marshal(ev)
		fx.must(err)
		shown = append(append(shown, '\n'), b...)
		events++
	}
	for line := range strings.Lines(string(shown)) {
		if strings.Contains(line, secret) {
			fx.Errorf("%s shows %s: %s", what, secret, line)
		}
	}
	if events == 0 {
		fx.Errorf("%s has no events", what)
	}
}

// An engine's masks also apply to tasks created by its handlers.
func TestRedactOfTasksThatHandlersMake(t *testing.T) {
	child := weaver.Define[map[string]string, int]("acme.privacy.child.v1")
	parent := weaver.Define[string, int]("acme.privacy.parent.v1")
	in := map[string]string{"password": password}
	makes := map[string]func(ctx context.Context) error{
		"call":  func(ctx context.Context) error { _, err := weaver.Call(ctx, "c", child, in); return err },
		"start": func(ctx context.Context) error { _, err := weaver.Start(ctx, "c", child, in); return err },
		"decompose": func(ctx context.Context) error {
			if all, err := weaver.Children(ctx); err != nil || len(all) > 0 {
				return err
			}
			return weaver.Decompose(weaver.JoinRerun, child.With(in))
		},
		"job": func(ctx context.Context) error {
			j := weaver.NewJob("inner")
			j.Add("c", child.With(in))
			_, err := weaver.StartJob(ctx, "c", j)
			return err
		},
	}
	for name, make := range makes {
		subtest(t, name, func(fx *fixture) {
			fx.runConfig(fx.store, weaver.Config{Redact: []string{"password"}, Handlers: []weaver.Handler{
				child.Handler(func(_ context.Context, got map[string]string) (int, error) { return len(got["password"]), nil }),
				parent.Handler(func(ctx context.Context, _ string) (int, error) { return 1, make(ctx) }),
			}})
			result(fx, enqueue(fx, parent, ""))
			time.Sleep(time.Minute)
			made := 0
			list, _, err := fx.client.List(fx.Context(), weaver.Filter{Types: []string{child.Name()}})
			fx.must(err)
			for _, got := range list {
				made++
				equal(fx, "the output", string(got.Output), "10")
				fx.shows("the child", got.ID, password)
			}
			equal(fx, "children", made, 1)
		})
	}
}

// A repair has the input of its task, and the same masks.
func TestRedactOfRepairs(t *testing.T) {
	typ := weaver.Define[cardPayment, int]("acme.privacy.repaired.v1")
	wrong := weaver.Define[map[string]any, int]("acme.privacy.repaired.v1")
	subtest(t, "masks what its task masks", func(fx *fixture) {
		tries := 0
		fx.runConfig(fx.store, weaver.Config{Plugins: persist, Redact: []string{"card"}, Handlers: []weaver.Handler{
			typ.Handler(func(_ context.Context, p cardPayment) (int, error) { return p.Amount, nil }, weaver.Repair(func(_ context.Context, r weaver.RepairRequest) (json.RawMessage, error) {
				if tries++; tries == 1 {
					return nil, errors.New("no amount for " + cardNumber)
				}
				if !strings.Contains(string(r.Raw), cardNumber) {
					return nil, weaver.Permanent(errors.New("the function does not get the whole input"))
				}
				return json.Marshal(cardPayment{Card: cardNumber, Amount: 5})
			})),
		}})
		tagged, err := typ.Enqueue(fx.Context(), fx.client, cardPayment{Card: cardNumber, Amount: 3})
		fx.must(err)
		equal(fx, "without a repair", result(fx, tagged), 3)
		h, err := wrong.Enqueue(fx.Context(), fx.client, map[string]any{"card": cardNumber, "amount": "five"})
		fx.must(err)
		equal(fx, "the output", result(fx, h), 5)
		repairs := fx.repairsOf(h.ID())
		equal(fx, "repairs", len(repairs), 1)
		fx.shows("the repair", repairs[0].ID, cardNumber)
	})
}
