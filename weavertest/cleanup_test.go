package weavertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

var bookingType = weaver.Define[string, weaver.None]("weavertest.shop.booking.v1", weaver.CleanupWhenCancelled())

// A booking is returned when its task is cancelled while it sleeps or waits for an answer.
func TestCleanupOfATaskThatWaits(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context) error{
		"asleep": func(ctx context.Context) error { return weaver.Sleep(ctx, "until the flight", 90*24*time.Hour) },
		"asking": func(ctx context.Context) error {
			_, err := weaver.Ask[bool](ctx, "insurance", "with an insurance?")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var done []string
			note := func(what string) func(context.Context) error {
				return func(context.Context) error { done = append(done, what); return nil }
			}
			e := weavertest.New(t, bookingType.Handler(func(ctx context.Context, _ string) (weaver.None, error) {
				err := weaver.Do(ctx, "book", note("booked"))
				if err == nil {
					err = wait(ctx)
				}
				if err == nil || weaver.Suspended(err) {
					return weaver.None{}, err
				}
				return weaver.None{}, errors.Join(err, weaver.Cleanup(ctx, "give back", note("given back")))
			}))
			h, err := bookingType.Enqueue(t.Context(), e, "LH 400")
			if err != nil {
				t.Fatal(err)
			}
			weavertest.Advance(t, e, 24*time.Hour)
			if err := e.Cancel(t.Context(), h.ID(), weaver.By("ann")); err != nil {
				t.Fatal(err)
			}
			weavertest.RunUntilIdle(t, e)
			got, err := h.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.State != weaver.StateCancelled || len(done) != 2 || done[1] != "given back" || got.StepCount != map[string]int{"asleep": 3, "asking": 2}[name] {
				t.Errorf("the task is %s with %d steps, and the booking was %v", got.State, got.StepCount, done)
			}
		})
	}
}

// A failed refund is reported to the test, which fixes it and continues.
func TestUndoThatFails(t *testing.T) {
	order := weaver.Define[string, string]("weavertest.shop.order.v1", weaver.NoRetry())
	outer := weaver.Define[string, string]("weavertest.shop.outer.v1", weaver.NoRetry())
	refunds, down := 0, true
	e := weavertest.New(t, order.Handler(func(ctx context.Context, _ string) (string, error) {
		return "", errors.Join(errors.New("courier down"), weaver.Cleanup(ctx, "refund", func(context.Context) error {
			if down {
				return errors.New("psp 503")
			}
			refunds++
			return nil
		}))
	}), outer.Handler(func(ctx context.Context, in string) (string, error) {
		return weaver.Call(ctx, "order", order, in)
	}))
	for name, typ := range map[string]*weaver.Type[string, string]{"alone": order, "as a child": outer} {
		t.Run(name, func(t *testing.T) {
			down, refunds = true, 0
			h, err := typ.Enqueue(t.Context(), e, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = weavertest.ContinueErr(t, e, typ, h.ID())
			if !errors.Is(err, weaver.ErrUndoing) || !strings.Contains(err.Error(), "psp 503") {
				t.Fatalf("while the refund fails: %v", err)
			}
			down = false
			_, err = weavertest.ContinueErr(t, e, typ, h.ID())
			if te, is := errors.AsType[*weaver.TaskError](err); !is || te.State != weaver.StateFailed || refunds != 1 {
				t.Errorf("afterwards: %v, %d refunds", err, refunds)
			}
		})
	}
	t.Run("in a job", func(t *testing.T) {
		down, refunds = true, 0
		j := weaver.NewJob("order")
		j.Add("order", order.With(""))
		if _, err := weavertest.RunJobErr(t, e, j); !errors.Is(err, weaver.ErrUndoing) {
			t.Errorf("a job whose task is being undone: %v", err)
		}
		down = false
		weavertest.Advance(t, e, 5*time.Minute)
		if refunds != 1 {
			t.Errorf("%d refunds", refunds)
		}
	})
}

// A failing saga is killed after every record, and each partner sees each effect under one key, undone in reverse
// order.
func TestReplayErrOfASaga(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		saga := weaver.Define[string, string]("weavertest.shop.saga.v1", weaver.NoRetry())
		var order []string
		seen := map[string]int{}
		call := func(key string) {
			if seen[key]++; seen[key] == 1 {
				_, what, _ := strings.Cut(key, ":")
				order = append(order, what)
			}
		}
		fails := 1
		step := func(ctx context.Context, name string) error {
			return weaver.Do(ctx, name, func(ctx context.Context) error { call(weaver.Current(ctx).StepKey(name)); return nil },
				weaver.Undo(func(_ context.Context, u weaver.Undoing[weaver.None]) error {
					if !u.Done {
						return weaver.Permanent(errors.New("its value is on record"))
					}
					if name == "ship" && fails > 0 {
						fails--
						return errors.New("not now")
					}
					call(u.UndoKey)
					return nil
				}))
		}
		attempts := 0
		e := weavertest.New(t, saga.Handler(func(ctx context.Context, _ string) (string, error) {
			attempts++
			err := step(ctx, "charge")
			if err == nil {
				err = weaver.Sleep(ctx, "pack", time.Hour)
			}
			if err == nil {
				err = step(ctx, "ship")
			}
			if err == nil {
				err = errors.New("lost")
			}
			if weaver.Final(ctx, err) {
				err = errors.Join(err, weaver.Cleanup(ctx, "tell", func(context.Context) error { call("x:tell"); return nil }))
			}
			return "", err
		}))
		_, err := weavertest.ReplayErr(t, e, saga, "")
		if te, is := errors.AsType[*weaver.TaskError](err); !is || te.State != weaver.StateFailed || !strings.Contains(te.Message, "lost") {
			t.Errorf("it ended with %v", err)
		}
		if got := strings.Join(order, " "); got != "charge ship tell ship#0/undo charge#0/undo" {
			t.Errorf("the partners saw %s", got)
		}
		for key, n := range seen {
			if n != 1 { // neither a recorded step nor an undo runs again
				t.Errorf("%s was called %d times", key, n)
			}
		}
		// Killed after two beginnings, two values, the sleep, the cleanup and two undos, and before the failure, the
		// failed undo, and the end. Also suspended once, failed once, and ended.
		if attempts != 14 {
			t.Errorf("%d runs of the handler, want 14", attempts)
		}
	})
}

// The worker that undoes the children of a saga is killed after every record.
func TestReplayErrOfChildren(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		saga := weaver.Define[string, string]("weavertest.shop.tour.v1", weaver.NoRetry())
		room := weaver.Define[string, string]("weavertest.shop.room.v1", weaver.NoRetry())
		var order []string
		e := weavertest.New(t, room.Handler(func(ctx context.Context, name string) (string, error) {
			return weaver.Step(ctx, "book", func(context.Context) (string, error) { return name, nil },
				weaver.Undo(func(_ context.Context, u weaver.Undoing[string]) error {
					// It may run twice: a kill after a record of the caller may hit it anywhere.
					if !slices.Contains(order, u.Out) {
						order = append(order, u.Out)
					}
					return nil
				}))
		}), saga.Handler(func(ctx context.Context, _ string) (string, error) {
			if _, err := weaver.CallAll(ctx, "rooms", room, []string{"Rome", "Oslo"}, weaver.UndoChildren()); err != nil {
				return "", err
			}
			if _, err := weaver.Call(ctx, "last", room, "Bonn", weaver.UndoChildren()); err != nil {
				return "", err
			}
			return "", errors.New("no passport")
		}))
		_, err := weavertest.ReplayErr(t, e, saga, "")
		if te, is := errors.AsType[*weaver.TaskError](err); !is || te.Kind != "handler_error" {
			t.Fatalf("it ended with %v", err)
		}
		if want := []string{"Bonn", "Oslo", "Rome"}; !slices.Equal(order, want) {
			t.Errorf("undone were %v, want %v", order, want)
		}
	})
}
