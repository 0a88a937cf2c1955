//go:build !js

package httpapi_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/httpapi"
	"github.com/goweaver/weaver/store/memstore"
)

// An engine's metrics and its store's metrics in the program's registry.
func ExampleNewMetrics() {
	ctx := context.Background()
	metrics := httpapi.NewMetrics()
	greet := weaver.Define[string, string]("acme.demo.greet.v1")
	eng, err := weaver.New(memstore.New(), weaver.Config{
		Plugins:  []weaver.Plugin{metrics},
		Handlers: []weaver.Handler{greet.Handler(func(_ context.Context, name string) (string, error) { return "hello " + name, nil })},
	})
	if err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics, httpapi.NewStoreMetrics(eng.Client, nil))

	if _, err = greet.Enqueue(ctx, eng, "Ada"); err == nil {
		err = eng.RunUntilIdle(ctx)
	}
	if err != nil {
		panic(err)
	}
	n, err := testutil.GatherAndCount(registry, "weaver_attempts_total", "weaver_store_up")
	fmt.Println(n, err)
	// Output: 2 <nil>
}
