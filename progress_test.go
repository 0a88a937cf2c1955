package weaver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

func TestProgress(t *testing.T) {
	typ := weaver.Define[int, int]("engine.progress.run.v1")

	subtest(t, "is written every 200 ms at most, and the latest always", func(fx *fixture) {
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			for i := range 1000 { // for ten seconds
				if err := weaver.Progress(ctx, float64(i), 1000); err != nil {
					return 0, err
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Minute) // quiet: the last report is written before the end
			return n, nil
		})}})
		h := enqueue(fx, typ, 1)
		time.Sleep(5*time.Second + time.Millisecond)
		if got := fx.get(h.ID()).Progress; got == nil || got.Current < 470 || got.Current > 501 {
			fx.Errorf("progress after 5s = %+v, want about 500", got)
		}
		time.Sleep(10 * time.Second)
		if got := fx.get(h.ID()).Progress; got == nil || got.Current != 999 {
			fx.Errorf("progress of a quiet handler = %+v, want the last report", got)
		}
		if n := f.count("Record"); n < 45 || n > 55 {
			fx.Errorf("%d writes for 1000 reports in 10s, want about 50", n)
		}
		result(fx, h)
	})

	subtest(t, "of the end comes with the end", func(fx *fixture) {
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			return n, errors.Join(weaver.Progress(ctx, 1, 2), weaver.Progress(ctx, 2, 2, "done"))
		})}})
		h := enqueue(fx, typ, 1)
		result(fx, h)
		equal(fx, "progress", *fx.get(h.ID()).Progress, task.Progress{Current: 2, Total: 2, Message: "done"})
		equal(fx, "writes", f.count("Record"), 1)
	})

	subtest(t, "that is no number is refused", func(fx *fixture) {
		var errs []error
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			zero := 0.0
			errs = append(errs, weaver.Progress(ctx, zero/zero, 1), weaver.Progress(ctx, 1, 1/zero))
			return n, nil
		}))
		h := enqueue(fx, typ, 1)
		result(fx, h)
		for _, err := range errs {
			wantError(fx, err, nil, "progress", "want finite numbers")
		}
		equal(fx, "progress", fx.get(h.ID()).Progress, nil)
	})

	subtest(t, "that could not be written comes with the end", func(fx *fixture) {
		f := newFaults(fx)
		fx.runConfig(f.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, n int) (int, error) {
			f.cut()
			if err := weaver.Progress(ctx, 1, 2); err != nil {
				fx.Errorf("Progress ends an attempt for %v", err)
			}
			f.mend()
			return n, nil
		})}})
		h := enqueue(fx, typ, 1)
		result(fx, h)
		equal(fx, "progress", *fx.get(h.ID()).Progress, task.Progress{Current: 1, Total: 2})
	})
}

func TestProgressAfterTheEnd(t *testing.T) {
	typ := weaver.Define[string, string]("engine.progress.late.v1", weaver.NoRetry())

	subtest(t, "of a goroutine that outlived its handler is refused", func(fx *fixture) {
		ended, done := make(chan struct{}), make(chan error, 1)
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			go func() {
				<-ended
				done <- weaver.Progress(ctx, 1, 2)
			}()
			return "ok", nil
		}))
		h := enqueue(fx, typ, "")
		result(fx, h)
		close(ended)
		wantError(fx, <-done, weaver.ErrAttemptOver)
		equal(fx, "progress", fx.get(h.ID()).Progress, nil)
	})

	subtest(t, "of an attempt whose context ended is refused", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			err := weaver.Progress(ctx, 1, 2)
			wantError(fx, err, weaver.ErrCancelled)
			return "", err
		}))
		h := enqueue(fx, typ, "")
		synctest.Wait()
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		fails(fx, h)
		equal(fx, "progress", fx.get(h.ID()).Progress, nil)
	})

	subtest(t, "that could not be written does not replace a newer one", func(fx *fixture) {
		s := newFaults(fx)
		var refused atomic.Int32
		s.hooks.Record = func(context.Context, []store.Record, func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
			time.Sleep(50 * time.Millisecond)
			refused.Add(1)
			return nil, store.ErrUnavailable
		}
		fx.runConfig(s.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			first := make(chan error, 1)
			go func() { first <- weaver.Progress(ctx, 1, 2) }()
			time.Sleep(10 * time.Millisecond)
			err := weaver.Progress(ctx, 2, 2)
			return "ok", errors.Join(err, <-first)
		})}})
		h := enqueue(fx, typ, "")
		result(fx, h)
		if got := fx.get(h.ID()).Progress; got == nil || got.Current != 2 || refused.Load() == 0 {
			fx.Errorf("progress = %+v, %d reports were refused, want the newer report after one", got, refused.Load())
		}
	})
}

func TestProgressIsStored(t *testing.T) {
	typ := weaver.Define[int, int]("engine.progress.run.v1")

	subtest(t, "progress is stored, readable, and survives a resume", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, n int) (int, error) {
			if weaver.Current(ctx).AttemptNo == 1 {
				if err := weaver.Progress(ctx, 10, 100, "fetched"); err != nil {
					return 0, err
				}
				return 0, errors.New("again, please")
			}
			time.Sleep(time.Minute)
			return n, weaver.Progress(ctx, 12.5, 0)
		}))
		h := enqueue(fx, typ, 1)
		time.Sleep(30 * time.Second) // in the second attempt, before it reports
		equal(fx, "attempt", fx.get(h.ID()).AttemptNo, 2)
		if got := fx.get(h.ID()).Progress; got == nil || *got != (task.Progress{Current: 10, Total: 100, Message: "fetched"}) {
			fx.Errorf("progress = %+v", got)
		}
		result(fx, h)
		if got := fx.get(h.ID()).Progress; got == nil || *got != (task.Progress{Current: 12.5}) {
			fx.Errorf("progress at the end = %+v, want the last report without a total", got)
		}
		equal(fx, "recorded steps", len(fx.history(h.ID()).Steps), 0)
	})
}
