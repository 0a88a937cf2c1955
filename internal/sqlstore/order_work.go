package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// JoinOrders implements order.Store: an order worker has the row, the lock and the session of a
// worker of tasks, and its death is proven in the same ways.
func (s *Store) JoinOrders(ctx context.Context, ns string, w order.WorkerInfo) error {
	sender := store.Sender(w.Sender)
	return s.Join(ctx, ns, store.WorkerInfo{ID: store.WorkerID(w.ID), Name: w.Name, TTL: w.Lease, Announcement: store.Announcement{Sender: &sender}})
}

// LeaveOrders implements order.Store.
func (s *Store) LeaveOrders(ctx context.Context, ns, worker string) error {
	return s.Leave(ctx, ns, store.WorkerID(worker))
}

var (
	sqlDueOrders = `SELECT ` + orderColumns.List() + fromOrders + `AND o.status = ?2 AND o.next_run_at <= ?3 AND o.held = 0
ORDER BY o.next_run_at, o.id LIMIT ?4 /*claim o, l*/`
	sqlSendingOrders = `SELECT ` + orderColumns.List() + fromOrders + `AND o.status = 'sending' ORDER BY o.next_run_at, o.id LIMIT ?2 /*claim o, l*/`
	sqlUnsignalled   = `SELECT ` + orderColumns.List() + fromOrders + `AND o.signalled = 0 AND o.expires_at IS NOT NULL
ORDER BY o.id LIMIT ?2 /*claim o, l*/`
)

const (
	sqlNextOrder = `SELECT next_run_at FROM weaver_outbox_orders
WHERE namespace = ?1 AND status = ?2 AND next_run_at > 0 AND held = 0 ORDER BY next_run_at LIMIT 1`
)

// ClaimOrders implements order.Store.
func (s *Store) ClaimOrders(ctx context.Context, ns string, req order.ClaimRequest) (order.ClaimResult, error) {
	var got order.ClaimResult
	err := s.write(ctx, ns, max(1, req.Limit), func(t *Tx) error {
		got = order.ClaimResult{Next: -1}
		// Retries come first: their rows are older than those which were never sent.
		for _, state := range []order.State{order.Retrying, order.Pending} {
			if err := t.claimOrders(&req, state, &got); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return order.ClaimResult{}, err
	}
	return got, nil
}

func (t *Tx) claimOrders(req *order.ClaimRequest, state order.State, got *order.ClaimResult) error {
	if free := req.Limit - len(got.Claimed); free > 0 {
		list, err := orderColumns.All(t.stmt(sqlDueOrders).Text(1, t.ns).Text(2, string(state)).Int(3, t.mic).Int(4, int64(free)))
		if err != nil {
			return err
		}
		ended, err := t.endedTasks(list)
		if err != nil {
			return err
		}
		var moves orderMoves
		for i := range list {
			o := &list[i]
			moves.add(o, orderrules.Claim(o, req, ended[o.Row.Task], t.at))
			if o.Row.State == order.Sending {
				got.Claimed = append(got.Claimed, o.Row)
			} else {
				got.Settled++
			}
		}
		if err := t.writeOrders(&moves); err != nil {
			return err
		}
	}
	if len(got.Claimed) > 0 {
		return nil
	}
	st := t.stmt(sqlNextOrder).Text(1, t.ns).Text(2, string(state))
	if st.One() {
		next := max(0, time.Duration(st.ColInt(0)-t.mic)*time.Microsecond)
		if got.Next < 0 || next < got.Next {
			got.Next = next
		}
	}
	return st.Done()
}

const sqlRenewOrder = `
UPDATE weaver_outbox_orders SET locked_at = ?4, updated_at = ?4, lease_until = CASE WHEN lease_until > ?5 THEN lease_until ELSE ?5 END
WHERE namespace = ?1 AND idempotency_key = ?2 AND token = ?3 AND status = 'sending'`

// RenewOrders implements order.Store. It goes before everything that waits to be written.
func (s *Store) RenewOrders(ctx context.Context, ns, worker string, lease time.Duration, leases ...order.Lease) ([]bool, error) {
	lost := make([]bool, len(leases))
	sorted := make([]int, len(leases)) // in the order of locking
	for i := range sorted {
		sorted[i] = i
	}
	slices.SortFunc(sorted, func(a, b int) int { return strings.Compare(leases[a].Key, leases[b].Key) })
	err := s.db.Write(ctx, ns, Op{Weight: len(leases), Urgent: true, Run: func(t *Tx) error {
		if err := t.seen(store.WorkerID(worker), lease); err != nil {
			return err
		}
		for _, i := range sorted {
			n, err := t.stmt(sqlRenewOrder).Text(1, t.ns).Text(2, leases[i].Key).Int(3, leases[i].Token).Int(4, t.mic).
				Int(5, t.mic+lease.Microseconds()).Exec()
			if err != nil {
				return err
			}
			lost[i] = n == 0
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// SendOrders implements order.Store.
// Crash after the commit: the row says that it may have been sent.
func (s *Store) SendOrders(ctx context.Context, ns string, sends ...order.Send) ([]error, error) {
	errs := make([]error, len(sends))
	keys := sortedKeys(sends, func(s *order.Send) string { return s.Key })
	err := s.db.Write(ctx, ns, Op{Weight: len(sends), Orders: keys, Run: func(t *Tx) error {
		found, err := t.orders(keys)
		if err != nil {
			return err
		}
		var moves orderMoves
		for i := range sends {
			o := found[sends[i].Key]
			if o == nil {
				errs[i] = fmt.Errorf("%w: %q", order.ErrNotFound, sends[i].Key)
				continue
			}
			var m orderrules.Move
			if m, errs[i] = orderrules.Send(o, &sends[i], t.at); errs[i] == nil {
				moves.add(o, m)
			}
		}
		return t.writeOrders(&moves)
	}})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// SettleOrders implements order.Store. Ledger, row and signal are in one transaction.
// Crash after the commit: the same settlement is answered with Again.
func (s *Store) SettleOrders(ctx context.Context, ns string, list ...order.Settlement) ([]order.Settled, error) {
	got := make([]order.Settled, len(list))
	keys := sortedKeys(list, func(s *order.Settlement) string { return s.Key })
	err := s.db.Write(ctx, ns, Op{Weight: 3 * len(list), Orders: keys, Run: func(t *Tx) error {
		found, err := t.orders(keys)
		if err != nil {
			return err
		}
		var moves orderMoves
		for i := range list {
			o := found[list[i].Key]
			if o == nil {
				got[i] = order.Settled{Err: fmt.Errorf("%w: %q", order.ErrNotFound, list[i].Key)}
				continue
			}
			var m orderrules.Move
			if m, got[i] = orderrules.Settle(o, &list[i], t.at); got[i].Err == nil {
				moves.add(o, m)
			}
		}
		return t.writeOrders(&moves)
	}})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// maxReclaim is the number of leases that one ReclaimOrders looks at.
const maxReclaim = 1000

// ReclaimOrders implements order.Store.
func (s *Store) ReclaimOrders(ctx context.Context, ns, worker string, lease time.Duration) (order.Reclaimed, error) {
	dead, err := s.db.Dead(ctx, ns)
	if err != nil {
		return order.Reclaimed{}, err
	}
	defer dead.Close()
	var got order.Reclaimed
	var forgotten []store.WorkerID
	err = s.write(ctx, ns, Heavy, func(t *Tx) (err error) {
		r := reaping{tx: t, req: &store.ReapRequest{Worker: store.WorkerID(worker), TTL: lease}, dead: dead.IDs()}
		if c, ok := dead.(Confirmer); ok {
			if r.dead, err = c.Confirm(t); err != nil {
				return err
			}
		}
		got = order.Reclaimed{Next: -1}
		if err := r.orders(&got); err != nil {
			return err
		}
		if err := t.signalOrders(&got); err != nil {
			return err
		}
		err = r.forgetWorkers() // no engine may run that does it
		forgotten = r.forgotten
		return err
	})
	if err != nil {
		return order.Reclaimed{}, err
	}
	dead.Forget(forgotten)
	return got, nil
}

// orders takes the leases of orders back that have ended.
func (r *reaping) orders(got *order.Reclaimed) error {
	t := r.tx
	if err := t.seen(r.req.Worker, r.req.TTL); err != nil {
		return err
	}
	if err := r.findEligible(); err != nil {
		return err
	}
	list, err := orderColumns.All(t.stmt(sqlSendingOrders).Text(1, t.ns).Int(2, maxReclaim))
	if err != nil {
		return err
	}
	var moves orderMoves
	soonest := time.Duration(math.MaxInt64)
	for i := range list {
		o := &list[i]
		gone := slices.Contains(r.dead, store.WorkerID(o.Row.LockedBy))
		if left := o.Row.LeaseUntil.Sub(t.at); !gone && left > 0 {
			soonest = min(soonest, left)
			continue
		}
		if !gone {
			if !r.eligible() {
				got.WarmingUp = true
				continue
			}
			holder, err := t.worker(store.WorkerID(o.Row.LockedBy))
			if err != nil {
				return err
			}
			gone = holder.Stopped(o.Row.LeaseUntil)
		}
		m, counted := orderrules.Reclaim(o, gone, t.at)
		moves.add(o, m)
		got.Expired++
		if counted {
			got.Counted++
		}
	}
	if soonest != math.MaxInt64 {
		got.Next = soonest
	}
	return t.writeOrders(&moves)
}

// signalOrders sends the signals that settlements could not send.
func (t *Tx) signalOrders(got *order.Reclaimed) error {
	list, err := orderColumns.All(t.stmt(sqlUnsignalled).Text(1, t.ns).Int(2, ordersChunk))
	if err != nil {
		return err
	}
	for i := range list {
		if err := t.signalOrder(&list[i]); err != nil {
			return err
		}
		if list[i].Row.Signalled {
			got.Signals++
			if err := t.writeOrder(&list[i], &orderrules.Move{Row: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
