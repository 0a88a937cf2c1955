package main

import (
	"context"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/otelweaver"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// otel compares tasks with one step without and with otelweaver and no-op providers: the cost of the plug-in itself.
func (r *report) otel(ctx context.Context) error {
	traced := func(n int, plugins ...weaver.Plugin) (float64, error) {
		h := stepType.Handler(func(ctx context.Context, i int) (int, error) {
			return weaver.Step(ctx, "double", func(context.Context) (int, error) { return 2 * i, nil })
		})
		return throughput(ctx, n, full, h, func(i int) weaver.Draft { return stepType.With(i) }, plugins...)
	}
	plugin := otelweaver.New(otelweaver.Config{
		TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), Logger: quiet,
	})
	f, err := r.measure(
		func() (float64, error) { return traced(r.n / 2) },
		func() (float64, error) { return traced(r.n/2, plugin) },
	)
	if err != nil {
		return err
	}
	r.row("one-step tasks/s, otelweaver without SDK, FULL", f[1].String(), "without "+f[0].String(), ratio(f[1].median()/f[0].median()))
	return nil
}
