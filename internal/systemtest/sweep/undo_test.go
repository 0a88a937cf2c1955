package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/faults/faultstore"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// effect is a step with an effect at a partner, and an undo that reverts the effect. If then is not nil, the step
// returns its error after the effect. If undo is not nil, its error fails the undo before the effect is reverted.
func effect(ctx context.Context, name string, then, undo func() error) (string, error) {
	p := processOf(ctx)
	fx := p.fx
	return step(ctx, name, func(ctx context.Context) (string, error) {
		key := weaver.Current(ctx).StepKey(name)
		fx.mu.Lock()
		if fx.effects[key] == "undone" {
			fx.errorf("%s happens after it was undone", key)
		}
		fx.effects[key] = "done"
		fx.mu.Unlock()
		if then != nil {
			return "", then()
		}
		return name + " is done", nil
	}, weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error {
		if p.fault.Died() {
			return faultstore.ErrDead
		}
		fx.mu.Lock()
		defer fx.mu.Unlock()
		was, known := fx.effects[u.Key]
		if u.Done && (!known || u.Out != name+" is done") {
			fx.errorf("the undo of %s is given the value %q, and the partner knows of %q", u.Key, u.Out, was)
		}
		fx.counts["undo of "+name]++
		if undo != nil {
			if err := undo(); err != nil {
				return err
			}
		}
		if known {
			fx.effects[u.Key] = "undone"
		}
		return nil
	}))
}

// partner checks the state of the effects, by the step's name and round.
func (fx *fixture) partner(id weaver.TaskID, want map[string]string) {
	fx.Helper()
	fx.mu.Lock()
	defer fx.mu.Unlock()
	keyed := map[string]string{}
	for name, state := range want {
		keyed[id.String()+":"+name] = state
	}
	if !maps.Equal(fx.effects, keyed) {
		fx.errorf("the partner has %v, want %v", fx.effects, keyed)
	}
}

// undoCases test steps that are undone.
var undoCases = []testCase{
	{
		name:      "a task that fails and is undone",
		tolerates: "an attempt that cannot read the task's children ends, and another one looks",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if _, err := effect(ctx, "charge", nil, nil); err != nil {
				return "", err
			}
			if _, err := value(ctx, "plain", in); err != nil {
				return "", err
			}
			refused := false
			if _, err := effect(ctx, "book", nil, func() error {
				if refused = !slices.Contains(fx.order, "refused once"); refused {
					fx.order = append(fx.order, "refused once")
					return errors.New("not now")
				}
				return nil
			}); err != nil {
				return "", err
			}
			return effect(ctx, "ship", func() error { return weaver.Permanent(errors.New("no courier")) }, nil)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x", weaver.MaxAttempts(3))
			ends(fx, h.ID(), weaver.StateFailed, task.KindHandler)
			fx.partner(h.ID(), map[string]string{"charge": "undone", "book": "undone", "ship": "undone"})
		},
	},
	{
		name:      "behind a point of no return",
		tolerates: "an attempt that cannot read the task's children ends, and another one looks",
		handlers: handles(typeA, func(ctx context.Context, _ *fixture, _ string) (string, error) {
			if _, err := effect(ctx, "charge", nil, nil); err != nil {
				return "", err
			}
			if err := weaver.PointOfNoReturn(ctx, "paid"); err != nil {
				return "", err
			}
			return effect(ctx, "ship", func() error { return weaver.Permanent(errors.New("no courier")) }, nil)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			ends(fx, h.ID(), weaver.StateFailed, task.KindHandler)
			fx.partner(h.ID(), map[string]string{"charge": "done", "ship": "undone"})
		},
	},
	{
		name:      "a task that is cancelled, undone and retried",
		onFile:    true,
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if _, err := effect(ctx, "charge", nil, nil); err != nil {
				return "", err
			}
			fx.mark("charged")
			if err := until(ctx, fx, "retried"); err != nil {
				return "", err
			}
			return in, nil
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("charged")
			fx.must(fx.client.Cancel(fx.ctx, h.ID(), weaver.By("ann")))
			ends(fx, h.ID(), weaver.StateCancelled, task.KindCancelled)
			fx.partner(h.ID(), map[string]string{"charge": "undone"})
			fx.mark("retried")
			fx.must(fx.client.Retry(fx.ctx, h.ID()))
			succeeds(fx, h, "x")
			fx.partner(h.ID(), map[string]string{"charge": "undone", "charge#1": "done"})
		},
	},
	{
		name:      "a task that is undone after a forced cancel",
		tolerates: "the caller asks by the epoch that it saw, which a fault may have changed",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, in string) (string, error) {
			if _, err := effect(ctx, "charge", nil, nil); err != nil {
				return "", err
			}
			fx.mark("charged")
			sleep(context.WithoutCancel(ctx), 4*time.Second) // it ignores its context
			return value(ctx, "late", in)
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			fx.await("charged")
			for {
				seen, err := fx.client.Get(fx.ctx, h.ID())
				fx.must(err)
				if seen.Undo != nil || seen.State.Terminal() {
					break
				}
				err = fx.client.Cancel(fx.ctx, h.ID(), weaver.Force(), weaver.SeenEpoch(seen.Epoch))
				if err != nil && !errors.Is(err, store.ErrChanged) {
					fx.must(err)
				}
			}
			ends(fx, h.ID(), weaver.StateCancelled, task.KindCancelled)
			fx.partner(h.ID(), map[string]string{"charge": "undone"})
			sleep(fx.ctx, 15*time.Second) // until the handler has tried to write
		},
	},
	{
		name:      "an undo that is given up, and tried again",
		tolerates: "the retried Finish answers with the state of now, and the caller has moved the task on",
		handlers: handles(typeA, func(ctx context.Context, fx *fixture, _ string) (string, error) {
			mended := fx.marked("mended")
			if _, err := effect(ctx, "charge", nil, func() error {
				select {
				case <-mended:
					return nil
				default:
					return weaver.Permanent(errors.New("the account is closed"))
				}
			}); err != nil {
				return "", err
			}
			return "", weaver.Permanent(fmt.Errorf("no goods"))
		}),
		run: func(fx *fixture) {
			h := enqueue(fx, typeA, "x")
			ends(fx, h.ID(), weaver.StateFailed, task.KindUndoFailed)
			fx.partner(h.ID(), map[string]string{"charge": "done"})
			fx.mark("mended")
			fx.must(fx.client.Retry(fx.ctx, h.ID(), weaver.Cleanups(), weaver.By("ann")))
			ends(fx, h.ID(), weaver.StateFailed, task.KindHandler)
			fx.partner(h.ID(), map[string]string{"charge": "undone"})
		},
	},
}
