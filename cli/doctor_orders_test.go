package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

// Doctor warns of orders with an unknown outcome, of late ones and of held ones.
func TestDoctor_WarnsOfOrders(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	client, err := weaver.NewClient(st, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	accept := func(key string) {
		t.Helper()
		body := fmt.Sprintf(`{"order_id":"o","instrument":"BTC-JPY","side":"BUY","qty":"1","time_in_force":"GTC","idempotency_key":%q,"requested_at":"2026-01-02T03:04:05Z"}`, key)
		p, err := order.Orders{}.Parse([]byte(body), time.Now())
		if err == nil {
			_, err = st.AcceptOrders(t.Context(), client.Namespace(), nil, p.New(order.Orders{}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	warnings := func(later time.Duration) string {
		t.Helper()
		var f checkup
		s := &session{app: App{Name: "weaver"}, clock: explain.Clock{Now: time.Now().Add(later), Zone: time.UTC}}
		if err := f.examineOrders(t.Context(), s, client); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, w := range f.Warnings {
			keys = append(keys, w.Key)
		}
		return strings.Join(keys, ", ")
	}
	if got := warnings(time.Hour); got != "" {
		t.Errorf("without orders: %s", got)
	}
	accept("lost")
	drop := &order.Paper{Behave: func(order.Outgoing) string { return "drop" }}
	w, err := order.NewWorker(order.WorkerConfig{Store: st, Adapter: struct{ order.Adapter }{drop}, Config: order.Config{MaxAttempts: 1}})
	if err == nil {
		err = w.RunUntilIdle(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	accept("new")
	if got := warnings(0); got != "unknown orders" {
		t.Errorf("with an unknown outcome: %s", got)
	}
	if got := warnings(time.Hour); got != "unknown orders, late orders" {
		t.Errorf("an hour later: %s", got)
	}
	cmd := doctorCmd{}
	if held, err := cmd.holdOrders(t.Context(), client); err != nil || held != 1 {
		t.Errorf("%d orders are held, %v", held, err)
	}
	if got := warnings(time.Hour); got != "held orders, unknown orders" {
		t.Errorf("after a restore: %s", got)
	}
}
