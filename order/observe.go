package order

import (
	"context"
	"errors"
	"log/slog"
)

// Metrics receives the counters and histograms of workers and APIs. Labels are pairs of name and value.
type Metrics interface {
	Count(name string, n int, labels ...string)
	Observe(name string, value float64, labels ...string) // histograms
}

// Names of metrics.
const (
	MetricClaimed       = "outbox_claimed_total"
	MetricProcessed     = "outbox_processed_total" // outcome
	MetricRetry         = "outbox_retry_total"     // attempt
	MetricLeaseExpired  = "outbox_lock_lease_expired_total"
	MetricLatency       = "outbox_latency_ms"    // phase: claim, send, commit
	MetricRequests      = "order_requests_total" // outcome
	MetricConflicts     = "idempotency_conflicts_total"
	MetricBroker        = "broker_requests_total" // adapter, outcome
	MetricDoOrder       = "do_order_latency_ms"   // phase
	MetricPending       = "outbox_pending_count"
	MetricAge           = "outbox_age_seconds"
	MetricLedger        = "idempo_ledger_rows"
	MetricPaused        = "broker_paused_workers"        // adapter
	MetricSettledNoRows = "outbox_settled_no_rows_total" // settlements that found another state: look at the log
)

// Tracer makes spans. end is called once, with the error of the operation.
type Tracer interface {
	Start(ctx context.Context, span string, attrs ...string) (_ context.Context, end func(error))
}

// Names of spans.
const (
	SpanAccept  = "do.order"
	SpanProcess = "outbox.process"
	SpanSend    = "broker.send" // adapter
)

type noMetrics struct{}

func (noMetrics) Count(string, int, ...string)       {}
func (noMetrics) Observe(string, float64, ...string) {}

type noTracer struct{}

func (noTracer) Start(ctx context.Context, _ string, _ ...string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// logAttrs are the fields of a log line about a row. They hold neither the key nor the body.
func logAttrs(r *Row, adapter string, more ...any) []any {
	return append([]any{
		slog.String("idempotency_key_hash", KeyHash(r.Key)), slog.Int64("outbox_id", r.ID), slog.String("status", string(r.State)),
		slog.Int("attempts", r.Attempts), slog.String("adapter", adapter),
	}, more...)
}

// withoutKey returns the sentinel of an error of the rules, whose text names the key.
func withoutKey(err error) error {
	for _, sentinel := range []error{ErrNotFound, ErrConflict, ErrState, ErrLeaseLost, ErrInDoubt} {
		if errors.Is(err, sentinel) {
			return sentinel
		}
	}
	return err
}
