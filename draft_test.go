package weaver_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/goweaver/weaver"
)

type invoice struct {
	Amount float64
	Note   any
}

// Validate implements weaver's interface.
func (i invoice) Validate() error {
	if i.Amount <= 0 {
		return errors.New("the amount is not positive")
	}
	return nil
}

// A type known to the program applies to encoded input, too: its options and its input checks.
func TestDraftsOfEncodedInput(t *testing.T) {
	typ := weaver.Define[invoice, weaver.None]("acme.draft.invoice.v1", weaver.Queue("billing"), weaver.NoRetry(),
		weaver.Backoff(time.Minute), weaver.Timeout(time.Hour), weaver.SchemaVersion(3))
	handler := typ.Handler(func(context.Context, invoice) (weaver.None, error) { return weaver.None{}, nil })
	drafts := map[string]func(json.RawMessage, ...weaver.EnqueueOption) weaver.Draft{"the type's": typ.WithJSON, "the handler's": handler.Draft}
	inBubble(t, func(fx *fixture) {
		for whose, draft := range drafts {
			const raw = `{"Amount": 7, "Note": 12345678901234567890.10}`
			got, err := fx.client.EnqueueTasks(fx.Context(), draft(json.RawMessage(raw), weaver.Timeout(time.Second)))
			fx.must(err)
			info := fx.get(got[0].ID)
			equal(fx, whose+" input", string(info.Input), raw)
			equal(fx, whose+" queue", info.Queue, "billing")
			equal(fx, whose+" attempts", info.MaxAttempts, 1)
			equal(fx, whose+" backoff", info.Backoff, time.Minute)
			equal(fx, whose+" timeout", info.Timeout, time.Second)
			equal(fx, whose+" schema version", info.SchemaVersion, 3)
			for raw, want := range map[string]string{
				`{"Amount": 7, "Amuont": 8}`: `there is no field "Amuont" (did you mean "Amount"?)`,
				`{"Amount": "7"}`:            "Amount",
				`{"Amount": 0}`:              "the amount is not positive",
				`{"Amount": 7`:               "not JSON",
				`null`:                       "the amount is not positive",
			} {
				_, err := fx.client.EnqueueTasks(fx.Context(), draft(json.RawMessage(raw)))
				wantError(fx, err, weaver.ErrInvalidInput, typ.Name(), want)
			}
			_, err = fx.client.EnqueueTasks(fx.Context(), draft(json.RawMessage(raw), weaver.Priority(11)))
			wantError(fx, err, weaver.ErrInvalidOption, "Priority(11)")
		}
		equal(fx, "the queue of the handler's type", handler.Queue(), "billing")
	})
}
