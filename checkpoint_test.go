package weaver_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/task"
)

func TestCheckpoint(t *testing.T) {
	typ := weaver.Define[string, string]("engine.checkpoint.run.v1", weaver.MaxAttempts(3), weaver.Backoff(time.Second))

	subtest(t, "the latest value outlives the attempt, a retry, and is read back in the same one", func(fx *fixture) {
		var loaded []string
		attempts := 0
		handler := typ.Handler(func(ctx context.Context, in string) (string, error) {
			attempts++
			v, ok, err := weaver.LoadCheckpoint[string](ctx, "cursor")
			if err != nil {
				return "", err
			}
			if loaded = append(loaded, v); ok != (attempts > 1) {
				return "", weaver.Permanent(errors.New("ok is wrong"))
			}
			_, err = weaver.Step(ctx, "cursor", func(ctx context.Context) (int, error) { // step names and checkpoint names are separate
				for _, v := range []string{"a", "b", strings.Repeat("x", attempts)} {
					if err := weaver.Checkpoint(ctx, "cursor", v); err != nil {
						return 0, err
					}
				}
				if now, _, err := weaver.LoadCheckpoint[string](ctx, "cursor"); err != nil || len(now) != attempts {
					return 0, weaver.Permanent(errors.Join(err, errors.New("read back "+now)))
				}
				if attempts == 1 {
					return 0, errors.New("no")
				}
				return 0, nil
			})
			if err == nil && attempts == 2 {
				return "", weaver.Permanent(errors.New("once more, by a person"))
			}
			return v, err
		})
		fx.run(handler)
		h := enqueue(fx, typ, "x")
		fails(fx, h)
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		equal(fx, "output", result(fx, h), "xx")
		equal(fx, "loaded", strings.Join(loaded, ","), ",x,xx")
		equal(fx, "kept", string(fx.history(h.ID()).Checkpoints[0].Value), `"xx"`)
	})

	subtest(t, "a new value is progress, the same one is not", func(fx *fixture) {
		limited := weaver.Define[int, int]("engine.checkpoint.idle.v1", weaver.MaxAttempts(100), weaver.Backoff(time.Second), weaver.MaxNoProgress(3))
		attempts := 0
		fx.run(limited.Handler(func(ctx context.Context, until int) (int, error) {
			attempts++
			return 0, errors.Join(weaver.Checkpoint(ctx, "n", min(attempts, until)), errors.New("no"))
		}))
		h := enqueue(fx, limited, 10)
		blocks(fx, h)
		equal(fx, "attempts", attempts, 13)
	})

	for name, tc := range map[string]struct {
		misuse func(ctx context.Context) error
		kind   task.ErrorKind
		says   string
	}{
		"a checkpoint without a name": {func(ctx context.Context) error { return weaver.Checkpoint(ctx, "", 1) }, "handler_error", "a checkpoint needs a name"},
		"a name that is no text":      {func(ctx context.Context) error { return weaver.Checkpoint(ctx, "a\x00", 1) }, "handler_error", "without NUL"},
		"a value that is no JSON":     {func(ctx context.Context) error { return weaver.Checkpoint(ctx, "n", math.NaN()) }, "validation_error", `checkpoint "n"`},
		"a value over the limit":      {func(ctx context.Context) error { return weaver.Checkpoint(ctx, "n", strings.Repeat("x", 70_000)) }, "validation_error", "over the inline limit"},
	} {
		subtest(t, "fails the task at once: "+name, func(fx *fixture) {
			fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
				_ = tc.misuse(ctx)
				return in, nil
			}))
			te := failure(fx, enqueue(fx, typ, "x"))
			equal(fx, "attempts", te.Attempts, 1)
			equal(fx, "kind", te.Kind, tc.kind)
			if !strings.Contains(te.Message, tc.says) {
				fx.Errorf("it says %q, want %q", te.Message, tc.says)
			}
		})
	}

	subtest(t, "a value that does not decode blocks the task", func(fx *fixture) {
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			if err := weaver.Checkpoint(ctx, "cursor", "text"); err != nil {
				return "", err
			}
			_, _, _ = weaver.LoadCheckpoint[int](ctx, "cursor")
			return in, nil
		}))
		h := enqueue(fx, typ, "x")
		wantError(fx, blocked(fx, h), weaver.ErrBlocked, `the checkpoint "cursor" does not decode as int`)
	})

	sqlSubtest(t, "is refused in a StepTx, outside of handlers, and after the attempt", func(fx *fixture) {
		var kept context.Context
		fx.run(typ.Handler(func(ctx context.Context, in string) (string, error) {
			kept = ctx
			_, err := weaver.StepTx(ctx, "tx", func(ctx context.Context, _ any) (int, error) {
				wantError(fx, weaver.Checkpoint(ctx, "n", 1), weaver.ErrNestedTx)
				return 0, nil
			})
			return in, err
		}))
		equal(fx, "output", result(fx, enqueue(fx, typ, "x")), "x")
		wantError(fx, weaver.Checkpoint(kept, "n", 1), weaver.ErrAttemptOver)
		_, _, err := weaver.LoadCheckpoint[int](fx.Context(), "n")
		wantError(fx, err, weaver.ErrNoTask)
	})
}

func ExampleCheckpoint() {
	weaver.Define[int, int]("acme.files.copy.v1").Handler(func(ctx context.Context, lines int) (int, error) {
		return weaver.Step(ctx, "copy", func(ctx context.Context) (int, error) {
			next, _, err := weaver.LoadCheckpoint[int](ctx, "line") // 0 without a checkpoint
			for ; err == nil && next < lines; next++ {
				// copy line next
				err = weaver.Checkpoint(ctx, "line", next+1)
			}
			return next, err
		})
	})
}
