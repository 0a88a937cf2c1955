package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/pgtest"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/ordertask"
)

var buyOnPostgres = weaver.Define[string, order.ExecResult]("postgres.order.buy.v1", weaver.NoRetry())

// TestOrders_WakeTasks sends the orders of tasks, whose settlements wake them in the same
// transaction. One order is rejected: its task fails with the reason.
func TestOrders_WakeTasks(t *testing.T) {
	t.Parallel()
	db := openURL(t, pgtest.Migrated(t, "weaver", migrateURL))
	eng := running(t, db, weaver.Config{Handlers: []weaver.Handler{buyOnPostgres.Handler(func(ctx context.Context, id string) (order.ExecResult, error) {
		return ordertask.Send(ctx, "buy", ordertask.Order(order.OrderRequest{
			OrderID: id, Instrument: "BTC-JPY", Side: order.Buy, Qty: "1", TimeInForce: order.GoodTillCancelled,
		}, order.Orders{}))
	})}})
	worker, err := order.NewWorker(order.WorkerConfig{Store: db, Namespace: eng.Namespace(), Config: order.Config{PollInterval: 20 * time.Millisecond}, Adapter: &order.Paper{Behave: func(out order.Outgoing) string {
		if out.Ref == "bad" {
			return "reject"
		}
		return ""
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer work.Wait()
	defer stop()
	for _, id := range []string{"a", "bad", "b"} {
		h, err := buyOnPostgres.Enqueue(t.Context(), eng, id)
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.Wait(t.Context())
		if id != "bad" {
			if err != nil || res.OrderID != id || res.ExecutedQty != "1" {
				t.Errorf("%s: %+v, %v", id, res, err)
			}
			continue
		}
		if te, ok := errors.AsType[*weaver.TaskError](err); !ok || te.Code != "BROKER_REJECTED" {
			t.Errorf("%s: %v", id, err)
		}
	}
}
