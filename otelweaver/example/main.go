// Command example prints the spans and metrics of otelweaver for a task that is retried, sleeps, and starts another
// task.
//
//	cd otelweaver && go run ./example
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/otelweaver"
	"github.com/goweaver/weaver/store/sqlite"
)

var (
	charge = weaver.Define[int, string]("acme.billing.charge.v1", weaver.Backoff(10*time.Millisecond))
	mail   = weaver.Define[string, weaver.None]("acme.mail.send.v1")
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(out), stdouttrace.WithPrettyPrint())
	if err != nil {
		return err
	}
	measures, err := stdoutmetric.New(stdoutmetric.WithWriter(out), stdoutmetric.WithPrettyPrint())
	if err != nil {
		return err
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(measures)))
	defer func() { // exports the rest
		err = errors.Join(err, tracers.Shutdown(ctx), meters.Shutdown(ctx))
	}()

	db, err := sqlite.OpenMemory(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	plugin := otelweaver.New(otelweaver.Config{TracerProvider: tracers, MeterProvider: meters})
	eng, err := weaver.New(db, weaver.Config{
		Logger:   slog.New(slog.NewTextHandler(out, nil)),
		Plugins:  []weaver.Plugin{plugin},
		Handlers: []weaver.Handler{charge.Handler(pay), mail.Handler(send)},
	})
	if err != nil {
		return err
	}
	stop, err := plugin.ObserveQueues(eng.Client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	h, err := charge.Enqueue(ctx, eng, 42)
	if err != nil {
		return err
	}
	// RunUntilIdle leaves tasks that are due later, such as retries and sleeps: repeat it until the end.
	for {
		if err := eng.RunUntilIdle(ctx); err != nil {
			return err
		}
		info, err := h.Get(ctx)
		if err != nil || info.State.Terminal() {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func pay(ctx context.Context, amount int) (string, error) {
	receipt, err := weaver.Step(ctx, "pay", func(ctx context.Context) (string, error) {
		weaver.Log(ctx).Info("charging", "amount", amount) // with trace_id and span_id
		if weaver.Current(ctx).AttemptNo == 1 {
			return "", errors.New("the bank does not answer")
		}
		return fmt.Sprintf("receipt of %d", amount), nil
	})
	if err != nil {
		return "", err
	}
	if err := weaver.Sleep(ctx, "cool-down", 20*time.Millisecond); err != nil {
		return "", err
	}
	_, err = weaver.Start(ctx, "mail", mail, receipt)
	return receipt, err
}

func send(ctx context.Context, text string) (weaver.None, error) {
	weaver.Log(ctx).Info("mailed", "text", text)
	return weaver.None{}, nil
}
