//go:build !js

package httpapi

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goweaver/weaver/order"
)

// maxAttemptLabel is the last attempt with a series of its own.
const maxAttemptLabel = 20

// OrderMetrics are metrics of the orders that this process accepts and sends: an order.Metrics
// for OrderConfig and order.WorkerConfig, and a collector for a registry. The names are those of
// package order. The label attempt has the numbers up to 20, and "(other)".
type OrderMetrics struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	labels     map[string][]string
}

// NewOrderMetrics returns metrics of orders, at 0.
func NewOrderMetrics() *OrderMetrics {
	m := &OrderMetrics{counters: make(map[string]*prometheus.CounterVec), histograms: make(map[string]*prometheus.HistogramVec), labels: make(map[string][]string)}
	count := func(name, help string, labels ...string) {
		m.counters[name], m.labels[name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels), labels
		if len(labels) == 0 {
			m.counters[name].WithLabelValues() // 0, not missing
		}
	}
	observe := func(name, help string) {
		m.labels[name] = []string{"phase"}
		m.histograms[name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: []float64{0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000},
		}, m.labels[name])
	}
	count(order.MetricClaimed, "Outbox rows that workers claimed.")
	count(order.MetricProcessed, "Outbox rows that workers were done with.", "outcome")
	count(order.MetricRetry, "Sends that are tried again, by the attempt that failed.", "attempt")
	count(order.MetricLeaseExpired, "Leases of outbox rows that were taken back.")
	count(order.MetricSettledNoRows, "Settlements that found the ledger in another state.")
	count(order.MetricRequests, "Requests to accept an order.", "outcome")
	count(order.MetricConflicts, "Idempotency keys that came again with another request.")
	count(order.MetricBroker, "Calls of the partner.", "adapter", "outcome")
	observe(order.MetricLatency, "How long the phases of a worker took, in milliseconds.")
	observe(order.MetricDoOrder, "How long the phases of accepting an order took, in milliseconds.")
	return m
}

// Count implements order.Metrics. A name or label that is not known is not counted.
func (m *OrderMetrics) Count(name string, n int, labels ...string) {
	if c, known := m.counters[name]; known && n > 0 {
		if values, ok := m.values(name, labels); ok {
			c.WithLabelValues(values...).Add(float64(n))
		}
	}
}

// Observe implements order.Metrics.
func (m *OrderMetrics) Observe(name string, value float64, labels ...string) {
	if h, known := m.histograms[name]; known {
		if values, ok := m.values(name, labels); ok {
			h.WithLabelValues(values...).Observe(value)
		}
	}
}

// values returns the values of labels that come as pairs.
func (m *OrderMetrics) values(name string, pairs []string) (values []string, ok bool) {
	names := m.labels[name]
	values = make([]string, len(names))
	for i := 0; i+1 < len(pairs); i += 2 {
		at := slices.Index(names, pairs[i])
		if at < 0 {
			return nil, false
		}
		values[at] = pairs[i+1]
		if n, err := strconv.Atoi(values[at]); pairs[i] == "attempt" && (err != nil || n > maxAttemptLabel) {
			values[at] = otherLabel
		}
	}
	return values, true
}

// Describe implements prometheus.Collector.
func (m *OrderMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.counters {
		c.Describe(ch)
	}
	for _, h := range m.histograms {
		h.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *OrderMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.counters {
		c.Collect(ch)
	}
	for _, h := range m.histograms {
		h.Collect(ch)
	}
}

// OrderStoreMetrics are metrics of the orders of a store, whoever works on them:
//
//   - outbox_pending_count: orders that wait to be sent, for the first time or again.
//   - outbox_age_seconds: the age of the oldest order that is not settled; 0 if there is none.
//   - idempo_ledger_rows: ledger entries.
//   - broker_paused_workers: by adapter, the live workers whose circuit breaker is open or whose
//     partner asked to slow down.
//
// Each count ends at 10,000. They are read once for each scrape, but at most every 5 seconds;
// while the store is away they are missing.
type OrderStoreMetrics struct {
	store order.Store
	ns    string
	log   *slog.Logger

	mu   sync.Mutex
	at   time.Time
	last order.Stats
	err  error
}

// NewOrderStoreMetrics returns metrics of the orders of a namespace. log gets the failures to
// read the store; nil is slog.Default().
func NewOrderStoreMetrics(st order.Store, namespace string, log *slog.Logger) *OrderStoreMetrics {
	if log == nil {
		log = slog.Default()
	}
	return &OrderStoreMetrics{store: st, ns: namespace, log: log}
}

var (
	descOrdersPending = prometheus.NewDesc(order.MetricPending, "Orders that wait to be sent. It ends at 20000.", nil, nil)
	descOrdersAge     = prometheus.NewDesc(order.MetricAge, "The age of the oldest order that is not settled.", nil, nil)
	descOrdersPaused  = prometheus.NewDesc(order.MetricPaused, "Order workers that send nothing for now: their circuit breaker is open, or the partner asked to slow down.", []string{"adapter"}, nil)
	descOrdersLedger  = prometheus.NewDesc(order.MetricLedger, "Ledger entries. It ends at 10000.", nil, nil)
)

// Describe implements prometheus.Collector.
func (m *OrderStoreMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOrdersPending, descOrdersAge, descOrdersLedger, descOrdersPaused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *OrderStoreMetrics) Collect(ch chan<- prometheus.Metric) {
	st, err := m.read()
	if err != nil {
		return
	}
	age := 0.0
	if !st.OldestAt.IsZero() {
		age = max(0, time.Since(st.OldestAt).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(descOrdersPending, prometheus.GaugeValue, float64(st.Counts[order.Pending]+st.Counts[order.Retrying]))
	ch <- prometheus.MustNewConstMetric(descOrdersAge, prometheus.GaugeValue, age)
	ch <- prometheus.MustNewConstMetric(descOrdersLedger, prometheus.GaugeValue, float64(st.Ledger))
	paused := make(map[string]int)
	for i := range st.Senders {
		if w := &st.Senders[i]; !w.Dead && !w.Silent {
			paused[w.Adapter] += 0
			if !w.PausedUntil.IsZero() {
				paused[w.Adapter]++
			}
		}
	}
	for adapter, n := range paused {
		ch <- prometheus.MustNewConstMetric(descOrdersPaused, prometheus.GaugeValue, float64(n), adapter)
	}
}

// read returns what the store holds, or held a moment ago.
func (m *OrderStoreMetrics) read() (order.Stats, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && time.Since(m.at) < metricsFor {
		return m.last, m.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), metricsLimit)
	defer cancel()
	m.last, m.err = m.store.OrderStats(ctx, m.ns)
	if m.at = time.Now(); m.err != nil {
		m.log.Warn("read the orders of the store for their metrics", "error", m.err)
	}
	return m.last, m.err
}
