package weavertest

import (
	"context"
	"errors"
	"testing"

	"github.com/goweaver/weaver/internal/sealorder"
	"github.com/goweaver/weaver/order"
)

// SendOrders runs an order.Worker on the store of e, in fake time, until no order is due. Orders
// that wait for their next attempt are unchanged; Advance lets time pass.
func SendOrders(t *testing.T, e *Env, a order.Adapter) {
	t.Helper()
	var err error
	e.clock.bubble(t, func(t *testing.T) {
		s, ok := sealorder.Of(e.Client.OpenStore())
		if !ok {
			err = errors.New("the store keeps no orders")
			return
		}
		var w *order.Worker
		if w, err = order.NewWorker(order.WorkerConfig{Store: s, Namespace: e.Namespace(), Adapter: a}); err == nil {
			err = w.RunUntilIdle(t.Context())
		}
	})
	if err != nil {
		t.Fatalf("weavertest: the order worker: %v", err)
	}
}

// Orders returns the orders that wait or were settled, newest first, at most a page of them.
func Orders(t *testing.T, e *Env) (page []order.Order) {
	t.Helper()
	var err error
	e.clock.at(t.Context(), func() {
		s, ok := sealorder.Of(e.Client.OpenStore())
		if !ok {
			err = errors.New("the store keeps no orders")
			return
		}
		page, _, err = s.ListOrders(context.Background(), e.Namespace(), order.Filter{})
	})
	if err != nil {
		t.Fatalf("weavertest: list orders: %v", err)
	}
	return page
}
