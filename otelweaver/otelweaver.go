// Package otelweaver connects Weaver with OpenTelemetry. Its plug-in for engines and clients creates spans and
// metrics, propagates the trace context with the tasks, and adds trace and span IDs to the lines of weaver.Log.
//
//	plugin := otelweaver.New(otelweaver.Config{})
//	eng, err := weaver.New(db, weaver.Config{Plugins: []weaver.Plugin{plugin}, …})
//	client, err := weaver.NewClient(db, weaver.ClientConfig{Plugins: []weaver.Plugin{plugin}})
//
// The trace context is stored in the metadata of the task, under the keys of the propagator (traceparent, tracestate,
// baggage), so that it reaches workers in other processes. Tasks stored by a handler (Start, Call, Decompose, Submit)
// get the context of its attempt, or of a span created by the handler.
//
// Spans:
//
//   - "enqueue TYPE" (producer): a call of Enqueue or a similar function.
//   - "run TYPE" (consumer): an attempt, until its end is durable. Its parent is the
//     span that enqueued the task (but see Config.NewTraces). It has links to that
//     span and to the previous attempt, across sleeps, retries and processes.
//   - "step NAME" (internal): one run of the function of a step. A replayed step
//     has no span.
//
// Metrics: weaver.task.enqueued, weaver.attempt.finished by outcome, weaver.attempt.duration, weaver.task.wait,
// weaver.lease.lost, and with ObserveQueues weaver.queue.depth.
//
// The package uses only the API of OpenTelemetry: the cost is negligible in a program without an SDK. A panic of a
// provider is logged and does not affect tasks. An attempt whose process dies has no span, because the span was not
// exported.
package otelweaver

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/goweaver/weaver"
)

// scope names the instrumentation.
const scope = "github.com/goweaver/weaver/otelweaver"

// Config configures a Plugin. The zero value works.
type Config struct {
	TracerProvider trace.TracerProvider          // default otel.GetTracerProvider()
	MeterProvider  metric.MeterProvider          // default otel.GetMeterProvider()
	Propagator     propagation.TextMapPropagator // default otel.GetTextMapPropagator(), or W3C trace context and baggage if that is unset when New is called
	Logger         *slog.Logger                  // logs the panics of providers; default slog.Default()

	// NewTraces makes each attempt begin a new trace, with a link to the span that enqueued the task. Use it for
	// tasks that live for days, and for producers whose sampling should not decide for the worker. Baggage is still
	// propagated.
	NewTraces bool
}

// Plugin is the plug-in. Several engines and clients may share it, and it is safe for concurrent use.
type Plugin struct {
	tracer     trace.Tracer
	meter      metric.Meter
	propagator propagation.TextMapPropagator
	log        *slog.Logger
	newTraces  bool

	instruments
	problem error // of New, returned by Install

	options  sync.Map    // labels → metric.MeasurementOption
	idle     atomic.Bool // the last span was a no-op: there is no SDK
	attempts sync.Map    // attemptKey → *attempt: attempts that have not ended
	orphans  orphans
}

// New returns a plug-in. Install, called by weaver.New and weaver.NewClient, returns errors of the providers.
func New(cfg Config) *Plugin {
	p := &Plugin{propagator: cfg.Propagator, log: cfg.Logger, newTraces: cfg.NewTraces}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.problem = errors.New("the provider panicked, see the log")
	p.guard("New", func() { p.problem = p.connect(cfg) })
	return p
}

func (p *Plugin) connect(cfg Config) (err error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if p.propagator == nil {
		if p.propagator = otel.GetTextMapPropagator(); len(p.propagator.Fields()) == 0 {
			p.propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
		}
	}
	p.tracer = cfg.TracerProvider.Tracer(scope)
	p.meter = cfg.MeterProvider.Meter(scope)
	p.instruments, err = newInstruments(p.meter)
	return err
}

// Install implements weaver.Plugin.
func (p *Plugin) Install(s *weaver.Setup) error {
	if p == nil || p.log == nil {
		return errors.New("otelweaver: the plug-in is empty: make it with New")
	}
	if p.problem != nil {
		return fmt.Errorf("otelweaver: %w", p.problem)
	}
	s.WrapEnqueue(p.wrapEnqueue)
	s.WrapHandler(p.wrapHandler)
	s.WrapStep(p.wrapStep)
	s.InjectMetadata(p.inject)
	s.OnStored(p.onStored)
	s.LogAttrs(logAttrs)
	s.OnAttempt(p.onEvent)
	return nil
}

// guard calls code of a provider and recovers from its panics.
func (p *Plugin) guard(what string, fn func()) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("otelweaver: a provider of OpenTelemetry panicked", "in", what, "panic", r)
		}
	}()
	fn()
}
