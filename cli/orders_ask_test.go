package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

// Each worker has a line with the state of its circuit breaker.
func TestSenderText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &session{clock: explain.Clock{Now: now, Zone: time.UTC}}
	for want, w := range map[string]order.SenderStatus{
		"adapter http: 3 of its last 20 sends timed out": {Sender: order.Sender{Adapter: "http", Failed: 3}},
		"sends nothing for now, and goes on in 1m":       {Sender: order.Sender{PausedUntil: now.Add(time.Minute), Reason: "down"}},
		": down.":         {Sender: order.Sender{PausedUntil: now.Add(time.Minute), Reason: "down"}},
		": dead.":         {Dead: true, Silent: true, Sender: order.Sender{PausedUntil: now.Add(time.Minute)}},
		": silent since ": {Silent: true, LastSeen: now.Add(-time.Hour)},
	} {
		if got := s.senderText(&w); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// Asking the partner refuses the addresses that a send refuses.
func TestAskPartner_RefusesAddresses(t *testing.T) {
	st := memstore.New()
	client, err := weaver.NewClient(st, weaver.ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := order.Orders{}.Parse([]byte(`{"order_id":"o","instrument":"BTC-JPY","side":"BUY","qty":"1","time_in_force":"GTC","idempotency_key":"lost","requested_at":"2026-01-02T03:04:05Z"}`), time.Now())
	if err == nil {
		_, err = st.AcceptOrders(t.Context(), client.Namespace(), nil, p.New(order.Orders{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	drop := &order.Paper{Behave: func(order.Outgoing) string { return "drop" }}
	w, err := order.NewWorker(order.WorkerConfig{Store: st, Adapter: struct{ order.Adapter }{drop}, Config: order.Config{MaxAttempts: 1}})
	if err == nil {
		err = w.RunUntilIdle(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	partner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"fills":[{"px":"1","qty":"1","ts":"2026-01-02T03:04:05Z"}],"executed_qty":"1"}`)
	}))
	defer partner.Close()
	t.Setenv("BROKER_ADAPTER", "http")
	ask := func(url string, f addressFlags) (order.Found, error) {
		t.Setenv("BROKER_URL", url)
		return (&session{app: App{Name: "weaver"}}).mcpOrders(client, &f).Ask(t.Context(), "lost", order.Audit{By: "ann"})
	}
	for url, f := range map[string]addressFlags{"http://169.254.169.254/": {}, partner.URL: {NoPrivateNetwork: true}} {
		if found, err := ask(url, f); err == nil || found != order.FoundOpen || !strings.Contains(err.Error(), "cannot be reached: 1") {
			t.Errorf("%s: %s, %v", url, found, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a refused address got %d requests", n)
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	if found, err := ask(partner.URL, addressFlags{NoPrivateNetwork: true, allowed: loopback}); err != nil || found != order.FoundResult {
		t.Errorf("an allowed address: %s, %v", found, err)
	}
}
