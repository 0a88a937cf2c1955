package docs_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/weavertest"
)

// sagas.md and privacy.md

func orderWithCleanup(ctx context.Context, o Order) (Receipt, error) {
	receipt, err := weaver.Step(ctx, "charge", func(ctx context.Context) (Receipt, error) { return psp.Charge(ctx, o) })
	if err == nil {
		err = weaver.Do(ctx, "ship", func(ctx context.Context) error { return warehouse.Ship(ctx, o) })
	}
	if weaver.Final(ctx, err) {
		return receipt, errors.Join(err, weaver.Cleanup(ctx, "refund", func(ctx context.Context) error { return psp.Refund(ctx, o) }))
	}
	return receipt, err
}

func orderWithUndo(ctx context.Context, o Order) (Receipt, error) {
	charge := func(ctx context.Context) (Receipt, error) { return psp.Charge(ctx, o) }
	receipt, err := weaver.Step(ctx, "charge", charge, weaver.Undo(func(ctx context.Context, u weaver.Undoing[Receipt]) error {
		return psp.Refund(ctx, u.Key, u.UndoKey)
	}))
	if err != nil {
		return Receipt{}, err
	}
	return receipt, weaver.Do(ctx, "ship", func(ctx context.Context) error { return warehouse.Ship(ctx, o) })
}

var BookRoom = weaver.Define[string, string]("guide.trip.room.v1")

func bookTrip(ctx context.Context, trip string) (string, error) {
	room, err := weaver.Call(ctx, "room", BookRoom, trip, weaver.UndoChildren())
	return room, err
}

func undoableJob(order Order) *weaver.Job {
	Reserve := weaver.Define[Order, weaver.None]("guide.shop.reserve.v1")
	Release := weaver.Define[Order, weaver.None]("guide.shop.release.v1")
	Charge := weaver.Define[Order, weaver.None]("guide.shop.charge.v2")
	Refund := weaver.Define[Order, weaver.None]("guide.shop.refund.v2")
	j := weaver.NewJob("order")
	reserve := j.Add("reserve", Reserve.With(order))
	charge := j.Add("charge", Charge.With(order), weaver.Needs(reserve))
	j.Add("undo reserve", Release.With(order), weaver.Undoes(reserve))
	j.Add("undo charge", Refund.With(order), weaver.Undoes(charge))
	return j
}

func TestSagas(t *testing.T) {
	for name, handler := range map[string]func(context.Context, Order) (Receipt, error){"cleanup": orderWithCleanup, "undo": orderWithUndo} {
		psp, warehouse = &partner{}, &depot{closed: true}
		e := weavertest.New(t, PlaceOrder.Handler(handler))
		if _, err := weavertest.RunErr(t, e, PlaceOrder, Order{ID: "o-9"}); err == nil {
			t.Errorf("%s: an order that cannot ship succeeds", name)
		}
		if !slices.Equal(psp.charged, []string{"o-9"}) || len(psp.refunded) != 1 {
			t.Errorf("%s: charged %v, refunded %v", name, psp.charged, psp.refunded)
		}
	}
	psp, warehouse = &partner{}, &depot{}
	e := weavertest.New(t, weaver.Define[string, string]("guide.trip.book.v1").Handler(bookTrip))
	if _, err := e.Submit(t.Context(), undoableJob(Order{ID: "o-10"})); err != nil {
		t.Error(err)
	}
}

type Payment struct {
	Card   string `json:"card" weaver:"redact"`
	Amount int    `json:"amount"`
}

func expiring() any {
	type Payment struct {
		Card string `json:"card" weaver:"redact,expire=720h"`
	}
	return Payment{}
}

var _ = expiring
