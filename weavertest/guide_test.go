package weavertest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// These tests are written like those of a user's program: they test a task from outside, step by step.

type refundOrder struct {
	Order string
	Cents int
}

var refundType = weaver.Define[refundOrder, string]("weavertest.shop.refund.v1")

// refund asks a person about large amounts.
func refund(ctx context.Context, o refundOrder) (string, error) {
	approved, answered, err := weaver.UnblockInput[bool](ctx)
	switch {
	case err != nil:
		return "", err
	case o.Cents <= 10_000:
	case !answered:
		return "", weaver.Blocked(fmt.Sprintf("may %s get %d cents back?", o.Order, o.Cents))
	case !approved:
		return "refused", nil
	}
	return weaver.Step(ctx, "pay", func(context.Context) (string, error) { return "paid", nil })
}

// A task asks for an approval and gets it three days later.
func TestApproval(t *testing.T) {
	e := weavertest.New(t, refundType.Handler(refund))
	h, err := refundType.Enqueue(t.Context(), e, refundOrder{"order 7", 25_000})
	if err != nil {
		t.Fatal(err)
	}

	// The handler runs until it asks.
	weavertest.RunUntilIdle(t, e)
	waits, err := h.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if waits.State != weaver.StateBlocked || waits.Error.Message != "may order 7 get 25000 cents back?" {
		t.Fatalf("the task is %s: %+v", waits.State, waits.Error)
	}

	// It waits for any length of time, and nothing is paid.
	weavertest.Advance(t, e, 3*24*time.Hour)

	// A person approves.
	if err := e.Unblock(t.Context(), h.ID(), true, weaver.By("ann")); err != nil {
		t.Fatal(err)
	}
	if out := weavertest.Continue(t, e, refundType, h.ID()); out != "paid" {
		t.Errorf("output %q", out)
	}
}

var trialType = weaver.Define[string, weaver.None]("weavertest.shop.trial.v1")

// trial charges a customer when the trial of thirty days is over.
func trial(charged *[]string) func(context.Context, string) (weaver.None, error) {
	return func(ctx context.Context, customer string) (weaver.None, error) {
		if err := weaver.Sleep(ctx, "trial", 30*24*time.Hour); err != nil {
			return weaver.None{}, err
		}
		return weaver.None{}, weaver.Do(ctx, "charge", func(context.Context) error {
			*charged = append(*charged, customer)
			return nil
		})
	}
}

// A customer who cancels on day 10 is never charged.
func TestCancelOnDayTen(t *testing.T) {
	var charged []string
	e := weavertest.New(t, trialType.Handler(trial(&charged)))
	h, err := trialType.Enqueue(t.Context(), e, "ann")
	if err != nil {
		t.Fatal(err)
	}

	weavertest.Advance(t, e, 10*24*time.Hour)
	if err := e.Cancel(t.Context(), h.ID(), weaver.Reason("changed her mind")); err != nil {
		t.Fatal(err)
	}

	_, err = weavertest.ContinueErr(t, e, trialType, h.ID())
	if te, ok := errors.AsType[*weaver.TaskError](err); !ok || te.State != weaver.StateCancelled {
		t.Errorf("the task ended with %v", err)
	}
	weavertest.Advance(t, e, 365*24*time.Hour)
	if len(charged) > 0 {
		t.Errorf("%v were charged", charged)
	}
}

// Exactly thirty days later the others are charged.
func TestChargedOnDayThirty(t *testing.T) {
	var charged []string
	e := weavertest.New(t, trialType.Handler(trial(&charged)))
	if _, err := trialType.Enqueue(t.Context(), e, "bob"); err != nil {
		t.Fatal(err)
	}
	weavertest.RunUntilIdle(t, e) // it starts to sleep
	weavertest.Advance(t, e, 30*24*time.Hour-time.Second)
	if len(charged) > 0 {
		t.Errorf("%v were charged too soon", charged)
	}
	weavertest.Advance(t, e, time.Second)
	if len(charged) != 1 || charged[0] != "bob" {
		t.Errorf("charged: %v", charged)
	}
}

// A job whose alarm is not raised.
func TestNightlyJob(t *testing.T) {
	count := weaver.Define[string, int]("weavertest.report.count.v1")
	total := weaver.Define[weaver.None, int]("weavertest.report.total.v1")
	e := weavertest.New(t,
		count.Handler(func(_ context.Context, s string) (int, error) { return len(s), nil }),
		total.Handler(func(ctx context.Context, _ weaver.None) (sum int, err error) {
			for _, node := range []string{"eu", "us"} {
				n, err := count.Output(ctx, node)
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		}))

	job := weaver.NewJob("nightly")
	eu, us := job.Add("eu", count.With("abc")), job.Add("us", count.With("defg"))
	job.Add("total", total.With(weaver.None{}), weaver.Needs(eu, us))

	res := weavertest.RunJob(t, e, job)
	sum, err := total.Get(t.Context(), e, res.Completed[2].ID)
	if err != nil || sum.Output != 7 {
		t.Errorf("total %d, %v", sum.Output, err)
	}
}
