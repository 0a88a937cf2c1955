package order_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

func newClient(t *testing.T, cfg order.ClientConfig) *order.Client {
	t.Helper()
	c, err := order.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func buy(key string) order.OrderRequest {
	return order.OrderRequest{OrderID: "o-" + key, Instrument: "BTC-JPY", Side: order.Buy, Qty: "0.5", TimeInForce: order.GoodTillCancelled, IdempotencyKey: key}
}

// TestClient_Verbs gives each verb once, as an operator's program does.
func TestClient_Verbs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		woken := 0
		c := newClient(t, order.ClientConfig{Store: s, Wake: func() { woken++ }})
		ctx, by := t.Context(), order.Audit{By: "ann", Reason: "test"}
		check := func(what string, want int) func(order.Ack, error) {
			return func(ack order.Ack, err error) {
				t.Helper()
				if err != nil || ack.Changed != want {
					t.Errorf("%s: %+v, %v", what, ack, err)
				}
			}
		}
		send := func(key string) {
			t.Helper()
			if got, err := c.Send(ctx, buy(key)); err != nil || !got.Created {
				t.Errorf("%+v, %v", got, err)
			}
		}
		send("a")
		if got, err := c.Send(ctx, buy("a")); err != nil || got.Created || woken != 1 {
			t.Errorf("the same order again: %+v, %v, woken %d times", got, err, woken)
		}
		other := buy("a")
		other.Qty = "1"
		if _, err := c.Send(ctx, other); !errors.Is(err, order.ErrConflict) {
			t.Errorf("another order: %v", err)
		}
		if _, err := c.SendWebhook(ctx, order.WebhookRequest{URL: "ftp://example.org", IdempotencyKey: "w"}); !isInvalid(err) {
			t.Errorf("a wrong webhook: %v", err)
		}
		if _, err := c.SendJSON(ctx, "fax", nil); !errors.Is(err, order.ErrState) {
			t.Errorf("an unknown profile: %v", err)
		}
		check("hold", 1)(c.Hold(ctx, by))
		check("release", 1)(c.Release(ctx, "a", by))
		check("unlock", 0)(c.Unlock(ctx, "", by))
		check("withdraw", 1)(c.Withdraw(ctx, "a", by))
		check("requeue", 1)(c.Requeue(ctx, "a", false, by))
		check("failed", 1)(c.SettleFailed(ctx, "a", order.ReasonRejected, "", by))
		if o, err := c.Get(ctx, "a"); err != nil || o.Row.LastErrorMsg != "test" {
			t.Errorf("%+v, %v", o.Row, err)
		}
		check("resubmit", 1)(c.Resubmit(ctx, "a", "b", nil, by))
		check("settle", 1)(c.Settle(ctx, "b", []byte(`{"executed_qty":"0.5","fills":[{"px":"1","qty":"0.5","ts":"2000-01-01T00:00:00Z"}]}`), by))
		for what, err := range map[string]error{
			"an unknown code":   second(c.SettleFailed(ctx, "a", "LATE", "", by)),
			"a wrong result":    second(c.Settle(ctx, "a", []byte(`{"fills":1}`), by)),
			"its own key":       second(c.Resubmit(ctx, "a", "a", nil, by)),
			"a key of no URL":   second(c.Resubmit(ctx, "a", "..", nil, by)),
			"a corrected order": second(c.Resubmit(ctx, "a", "c", []byte(`{"qty":"0"}`), by)),
		} {
			if !isInvalid(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := c.Requeue(ctx, "none", false, by); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("an unknown key: %v", err)
		}
		if page, next, err := c.List(ctx, order.Filter{Limit: 1}); err != nil || len(page) != 1 || next == "" {
			t.Errorf("%+v, %q, %v", page, next, err)
		}
		if st, err := c.Stats(ctx); err != nil || st.Counts[order.Succeeded] != 1 || st.Counts[order.Aborted] != 1 {
			t.Errorf("%+v, %v", st, err)
		}
		time.Sleep(order.Kept)
		check("prune", 1)(c.Prune(ctx, order.Prune{Audit: by}))
		check("prune aborted", 1)(c.Prune(ctx, order.Prune{Audit: by, Aborted: true, Before: time.Now()}))
		for i := range 3 {
			send(fmt.Sprint(i))
			check("withdraw", 1)(c.Withdraw(ctx, fmt.Sprint(i), by))
		}
		check("prune in batches", 3)(c.Prune(ctx, order.Prune{Audit: by, Aborted: true, Before: time.Now().Add(time.Hour), Limit: 1}))
	})
}

func second(_ order.Ack, err error) error { return err }

func isInvalid(err error) bool {
	_, is := errors.AsType[*order.Invalid](err)
	return is
}

// TestClient_Wait returns the settled entry, or the last one when its context ends.
func TestClient_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := newClient(t, order.ClientConfig{Store: s})
		if _, err := c.Send(t.Context(), buy("k")); err != nil {
			t.Fatal(err)
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if e, err := c.Wait(short, "k"); !errors.Is(err, context.DeadlineExceeded) || e.State != order.LedgerAccepted {
			t.Errorf("%+v, %v", e, err)
		}
		untilIdle(t, newWorker(t, s, &order.Paper{}))
		if e, err := c.Wait(t.Context(), "k"); err != nil || e.State != order.LedgerSucceeded {
			t.Errorf("%+v, %v", e, err)
		}
		if _, err := c.Wait(t.Context(), "none"); !errors.Is(err, order.ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}

// TestClient_RequeueAsks: an order in doubt is sent again only if the partner does not have it, or
// with a confirmation.
func TestClient_RequeueAsks(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		found     order.Found
		err       error
		confirmed bool
		want      error
	}{
		"not known": {found: order.FoundNothing},
		"open":      {found: order.FoundOpen, want: order.ErrInDoubt},
		"away":      {err: away, want: away},
		"moved on":  {err: order.ErrState, want: order.ErrInDoubt},
		"confirmed": {err: away, confirmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				c := newClient(t, order.ClientConfig{Store: s, Ask: func(context.Context, string, order.Audit) (order.Found, error) { return tc.found, tc.err }})
				if _, err := c.Send(t.Context(), buy("k")); err != nil {
					t.Fatal(err)
				}
				lost := &order.Paper{Behave: func(order.Outgoing) string { return "drop" }}
				untilIdle(t, newWorker(t, s, noReconcile{lost}, func(cfg *order.WorkerConfig) { cfg.Config.MaxAttempts = 1 }))
				ack, err := c.Requeue(t.Context(), "k", tc.confirmed, order.Audit{By: "ann"})
				if !errors.Is(err, tc.want) || tc.want == nil && ack.State != order.Pending {
					t.Errorf("%+v, %v", ack, err)
				}
				if _, is := errors.AsType[*order.AskError](err); is != errors.Is(tc.want, away) || is && !errors.Is(err, order.ErrInDoubt) {
					t.Errorf("%T %v", err, err)
				}
			})
		})
	}
}
