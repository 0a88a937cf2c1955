package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

var _ order.Store = (*Store)(nil)

// AcceptOrders implements order.Store. There are no transactions of a caller's in memory.
func (s *Store) AcceptOrders(ctx context.Context, ns string, tx order.Tx, reqs ...order.New) ([]order.Accepted, error) {
	if tx != nil {
		return nil, fmt.Errorf("%w: a store in memory joins none for orders", store.ErrForeignTx)
	}
	got := make([]order.Accepted, len(reqs))
	err := s.do(ctx, ns, func(o *op) {
		for i := range reqs {
			got[i] = o.acceptOrder(&reqs[i])
		}
	})
	return got, err
}

func (o *op) acceptOrder(n *order.New) order.Accepted {
	if err := orderrules.Check(n); err != nil {
		return order.Accepted{Err: err}
	}
	if old := o.orders[n.Key]; old != nil {
		if err := orderrules.Existing(n, &old.Entry); err != nil {
			return order.Accepted{Entry: copyOrder(old).Entry, Err: err}
		}
		old.Entry.LastSeenAt = o.now
		return order.Accepted{Entry: copyOrder(old).Entry}
	}
	made := orderrules.Accept(n, o.now)
	made.Row.Body = copyRaw(made.Row.Body)
	o.lastOrder++
	made.Row.ID = o.lastOrder
	o.orders[n.Key] = &made
	return order.Accepted{Created: true, Entry: made.Entry}
}

func copyOrder(o *order.Order) order.Order {
	c := *o
	c.Row.Body, c.Entry.Result = copyRaw(o.Row.Body), copyRaw(o.Entry.Result)
	return c
}

// sortedOrders returns the orders that pick selects, the first accepted first.
func (o *op) sortedOrders(pick func(*order.Order) bool) (list []*order.Order) {
	for _, ord := range o.orders {
		if pick(ord) {
			list = append(list, ord)
		}
	}
	slices.SortFunc(list, func(a, b *order.Order) int { return cmp.Compare(a.Row.ID, b.Row.ID) })
	return list
}

// JoinOrders implements order.Store.
func (s *Store) JoinOrders(ctx context.Context, ns string, w order.WorkerInfo) error {
	sender := store.Sender(w.Sender)
	return s.Join(ctx, ns, store.WorkerInfo{ID: store.WorkerID(w.ID), Name: w.Name, TTL: w.Lease, Announcement: store.Announcement{Sender: &sender}})
}

// LeaveOrders implements order.Store.
func (s *Store) LeaveOrders(ctx context.Context, ns, worker string) error {
	return s.Leave(ctx, ns, store.WorkerID(worker))
}

// taskOver reports whether the task of an order has ended, or is gone.
func (o *op) taskOver(id task.ID) bool {
	if id.IsZero() {
		return false
	}
	r := o.tasks[id]
	return r == nil || r.State.Terminal()
}

// ClaimOrders implements order.Store.
func (s *Store) ClaimOrders(ctx context.Context, ns string, req order.ClaimRequest) (order.ClaimResult, error) {
	got := order.ClaimResult{Next: -1}
	err := s.do(ctx, ns, func(o *op) {
		for _, state := range []order.State{order.Retrying, order.Pending} {
			due := o.sortedOrders(func(ord *order.Order) bool { return ord.Row.State == state && orderrules.Due(&ord.Row, o.now) })
			slices.SortStableFunc(due, func(a, b *order.Order) int { return a.Row.NextRunAt.Compare(b.Row.NextRunAt) })
			for _, ord := range due[:min(len(due), max(0, req.Limit-len(got.Claimed)))] {
				m := orderrules.Claim(ord, &req, o.taskOver(ord.Row.Task), o.now)
				o.orderMoved(ord, &m)
				if ord.Row.State == order.Sending {
					got.Claimed = append(got.Claimed, copyOrder(ord).Row)
				} else {
					got.Settled++
				}
			}
		}
		for _, ord := range o.orders {
			if r := &ord.Row; !r.Held && (r.State == order.Pending || r.State == order.Retrying) {
				if next := until(r.NextRunAt, o.now); got.Next < 0 || next < got.Next {
					got.Next = next
				}
			}
		}
	})
	return got, err
}

// orderMoved gives the result of a settled order to the task that waits for it.
func (o *op) orderMoved(ord *order.Order, m *orderrules.Move) {
	if m.Settled {
		o.signalOrder(ord)
	}
}

func (o *op) signalOrder(ord *order.Order) {
	if ord.Row.Task.IsZero() {
		return
	}
	cmd := store.SendSignal{
		Task: ord.Row.Task, Name: orderrules.SignalName(ord.Row.Step), Key: ord.Row.Key, Payload: orderrules.Signal(ord), Audit: store.Audit{By: "order"},
	}
	res := o.signal(cmd)
	if errors.Is(res.Err, store.ErrConflict) {
		cmd.Key = order.KeyHash(ord.Row.Key) + "#" + strconv.FormatInt(o.now.UnixMicro(), 10)
		res = o.signal(cmd)
	}
	ord.Row.Signalled = res.Err == nil || res.State.Terminal() || res.State == ""
}

// RenewOrders implements order.Store.
func (s *Store) RenewOrders(ctx context.Context, ns, worker string, lease time.Duration, leases ...order.Lease) ([]bool, error) {
	lost := make([]bool, len(leases))
	err := s.do(ctx, ns, func(o *op) {
		o.seen(store.WorkerID(worker), lease)
		for i, l := range leases {
			ord := o.orders[l.Key]
			lost[i] = ord == nil || !orderrules.Renew(&ord.Row, l, lease, o.now)
		}
	})
	return lost, err
}

// SendOrders implements order.Store.
func (s *Store) SendOrders(ctx context.Context, ns string, sends ...order.Send) ([]error, error) {
	errs := make([]error, len(sends))
	err := s.do(ctx, ns, func(o *op) {
		for i := range sends {
			ord := o.orders[sends[i].Key]
			if ord == nil {
				errs[i] = fmt.Errorf("%w: %q", order.ErrNotFound, sends[i].Key)
				continue
			}
			_, errs[i] = orderrules.Send(ord, &sends[i], o.now)
		}
	})
	return errs, err
}

// SettleOrders implements order.Store.
func (s *Store) SettleOrders(ctx context.Context, ns string, list ...order.Settlement) ([]order.Settled, error) {
	got := make([]order.Settled, len(list))
	err := s.do(ctx, ns, func(o *op) {
		for i := range list {
			ord := o.orders[list[i].Key]
			if ord == nil {
				got[i] = order.Settled{Err: fmt.Errorf("%w: %q", order.ErrNotFound, list[i].Key)}
				continue
			}
			var m orderrules.Move
			if m, got[i] = orderrules.Settle(ord, &list[i], o.now); got[i].Err == nil {
				o.orderMoved(ord, &m)
			}
		}
	})
	return got, err
}

// ReclaimOrders implements order.Store.
func (s *Store) ReclaimOrders(ctx context.Context, ns, worker string, lease time.Duration) (order.Reclaimed, error) {
	got := order.Reclaimed{Next: -1}
	err := s.do(ctx, ns, func(o *op) {
		o.seen(store.WorkerID(worker), lease)
		steady := !rules.ReaperEligibleAt(o.observed(store.WorkerID(worker)), lease, rules.Stall{}, o.now).After(o.now)
		for _, ord := range o.sortedOrders(func(ord *order.Order) bool { return ord.Row.State == order.Sending }) {
			holder := store.WorkerID(ord.Row.LockedBy)
			gone := o.seenDead(holder)
			if left := ord.Row.LeaseUntil.Sub(o.now); !gone && left > 0 {
				if got.Next < 0 || left < got.Next {
					got.Next = left
				}
				continue
			}
			if !gone && !steady {
				got.WarmingUp = true
				continue
			}
			_, counted := orderrules.Reclaim(ord, gone || o.observed(holder).Stopped(ord.Row.LeaseUntil), o.now)
			got.Expired++
			if counted {
				got.Counted++
			}
		}
		for _, ord := range o.sortedOrders(func(ord *order.Order) bool { return ord.Row.State.Final() && !ord.Row.Signalled }) {
			if o.signalOrder(ord); ord.Row.Signalled {
				got.Signals++
			}
		}
		o.forgetWorkers(lease, steady)
	})
	return got, err
}

// OperateOrder implements order.Store.
func (s *Store) OperateOrder(ctx context.Context, ns string, cmd order.Command) (order.Ack, error) {
	var ack order.Ack
	var refused error
	err := s.do(ctx, ns, func(o *op) { ack, refused = o.operateOrder(cmd) })
	return ack, errors.Join(err, refused)
}

func (o *op) operateOrder(cmd order.Command) (ack order.Ack, refused error) {
	audit := order.AuditOf(cmd)
	note := func(verb, target string) {
		o.note(store.Audit{By: audit.By, Reason: audit.Reason}, verb, target)
	}
	one := func(key, verb string, rule func(*order.Order) (orderrules.Move, error)) error {
		ord := o.orders[key]
		if ord == nil {
			return fmt.Errorf("%w: %q", order.ErrNotFound, key)
		}
		m, err := rule(ord)
		if err == nil && (m.Row || m.Ledger) {
			ack.Changed = 1
			o.orderMoved(ord, &m)
			note(verb, "order/"+key)
		}
		ack.State, ack.Entry = ord.Row.State, copyOrder(ord).Entry
		return err
	}
	each := func(verb string, rule func(*order.Order) (orderrules.Move, error)) {
		for _, ord := range o.sortedOrders(func(*order.Order) bool { return true }) {
			if m, err := rule(ord); err == nil && m.Row {
				ack.Changed++
				o.orderMoved(ord, &m)
			}
		}
		note(verb, "order/*")
	}
	switch cmd := cmd.(type) {
	case order.Requeue:
		return ack, one(cmd.Key, "order_requeue", func(ord *order.Order) (orderrules.Move, error) { return orderrules.Requeue(ord, &cmd, o.now) })
	case order.SettleByHand:
		return ack, one(cmd.Key, "order_settle", func(ord *order.Order) (orderrules.Move, error) { return orderrules.SettleByHand(ord, &cmd, o.now) })
	case order.Withdraw:
		return ack, one(cmd.Key, "order_withdraw", func(ord *order.Order) (m orderrules.Move, _ error) {
			m, ack.InDoubt = orderrules.Withdraw(ord, cmd.By, o.now)
			return m, nil
		})
	case order.Release:
		rule := func(ord *order.Order) (orderrules.Move, error) { return orderrules.Release(ord, o.now) }
		if cmd.Key != "" {
			return ack, one(cmd.Key, "order_release", rule)
		}
		each("order_release", rule)
	case order.Hold:
		each("order_hold", func(ord *order.Order) (orderrules.Move, error) { return orderrules.Hold(ord, o.now), nil })
	case order.Unlock:
		rule := func(ord *order.Order) (orderrules.Move, error) { return orderrules.Unlock(ord, o.now) }
		if cmd.Key != "" {
			return ack, one(cmd.Key, "order_unlock", rule)
		}
		each("order_unlock", rule)
	case order.Resubmit:
		return o.resubmitOrder(&cmd, note)
	case order.Prune:
		for _, ord := range o.sortedOrders(func(ord *order.Order) bool {
			return orderrules.Prunable(ord, &cmd, !ord.Row.Task.IsZero() && !o.taskOver(ord.Row.Task), o.now)
		}) {
			if cmd.Limit > 0 && ack.Changed == cmd.Limit {
				ack.More = true
				break
			}
			delete(o.orders, ord.Row.Key)
			ack.Changed++
		}
		if ack.Changed > 0 && audit.By != "" {
			note("order_prune", "order/*")
		}
	default:
		return ack, fmt.Errorf("unknown command %T", cmd)
	}
	return ack, nil
}

func (o *op) resubmitOrder(cmd *order.Resubmit, note func(verb, target string)) (ack order.Ack, refused error) {
	ord := o.orders[cmd.Key]
	if ord == nil {
		return ack, fmt.Errorf("%w: %q", order.ErrNotFound, cmd.Key)
	}
	if err := orderrules.Resubmit(ord); err != nil {
		return ack, err
	}
	got := o.acceptOrder(&cmd.New)
	ack.Entry, ack.State = got.Entry, order.Pending
	if got.Created {
		ack.Changed = 1
		note("order_resubmit", "order/"+cmd.Key)
	}
	return ack, got.Err
}

// GetOrder implements order.Store.
func (s *Store) GetOrder(ctx context.Context, ns, key string) (got order.Order, err error) {
	found := false
	err = s.do(ctx, ns, func(o *op) {
		if ord := o.orders[key]; ord != nil {
			got, found = copyOrder(ord), true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: %q", order.ErrNotFound, key)
	}
	return got, err
}

// ListOrders implements order.Store.
func (s *Store) ListOrders(ctx context.Context, ns string, f order.Filter) (page []order.Order, next string, err error) {
	var before int64
	if f.After != "" {
		if before, err = strconv.ParseInt(f.After, 10, 64); err != nil || before <= 0 {
			return nil, "", fmt.Errorf("%w: %q", store.ErrBadCursor, f.After)
		}
	}
	err = s.do(ctx, ns, func(o *op) {
		list := o.sortedOrders(func(ord *order.Order) bool {
			return (before == 0 || ord.Row.ID < before) && (len(f.States) == 0 || slices.Contains(f.States, ord.Row.State)) &&
				(!f.Held || ord.Row.Held) && (f.Task.IsZero() || f.Task == ord.Row.Task)
		})
		for _, ord := range slices.Backward(list) {
			if page = append(page, copyOrder(ord)); len(page) == store.PageLimit(f.Limit) {
				next = strconv.FormatInt(ord.Row.ID, 10)
				return
			}
		}
	})
	return page, next, err
}

// OrderStats implements order.Store.
func (s *Store) OrderStats(ctx context.Context, ns string) (order.Stats, error) {
	got := order.Stats{Counts: map[order.State]int{order.Pending: 0, order.Sending: 0, order.Retrying: 0, order.Succeeded: 0, order.Aborted: 0}}
	err := s.do(ctx, ns, func(o *op) {
		for _, w := range o.statuses() {
			if w.Sender != nil {
				got.Senders = append(got.Senders, order.SenderStatus{
					Worker: string(w.ID), Name: w.Name, LastSeen: w.LastSeen, Silent: w.Silent, Dead: w.Dead,
					Sender: orderrules.Sender(order.Sender(*w.Sender), o.now),
				})
			}
		}
		got.Ledger = len(o.orders)
		for ord := range maps.Values(o.orders) {
			r := &ord.Row
			got.Counts[r.State]++
			if r.Held {
				got.Held++
			}
			if r.State == order.Aborted && r.Unknown {
				got.Unknown++
			}
			if !r.State.Final() && (got.OldestAt.IsZero() || r.CreatedAt.Before(got.OldestAt)) {
				got.OldestAt = r.CreatedAt
			}
		}
	})
	return got, err
}
