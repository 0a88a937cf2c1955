// Package otelweaver connects Weaver with OpenTelemetry: a plug-in for engines and
// clients that makes spans and metrics, carries the trace context with the tasks, and
// names trace and span in the lines of weaver.Log.
//
//	plugin := otelweaver.New(otelweaver.Config{})
//	eng, err := weaver.New(db, weaver.Config{Plugins: []weaver.Plugin{plugin}, …})
//	client, err := weaver.NewClient(db, weaver.ClientConfig{Plugins: []weaver.Plugin{plugin}})
//
// The trace context is kept in the metadata of the task, under the names of the
// propagator (traceparent, tracestate, baggage), so that it gets to a worker in another
// process. What a handler stores (Start, Call, Decompose, Submit) gets the context of its
// attempt, or of a span that the handler made.
//
// Spans:
//
//   - "enqueue TYPE" (producer): a call of Enqueue and the like.
//   - "run TYPE" (consumer): an attempt, until its end is durable. Its parent is the span
//     that enqueued the task (but see Config.NewTraces), and it has links to that one and
//     to the attempt before, across sleeps, retries and processes.
//   - "step NAME" (internal): one run of the function of a step. A step whose value is
//     recorded has none.
//
// Metrics: weaver.task.enqueued, weaver.attempt.finished by outcome,
// weaver.attempt.duration, weaver.task.wait, weaver.lease.lost, and with ObserveQueues
// weaver.queue.depth.
//
// It uses the API of OpenTelemetry only: a program that sets no SDK up pays next to
// nothing. A provider that panics touches no task; the panic is logged. The attempt whose
// process dies has no span, as it was not exported.
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
	Propagator     propagation.TextMapPropagator // default otel.GetTextMapPropagator(), or W3C trace context and baggage if New finds none set there
	Logger         *slog.Logger                  // gets the panics of providers; default slog.Default()

	// NewTraces has each attempt begin a trace of its own, with a link to the span that
	// enqueued the task: for tasks that live for days, and for producers whose sampling
	// should not decide for the worker. Baggage travels all the same.
	NewTraces bool
}

// Plugin is the plug-in. It can be given to several engines and clients, and is safe
// for concurrent use.
type Plugin struct {
	tracer     trace.Tracer
	meter      metric.Meter
	propagator propagation.TextMapPropagator
	log        *slog.Logger
	newTraces  bool

	instruments
	problem error // of New, reported by Install

	options  sync.Map    // labels → metric.MeasurementOption
	idle     atomic.Bool // the last span was none: there is no SDK
	attempts sync.Map    // attemptKey → *attempt: those whose end has not come
	orphans  orphans
}

// New returns a plug-in. Install, which weaver.New and weaver.NewClient call, reports
// what is wrong with the providers.
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

// guard calls the code of a provider, whose panic touches no task.
func (p *Plugin) guard(what string, fn func()) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("otelweaver: a provider of OpenTelemetry panicked", "in", what, "panic", r)
		}
	}()
	fn()
}
