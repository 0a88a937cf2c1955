package weavertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// A task that decomposes runs with its children, which sleep, and is killed while it reports them.
func TestRunDecompose(t *testing.T) {
	whole := weaver.Define[int, string]("acme.order.settle.v1")
	everywhere(t, func(t *testing.T) {
		e := weavertest.New(t,
			charge.Handler(func(ctx context.Context, n int) (string, error) {
				return fmt.Sprint("charged ", n), weaver.Sleep(ctx, "settle", time.Hour)
			}),
			whole.Handler(func(ctx context.Context, n int) (string, error) {
				base, err := weaver.Step(ctx, "base", func(context.Context) (int, error) { return 10 * n, nil })
				if err != nil {
					return "", err
				}
				children, err := weaver.Children(ctx)
				switch {
				case err != nil:
					return "", err
				case len(children) == 0:
					return "", weaver.Decompose(weaver.JoinRerun, charge.With(base+1), charge.With(base+2))
				}
				return charge.OutputOf(children[1])
			}))
		if out := weavertest.Run(t, e, whole, 1); out != "charged 12" {
			t.Errorf("Run: %q", out)
		}
		if out := weavertest.Replay(t, e, whole, 2); out != "charged 22" {
			t.Errorf("Replay: %q", out)
		}
	})
}
