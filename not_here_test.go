package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store/memstore"
	"github.com/goweaver/weaver/task"
)

func TestNotHere(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[int, string]("acme.trouble.work.v1", weaver.NoRetry())
	test := func(name string, fn func(fx *fixture)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fn(newFixture(t, memstore.New())) })
		})
	}
	full := func(context.Context, int) (string, error) { return "", weaver.NotHere(errors.New("no licence")) }

	test("a broken worker takes nothing from a good one", func(fx *fixture) {
		var tried atomic.Int32
		broken := fx.start(fx.store, weaver.Config{Concurrency: 40, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in int) (string, error) {
			tried.Add(1)
			return full(ctx, in)
		})}})
		var all []*weaver.Handle[string]
		for i := range 40 {
			all = append(all, enqueue(fx, typ, i))
		}
		synctest.Wait()
		fx.runConfig(fx.store, weaver.Config{Concurrency: 2, Handlers: []weaver.Handler{typ.Handler(func(context.Context, int) (string, error) {
			time.Sleep(time.Second)
			return "done", nil
		})}})
		for _, h := range all {
			equal(fx, "output", result(fx, h), "done")
			equal(fx, "attempts that counted", fx.get(h.ID()).AttemptCount, 1)
		}
		if n := tried.Load(); n < 1 || n > 60 {
			t.Errorf("the broken worker tried %d attempts", n)
		}
		workers, err := fx.client.Workers(fx.Context())
		fx.must(err)
		var said []string
		for _, w := range workers {
			for _, tr := range w.Troubles {
				said = append(said, fmt.Sprintf("%s: %s", tr.TaskType, tr.Error))
				equal(fx, "released", int32(tr.Released), tried.Load())
			}
		}
		equal(fx, "troubles", strings.Join(said, "; "), "acme.trouble.work.v1: no licence")
		fx.must(broken.stop())
	})
	test("a worker that can run its tasks again takes them all", func(fx *fixture) {
		var lacks atomic.Bool
		lacks.Store(true)
		var running, most atomic.Int32
		fx.runConfig(fx.store, weaver.Config{Concurrency: 16, Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in int) (string, error) {
			if lacks.Load() {
				return full(ctx, in)
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Minute)
			return "done", nil
		})}})
		var all []*weaver.Handle[string]
		for i := range 32 {
			all = append(all, enqueue(fx, typ, i))
		}
		time.Sleep(time.Hour)
		lacks.Store(false)
		repaired := time.Now()
		for _, h := range all {
			result(fx, h)
		}
		if took := time.Since(repaired); took > 3*time.Minute || most.Load() != 16 {
			t.Errorf("the tasks took %s, %d at once", took, most.Load())
		}
		h, err := fx.client.History(fx.Context(), all[0].ID())
		fx.must(err)
		if len(h.Attempts) > 400 { // 32 tasks, a claim each 30 s
			t.Errorf("%d attempts of one task in an hour", len(h.Attempts))
		}
		time.Sleep(time.Minute)
		workers, err := fx.client.Workers(fx.Context())
		fx.must(err)
		equal(fx, "troubles", len(workers[0].Troubles), 0)
	})
	test("other task types run as ever, and RunUntilIdle returns", func(fx *fixture) {
		other := weaver.Define[int, string]("acme.trouble.other.v1")
		h := enqueue(fx, typ, 1)
		fine := enqueue(fx, other, 1)
		e, err := weaver.New(fx.store, weaver.Config{Logger: fx.log.logger(), Handlers: []weaver.Handler{
			typ.Handler(full), other.Handler(func(context.Context, int) (string, error) { return "fine", nil }),
		}})
		fx.must(err)
		fx.must(e.RunUntilIdle(fx.Context()))
		equal(fx, "output", result(fx, fine), "fine")
		got := fx.get(h.ID())
		equal(fx, "state", got.State, weaver.StatePending)
		equal(fx, "attempts that counted", got.AttemptCount, 0)
		wantError(fx, notHere(fx, h), nil, "no licence")
	})
	test("a step is not recorded as failed, nor an undo as tried", func(fx *fixture) {
		lacks, undone := true, 0
		h := enqueue(fx, typ, 1)
		fx.run(typ.Handler(func(ctx context.Context, _ int) (string, error) {
			_, err := weaver.Step(ctx, "book", func(context.Context) (string, error) { return "b", nil }, weaver.Undo(func(context.Context, weaver.Undoing[string]) error {
				if undone++; undone < 30 {
					return weaver.NotHere(errors.New("no key to undo"))
				}
				return nil
			}), weaver.UndoRetry(time.Minute))
			if err != nil {
				return "", err
			}
			_, err = weaver.Step(ctx, "pay", func(context.Context) (string, error) {
				if lacks {
					lacks = false
					return "", weaver.NotHere(errors.New("no key"))
				}
				return "paid", nil
			}, weaver.RecordError())
			if err != nil {
				return "", err
			}
			return "", weaver.Permanent(errors.New("sold out"))
		}))
		te := failure(fx, h)
		wantError(fx, te, nil, "sold out")
		equal(fx, "undone", undone, 30)
		equal(fx, "attempts that counted", te.Attempts, 1)
		hist, err := fx.client.History(fx.Context(), h.ID())
		fx.must(err)
		for _, s := range hist.Steps {
			if s.State == task.StepFailed {
				t.Errorf("recorded: %+v", s)
			}
		}
	})
}
