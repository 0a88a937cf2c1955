package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/store/memstore"
)

func TestAskWithin(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[int, string]("acme.ask.within.v1", weaver.NoRetry())
	retried := weaver.Define[int, string]("acme.ask.within_again.v1", weaver.MaxAttempts(2))
	asks := func(ctx context.Context, _ int) (string, error) {
		got, err := weaver.Ask[string](ctx, "pay", "who pays?", time.Hour)
		if errors.Is(err, weaver.ErrNoAnswer) {
			return "nobody", nil
		}
		return got, err
	}
	stores := map[string]func(t *testing.T) store.Store{
		"memstore": func(*testing.T) store.Store { return memstore.New() },
		"sqlite":   func(t *testing.T) store.Store { return openMemory(t) },
	}
	test := func(name string, fn func(fx *fixture)) {
		for kind, open := range stores {
			t.Run(name+" ("+kind+")", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { fn(newFixture(t, open(t))) })
			})
		}
	}

	test("nobody answers", func(fx *fixture) {
		fx.run(typ.Handler(asks))
		began := time.Now()
		h := enqueue(fx, typ, 1)
		blocks(fx, h)
		equal(fx, "until", fx.get(h.ID()).Error.AskUntil.Sub(began).Round(time.Second), time.Hour)
		time.Sleep(59 * time.Minute)
		equal(fx, "state", fx.get(h.ID()).State, weaver.StateBlocked)
		time.Sleep(2 * time.Minute)
		equal(fx, "output", result(fx, h), "nobody")
		wantError(fx, fx.client.Unblock(fx.Context(), h.ID(), "ann"), weaver.ErrState)
	})
	test("an answer comes in time", func(fx *fixture) {
		fx.run(typ.Handler(asks))
		h := enqueue(fx, typ, 1)
		blocks(fx, h)
		time.Sleep(59 * time.Minute)
		fx.must(fx.client.Unblock(fx.Context(), h.ID(), "ann"))
		equal(fx, "output", result(fx, h), "ann")
	})
	test("the time ends while no engine runs", func(fx *fixture) {
		first := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(asks)}})
		h := enqueue(fx, typ, 1)
		blocks(fx, h)
		fx.must(first.stop())
		time.Sleep(2 * time.Hour)
		fx.run(typ.Handler(asks))
		synctest.Wait()
		equal(fx, "output", result(fx, h), "nobody")
	})
	test("later attempts have the same", func(fx *fixture) {
		n := 0
		fx.run(retried.Handler(func(ctx context.Context, in int) (string, error) {
			out, err := asks(ctx, in)
			if n++; err == nil && n == 2 {
				err = errors.New("once more")
			}
			return fmt.Sprint(out, n), err
		}))
		h := enqueue(fx, retried, 1)
		blocks(fx, h)
		time.Sleep(2 * time.Hour)
		equal(fx, "output", result(fx, h), "nobody3")
	})
	test("a time that is none fails the task", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, _ int) (string, error) {
			return weaver.Ask[string](ctx, "pay", "who pays?", 0)
		}))
		wantError(fx, failure(fx, enqueue(fx, typ, 1)), nil, "answered within", "more than 0")
	})
}
