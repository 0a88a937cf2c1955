package ordertask_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/codec/aesgcm"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/ordertask"
	"github.com/goweaver/weaver/task"
	"github.com/goweaver/weaver/weavertest"
)

type purchase struct {
	ID  string
	Qty order.Decimal
}

var buy = weaver.Define[purchase, order.ExecResult]("ordertask.shop.buy.v1")

func request(p purchase) ordertask.Request {
	return ordertask.Order(order.OrderRequest{OrderID: p.ID, Instrument: "BTC-JPY", Side: order.Buy, Qty: p.Qty, TimeInForce: order.GoodTillCancelled}, order.Orders{})
}

// world is a store with a task type that buys, an order worker and a partner.
type world struct {
	*weavertest.Env
	t      *testing.T
	paper  *order.Paper
	undone []string
	ship   error // of the step behind the order
}

func newWorld(t *testing.T, cfg weaver.Config) *world {
	w := &world{t: t, paper: &order.Paper{}}
	cfg.Handlers = []weaver.Handler{buy.Handler(func(ctx context.Context, p purchase) (order.ExecResult, error) {
		res, err := ordertask.Send(ctx, "buy", request(p), ordertask.Undo(func(_ context.Context, res order.ExecResult, key string) error {
			w.undone = append(w.undone, res.OrderID)
			if key == "" {
				t.Error("an undo without a key")
			}
			return nil
		}))
		if err != nil {
			return res, err
		}
		return res, weaver.Do(ctx, "ship", func(context.Context) error { return w.ship })
	})}
	w.Env = weavertest.NewConfig(t, cfg)
	return w
}

// send runs an order worker until nothing is due.
func (w *world) send() {
	w.t.Helper()
	weavertest.SendOrders(w.t, w.Env, w.paper)
}

func (w *world) start(qty order.Decimal) *weaver.Handle[order.ExecResult] {
	w.t.Helper()
	h, err := buy.Enqueue(w.t.Context(), w, purchase{"o-1", qty})
	if err != nil {
		w.t.Fatal(err)
	}
	weavertest.RunUntilIdle(w.t, w.Env)
	return h
}

func (w *world) only() order.Order {
	w.t.Helper()
	page := weavertest.Orders(w.t, w.Env)
	if len(page) != 1 {
		w.t.Fatalf("%d orders, want one", len(page))
	}
	return page[0]
}

// TestSend_ReturnsResult sends one order, whose result comes back into the handler.
func TestSend_ReturnsResult(t *testing.T) {
	w := newWorld(t, weaver.Config{})
	h := w.start("2")
	if info, err := h.Get(t.Context()); err != nil || info.State != task.Pending || info.Waiting != "signal" {
		t.Fatalf("before the send: %+v, %v", info, err)
	}
	o := w.only()
	if o.Row.Task != h.ID() || o.Row.Step != "buy" || o.Row.State != order.Pending {
		t.Errorf("%+v", o.Row)
	}
	w.send()
	res := weavertest.Continue(t, w.Env, buy, h.ID())
	if res.Status != order.OK || res.ExecutedQty != "2" || w.paper.Executed() != 1 || len(w.undone) > 0 {
		t.Errorf("%+v, executed %d", res, w.paper.Executed())
	}
}

// TestSend_Fails returns the failure, for good, with its reason as the code.
func TestSend_Fails(t *testing.T) {
	w := newWorld(t, weaver.Config{})
	w.paper.Behave = func(order.Outgoing) string { return "reject" }
	h := w.start("2")
	w.send()
	_, err := weavertest.ContinueErr(t, w.Env, buy, h.ID())
	te, ok := errors.AsType[*weaver.TaskError](err)
	if !ok || te.State != task.Failed || te.Code != "BROKER_REJECTED" || len(w.undone) > 0 {
		t.Errorf("%v %+v", err, te)
	}
}

// TestSend_UndoesSuccess undoes an order that succeeded when a later step fails.
func TestSend_UndoesSuccess(t *testing.T) {
	w := newWorld(t, weaver.Config{})
	w.ship = weaver.Permanent(errors.New("the warehouse is closed"))
	h := w.start("2")
	w.send()
	if _, err := weavertest.ContinueErr(t, w.Env, buy, h.ID()); err == nil {
		t.Error("the task succeeds")
	}
	if !slices.Equal(w.undone, []string{"o-1"}) {
		t.Errorf("undone %v", w.undone)
	}
}

// TestSend_CancelWithdraws withdraws an order that was not sent, and waits for one in doubt.
func TestSend_CancelWithdraws(t *testing.T) {
	w := newWorld(t, weaver.Config{})
	h := w.start("2")
	if err := w.Cancel(t.Context(), h.ID()); err != nil {
		t.Fatal(err)
	}
	if _, err := weavertest.ContinueErr(t, w.Env, buy, h.ID()); err == nil {
		t.Error("a cancelled task succeeds")
	}
	if o := w.only(); o.Row.State != order.Aborted || o.Row.LastErrorCode != order.WarnWithdrawn || o.Row.SendNo != 0 {
		t.Errorf("%+v", o.Row)
	}
	w.send()
	if w.paper.Executed() > 0 {
		t.Error("a withdrawn order was sent")
	}
}

// TestSend_UndoInDoubt holds the undo back until the order's worker knows.
func TestSend_UndoInDoubt(t *testing.T) {
	w := newWorld(t, weaver.Config{})
	h := w.start("2")
	w.paper.Behave = func(order.Outgoing) string { return "lost" } // executed, and no answer
	w.send()
	if o := w.only(); !o.Row.Unknown {
		t.Fatalf("%+v", o.Row)
	}
	if err := w.Cancel(t.Context(), h.ID()); err != nil {
		t.Fatal(err)
	}
	weavertest.RunUntilIdle(t, w.Env)
	if info, err := h.Get(t.Context()); err != nil || info.State.Terminal() || len(w.undone) > 0 {
		t.Fatalf("the task ended with an order in doubt: %+v, %v", info, err)
	}
	w.paper.Behave = nil
	weavertest.Advance(t, w.Env, 10*time.Second)
	w.send() // it asks the partner
	weavertest.Advance(t, w.Env, 2*time.Minute)
	if info, err := h.Get(t.Context()); err != nil || info.State != task.Cancelled || !slices.Equal(w.undone, []string{"o-1"}) {
		t.Errorf("%+v, %v, undone %v", info, err, w.undone)
	}
}

// TestSend_Invalid fails for good, with the field.
func TestSend_Invalid(t *testing.T) {
	w := newWorld(t, weaver.Config{})
	h := w.start("-1")
	_, err := weavertest.ContinueErr(t, w.Env, buy, h.ID())
	if te, ok := errors.AsType[*weaver.TaskError](err); !ok || te.State != task.Failed {
		t.Errorf("%v", err)
	}
}

// TestSend_Sealed keeps request and result sealed in the store, and plain for the handler.
func TestSend_Sealed(t *testing.T) {
	key, err := aesgcm.NewKey("k1")
	if err != nil {
		t.Fatal(err)
	}
	next, err := aesgcm.NewKey("k2")
	if err != nil {
		t.Fatal(err)
	}
	sealedBy := func(keys ...aesgcm.Key) *aesgcm.Codec {
		c, err := aesgcm.New(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	w := newWorld(t, weaver.Config{Codec: sealedBy(key)})
	h := w.start("2")
	lacks, ok := order.Of(w.DB())
	if !ok {
		t.Fatal("no orders")
	}
	worker, err := order.NewWorker(order.WorkerConfig{Store: lacks, Adapter: w.paper})
	if err == nil {
		err = worker.RunUntilIdle(t.Context())
	}
	if err != nil || w.paper.Executed() != 0 {
		t.Errorf("a worker without the key: %v, executed %d", err, w.paper.Executed())
	}
	weavertest.Advance(t, w.Env, time.Minute)
	w.send()
	if res := weavertest.Continue(t, w.Env, buy, h.ID()); res.ExecutedQty != "2" {
		t.Errorf("%+v", res)
	}
	var request, result string
	err = w.DB().DB().QueryRowContext(t.Context(), `SELECT order_request_json, response_payload_json
FROM weaver_outbox_orders o JOIN weaver_idempo_ledger l USING (namespace, idempotency_key)`).Scan(&request, &result)
	if err != nil || strings.Contains(request+result, "BTC-JPY") || len(request) == 0 || len(result) == 0 {
		t.Errorf("stored %q, %q, %v", request, result, err)
	}

	// After a rewrap the old key is not needed.
	client := func(keys ...aesgcm.Key) *weaver.Client {
		c, err := weaver.NewClient(w.DB(), weaver.ClientConfig{Codec: sealedBy(keys...)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	opened := func() bool {
		st, ok := ordertask.Orders(client(next))
		if !ok {
			t.Fatal("no orders")
		}
		page, _, err := st.ListOrders(t.Context(), weaver.DefaultNamespace, order.Filter{})
		if err != nil || len(page) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		o := page[0]
		return strings.Contains(string(o.Row.Body), "BTC-JPY") && strings.Contains(string(o.Entry.Result), "BTC-JPY")
	}
	if opened() {
		t.Error("the new key opens what the old one has sealed")
	}
	for after, pages := "", 0; pages == 0 || after != ""; pages++ {
		got, err := client(key, next).Rewrap(t.Context(), after, 2)
		if err != nil || got.Failed > 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		after = got.Next
	}
	if !opened() {
		t.Error("the new key does not open an order after a rewrap")
	}
}
