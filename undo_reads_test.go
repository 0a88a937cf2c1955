package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

// A handler's reads of its task also work in its undo, although its context has ended: otherwise it
// would not reach the later steps.
func TestUndoReadsWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	child := weaver.Define[string, string]("engine.undo.answer.v1")
	parent := weaver.Define[string, string]("engine.undo.reads.v1", weaver.MaxAttempts(2))
	fails := errors.New("no stock")
	read := map[string]func(ctx context.Context) (string, error){
		"the output of a call": func(ctx context.Context) (string, error) {
			return weaver.Call(ctx, "ask", child, "x")
		},
		"the outputs of calls": func(ctx context.Context) (string, error) {
			got, err := weaver.CallAll(ctx, "ask", child, []string{"x", "y"})
			return fmt.Sprint(len(got)), err
		},
		"the outputs of an Each": func(ctx context.Context) (string, error) {
			n := 0
			for got, err := range weaver.CallEach(ctx, "ask", child, []string{"x", "y"}) {
				if n += len(got.Output); err != nil {
					return "", err
				}
			}
			return fmt.Sprint(n), nil
		},
		"the winner of a race": func(ctx context.Context) (string, error) {
			out := ""
			_, err := weaver.Race(ctx, "ask", weaver.OnCall(child, "x", &out))
			return out, err
		},
		"a large value": func(ctx context.Context) (string, error) {
			return weaver.Step(ctx, "ask", func(context.Context) (string, error) { return large("value"), nil })
		},
		"progress and a checkpoint": func(ctx context.Context) (string, error) {
			if err := errors.Join(weaver.Progress(ctx, 1, 2), weaver.Checkpoint(ctx, "at", "here")); err != nil {
				return "", err
			}
			got, _, err := weaver.LoadCheckpoint[string](ctx, "at")
			return got, err
		},
	}
	for what, fn := range read {
		bucketTest(t, what, func(b *bucketed) {
			s := &shopping{}
			run := parent.Handler(func(ctx context.Context, in string) (string, error) {
				got, err := fn(ctx)
				if err != nil {
					return "", err
				}
				if in != large("input") || got == "" {
					return "", weaver.Permanent(fmt.Errorf("it got %.9q and %.9q", in, got))
				}
				return s.order(ctx, func(context.Context) error { return fails })
			})
			eng := b.run(run, child.Handler(func(_ context.Context, in string) (string, error) { return large(in), nil }))
			h, err := parent.Enqueue(b.Context(), b.with, large("input"))
			b.must(err)
			got := failure(b.fixture, h)
			equal(b.fixture, "the failure", fmt.Sprint(got.State, " ", got.Kind, " ", got.Message), "failed handler_error no stock")
			s.saw(b.fixture, boughtAndUndone...)
			b.must(eng.stop())
		})
	}
}

// A signal sent during an undo is kept, and a retry takes it: its wait starts again with the task.
func TestUndoKeepsSignals(t *testing.T) {
	t.Parallel()
	typ := weaver.Define[string, string]("engine.undo.signal.v1", weaver.NoRetry())
	pay := weaver.DefineSignal[string]("paid")
	inBubble(t, func(fx *fixture) {
		s := &shopping{fails: map[string]int{"undo charge": 2}}
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, err := s.buy(ctx, "charge"); err != nil {
				return "", err
			}
			got, _, err := pay.Wait(ctx, "payment", 0)
			return got, err
		})}})
		h := enqueue(fx, typ, "")
		time.Sleep(time.Second)
		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		time.Sleep(100 * time.Millisecond)
		fx.must(pay.Send(fx.Context(), fx.client, h.ID(), "1", "in full"))
		equal(fx, "the kind", failure(fx, h).Kind, task.ErrorKind("cancelled"))
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		equal(fx, "the output", result(fx, h), "in full")
		s.saw(fx, "charge charge", "undo charge charge#0/undo of charge", "undo charge charge#0/undo of charge",
			"undo charge charge#0/undo of charge", "charge charge#1")
		fx.must(e.stop())
	})
}
