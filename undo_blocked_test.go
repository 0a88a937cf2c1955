package weaver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/storehook"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// Code that does not lead to the undo's step, and mistakes in undos, block the task.
func TestUndoIsBlocked(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.blocked.v1", weaver.NoRetry())
	some := func(ctx context.Context, fn func(ctx context.Context, u weaver.Undoing[int]) error) error {
		_, err := weaver.Step(ctx, "charge", func(context.Context) (int, error) { return 7, nil }, weaver.Undo(fn))
		return errors.Join(err, errors.New("no"))
	}
	for how, c := range map[string]struct {
		undo func(ctx context.Context) error // the handler, in the phase
		says string
	}{
		"the step is gone": {func(context.Context) error { return errors.New("new code") }, `step "charge" is to be undone, but the handler no longer reaches it, or it no longer has an Undo`},
		"the step has no undo": {func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "charge", func(context.Context) (int, error) { return 7, nil })
			return err
		}, `step "charge" is to be undone, but the handler no longer reaches it, or it no longer has an Undo`},
		"the handler panics": {func(context.Context) error { panic("nil map") }, "nil map"},
		"the value is of another type": {func(ctx context.Context) error {
			_, err := weaver.Step(ctx, "charge", func(context.Context) (string, error) { return "", nil }, weaver.Undo(func(context.Context, weaver.Undoing[string]) error { return nil }))
			return err
		}, "no longer decodes"},
		"the undo runs a step": {func(ctx context.Context) error {
			return some(ctx, func(ctx context.Context, _ weaver.Undoing[int]) error {
				return weaver.Do(ctx, "more", func(context.Context) error { return nil })
			})
		}, weaver.ErrNestedStep.Error()},
		"the undo sleeps": {func(ctx context.Context) error {
			return some(ctx, func(ctx context.Context, _ weaver.Undoing[int]) error { return weaver.Sleep(ctx, "nap", time.Hour) })
		}, weaver.ErrNestedStep.Error()},
		"the undo calls": {func(ctx context.Context) error {
			return some(ctx, func(ctx context.Context, _ weaver.Undoing[int]) error {
				_, err := weaver.Call(ctx, "c", typ, "")
				return err
			})
		}, weaver.ErrNestedStep.Error()},
	} {
		subtest(t, how, func(fx *fixture) {
			fixed, undone := false, 0
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) {
				if weaver.Current(ctx).Undoing && !fixed {
					return "", c.undo(ctx)
				}
				return "", some(ctx, func(_ context.Context, u weaver.Undoing[int]) error {
					if undone++; u.Out != 7 {
						return errors.New("another value")
					}
					return nil
				})
			}))
			h := enqueue(fx, typ, "")
			time.Sleep(time.Hour)
			info := fx.get(h.ID())
			if info.State != weaver.StateBlocked || info.Waiting != task.WaitUndo || info.Error == nil || !strings.Contains(info.Error.Message, c.says) {
				fx.Errorf("it is %s, waits for %q: %+v", info.State, info.Waiting, info.Error)
			}
			fixed = true
			fx.must(fx.client.Unblock(fx.Context(), h.ID(), nil))
			equal(fx, "message", failure(fx, h).Message, "no")
			equal(fx, "undos", undone, 1)
		})
	}
}

// Mistakes in the declaration fail the task before anything is recorded.
func TestUndoMisuse(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.misuse.v1", weaver.NoRetry())
	undo := weaver.Undo(func(context.Context, weaver.Undoing[int]) error { return nil })
	step := func(name string, opts ...weaver.StepOption) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := weaver.Step(ctx, name, func(context.Context) (int, error) { return 1, nil }, opts...)
			return err
		}
	}
	for what, c := range map[string]struct {
		do   func(ctx context.Context) error
		says string
	}{
		"another type":  {step("charge", weaver.Undo(func(context.Context, weaver.Undoing[string]) error { return nil })), `its value is a int, and its Undo takes a string`},
		"two undos":     {step("charge", undo, undo), "two Undos"},
		"no function":   {step("charge", weaver.Undo[int](nil)), "the function of the Undo is nil"},
		"a bad retry":   {step("charge", undo, weaver.UndoRetry(time.Hour, time.Minute, time.Second)), "UndoRetry(1h0m0s, [1m0s 1s])"},
		"a name with #": {step("charge#1", undo), "has no '#'"},
		"a key of its round": {func(ctx context.Context) error {
			return errors.Join(step("charge", undo)(ctx), step("charge#1")(ctx))
		}, "would have the StepKey"},
		"a key of its round, before": {func(ctx context.Context) error {
			return errors.Join(step("charge#1")(ctx), step("charge", undo)(ctx))
		}, "would have the StepKey"},
		"a cleanup": {func(ctx context.Context) error {
			return weaver.Cleanup(ctx, "tidy", func(context.Context) error { return nil }, undo)
		}, "a Cleanup has no Undo"},
		"StepRetry of StepTx": {func(ctx context.Context) error {
			_, err := weaver.StepTx(ctx, "charge", func(context.Context, *sql.Tx) (int, error) { return 1, nil }, weaver.StepRetry(2))
			return err
		}, "takes neither StepRetry nor RecordError"},
	} {
		subtest(t, what, func(fx *fixture) {
			fx.run(typ.Handler(func(ctx context.Context, _ string) (string, error) { return "done", c.do(ctx) }))
			h := enqueue(fx, typ, "")
			time.Sleep(time.Hour)
			info := fx.get(h.ID())
			if info.Error == nil || !strings.Contains(info.Error.Message, c.says) {
				fx.Errorf("it is %s: %+v", info.State, info.Error)
			}
		})
	}
}

// The undo of a StepTx, and an undo in a transaction.
func TestUndoTx(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.tx.v1", weaver.NoRetry())
	subtest(t, "writes commit with the record", func(fx *fixture) {
		db := openMemory(fx)
		fx = newFixture(fx.T, db)
		tries := 0
		exec := func(tx *sql.Tx, q string) error { _, err := tx.Exec(q); return err }
		fx.runConfig(db, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			_, err := weaver.StepTx(ctx, "book", func(_ context.Context, tx *sql.Tx) (int, error) {
				return 7, errors.Join(exec(tx, `CREATE TABLE seats (n INTEGER)`), exec(tx, `INSERT INTO seats VALUES (7)`))
			}, weaver.UndoTx(func(_ context.Context, tx *sql.Tx, u weaver.Undoing[int]) error {
				tries++
				err := exec(tx, fmt.Sprintf(`DELETE FROM seats WHERE n = %d`, u.Out))
				if tries == 1 {
					return errors.Join(err, errors.New("rolled back"))
				}
				return errors.Join(err, exec(tx, `INSERT INTO seats VALUES (-1)`))
			}))
			return "", errors.Join(err, errors.New("no"))
		})}})
		h := enqueue(fx, typ, "")
		equal(fx, "message", failure(fx, h).Message, "no")
		equal(fx, "outcomes", fmt.Sprint(fx.outcomes(h.ID())), "[failure undo_failed undone]")
		_, err := weaver.NewClient(db, weaver.ClientConfig{})
		fx.must(err)
		equal(fx, "tries", tries, 2)
	})
}

// A task without undos has no extra cost; a declared undo costs one more record.
func TestUndoCostsOneRecord(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.cost.v1")
	subtest(t, "a step", func(fx *fixture) {
		for opts, want := range map[bool]int{false: 1, true: 2} {
			n := 0
			s := storehook.New(openMemory(fx), &storehook.Hooks{Record: func(_ context.Context, recs []store.Record, next func() ([]store.RecordResult, error)) ([]store.RecordResult, error) {
				n += len(recs)
				return next()
			}})
			fx := newFixture(fx.T, s)
			e := fx.start(s, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
				var undo []weaver.StepOption
				if opts {
					undo = append(undo, weaver.Undo(func(context.Context, weaver.Undoing[weaver.None]) error { return nil }))
				}
				return "", weaver.Do(ctx, "charge", func(context.Context) error { return nil }, undo...)
			})}})
			result(fx, enqueue(fx, typ, ""))
			equal(fx, "records", n, want)
			fx.must(e.stop())
		}
	})
}
