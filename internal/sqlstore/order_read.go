package sqlstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

var (
	sqlOrdersPage   = `SELECT ` + orderColumns.List() + fromOrders + `AND o.id < ?2 ORDER BY o.id DESC LIMIT ?3`
	sqlOrdersOfTask = `SELECT ` + orderColumns.List() + fromOrders + `AND o.task_id = ?4 AND o.id < ?2 ORDER BY o.id DESC LIMIT ?3`
)

const (
	sqlCountOrders  = `SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_orders WHERE namespace = ?1 AND status = ?2 LIMIT ?3) c`
	sqlCountHeld    = `SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_orders WHERE namespace = ?1 AND held = 1 LIMIT ?2) c`
	sqlCountUnknown = `SELECT count(*) FROM (SELECT 1 FROM weaver_outbox_orders WHERE namespace = ?1 AND status = 'aborted' AND unknown = 1 LIMIT ?2) c`
	sqlCountLedger  = `SELECT count(*) FROM (SELECT 1 FROM weaver_idempo_ledger WHERE namespace = ?1 LIMIT ?2) c`
	sqlOldestOrder  = `SELECT created_at FROM weaver_outbox_orders WHERE namespace = ?1 AND expires_at IS NULL ORDER BY id LIMIT 1`
)

// GetOrder implements order.Store.
func (s *Store) GetOrder(ctx context.Context, ns, key string) (order.Order, error) {
	var found *order.Order
	err := s.read(ctx, ns, func(v *View) (err error) {
		found, err = orderColumns.One(v.stmt(sqlOrder).Text(1, ns).Text(2, key))
		return err
	})
	if err != nil {
		return order.Order{}, err
	}
	if found == nil {
		return order.Order{}, fmt.Errorf("%w: %q", order.ErrNotFound, key)
	}
	return *found, nil
}

// ListOrders implements order.Store. A page looks at a bounded number of rows, and may be short.
func (s *Store) ListOrders(ctx context.Context, ns string, f order.Filter) (page []order.Order, next string, err error) {
	before := int64(math.MaxInt64)
	if f.After != "" {
		if before, err = strconv.ParseInt(f.After, 10, 64); err != nil || before <= 0 {
			return nil, "", fmt.Errorf("%w: %q", store.ErrBadCursor, f.After)
		}
	}
	limit := store.PageLimit(f.Limit)
	for looks := s.Looks; looks > 0; {
		n := min(looks, readChunk)
		var rows []order.Order
		err := s.read(ctx, ns, func(v *View) (err error) {
			sql := sqlOrdersPage
			if !f.Task.IsZero() {
				sql = sqlOrdersOfTask
			}
			st := v.stmt(sql).Text(1, ns).Int(2, before).Int(3, int64(n))
			if !f.Task.IsZero() {
				st.ID(4, &f.Task)
			}
			rows, err = orderColumns.All(st)
			return err
		})
		if err != nil {
			return nil, "", err
		}
		for i := range rows {
			before = rows[i].Row.ID
			if len(f.States) > 0 && !slices.Contains(f.States, rows[i].Row.State) || f.Held && !rows[i].Row.Held {
				continue
			}
			if page = append(page, rows[i]); len(page) == limit {
				return page, strconv.FormatInt(before, 10), nil
			}
		}
		if len(rows) < n {
			return page, "", nil
		}
		looks -= n
	}
	return page, strconv.FormatInt(before, 10), nil
}

// OrderStats implements order.Store.
func (s *Store) OrderStats(ctx context.Context, ns string) (order.Stats, error) {
	var got order.Stats
	var workers []store.WorkerStatus
	var now time.Time
	err := s.read(ctx, ns, func(v *View) (err error) {
		got = order.Stats{Counts: make(map[order.State]int)}
		limit := int64(s.Counted)
		count := func(into *int, sql string, state order.State) error {
			st := v.stmt(sql).Text(1, ns)
			if state != "" {
				st.Text(2, string(state)).Int(3, limit)
			} else {
				st.Int(2, limit)
			}
			if st.One() {
				*into = int(st.ColInt(0))
				got.More = got.More || int64(*into) >= limit
			}
			return st.Done()
		}
		for _, state := range []order.State{order.Pending, order.Sending, order.Retrying, order.Succeeded, order.Aborted} {
			n := 0
			if err := count(&n, sqlCountOrders, state); err != nil {
				return err
			}
			got.Counts[state] = n
		}
		if err := count(&got.Held, sqlCountHeld, ""); err != nil {
			return err
		}
		if err := count(&got.Unknown, sqlCountUnknown, ""); err != nil {
			return err
		}
		if err := count(&got.Ledger, sqlCountLedger, ""); err != nil {
			return err
		}
		st := v.stmt(sqlOldestOrder).Text(1, ns)
		if st.One() {
			got.OldestAt = st.ColTime(0)
		}
		if err := st.Done(); err != nil {
			return err
		}
		if workers, err = statusColumns.All(v.stmt(sqlWorkers).Text(1, ns)); err != nil {
			return err
		}
		workers = slices.DeleteFunc(workers, func(w store.WorkerStatus) bool { return w.Sender == nil })
		now = v.now()
		for i := range workers {
			workers[i].Silent = now.Sub(workers[i].LastSeen) > workers[i].TTL
		}
		return nil
	})
	if err == nil {
		workers, err = s.findDead(ctx, ns, workers)
	}
	for i := range workers {
		w := &workers[i]
		got.Senders = append(got.Senders, order.SenderStatus{
			Worker: string(w.ID), Name: w.Name, LastSeen: w.LastSeen, Silent: w.Silent, Dead: w.Dead,
			Sender: orderrules.Sender(order.Sender(*w.Sender), now),
		})
	}
	return got, err
}
