package otelweaver

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/goweaver/weaver"
)

// metadata is the carrier: the metadata of a task. Its map is created on first use, so that a task without a trace
// context has no metadata.
type metadata struct{ values map[string]string }

// Get implements propagation.TextMapCarrier.
func (m *metadata) Get(key string) string { return m.values[key] }

// Set implements propagation.TextMapCarrier.
func (m *metadata) Set(key, value string) {
	if m.values == nil {
		m.values = make(map[string]string)
	}
	m.values[key] = value
}

// Keys implements propagation.TextMapCarrier.
func (m *metadata) Keys() []string { return slices.Collect(maps.Keys(m.values)) }

// inject returns the trace context of ctx as metadata.
func (p *Plugin) inject(ctx context.Context) map[string]string {
	var m metadata
	p.propagator.Inject(ctx, &m)
	return m.values
}

// extract returns ctx with the trace context of a task. It drops the trace context of ctx, which belongs to Run and
// not to the task.
func (p *Plugin) extract(ctx context.Context, given map[string]string) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	if baggage.FromContext(ctx).Len() > 0 {
		ctx = baggage.ContextWithoutBaggage(ctx)
	}
	if len(given) == 0 {
		return ctx
	}
	return p.propagator.Extract(ctx, &metadata{given})
}

// noteName is the name of the note with which the next attempt finds the span of this one, for any propagator.
const noteName = "traceparent"

var w3c propagation.TraceContext

// note stores the span of the attempt for the next one.
func (p *Plugin) note(ctx context.Context) {
	var m metadata
	w3c.Inject(ctx, &m)
	if text := m.values[noteName]; text != "" {
		if err := weaver.Note(ctx, noteName, text); err != nil {
			p.log.Warn("otelweaver: the next attempt will have no link to this one", "task_id", weaver.Current(ctx).TaskID, "error", err)
		}
	}
}

// before returns the span of the last attempt that stored one.
func (p *Plugin) before(ctx context.Context) (trace.SpanContext, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	earlier, err := weaver.EarlierAttempts(ctx)
	for _, a := range slices.Backward(earlier) {
		if text := a.Notes[noteName]; text != "" {
			got := w3c.Extract(context.Background(), &metadata{map[string]string{noteName: text}})
			return trace.SpanContextFromContext(got), nil
		}
	}
	return trace.SpanContext{}, err
}

// logAttrs returns trace and span ID of ctx.
func logAttrs(ctx context.Context) []slog.Attr {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	return []slog.Attr{slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String())}
}
