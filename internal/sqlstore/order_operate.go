package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

const (
	sqlUnsettled = `SELECT o.idempotency_key FROM weaver_outbox_orders o
WHERE o.namespace = ?1 AND o.expires_at IS NULL AND o.id > ?2 ORDER BY o.id LIMIT ?3`
	sqlHeld = `SELECT idempotency_key FROM weaver_outbox_orders WHERE namespace = ?1 AND held = 1 ORDER BY id LIMIT ?2`
)

var (
	sqlExpiredLeases = `SELECT ` + orderColumns.List() + fromOrders + `AND o.status = 'sending' AND o.lease_until <= ?2 ORDER BY o.next_run_at, o.id LIMIT ?3 /*claim o, l*/`
	sqlPruneSettled  = `SELECT ` + orderColumns.List() + fromOrders + `AND o.status = ?2 AND o.expires_at <= ?3 ORDER BY o.expires_at LIMIT ?4 /*claim o, l*/`
)

const (
	sqlDeleteOrder  = `DELETE FROM weaver_outbox_orders WHERE namespace = ?1 AND id = ?2`
	sqlDeleteLedger = `DELETE FROM weaver_idempo_ledger WHERE namespace = ?1 AND idempotency_key = ?2`
)

// OperateOrder implements order.Store.
func (s *Store) OperateOrder(ctx context.Context, ns string, cmd order.Command) (order.Ack, error) {
	var ack order.Ack
	var refused error
	err := s.write(ctx, ns, Heavy, func(t *Tx) (err error) {
		ack, refused = order.Ack{}, nil
		o := orderOperation{operation: operation{tx: t, moves: moves{tx: t}}, ack: &ack, audit: order.AuditOf(cmd)}
		refused, err = o.apply(cmd)
		return err
	})
	if err == nil {
		err = refused
	}
	return ack, err
}

// orderOperation is one command.
type orderOperation struct {
	operation
	ack   *order.Ack
	audit order.Audit
}

// apply applies a command; refused says why it changed nothing.
func (o *orderOperation) apply(cmd order.Command) (refused, err error) {
	switch cmd := cmd.(type) {
	case order.Requeue:
		return o.one(cmd.Key, "order_requeue", func(row *order.Order) (orderrules.Move, error) { return orderrules.Requeue(row, &cmd, o.tx.at) })
	case order.SettleByHand:
		return o.one(cmd.Key, "order_settle", func(row *order.Order) (orderrules.Move, error) { return orderrules.SettleByHand(row, &cmd, o.tx.at) })
	case order.Withdraw:
		return o.one(cmd.Key, "order_withdraw", func(row *order.Order) (orderrules.Move, error) {
			m, inDoubt := orderrules.Withdraw(row, cmd.By, o.tx.at)
			o.ack.InDoubt = inDoubt
			return m, nil
		})
	case order.Release:
		if cmd.Key != "" {
			return o.one(cmd.Key, "order_release", func(row *order.Order) (orderrules.Move, error) { return orderrules.Release(row, o.tx.at) })
		}
		return nil, o.each("order_release", sqlHeld, false, func(row *order.Order) (orderrules.Move, error) { return orderrules.Release(row, o.tx.at) })
	case order.Hold:
		return nil, o.each("order_hold", sqlUnsettled, true, func(row *order.Order) (orderrules.Move, error) { return orderrules.Hold(row, o.tx.at), nil })
	case order.Unlock:
		if cmd.Key != "" {
			return o.one(cmd.Key, "order_unlock", func(row *order.Order) (orderrules.Move, error) { return orderrules.Unlock(row, o.tx.at) })
		}
		return nil, o.unlock()
	case order.Resubmit:
		return o.resubmit(&cmd)
	case order.Prune:
		return nil, o.prune(&cmd)
	}
	return fmt.Errorf("unknown command %T", cmd), nil
}

func (o *orderOperation) noteOrder(verb, target string) error {
	return o.note(store.Audit{By: o.audit.By, Reason: o.audit.Reason}, verb, target)
}

// one applies a rule to one order.
func (o *orderOperation) one(key, verb string, rule func(*order.Order) (orderrules.Move, error)) (refused, err error) {
	row, err := o.tx.order(key)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return fmt.Errorf("%w: %q", order.ErrNotFound, key), nil
	}
	m, refused := rule(row)
	o.ack.State, o.ack.Entry = row.Row.State, row.Entry
	if refused != nil || !m.Row && !m.Ledger {
		return refused, nil
	}
	o.ack.Changed = 1
	if err := o.tx.writeOrder(row, &m); err != nil {
		return nil, err
	}
	return nil, o.noteOrder(verb, "order/"+key)
}

// each applies a rule to the orders that a statement selects by their keys. paged says that the
// statement goes on behind an ID, since the rule does not end what selects a row.
func (o *orderOperation) each(verb, sql string, paged bool, rule func(*order.Order) (orderrules.Move, error)) error {
	last := int64(0)
	for {
		st := o.tx.stmt(sql).Text(1, o.tx.ns)
		if paged {
			st.Int(2, last).Int(3, ordersChunk)
		} else {
			st.Int(2, ordersChunk)
		}
		var keys []string
		for st.Next() {
			keys = append(keys, st.ColText(0))
		}
		if err := st.Done(); err != nil {
			return err
		}
		if len(keys) == 0 {
			break
		}
		slices.Sort(keys)
		found, err := o.tx.orders(keys)
		if err != nil {
			return err
		}
		var moves orderMoves
		for _, row := range found {
			last = max(last, row.Row.ID)
			m, refused := rule(row)
			if refused != nil || !m.Row {
				continue
			}
			o.ack.Changed++
			moves.add(row, m)
		}
		if err := o.tx.writeOrders(&moves); err != nil {
			return err
		}
	}
	return o.noteOrder(verb, "order/*")
}

func (o *orderOperation) unlock() error {
	list, err := orderColumns.All(o.tx.stmt(sqlExpiredLeases).Text(1, o.tx.ns).Int(2, o.tx.mic).Int(3, maxReclaim))
	if err != nil {
		return err
	}
	var moves orderMoves
	for i := range list {
		m, refused := orderrules.Unlock(&list[i], o.tx.at)
		if refused != nil {
			continue
		}
		o.ack.Changed++
		moves.add(&list[i], m)
	}
	if err := o.tx.writeOrders(&moves); err != nil {
		return err
	}
	o.ack.More = len(list) == maxReclaim
	return o.noteOrder("order_unlock", "order/*")
}

func (o *orderOperation) resubmit(cmd *order.Resubmit) (refused, err error) {
	row, err := o.tx.order(cmd.Key)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return fmt.Errorf("%w: %q", order.ErrNotFound, cmd.Key), nil
	}
	if err := orderrules.Resubmit(row); err != nil {
		return err, nil
	}
	var got order.Accepted
	if err := o.tx.acceptOrder(&cmd.New, &got); err != nil {
		return nil, err
	}
	o.ack.Entry, o.ack.State = got.Entry, order.Pending
	if got.Err != nil || !got.Created {
		return got.Err, nil
	}
	o.ack.Changed = 1
	return nil, o.noteOrder("order_resubmit", "order/"+cmd.Key)
}

func (o *orderOperation) prune(cmd *order.Prune) error {
	limit := cmd.Limit
	if limit <= 0 || limit > order.MaxPrune {
		limit = order.MaxPrune
	}
	state, before := order.Succeeded, o.tx.at
	if cmd.Aborted {
		state, before = order.Aborted, cmd.Before.Add(order.Kept) // expires_at is that long after the abort
	}
	list, err := orderColumns.All(o.tx.stmt(sqlPruneSettled).Text(1, o.tx.ns).Text(2, string(state)).Time(3, before).Int(4, int64(limit)))
	if err != nil {
		return err
	}
	ended, err := o.tx.endedTasks(list)
	if err != nil {
		return err
	}
	for i := range list {
		row := &list[i]
		open := !row.Row.Task.IsZero() && !ended[row.Row.Task]
		if !orderrules.Prunable(row, cmd, open, o.tx.at) {
			continue
		}
		o.ack.Changed++
		if err := o.tx.stmt(sqlDeleteLedger).Text(1, o.tx.ns).Text(2, row.Row.Key).Run(); err != nil {
			return err
		}
		if err := o.tx.stmt(sqlDeleteOrder).Text(1, o.tx.ns).Int(2, row.Row.ID).Run(); err != nil {
			return err
		}
	}
	o.ack.More = len(list) == limit && o.ack.Changed > 0
	if o.ack.Changed == 0 || o.audit.By == "" { // a worker's own housekeeping
		return nil
	}
	return o.noteOrder("order_prune", "order/*")
}
