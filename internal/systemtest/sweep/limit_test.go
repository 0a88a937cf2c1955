package sweep_test

import (
	"context"
	"slices"
	"time"

	"github.com/goweaver/weaver"
)

// limitCases test limits: they hold whatever fails, and no task waits for ever.
var limitCases = []testCase{{
	name:      "limits",
	onFile:    true,
	cfg:       weaver.Config{Limits: map[string]weaver.Limit{"queue:narrow": {Running: 2}}},
	tolerates: "the attempt that asks the key to rest may be another one, or its request may be lost",
	handlers: handles(typeN, func(ctx context.Context, fx *fixture, n int) (int, error) {
		letGo := fx.hold(ctx, "narrow", 2)
		defer letGo()
		if n == 0 {
			cur := weaver.Current(ctx)
			h, err := fx.backend.observer.History(ctx, cur.Namespace, cur.TaskID)
			if err != nil {
				return 0, err
			}
			if h.Task.AttemptCount == 0 {
				fx.mark("slow")
				return 0, weaver.SlowDown("partner", 2*time.Second)
			}
		}
		return n, rest(ctx, 150*time.Millisecond)
	}),
	run: func(fx *fixture) {
		fx.must(fx.client.SetLimit(fx.ctx, "label:tenant=a", weaver.Limit{Running: 1, Weight: 2}))
		var hs []*weaver.Handle[int]
		for n, tenant := range []string{"a", "b", "a", "b", "a", "b"} {
			hs = append(hs, enqueue(fx, typeN, n, weaver.Queue("narrow"), weaver.RateLimit("partner", 5, time.Second, 2), weaver.FairBy("tenant"), weaver.Label("tenant", tenant)))
		}
		fx.await("slow")
		fx.must(fx.client.DeleteLimit(fx.ctx, "label:tenant=a"))
		var starts []time.Time
		for n, h := range hs {
			succeeds(fx, h, n)
			found, err := fx.client.History(fx.ctx, h.ID())
			fx.must(err)
			for _, a := range found.Attempts {
				starts = append(starts, a.StartedAt)
			}
		}
		slices.SortFunc(starts, time.Time.Compare)
		for i := 5 + 2; i < len(starts); i++ {
			if starts[i].Sub(starts[i-5-2]) <= time.Second {
				fx.errorf("more than 7 of the starts %v are in a second", starts)
			}
		}
	},
}}
