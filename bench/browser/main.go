// Command browser is Weaver's program in the benchmark of tabs.
package main

import (
	"context"
	"strconv"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/browser"
)

var (
	oneStep  = weaver.Define[int, int]("bench.tab.step.v1")
	sequence = weaver.Define[int, int]("bench.tab.sequence.v1")
)

func main() {
	double := oneStep.Handler(func(ctx context.Context, i int) (int, error) {
		return weaver.Step(ctx, "double", func(context.Context) (int, error) { return 2 * i, nil })
	})
	sum := sequence.Handler(func(ctx context.Context, n int) (sum int, err error) {
		for i := range n {
			v, err := weaver.Step(ctx, "s"+strconv.Itoa(i), func(context.Context) (int, error) { return i, nil })
			if err != nil {
				return 0, err
			}
			sum += v
		}
		return sum, nil
	})
	browser.Main(browser.Config{File: "bench.db", Engine: weaver.Config{Handlers: []weaver.Handler{double, sum}, Concurrency: 100}})
}
