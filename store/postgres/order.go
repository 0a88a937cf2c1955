package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/internal/sqlstore"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store/postgres/internal/conn"
)

var (
	// Locks in the order of the list, as in sqlLocksOfTasks.
	sqlLockOrdersAll = `
SELECT ` + sqlstore.OrderSelect + ` FROM unnest(CAST(?2 AS text[])) AS u(key), LATERAL (
  SELECT * FROM weaver_outbox_orders WHERE namespace = ?1 AND idempotency_key = u.key LIMIT 1 FOR UPDATE) o, LATERAL (
  SELECT * FROM weaver_idempo_ledger WHERE namespace = ?1 AND idempotency_key = u.key LIMIT 1 FOR UPDATE) l`

	sqlWriteEntriesAll = writeByKey("weaver_idempo_ledger", sqlstore.LedgerFields)
	sqlWriteRowsAll    = writeByKey("weaver_outbox_orders", sqlstore.OrderFields)
)

// sqlSendNow is orderrules.Send for rows whose leases are held. A row that another transaction
// moves meanwhile is not found: its place is another one then.
const sqlSendNow = `
UPDATE weaver_outbox_orders o SET send_no = send_no + 1, send_started_at = u.now, send_ends_at = u.ends, send_open = 1, updated_at = u.now
FROM (
  SELECT p.place, u.ends, clk.now FROM (SELECT coalesce(CAST(?5 AS bigint), ` + serverTime + `) AS now OFFSET 0) clk,
    unnest(CAST(?2 AS text[]), CAST(?3 AS bigint[]), CAST(?4 AS bigint[])) AS u(key, token, ends), LATERAL (
    SELECT ctid AS place FROM weaver_outbox_orders
    WHERE namespace = ?1 AND idempotency_key = u.key AND token = u.token AND status = 'sending' LIMIT 1) p) u
WHERE o.ctid = u.place
RETURNING o.idempotency_key`

// writeByKey updates rows of a table that the transaction has locked.
func writeByKey[T any](table string, fields sqlstmt.Fields[T]) string {
	set := make([]string, len(fields))
	for i := range fields {
		set[i] = fields[i].Name + " = u." + fields[i].Name
	}
	return `
UPDATE ` + table + ` o SET ` + strings.Join(set, ", ") + `
FROM (
  SELECT p.place, u.* FROM unnest(CAST(?2 AS text[]), ` + fields.Arrays(3) + `) AS u(of_key, ` + fields.Names() + `), LATERAL (
    SELECT ctid AS place FROM ` + table + ` WHERE namespace = ?1 AND idempotency_key = u.of_key LIMIT 1) p) u
WHERE o.ctid = u.place`
}

// LockOrders implements sqlstore.BulkOrders.
func (d database) LockOrders(t *sqlstore.Tx, keys []string) *sqlstmt.Stmt {
	if _, err := bindOrders(d.c, t.Namespace(), keys); err != nil {
		return sqlstmt.Failed(err)
	}
	return d.c.Stmt(sqlLockOrdersAll).Text(1, t.Namespace()) // reads the rows of sendLocks, if they were sent
}

// sendLocks sends LockOrders ahead.
func sendLocks(c *conn.Conn, ns string, keys []string) error {
	st, err := bindOrders(c, ns, keys)
	if err != nil {
		return err
	}
	return st.Send()
}

func bindOrders(c *conn.Conn, ns string, keys []string) (*conn.Stmt, error) {
	st, err := c.Statement(sqlLockOrdersAll)
	if err == nil {
		err = st.BindText(1, ns)
	}
	if err == nil {
		st.Array(2).Texts(keys)
	}
	return st, err
}

// WriteEntries implements sqlstore.BulkOrders.
func (d database) WriteEntries(t *sqlstore.Tx, list []*order.Order) error {
	return writeOrders(d, t, sqlWriteEntriesAll, sqlstore.LedgerFields, list, func(o *order.Order) *order.Entry { return &o.Entry })
}

// WriteRows implements sqlstore.BulkOrders.
func (d database) WriteRows(t *sqlstore.Tx, list []*order.Order) error {
	return writeOrders(d, t, sqlWriteRowsAll, sqlstore.OrderFields, list, func(o *order.Order) *order.Row { return &o.Row })
}

func writeOrders[T any](d database, t *sqlstore.Tx, sql string, fields sqlstmt.Fields[T], list []*order.Order, part func(*order.Order) *T) error {
	st, err := d.c.Statement(sql)
	if err != nil {
		return err
	}
	keys := st.Array(2)
	for _, o := range list {
		keys.Text(o.Row.Key)
	}
	bindArrays(st, 3, fields, len(list), func(i int) *T { return part(list[i]) })
	b := binder{st: st}
	return b.text(1, t.Namespace()).exec()
}

// SendOrders implements order.Store. It records sends whose leases are held in one round trip.
func (db *DB) SendOrders(ctx context.Context, ns string, sends ...order.Send) ([]error, error) {
	sorted := slices.Clone(sends)
	slices.SortStableFunc(sorted, func(a, b order.Send) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Key == sorted[i-1].Key {
			return db.verbs.SendOrders(ctx, ns, sends...)
		}
	}
	var st *conn.Stmt
	began := make(map[string]bool, len(sends))
	err := db.pool.Alone(ctx, func(c *conn.Conn) (err error) {
		if st, err = c.Statement(sqlSendNow); err != nil {
			return err
		}
		keys, tokens, ends := st.Array(2), st.Array(3), st.Array(4)
		for i := range sorted {
			keys.Text(sorted[i].Key)
			tokens.Int(sorted[i].Token)
			sqlstmt.PutTime(ends, sorted[i].EndsAt)
		}
		b := binder{st: st}
		return b.text(1, ns).intOrNull(5, given(c)).send()
	}, func() error {
		for st.Step() {
			began[string(st.Raw(0))] = true
		}
		return errors.Join(st.Err(), st.Reset())
	})
	if err != nil {
		return nil, db.translate(err)
	}
	errs := make([]error, len(sends))
	if len(began) == len(sends) {
		return errs, nil
	}
	var rest []order.Send
	var at []int
	for i := range sends {
		if !began[sends[i].Key] {
			rest, at = append(rest, sends[i]), append(at, i)
		}
	}
	others, err := db.verbs.SendOrders(ctx, ns, rest...) // finds the reasons
	if err != nil {
		return nil, err
	}
	for i := range others {
		errs[at[i]] = others[i]
	}
	return errs, nil
}
