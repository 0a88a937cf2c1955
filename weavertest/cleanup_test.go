package weavertest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

var bookingType = weaver.Define[string, weaver.None]("weavertest.shop.booking.v1", weaver.CleanupWhenCancelled())

// A booking that is cancelled while its task waits, asleep or for an answer, is
// given back.
func TestCleanupOfATaskThatWaits(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"asleep": func(ctx context.Context) error { return weaver.Sleep(ctx, "until the flight", 90*24*time.Hour) },
		"asking": func(ctx context.Context) error {
			_, err := weaver.Ask[bool](ctx, "insurance", "with an insurance?")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			note := func(what string) func(context.Context) error {
				return func(context.Context) error { done = append(done, what); return nil }
			}
			e := weavertest.New(t, bookingType.Handler(func(ctx context.Context, _ string) (weaver.None, error) {
				err := weaver.Do(ctx, "book", note("booked"))
				if err == nil {
					err = wait(ctx)
				}
				if err == nil || weaver.Suspended(err) {
					return weaver.None{}, err
				}
				return weaver.None{}, errors.Join(err, weaver.Cleanup(ctx, "give back", note("given back")))
			}))
			h, err := bookingType.Enqueue(t.Context(), e, "LH 400")
			if err != nil {
				t.Fatal(err)
			}
			weavertest.Advance(t, e, 24*time.Hour)
			if err := e.Cancel(t.Context(), h.ID(), weaver.By("ann")); err != nil {
				t.Fatal(err)
			}
			weavertest.RunUntilIdle(t, e)
			got, err := h.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.State != weaver.StateCancelled || len(done) != 2 || done[1] != "given back" || got.StepCount != map[string]int{"asleep": 3, "asking": 2}[name] {
				t.Errorf("the task is %s with %d steps, and the booking was %v", got.State, got.StepCount, done)
			}
		})
	}
}

// A refund that fails is told to the test, which mends it and goes on.
func TestUndoThatFails(t *testing.T) {
	order := weaver.Define[string, string]("weavertest.shop.order.v1", weaver.NoRetry())
	outer := weaver.Define[string, string]("weavertest.shop.outer.v1", weaver.NoRetry())
	refunds, down := 0, true
	e := weavertest.New(t, order.Handler(func(ctx context.Context, _ string) (string, error) {
		return "", errors.Join(errors.New("courier down"), weaver.Cleanup(ctx, "refund", func(context.Context) error {
			if down {
				return errors.New("psp 503")
			}
			refunds++
			return nil
		}))
	}), outer.Handler(func(ctx context.Context, in string) (string, error) {
		return weaver.Call(ctx, "order", order, in)
	}))
	for name, typ := range map[string]*weaver.Type[string, string]{"alone": order, "as a child": outer} {
		t.Run(name, func(t *testing.T) {
			down, refunds = true, 0
			h, err := typ.Enqueue(t.Context(), e, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = weavertest.ContinueErr(t, e, typ, h.ID())
			if !errors.Is(err, weaver.ErrUndoing) || !strings.Contains(err.Error(), "psp 503") {
				t.Fatalf("while the refund fails: %v", err)
			}
			down = false
			_, err = weavertest.ContinueErr(t, e, typ, h.ID())
			if te, is := errors.AsType[*weaver.TaskError](err); !is || te.State != weaver.StateFailed || refunds != 1 {
				t.Errorf("afterwards: %v, %d refunds", err, refunds)
			}
		})
	}
	t.Run("in a job", func(t *testing.T) {
		down = true
		j := weaver.NewJob("order")
		j.Add("order", order.With(""))
		if _, err := weavertest.RunJobErr(t, e, j); !errors.Is(err, weaver.ErrUndoing) {
			t.Errorf("a job whose task is being undone: %v", err)
		}
		weavertest.Advance(t, e, 25*time.Hour) // given up
	})
}
