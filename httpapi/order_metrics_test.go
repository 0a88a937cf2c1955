//go:build !js

package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	orders "github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/memstore"
)

func TestOrderMetrics(t *testing.T) {
	t.Parallel()
	st, m := memstore.New(), httpapi.NewOrderMetrics()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m, httpapi.NewOrderStoreMetrics(st, weaver.DefaultNamespace, nil))
	s := orderServer(t, st, func(cfg *httpapi.Config) { cfg.Metrics, cfg.Orders.Metrics = registry, m })
	s.sendOrder(orderOf("a")).want(http.StatusCreated)
	s.sendOrder(orderOf("a")).want(http.StatusOK)
	s.sendOrder(orderOf("a", "qty", "9")).want(http.StatusConflict)
	s.sendOrder(orderOf("b", "qty", "0")).want(http.StatusUnprocessableEntity)
	w, err := orders.NewWorker(orders.WorkerConfig{Store: st, Adapter: &orders.Paper{}, Metrics: m})
	s.no(err)
	s.no(w.RunUntilIdle(t.Context()))
	s.sendOrder(orderOf("c")).want(http.StatusCreated)
	m.Count(orders.MetricRetry, 1, "attempt", "3000")
	m.Count(orders.MetricRetry, 1, "key", "secret")
	m.Count("no_such", 1)
	for id, paused := range map[string]time.Duration{"1": time.Hour, "2": 0} {
		s.no(st.JoinOrders(t.Context(), weaver.DefaultNamespace, orders.WorkerInfo{ID: id, Lease: time.Hour, Sender: orders.Sender{Adapter: "a" + id, PausedUntil: time.Now().Add(paused)}}))
	}

	text := string(s.get("/metrics", "Accept", "text/plain").want(http.StatusOK).body)
	for _, line := range []string{
		`order_requests_total{outcome="accepted"} 2`, `order_requests_total{outcome="repeated"} 1`, `order_requests_total{outcome="conflict"} 1`,
		`order_requests_total{outcome="invalid"} 1`, `idempotency_conflicts_total 1`, `outbox_claimed_total 1`, `outbox_processed_total{outcome="succeeded"} 1`,
		`broker_requests_total{adapter="paper",outcome="ok"} 1`, `outbox_retry_total{attempt="(other)"} 1`, `outbox_lock_lease_expired_total 0`,
		`outbox_latency_ms_count{phase="send"} 1`, `do_order_latency_ms_count{phase="accept"} 4`, `outbox_pending_count 1`, `broker_paused_workers{adapter="a1"} 1`, `broker_paused_workers{adapter="a2"} 0`, `idempo_ledger_rows 2`, "\noutbox_age_seconds ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing", line)
		}
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "no_such") {
		t.Error("a label or name that is not known is shown")
	}
	if t.Failed() {
		t.Log(text)
	}
}
