package otelweaver_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/otelweaver"
	"github.com/goweaver/weaver/store/memstore"
)

func ExampleNew() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in a program: an OTLP exporter
	plugin := otelweaver.New(otelweaver.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})

	greet := weaver.Define[string, string]("acme.demo.greet.v1")
	eng, err := weaver.New(memstore.New(), weaver.Config{
		Plugins: []weaver.Plugin{plugin},
		Handlers: []weaver.Handler{greet.Handler(func(ctx context.Context, name string) (string, error) {
			return weaver.Step(ctx, "greet", func(context.Context) (string, error) { return "hello " + name, nil })
		})},
	})
	if err == nil {
		_, err = greet.Enqueue(ctx, eng, "Ada")
	}
	if err == nil {
		err = eng.RunUntilIdle(ctx)
	}
	if err != nil {
		panic(err)
	}
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// enqueue acme.demo.greet.v1
	// step greet
	// run acme.demo.greet.v1
}
