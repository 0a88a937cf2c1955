package clitest_test

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// A server accepts orders and sends them; it is killed and the next one has the result.
func TestServeOrders(t *testing.T) {
	t.Setenv("OUTBOX_ENABLED", "true")
	t.Setenv("BROKER_ADAPTER", "paper")
	t.Setenv("ORDER_RATE_PER_MIN", "2")
	dir := t.TempDir()
	p, url := serving(t, dir, "--roles", "api,orders")
	body := `{"order_id":"o-1","instrument":"BTC-JPY","side":"BUY","qty":"0.5","time_in_force":"GTC","idempotency_key":"k-1","requested_at":"2026-01-02T03:04:05Z"}`
	send := func(url string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"do/order?wait=30s", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k-1")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	status, first := send(url)
	if status != http.StatusOK || !strings.Contains(first, `"executed_qty":"0.5"`) {
		t.Errorf("%d %s", status, first)
	}
	if _, metrics := request(t, url+"metrics", ""); !strings.Contains(metrics, `order_requests_total{outcome="accepted"} 1`) || !strings.Contains(metrics, "idempo_ledger_rows 1") {
		t.Errorf("the metrics lack those of orders:\n%s", metrics)
	}
	p.signal(syscall.SIGKILL)
	p.end()

	p, url = serving(t, dir)
	for range 2 {
		if status, again := send(url); status != http.StatusOK || again != first {
			t.Errorf("after the kill: %d %s, want %s", status, again, first)
		}
	}
	if status, body := send(url); status != http.StatusTooManyRequests || !strings.Contains(body, `"error":"RATE_LIMITED"`) {
		t.Errorf("over the rate: %d %s", status, body)
	}
	p.signal(syscall.SIGTERM)
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.says("orders are accepted at /do/order and /do/webhook, at most 2 a minute of each client")
}
