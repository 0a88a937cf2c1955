package weaver_test

import (
	"context"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
)

func TestStoreOutage(t *testing.T) {
	typ := weaver.Define[int, int]("engine.gone.run.v1", weaver.NoRetry())
	subtest(t, "loses nothing and costs no attempt", func(fx *fixture) {
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Concurrency: 5, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			time.Sleep(10 * time.Second)
			return weaver.Step(ctx, "once", func(context.Context) (int, error) { return n * n, nil })
		})}})
		var hs []*weaver.Handle[int]
		for n := range 60 {
			hs = append(hs, enqueue(fx, typ, n))
		}
		for range 4 {
			time.Sleep(15 * time.Second)
			f.cut()
			time.Sleep(2 * store.DefaultLease)
			f.mend()
		}
		for n, h := range hs {
			equal(fx, "output", result(fx, h), n*n)
			got := fx.get(h.ID())
			equal(fx, "attempts that count", got.AttemptCount, 1)
			equal(fx, "crashes", got.CrashCount, 0)
			if got.StepCount != 1 {
				fx.Errorf("task %d has %d completed steps", n, got.StepCount)
			}
		}
	})

	subtest(t, "fails an enqueue", func(fx *fixture) {
		f := newFaults(fx)
		client, err := weaver.NewClient(f.store, weaver.ClientConfig{})
		fx.must(err)
		f.cut()
		_, err = typ.Enqueue(fx.Context(), client, 1)
		wantError(fx, err, store.ErrUnavailable, "enqueue")
	})

	subtest(t, "fails the start of a worker", func(fx *fixture) {
		f := newFaults(fx)
		f.cut()
		wantError(fx, fx.newEngine(f.store, weaver.Config{}).Run(fx.Context()), store.ErrUnavailable, "join as a worker")
	})

	subtest(t, "does not block a drain", func(fx *fixture) {
		f := newFaults(fx)
		running := make(chan struct{})
		e := fx.start(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			close(running)
			time.Sleep(time.Second)
			return n, nil
		})}})
		h := enqueue(fx, typ, 7)
		<-running
		f.cut()
		began := time.Now()
		wantError(fx, e.stop(), store.ErrUnavailable, "leave as a worker")
		if took := time.Since(began); took > 10*time.Second {
			fx.Errorf("the drain took %s", took)
		}
		equal(fx, "lines about the lost result", len(fx.log.lines(fx, "the result of an attempt could not be written")), 1)
		f.mend()
		fx.run(typ.Handler(func(_ context.Context, n int) (int, error) { return n, nil }))
		equal(fx, "output", result(fx, h), 7)
	})
}
