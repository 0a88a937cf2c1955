package weaver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
)

// OnStoreCall sees the engine's store calls; a panic in it has no effect.
func TestOnStoreCall(t *testing.T) {
	typ := weaver.Define[string, int]("engine.calls.run.v1")
	inBubble(t, func(fx *fixture) {
		var mu sync.Mutex
		calls := make(map[string]int)
		plugin := weaver.PluginFunc(func(s *weaver.Setup) error {
			s.OnStoreCall(func(string, time.Duration, error) { panic("boom") })
			s.OnStoreCall(func(op string, took time.Duration, err error) {
				mu.Lock()
				defer mu.Unlock()
				calls[op]++
				if took < 0 || took > time.Minute || err != nil {
					fx.Errorf("%s took %v, %v", op, took, err)
				}
			})
			return nil
		})
		e := fx.runConfig(fx.store, weaver.Config{Plugins: []weaver.Plugin{plugin}, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (int, error) {
			time.Sleep(time.Minute)
			return 1, weaver.Do(ctx, "s", func(context.Context) error { return nil })
		})}})
		h := enqueue(fx, typ, "")
		_, err := h.Wait(fx.Context())
		fx.must(err)
		synctest.Wait() // wait for running calls, which a stop would interrupt
		fx.must(e.stop())
		mu.Lock()
		defer mu.Unlock()
		if calls["claim"]+calls["claim_or_wait"] == 0 {
			fx.Errorf("no claim: %v", calls)
		}
		for _, op := range []string{"join", "heartbeat", "record", "finish", "reap", "write_stats"} {
			if calls[op] == 0 {
				fx.Errorf("no %s: %v", op, calls)
			}
		}
	})
}
