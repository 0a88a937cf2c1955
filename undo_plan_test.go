package weaver_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/ops"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// planned returns a plan in one line.
func planned(fx *fixture, id weaver.TaskID) string {
	fx.Helper()
	p, err := fx.client.UndoPlan(fx.Context(), id)
	fx.must(err)
	said := string(p.State)
	if p.Phase != nil {
		said += " to end " + string(p.Phase.EndsAs)
	}
	for _, e := range p.Effects {
		said += fmt.Sprintf("; %s %s %s", short(e.Key), e.Effect, e.Undo)
		if e.Tries > 0 {
			said += fmt.Sprintf(" %d", e.Tries)
		}
		if e.Error != nil {
			said += " " + e.Error.Message
		}
	}
	return said
}

// A plan follows a task through its undo, a retry, and a rerun.
func TestUndoPlan(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.plan.v1", weaver.NoRetry())
	inBubble(t, func(fx *fixture) {
		shop := &shopping{fails: map[string]int{"undo ship": 1}}
		pay := false
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, _ string) (string, error) {
			return shop.order(ctx, func(ctx context.Context) error {
				if err := weaver.Do(ctx, "mail", func(context.Context) error { return nil }); err != nil || pay {
					return err
				}
				return errors.Join(weaver.Sleep(ctx, "nap", time.Hour), errors.New("no stock"))
			})
		})}})
		h := enqueue(fx, typ, "")
		time.Sleep(time.Minute)
		equal(fx, "asleep", planned(fx, h.ID()), "pending; ship confirmed declared; charge confirmed declared; mail confirmed none")

		fx.must(fx.client.Cancel(fx.Context(), h.ID()))
		time.Sleep(100 * time.Millisecond)
		equal(fx, "its undo failed", planned(fx, h.ID()),
			"pending to end cancelled; ship confirmed failing 1 undo ship 503; charge confirmed declared; mail confirmed none")
		fails(fx, h)
		equal(fx, "undone", planned(fx, h.ID()), "cancelled; mail confirmed none; ship confirmed undone 1; charge confirmed undone")

		pay = true
		fx.must(fx.client.Retry(fx.Context(), h.ID()))
		result(fx, h)
		equal(fx, "in the next round", planned(fx, h.ID()),
			"succeeded; mail confirmed none; ship#1 confirmed kept; charge#1 confirmed kept; ship confirmed undone 1; charge confirmed undone")

		again, err := fx.client.RerunFrom(fx.Context(), h.ID(), "mail")
		fx.must(err)
		time.Sleep(time.Second)
		equal(fx, "taken over", planned(fx, again.ID), "succeeded; mail confirmed none;  confirmed none;  confirmed none")

		_, err = fx.client.UndoPlan(fx.Context(), task.ID{1})
		wantError(fx, err, weaver.ErrNotFound)
		fx.must(e.stop())
	})
}

// A dry run of a cancel counts the tasks to be undone first.
func TestUndoneFirst(t *testing.T) {
	typ := weaver.Define[string, string]("engine.undo.count.v1", weaver.NoRetry())
	inBubble(t, func(fx *fixture) {
		shop := &shopping{}
		e := fx.start(fx.store, weaver.Config{Handlers: []weaver.Handler{typ.Handler(func(ctx context.Context, in string) (string, error) {
			if in == "buy" {
				if _, err := shop.buy(ctx, "charge"); err != nil {
					return "", err
				}
			}
			return "", weaver.Sleep(ctx, "nap", time.Hour)
		})}})
		enqueue(fx, typ, "buy")
		enqueue(fx, typ, "look", weaver.CleanupWhenCancelled())
		enqueue(fx, typ, "look")
		time.Sleep(time.Minute)
		enqueue(fx, typ, "later", weaver.CleanupWhenCancelled(), weaver.Delay(time.Hour))

		many, err := fx.client.CancelMany(fx.Context(), weaver.Filter{}, weaver.DryRun())
		fx.must(err)
		equal(fx, "of many", fmt.Sprint(many.UndoneFirst, " of ", many.Done), "2 of 4")
		bulk, err := fx.client.Bulk(fx.Context(), ops.BulkRequest{Verb: ops.BulkCancel, Query: &ops.Query{}, DryRun: true})
		fx.must(err)
		equal(fx, "in bulk", fmt.Sprint(bulk.UndoneFirst, " of ", bulk.Done), "2 of 4")
		fx.must(e.stop())
	})
}

// leaky has a history in which an undo failed with data of the input.
type leaky struct{ store.Store }

func (l leaky) History(ctx context.Context, ns string, id task.ID) (store.History, error) {
	h, err := l.Store.History(ctx, ns, id)
	wrong := &task.Error{Kind: task.KindHandler, Message: "no card " + cardNumber}
	h.Task.Undo = &task.UndoPhase{Error: wrong}
	h.Steps = []task.Step{
		{Name: "charge", Kind: task.KindStep, State: task.StepBegun, Undo: task.UndoOpen},
		{Name: "charge", Kind: task.KindUndo, State: task.StepFailed, Error: wrong},
	}
	return h, err
}

// A plan masks the same data as its task.
func TestUndoPlan_IsMasked(t *testing.T) {
	inBubble(t, func(fx *fixture) {
		h := enqueue(fx, weaver.Define[cardPayment, cardPayment]("engine.undo.masked.v1"), cardPayment{Card: cardNumber})
		c, err := weaver.NewClient(leaky{fx.store}, weaver.ClientConfig{})
		fx.must(err)
		p, err := c.UndoPlan(fx.Context(), h.ID())
		fx.must(err)
		equal(fx, "the error of the undo", p.Effects[0].Error.Message, "no card [redacted]")
		equal(fx, "the error of the phase", p.Phase.Error.Message, "no card [redacted]")
	})
}
