package httpapi_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	orders "github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// allowedOrders is the profile of tests: one instrument, with a minimum and a step.
func allowedOrders() orders.Orders {
	return orders.Orders{
		Instruments: map[string]orders.Instrument{"BTC-JPY": {MinQty: "0.05", QtyStep: "0.01"}},
		Timeout:     20 * time.Millisecond,
	}
}

// orderServer starts an API that accepts orders into a store.
func orderServer(t *testing.T, st store.Store, change ...func(*httpapi.Config)) *server {
	t.Helper()
	return newServer(t, serverOptions{store: st, config: func(cfg *httpapi.Config) {
		cfg.Orders = &httpapi.OrderConfig{Orders: allowedOrders(), Webhooks: orders.Webhooks{}}
		for _, c := range change {
			c(cfg)
		}
	}})
}

func orderStore(t *testing.T, st store.Store) orders.Store {
	t.Helper()
	s, ok := st.(orders.Store)
	if !ok {
		t.Fatalf("%T keeps no orders", st)
	}
	return s
}

// orderOf is the body of an order; fields replace its own.
func orderOf(key string, fields ...any) map[string]any {
	body := map[string]any{
		"order_id": "o-" + key, "instrument": "BTC-JPY", "side": "BUY", "qty": "0.50", "price": nil, "time_in_force": "GTC",
		"idempotency_key": key, "requested_at": time.Now().UTC().Format(time.RFC3339), "trace_id": "t-1",
	}
	for i := 0; i < len(fields); i += 2 {
		body[fields[i].(string)] = fields[i+1]
	}
	return body
}

// sendOrder posts a body under its own key.
func (s *server) sendOrder(body map[string]any) *answer {
	s.Helper()
	return s.post("/do/order", body, "Idempotency-Key", body["idempotency_key"].(string))
}

// refusal fails the test unless the answer is this refusal; it returns it.
func (a *answer) refusal(status int, code string) httpapi.OrderRefusal {
	a.t.Helper()
	var got httpapi.OrderRefusal
	a.want(status).into(&got)
	if got.Error != code || got.Message == "" {
		a.t.Fatalf("%s: the refusal is %s, want %s", a.asked, a.body, code)
	}
	return got
}

// result fails the test unless the answer is a stored result with this reason; it returns it.
func (a *answer) result(status int, reason orders.ReasonCode) orders.ExecResult {
	a.t.Helper()
	var got orders.ExecResult
	a.want(status).into(&got)
	if got.ReasonCode != reason || (got.Status == orders.OK) != (reason == "") {
		a.t.Fatalf("%s: the result is %s, want the reason %q", a.asked, a.body, reason)
	}
	return got
}

// sender is a partner that cannot be asked.
type sender struct{ *orders.Paper }

// Reconcile hides the method of the same name, with another signature.
func (sender) Reconcile() {}

func partner(how string) orders.Adapter {
	return sender{&orders.Paper{Behave: func(orders.Outgoing) string { return how }}}
}

// work sends what is due, each order once.
func (s *server) work(a orders.Adapter) {
	s.Helper()
	w, err := orders.NewWorker(orders.WorkerConfig{Store: orderStore(s.T, s.store), Adapter: a, Config: orders.Config{MaxAttempts: 1, Lease: 10 * time.Second}})
	s.no(err)
	s.no(w.RunUntilIdle(s.Context()))
}

// ledger reads an order from the store; found is false if there is none.
func (s *server) ledger(key string) (o orders.Order, found bool) {
	s.Helper()
	o, err := orderStore(s.T, s.store).GetOrder(context.Background(), weaver.DefaultNamespace, key)
	return o, err == nil
}

// rows counts the orders of the store.
func (s *server) rows() int {
	s.Helper()
	st, err := orderStore(s.T, s.store).OrderStats(s.Context(), weaver.DefaultNamespace)
	s.no(err)
	return st.Ledger
}

// raw JSON of an order whose text a test changes.
func orderText(t *testing.T, key string, fields ...any) string {
	t.Helper()
	raw, err := json.Marshal(orderOf(key, fields...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
