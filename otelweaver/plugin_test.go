package otelweaver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/otelweaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		plugin := otelweaver.New(fx.config())
		cfg := weaver.Config{Concurrency: 1, Plugins: []weaver.Plugin{plugin}, Handlers: []weaver.Handler{pay.Handler(func(_ context.Context, n int) (string, error) {
			time.Sleep(3 * time.Second)
			if n == 0 {
				return "", weaver.Permanent(errBank)
			}
			return "done", nil
		})}}
		eng, _ := fx.run(cfg)
		stop, err := plugin.ObserveQueues(eng.Client)
		if err != nil {
			fx.Fatal(err)
		}
		first := enqueue(fx, fx.Context(), eng, pay, 0, weaver.IdempotencyKey("k"))
		enqueue(fx, fx.Context(), eng, pay, 0, weaver.IdempotencyKey("k"))
		second := enqueue(fx, fx.Context(), eng, pay, 1)
		enqueue(fx, fx.Context(), eng, pay, 1, weaver.Delay(time.Hour))
		time.Sleep(time.Second)
		m := fx.collect()
		equal(fx, "due", count(m["weaver.queue.depth"], "weaver.queue", "billing", "weaver.due", "now"), 1)
		equal(fx, "due later", count(m["weaver.queue.depth"], "weaver.queue", "billing", "weaver.due", "later"), 1)
		if _, err := first.Wait(fx.Context()); err == nil {
			fx.Fatal("no error")
		}
		result(fx, second)
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			fx.Fatal(err)
		}
		m = fx.collect()
		equal(fx, "the gauge after its stop", m["weaver.queue.depth"], nil)
		equal(fx, "enqueued", count(m["weaver.task.enqueued"], "weaver.queue", "billing", "weaver.task.type", pay.Name()), 3)
		equal(fx, "failures", count(m["weaver.attempt.finished"], "weaver.outcome", "failure", "weaver.queue", "billing"), 1)
		equal(fx, "successes", count(m["weaver.attempt.finished"], "weaver.outcome", "success", "weaver.queue", "billing"), 1)
		for name, want := range map[string]float64{"weaver.attempt.duration": 6, "weaver.task.wait": 3} {
			var n uint64
			var sum float64
			for _, p := range m[name].(metricdata.Histogram[float64]).DataPoints {
				n, sum = n+p.Count, sum+p.Sum
			}
			equal(fx, name+": count", n, 2)
			if sum < want || sum > want+0.1 {
				fx.Errorf("%s: sum = %v, want about %v", name, sum, want)
			}
		}
	})
}

func TestLeaseLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		client, err := weaver.NewClient(fx.store, weaver.ClientConfig{})
		if err != nil {
			fx.Fatal(err)
		}
		h := enqueue(fx, fx.Context(), client, pay, 1)
		// A worker takes the task and goes silent.
		worker := store.WorkerID("silent")
		if err := fx.store.Join(fx.Context(), "default", store.WorkerInfo{ID: worker, Name: "silent", TTL: time.Second}); err != nil {
			fx.Fatal(err)
		}
		got, err := fx.store.Claim(fx.Context(), "default", store.ClaimRequest{
			Worker: worker, Name: "silent", LeaseID: task.NewLeaseID(), TTL: time.Second, Limit: 1, Slots: 1, Types: map[string]int{pay.Name(): 1},
		})
		if err != nil || len(got.Tasks) != 1 {
			fx.Fatalf("claimed %d tasks: %v", len(got.Tasks), err)
		}
		fx.with(pay.Handler(func(context.Context, int) (string, error) { return "done", nil }))
		result(fx, h)
		m := fx.collect()
		equal(fx, "leases lost", count(m["weaver.lease.lost"], "weaver.task.type", pay.Name()), 1)
		equal(fx, "attempts lost", count(m["weaver.attempt.finished"], "weaver.outcome", "lease_lost"), 1)
		equal(fx, "links of the attempt that follows", len(fx.named("run acme.shop.pay.v1", 1)[0].Links), 0)
	})
}

func TestLog(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		eng := fx.with(pay.Handler(func(ctx context.Context, _ int) (string, error) {
			weaver.Log(ctx).Info("in the handler")
			return "", weaver.Do(ctx, "s", func(ctx context.Context) error {
				weaver.Log(ctx).Info("in the step")
				return nil
			})
		}))
		result(fx, enqueue(fx, fx.Context(), eng, pay, 1))
		for line, span := range map[string]string{"in the handler": "run acme.shop.pay.v1", "in the step": "step s"} {
			sc := fx.named(span, 1)[0].SpanContext
			for text := range strings.Lines(fx.log.String()) {
				if strings.Contains(text, line) {
					contains(fx, text, "trace_id="+sc.TraceID().String(), "span_id="+sc.SpanID().String())
				}
			}
			contains(fx, fx.log.String(), line)
		}
	})
}

// Without an SDK tasks have no trace context, and everything else works.
func TestWithoutSDK(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		plugin := otelweaver.New(otelweaver.Config{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider()})
		eng, _ := fx.run(weaver.Config{Plugins: []weaver.Plugin{plugin}, Handlers: []weaver.Handler{pay.Handler(func(ctx context.Context, _ int) (string, error) {
			weaver.Log(ctx).Info("a line")
			return "done", weaver.Sleep(ctx, "s", time.Hour)
		})}})
		h := enqueue(fx, fx.Context(), eng, pay, 1)
		result(fx, h)
		info, err := h.Get(fx.Context())
		if err != nil {
			fx.Fatal(err)
		}
		equal(fx, "metadata", len(info.Metadata), 0)
		history, err := eng.History(fx.Context(), h.ID())
		if err != nil {
			fx.Fatal(err)
		}
		for _, a := range history.Attempts {
			equal(fx, "notes", len(a.Notes), 0)
		}
		equal(fx, "trace_id in the log", strings.Contains(fx.log.String(), "trace_id"), false)
	})
}

func TestProviderThatPanics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		cfg := fx.config()
		cfg.TracerProvider = panicking{}
		eng, _ := fx.run(weaver.Config{Plugins: []weaver.Plugin{otelweaver.New(cfg)}, Handlers: []weaver.Handler{pay.Handler(func(ctx context.Context, _ int) (string, error) {
			return weaver.Step(ctx, "s", func(context.Context) (string, error) { return "done", nil })
		})}})
		equal(fx, "output", result(fx, enqueue(fx, fx.Context(), eng, pay, 1)), "done")
		contains(fx, fx.log.String(), "in=enqueue", "in=handler", "in=step", "no collector")
		equal(fx, "attempts are counted all the same", count(fx.collect()["weaver.attempt.finished"], "weaver.outcome", "success"), 1)
	})
}

type panicking struct{ tracenoop.TracerProvider }

func (panicking) Tracer(string, ...trace.TracerOption) trace.Tracer { return panickingTracer{} }

type panickingTracer struct{ tracenoop.Tracer }

func (panickingTracer) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	panic("no collector")
}

// deadMeters creates no instruments.
type deadMeters struct{ metricnoop.MeterProvider }

func (deadMeters) Meter(string, ...metric.MeterOption) metric.Meter { return deadMeter{} }

type deadMeter struct{ metricnoop.Meter }

func (deadMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no meter today")
}

func TestInstallErrors(t *testing.T) {
	t.Parallel()
	inBubble(t, func(fx *fixture) {
		refuses := func(p *otelweaver.Plugin, words ...string) {
			fx.Helper()
			_, err := weaver.New(fx.store, weaver.Config{Plugins: []weaver.Plugin{p}})
			if !errors.Is(err, weaver.ErrConfig) {
				fx.Fatalf("the error is %v", err)
			}
			contains(fx, err.Error(), words...)
		}
		cfg := fx.config()
		cfg.MeterProvider = deadMeters{}
		refuses(otelweaver.New(cfg), "Plugins[0]", "no meter today")
		refuses(nil, "make it with New")
		refuses(new(otelweaver.Plugin), "make it with New")
		if _, err := otelweaver.New(cfg).ObserveQueues(nil); err == nil {
			fx.Error("ObserveQueues(nil) gave no error")
		}
	})
}
