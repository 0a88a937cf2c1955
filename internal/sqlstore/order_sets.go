package sqlstore

import (
	"slices"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/task"
)

// BulkOrders are the set-based statements of orders.
type BulkOrders interface {
	// LockOrders reads orders (OrderSelect), and locks their rows and entries one after the other.
	// The keys are sorted.
	LockOrders(t *Tx, keys []string) *sqlstmt.Stmt
	// WriteEntries writes the ledger entries of locked orders (LedgerFields), and WriteRows their
	// rows (OrderFields).
	WriteEntries(t *Tx, list []*order.Order) error
	WriteRows(t *Tx, list []*order.Order) error
}

// The columns of BulkOrders.
var (
	OrderSelect  = orderColumns.List()
	OrderFields  = orderFields
	LedgerFields = ledgerFields
)

// sortedKeys returns each key once, in the order of locking.
func sortedKeys[T any](list []T, key func(*T) string) []string {
	keys := make([]string, len(list))
	for i := range list {
		keys[i] = key(&list[i])
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// orders reads and locks orders by their sorted keys, so that two transactions do not wait for
// each other.
func (t *Tx) orders(keys []string) (map[string]*order.Order, error) {
	found := make(map[string]*order.Order, len(keys))
	read := func(st *sqlstmt.Stmt) error {
		list, err := orderColumns.All(st)
		for i := range list {
			found[list[i].Row.Key] = &list[i]
		}
		return err
	}
	if t.bulk != nil && len(keys) > 0 {
		return found, read(t.bulk.LockOrders(t, keys))
	}
	for chunk := range slices.Chunk(keys, ordersChunk) {
		st := t.stmt(sqlLockOrders).Text(1, t.ns)
		for i := range ordersChunk {
			st.Text(2+i, chunk[min(i, len(chunk)-1)])
		}
		if err := read(st); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// orderMoves collects the moves of a call, to write them together.
type orderMoves struct {
	list []movedOrder
	at   map[*order.Order]int
}

type movedOrder struct {
	*order.Order
	by orderrules.Move
}

// add adds a move of an order, which may have moved before.
func (ms *orderMoves) add(o *order.Order, m orderrules.Move) {
	if i, ok := ms.at[o]; ok {
		was := &ms.list[i].by
		was.Ledger, was.Row, was.Settled = was.Ledger || m.Ledger, was.Row || m.Row, was.Settled || m.Settled
		return
	}
	if ms.at == nil {
		ms.at = make(map[*order.Order]int)
	}
	ms.at[o] = len(ms.list)
	ms.list = append(ms.list, movedOrder{o, m})
}

// writeOrders writes moves: all ledger entries first, then the signals of settled orders, then
// the rows.
func (t *Tx) writeOrders(ms *orderMoves) error {
	if t.bulk == nil {
		for i := range ms.list {
			if err := t.writeOrder(ms.list[i].Order, &ms.list[i].by); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ms.write(t, t.bulk.WriteEntries, func(m *movedOrder) bool { return m.by.Ledger }); err != nil {
		return err
	}
	for i := range ms.list {
		if ms.list[i].by.Settled {
			if err := t.signalOrder(ms.list[i].Order); err != nil {
				return err
			}
		}
	}
	return ms.write(t, t.bulk.WriteRows, func(m *movedOrder) bool { return m.by.Row })
}

func (ms *orderMoves) write(t *Tx, all func(*Tx, []*order.Order) error, about func(*movedOrder) bool) error {
	some := make([]*order.Order, 0, len(ms.list))
	for i := range ms.list {
		if about(&ms.list[i]) {
			some = append(some, ms.list[i].Order)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return all(t, some)
}

var sqlTaskStates = newIDSQL(func(in string) string {
	return `SELECT task_id, state FROM weaver_tasks WHERE namespace = ?1 AND task_id ` + in
})

// endedTasks returns those of the orders' tasks that have ended, or are gone.
func (t *Tx) endedTasks(list []order.Order) (map[task.ID]bool, error) {
	ended := make(map[task.ID]bool)
	for i := range list {
		if id := list[i].Row.Task; !id.IsZero() {
			ended[id] = true
		}
	}
	ids := make([]task.ID, 0, len(ended))
	for id := range ended {
		ids = append(ids, id)
	}
	err := t.byIDs(sqlTaskStates, ids, func(st *sqlstmt.Stmt, _ []task.ID) error {
		for st.Next() {
			ended[st.ColID(0)] = task.State(st.ColName(1)).Terminal()
		}
		return st.Done()
	})
	return ended, err
}
