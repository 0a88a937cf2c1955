package otelweaver_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/otelweaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

// fixture is a store, the exported telemetry, and the log, in a bubble of fake time.
type fixture struct {
	*testing.T
	store  store.Store
	spans  *tracetest.InMemoryExporter
	traces *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	meters *sdkmetric.MeterProvider
	log    *buffer
}

func inBubble(t *testing.T, fn func(fx *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fx := &fixture{T: t, store: memstore.New(), spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader(), log: &buffer{}}
		fx.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(fx.spans))
		fx.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(fx.reader))
		fn(fx)
	})
}

// buffer holds log output.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (fx *fixture) config() otelweaver.Config {
	return otelweaver.Config{TracerProvider: fx.traces, MeterProvider: fx.meters, Logger: fx.logger()}
}

func (fx *fixture) logger() *slog.Logger { return slog.New(slog.NewTextHandler(fx.log, nil)) }

// run starts an engine, which stops at the end of the test or by stop.
func (fx *fixture) run(cfg weaver.Config) (eng *weaver.Engine, stop func()) {
	fx.Helper()
	cfg.Logger = fx.logger()
	eng, err := weaver.New(fx.store, cfg)
	if err != nil {
		fx.Fatal(err)
	}
	ctx, cancel := context.WithCancel(fx.Context())
	done := make(chan error, 1)
	go func() { done <- eng.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			fx.Errorf("Run: %v", err)
		}
	})
	fx.Cleanup(stop)
	return eng, stop
}

// with starts an engine with the plug-in.
func (fx *fixture) with(handlers ...weaver.Handler) *weaver.Engine {
	fx.Helper()
	eng, _ := fx.run(weaver.Config{Plugins: []weaver.Plugin{otelweaver.New(fx.config())}, Handlers: handlers})
	return eng
}

func enqueue[In, Out any](fx *fixture, ctx context.Context, e weaver.Enqueuer, typ *weaver.Type[In, Out], in In, opts ...weaver.EnqueueOption) *weaver.Handle[Out] {
	fx.Helper()
	h, err := typ.Enqueue(ctx, e, in, opts...)
	if err != nil {
		fx.Fatal(err)
	}
	return h
}

func result[Out any](fx *fixture, h *weaver.Handle[Out]) Out {
	fx.Helper()
	out, err := h.Wait(fx.Context())
	if err != nil {
		fx.Fatalf("Wait: %v\n%s", err, fx.log)
	}
	synctest.Wait() // the end of the attempt is emitted after it is durable
	return out
}

// named returns the spans with a name, in order of their ends.
func (fx *fixture) named(name string, want int) []tracetest.SpanStub {
	fx.Helper()
	var got []tracetest.SpanStub
	var all []string
	for _, s := range fx.spans.GetSpans() {
		all = append(all, s.Name)
		if s.Name == name {
			got = append(got, s)
		}
	}
	if len(got) != want {
		fx.Fatalf("%d spans %q, want %d; all: %q", len(got), name, want, all)
	}
	return got
}

// attr returns an attribute of a span as text, or "".
func attr(attrs []attribute.KeyValue, key string) string {
	for _, a := range attrs {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func (fx *fixture) wantAttrs(s tracetest.SpanStub, pairs ...string) {
	fx.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := attr(s.Attributes, pairs[i]); got != pairs[i+1] {
			fx.Errorf("%s: %s = %q, want %q", s.Name, pairs[i], got, pairs[i+1])
		}
	}
}

// linked returns the linked spans of a span, by the kind of link.
func linked(s tracetest.SpanStub) map[string]trace.SpanID {
	ids := make(map[string]trace.SpanID)
	for _, l := range s.Links {
		ids[attr(l.Attributes, "weaver.link")] = l.SpanContext.SpanID()
	}
	return ids
}

// collect returns the metrics by name.
func (fx *fixture) collect() map[string]metricdata.Aggregation {
	fx.Helper()
	var rm metricdata.ResourceMetrics
	if err := fx.reader.Collect(fx.Context(), &rm); err != nil {
		fx.Fatal(err)
	}
	all := make(map[string]metricdata.Aggregation)
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			all[m.Name] = m.Data
		}
	}
	return all
}

// count returns the value of a counter or gauge for the given attributes.
func count(data metricdata.Aggregation, pairs ...string) (n int64) {
	var points []metricdata.DataPoint[int64]
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		points = d.DataPoints
	case metricdata.Gauge[int64]:
		points = d.DataPoints
	}
	for _, p := range points {
		if matches(p.Attributes, pairs) {
			n += p.Value
		}
	}
	return n
}

func matches(set attribute.Set, pairs []string) bool {
	for i := 0; i < len(pairs); i += 2 {
		if attr(set.ToSlice(), pairs[i]) != pairs[i+1] {
			return false
		}
	}
	return true
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in:\n%s", word, text)
		}
	}
}

var errBank = errors.New("the bank does not answer")
