// Package sealorder seals the requests and results of orders, as package seal does the values of
// tasks. It is a package of its own so that package weaver does not link package order.
package sealorder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/seal"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// Of returns the orders of a store of tasks. Those of a sealed store are sealed as well. It returns
// false for a store without orders.
func Of(tasks store.Store) (order.Store, bool) {
	below, s, sealed := seal.Parts(tasks)
	if !sealed {
		return order.Of(tasks)
	}
	orders, ok := Of(below)
	if !ok {
		return nil, false
	}
	return &sealedOrders{orders, s}, true
}

// Hold holds the unsettled orders of a store of tasks that was restored, and returns their number: their partners may
// have them. A store without any gets no entry in its audit log.
func Hold(ctx context.Context, tasks store.Store, ns string, audit order.Audit) (int, error) {
	st, ok := Of(tasks)
	if !ok {
		return 0, nil
	}
	stats, err := st.OrderStats(ctx, ns)
	if err != nil || stats.OldestAt.IsZero() {
		return 0, err
	}
	ack, err := st.OperateOrder(ctx, ns, order.Hold{Audit: audit})
	if err != nil {
		return 0, fmt.Errorf("hold the orders: %w", err)
	}
	return ack.Changed, nil
}

// sealedOrders seals requests and results. Digests are those of the plain values, so that a
// repetition is recognised.
type sealedOrders struct {
	order.Store
	s *seal.Sealer
}

// AcceptOrders implements order.Store.
func (c *sealedOrders) AcceptOrders(ctx context.Context, ns string, tx order.Tx, reqs ...order.New) ([]order.Accepted, error) {
	reqs = slices.Clone(reqs)
	for i := range reqs {
		if err := c.seal(&reqs[i]); err != nil {
			return nil, err
		}
	}
	got, err := c.Store.AcceptOrders(ctx, ns, tx, reqs...)
	for i := range got {
		c.openEntry(&got[i].Entry)
	}
	return got, err
}

func (c *sealedOrders) seal(n *order.New) (err error) {
	n.Body, err = c.s.Seal(seal.OrderRequestOf(n.Key), n.Body)
	return err
}

func (c *sealedOrders) openEntry(e *order.Entry) {
	e.Result = c.s.Open(seal.OrderResultOf(e.Key), e.Result)
}

func (c *sealedOrders) openRow(r *order.Row) { r.Body = c.s.Open(seal.OrderRequestOf(r.Key), r.Body) }

// ClaimOrders implements order.Store. A request that cannot be opened stays sealed: the worker
// releases it.
func (c *sealedOrders) ClaimOrders(ctx context.Context, ns string, req order.ClaimRequest) (order.ClaimResult, error) {
	got, err := c.Store.ClaimOrders(ctx, ns, req)
	for i := range got.Claimed {
		c.openRow(&got.Claimed[i])
	}
	return got, err
}

// SettleOrders implements order.Store.
func (c *sealedOrders) SettleOrders(ctx context.Context, ns string, list ...order.Settlement) ([]order.Settled, error) {
	list = slices.Clone(list)
	for i := range list {
		end := &list[i]
		if end.Verdict != order.VerdictSucceeded && end.Verdict != order.VerdictAborted {
			continue
		}
		var err error
		if end.Stored, err = c.result(end.Key, &end.Result); err != nil {
			return nil, err
		}
	}
	return c.Store.SettleOrders(ctx, ns, list...)
}

func (c *sealedOrders) result(key string, res *order.ExecResult) (json.RawMessage, error) {
	raw, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	return c.s.Seal(seal.OrderResultOf(key), raw)
}

// OperateOrder implements order.Store.
func (c *sealedOrders) OperateOrder(ctx context.Context, ns string, cmd order.Command) (order.Ack, error) {
	var err error
	switch v := cmd.(type) {
	case order.SettleByHand:
		if v.Result != nil {
			v.Stored, err = c.result(v.Key, v.Result)
			cmd = v
		}
	case order.Resubmit:
		err = c.seal(&v.New)
		cmd = v
	}
	if err != nil {
		return order.Ack{}, err
	}
	ack, err := c.Store.OperateOrder(ctx, ns, cmd)
	c.openEntry(&ack.Entry)
	return ack, err
}

// GetOrder implements order.Store.
func (c *sealedOrders) GetOrder(ctx context.Context, ns, key string) (order.Order, error) {
	o, err := c.Store.GetOrder(ctx, ns, key)
	c.openRow(&o.Row)
	c.openEntry(&o.Entry)
	return o, err
}

// ListOrders implements order.Store.
func (c *sealedOrders) ListOrders(ctx context.Context, ns string, f order.Filter) ([]order.Order, string, error) {
	page, next, err := c.Store.ListOrders(ctx, ns, f)
	for i := range page {
		c.openRow(&page[i].Row)
		c.openEntry(&page[i].Entry)
	}
	return page, next, err
}
