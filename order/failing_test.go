package order_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/goweaver/weaver/order"
)

// failing is a store that is away while down is set.
type failing struct {
	order.Store
	down atomic.Bool
}

var errAway = errors.New("the store is away")

func (f *failing) away() error {
	if f.down.Load() {
		time.Sleep(100 * time.Millisecond)
		return errAway
	}
	return nil
}

func (f *failing) ClaimOrders(ctx context.Context, ns string, req order.ClaimRequest) (order.ClaimResult, error) {
	if err := f.away(); err != nil {
		return order.ClaimResult{}, err
	}
	return f.Store.ClaimOrders(ctx, ns, req)
}

func (f *failing) RenewOrders(ctx context.Context, ns, worker string, lease time.Duration, leases ...order.Lease) ([]bool, error) {
	if err := f.away(); err != nil {
		return nil, err
	}
	return f.Store.RenewOrders(ctx, ns, worker, lease, leases...)
}

func (f *failing) SendOrders(ctx context.Context, ns string, sends ...order.Send) ([]error, error) {
	if err := f.away(); err != nil {
		return nil, err
	}
	return f.Store.SendOrders(ctx, ns, sends...)
}

func (f *failing) SettleOrders(ctx context.Context, ns string, list ...order.Settlement) ([]order.Settled, error) {
	if err := f.away(); err != nil {
		return nil, err
	}
	return f.Store.SettleOrders(ctx, ns, list...)
}

func (f *failing) ReclaimOrders(ctx context.Context, ns, worker string, lease time.Duration) (order.Reclaimed, error) {
	if err := f.away(); err != nil {
		return order.Reclaimed{}, err
	}
	return f.Store.ReclaimOrders(ctx, ns, worker, lease)
}
