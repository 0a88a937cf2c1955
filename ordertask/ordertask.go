// Package ordertask sends orders from handlers: a send is a step whose request goes through the
// outbox of package order, and whose settled result comes back into the handler.
//
// The handler leaves its worker while the order is under way. The order has the step's StepKey as
// its idempotency key, so that a task that runs again, on any worker, finds the same order. An
// order.Worker has to run somewhere on the same store.
//
// The package decides nothing about an order; package order does.
package ordertask

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/engine"
	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/internal/sealorder"
	"github.com/goweaver/weaver/order"
)

// lookAgain is the longest time that a task relies on the signal of a settlement.
const lookAgain = time.Hour

// Request is an order.OrderRequest or an order.WebhookRequest, whose idempotency key Send sets.
type Request struct {
	profile order.Profile
	body    func(key string) ([]byte, error)
}

// Order returns the request of an order. profile checks it; the zero one allows all instruments.
func Order(r order.OrderRequest, profile order.Orders) Request {
	return Request{profile, func(key string) ([]byte, error) {
		r.IdempotencyKey = key
		if r.RequestedAt.IsZero() {
			r.RequestedAt = time.Now()
		}
		return json.Marshal(r)
	}}
}

// Webhook returns the request of a webhook.
func Webhook(r order.WebhookRequest, profile order.Webhooks) Request {
	return Request{profile, func(key string) ([]byte, error) {
		r.IdempotencyKey = key
		return json.Marshal(r)
	}}
}

// FailedError is an order that was settled without success. A handler that returns it fails for
// good, with the reason as its code: another attempt would find the same order.
type FailedError struct {
	Result order.ExecResult
	// Unknown says that the partner may have executed the order.
	Unknown bool
}

// Error says which order failed, and why.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("the order %q failed: %s", e.Result.OrderID, e.Result.ReasonCode)
	for _, w := range e.Result.Warnings {
		text += ", " + w
	}
	return text
}

// Undo says how a settled success is undone when the task ends in any way but success: fn gets
// the result, and key for the partner's idempotency header. An order that was never sent is
// withdrawn instead. While an order is in doubt, the undo waits for the order's worker, which
// asks the partner.
func Undo(fn func(ctx context.Context, res order.ExecResult, key string) error) Option {
	return func(s *sending) { s.undo = fn }
}

// Option of a Send.
type Option func(*sending)

// sending is one Send.
type sending struct {
	name  string
	req   Request
	undo  func(context.Context, order.ExecResult, string) error
	store order.Store
	ns    string
}

// accepted is the value of the step that accepts the order.
type accepted struct {
	Key string `json:"idempotency_key"`
}

// settled is the value of the step that reads the result.
type settled struct {
	Over    bool              `json:"over"`
	OK      bool              `json:"ok"`
	Unknown bool              `json:"unknown,omitempty"`
	Result  *order.ExecResult `json:"result,omitempty"`
}

// Send sends a request as the step name, and returns the partner's result. Its steps are name,
// name/settled and name/result. Errors: *FailedError; *order.Invalid, for good; those of Step and
// Wait, which the handler returns.
func Send(ctx context.Context, name string, req Request, opts ...Option) (order.ExecResult, error) {
	if req.body == nil {
		return order.ExecResult{}, weaver.Permanent(fmt.Errorf("ordertask.Send %q: the request is empty: make it with Order or Webhook", name))
	}
	a, err := engine.From(ctx)
	if err != nil {
		return order.ExecResult{}, err
	}
	s := &sending{name: name, req: req, ns: a.Namespace()}
	for _, o := range opts {
		o(s)
	}
	var ok bool
	if s.store, ok = sealorder.Of(a.Store()); !ok {
		return order.ExecResult{}, weaver.Permanent(fmt.Errorf("ordertask.Send %q: this store keeps no orders", name))
	}
	var steps []weaver.StepOption
	if s.undo != nil {
		steps = append(steps, weaver.Undo(s.undoStep))
	}
	acc, err := weaver.Step(ctx, name, func(ctx context.Context) (accepted, error) { return s.accept(ctx, a) }, steps...)
	if err != nil {
		return order.ExecResult{}, err
	}
	signal := weaver.DefineSignal[orderrules.Wake](orderrules.SignalName(name))
	for i := 0; ; i++ {
		suffix := ""
		if i > 0 {
			suffix = fmt.Sprintf("#%d", i)
		}
		got, err := weaver.Step(ctx, name+"/result"+suffix, func(ctx context.Context) (settled, error) { return s.look(ctx, acc.Key) })
		switch {
		case err != nil:
			return order.ExecResult{}, err
		case got.Over && got.OK:
			return *got.Result, nil
		case got.Over:
			failed := &FailedError{Result: *got.Result, Unknown: got.Unknown}
			return failed.Result, weaver.Permanent(weaver.WithCode(string(failed.Result.ReasonCode), failed))
		}
		// A signal of an earlier round wakes too soon: the next look finds out.
		if _, _, err := signal.Wait(ctx, name+"/settled"+suffix, lookAgain); err != nil {
			return order.ExecResult{}, err
		}
	}
}

// Orders returns the orders of a client's store, for an order.Worker and the like. With a Codec,
// requests and results are sealed in the store. It returns false for a store without orders.
func Orders(c *weaver.Client) (order.Store, bool) { return sealorder.Of(c.OpenStore()) }

// key is the idempotency key of a step: its StepKey, hashed if that is too long.
func key(stepKey string) string {
	if len(stepKey) <= order.MaxKey {
		return stepKey
	}
	sum := sha256.Sum256([]byte(stepKey))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// accept stores the order. Crash behind it: the step runs again and finds the order.
func (s *sending) accept(ctx context.Context, a *engine.Attempt) (accepted, error) {
	k := key(weaver.Current(ctx).StepKey(s.name))
	body, err := s.req.body(k)
	if err != nil {
		return accepted{}, weaver.Permanent(err)
	}
	parsed, err := s.req.profile.Parse(body, time.Now())
	if err != nil {
		return accepted{}, weaver.Permanent(err)
	}
	n := parsed.New(s.req.profile)
	n.Task, n.Step = a.Task().ID, s.name
	got, err := s.store.AcceptOrders(ctx, s.ns, nil, n)
	if err != nil {
		return accepted{}, err
	}
	if errors.Is(got[0].Err, order.ErrConflict) {
		return accepted{}, weaver.Permanent(fmt.Errorf("the step %q was run before with another request: compute it in a step, or from the input alone: %w", s.name, got[0].Err))
	}
	return accepted{k}, got[0].Err
}

// look reads whether the order is settled.
func (s *sending) look(ctx context.Context, k string) (settled, error) {
	o, err := s.store.GetOrder(ctx, s.ns, k)
	if err != nil {
		if errors.Is(err, order.ErrNotFound) {
			err = weaver.Permanent(fmt.Errorf("the order of step %q was removed: %w", s.name, err))
		}
		return settled{}, err
	}
	if !o.Row.State.Final() {
		return settled{}, nil
	}
	got := settled{Over: true, OK: o.Entry.State == order.LedgerSucceeded, Unknown: o.Entry.Unknown, Result: new(order.ExecResult)}
	if len(o.Entry.Result) == 0 {
		*got.Result = *order.NoResult(&o.Row, order.ReasonConflict, o.Row.UpdatedAt)
		return got, nil
	}
	if err := json.Unmarshal(o.Entry.Result, got.Result); err != nil {
		return settled{}, fmt.Errorf("the result of the order of step %q: %w", s.name, err)
	}
	return got, nil
}

// undoStep undoes the order of a step that began.
func (s *sending) undoStep(ctx context.Context, u weaver.Undoing[accepted]) error {
	k := key(u.Key)
	ack, err := s.store.OperateOrder(ctx, s.ns, order.Withdraw{Audit: order.Audit{By: "task"}, Key: k})
	switch {
	case errors.Is(err, order.ErrNotFound):
		return nil // it was not accepted
	case err != nil:
		return err
	case ack.InDoubt:
		return fmt.Errorf("%w: %q; its worker finds out", order.ErrInDoubt, k)
	}
	got, err := s.look(ctx, k)
	if err != nil {
		return err
	}
	switch {
	case got.OK:
		return s.undo(ctx, *got.Result, u.UndoKey)
	case got.Unknown:
		return fmt.Errorf("%w: %q was given up: ask the partner, and settle it with `weaver order settle`", order.ErrInDoubt, k)
	}
	return nil
}
