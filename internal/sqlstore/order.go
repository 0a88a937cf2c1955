package sqlstore

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/goweaver/weaver/internal/orderrules"
	"github.com/goweaver/weaver/internal/sqlstmt"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

var _ order.Store = (*Store)(nil)

// orderFields are the columns of weaver_outbox_orders that each move writes.
var orderFields = sqlstmt.Fields[order.Row]{
	{Name: "status", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { s.Text(string(r.State)) }},
	{Name: "attempts", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { s.Int(int64(r.Attempts)) }},
	{Name: "last_error_code", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutText(s, r.LastErrorCode) }},
	{Name: "last_error_msg", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutText(s, r.LastErrorMsg) }},
	{Name: "locked_by", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutText(s, r.LockedBy) }},
	{Name: "locked_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.LockedAt) }},
	{Name: "lease_until", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.LeaseUntil) }},
	{Name: "token", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { s.Int(r.Token) }},
	{Name: "send_no", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { s.Int(int64(r.SendNo)) }},
	{Name: "send_started_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.SendStartedAt) }},
	{Name: "send_ends_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.SendEndsAt) }},
	{Name: "send_open", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutBool(s, r.SendOpen) }},
	{Name: "unknown", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutBool(s, r.Unknown) }},
	{Name: "held", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutBool(s, r.Held) }},
	{Name: "stale_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.StaleAt) }},
	{Name: "next_run_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.NextRunAt) }},
	{Name: "updated_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.UpdatedAt) }},
	{Name: "expires_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.ExpiresAt) }},
	{Name: "signalled", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutBool(s, r.Signalled) }},
}

// newOrderFields are the columns that an acceptance writes, and no move changes.
var newOrderFields = sqlstmt.Fields[order.Row]{
	{Name: "idempotency_key", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { s.Text(r.Key) }},
	{Name: "profile", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { s.Text(r.Profile) }},
	{Name: "order_request_json", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutRaw(s, r.Body) }},
	{Name: "request_digest", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { s.Text(r.Digest) }},
	{Name: "order_id", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutText(s, r.Ref) }},
	{Name: "trace_id", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutText(s, r.TraceID) }},
	{Name: "timeout", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { s.Int(r.Timeout.Microseconds()) }},
	{Name: "max_age", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { s.Int(r.MaxAge.Microseconds()) }},
	{Name: "created_at", Type: "bigint", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutTime(s, r.CreatedAt) }},
	{Name: "task_id", Type: "bytea", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutID(s, &r.Task) }},
	{Name: "step", Type: "text", Put: func(r *order.Row, s sqlstmt.Sink) { sqlstmt.PutText(s, r.Step) }},
}

// ledgerFields are the columns of weaver_idempo_ledger that a settlement writes.
var ledgerFields = sqlstmt.Fields[order.Entry]{
	{Name: "result_digest", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutText(s, e.ResultSHA) }},
	{Name: "status", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { s.Text(string(e.State)) }},
	{Name: "http_status", Type: "bigint", Put: func(e *order.Entry, s sqlstmt.Sink) { s.Int(int64(e.HTTPStatus)) }},
	{Name: "response_payload_json", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutRaw(s, e.Result) }},
	{Name: "unknown", Type: "bigint", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutBool(s, e.Unknown) }},
	{Name: "last_seen_at", Type: "bigint", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutTime(s, e.LastSeenAt) }},
	{Name: "expires_at", Type: "bigint", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutTime(s, e.ExpiresAt) }},
}

var newLedgerFields = sqlstmt.Fields[order.Entry]{
	{Name: "idempotency_key", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { s.Text(e.Key) }},
	{Name: "request_digest", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { s.Text(e.Digest) }},
	{Name: "order_id", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutText(s, e.Ref) }},
	{Name: "trace_id", Type: "text", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutText(s, e.TraceID) }},
	{Name: "first_seen_at", Type: "bigint", Put: func(e *order.Entry, s sqlstmt.Sink) { sqlstmt.PutTime(s, e.FirstSeenAt) }},
}

// ledgerColumns are those of an entry, whose table is called l.
var ledgerColumns = sqlstmt.Columns[order.Entry]{
	sqlstmt.Col("l.idempotency_key", func(e *order.Entry, r *sqlstmt.Row, i int) { e.Key = r.Text(i) }),
	sqlstmt.Col("l.request_digest", func(e *order.Entry, r *sqlstmt.Row, i int) { e.Digest = r.Text(i) }),
	sqlstmt.Col("l.result_digest", func(e *order.Entry, r *sqlstmt.Row, i int) { e.ResultSHA = r.Text(i) }),
	sqlstmt.Col("l.status", func(e *order.Entry, r *sqlstmt.Row, i int) { e.State = order.LedgerState(r.Name(i)) }),
	sqlstmt.Col("l.http_status", func(e *order.Entry, r *sqlstmt.Row, i int) { e.HTTPStatus = int(r.Int(i)) }),
	sqlstmt.Col("l.response_payload_json", func(e *order.Entry, r *sqlstmt.Row, i int) { e.Result = r.Bytes(i) }),
	sqlstmt.Col("l.order_id", func(e *order.Entry, r *sqlstmt.Row, i int) { e.Ref = r.Text(i) }),
	sqlstmt.Col("l.trace_id", func(e *order.Entry, r *sqlstmt.Row, i int) { e.TraceID = r.Text(i) }),
	sqlstmt.Col("l.unknown", func(e *order.Entry, r *sqlstmt.Row, i int) { e.Unknown = r.Bool(i) }),
	sqlstmt.Col("l.first_seen_at", func(e *order.Entry, r *sqlstmt.Row, i int) { e.FirstSeenAt = r.Time(i) }),
	sqlstmt.Col("l.last_seen_at", func(e *order.Entry, r *sqlstmt.Row, i int) { e.LastSeenAt = r.Time(i) }),
	sqlstmt.Col("l.expires_at", func(e *order.Entry, r *sqlstmt.Row, i int) { e.ExpiresAt = r.Time(i) }),
}

// rowColumns are those of an outbox row, whose table is called o.
var rowColumns = sqlstmt.Columns[order.Row]{
	sqlstmt.Col("o.id", func(o *order.Row, r *sqlstmt.Row, i int) { o.ID = r.Int(i) }),
	sqlstmt.Col("o.idempotency_key", func(o *order.Row, r *sqlstmt.Row, i int) { o.Key = r.Text(i) }),
	sqlstmt.Col("o.profile", func(o *order.Row, r *sqlstmt.Row, i int) { o.Profile = r.Name(i) }),
	sqlstmt.Col("o.order_request_json", func(o *order.Row, r *sqlstmt.Row, i int) { o.Body = r.Bytes(i) }),
	sqlstmt.Col("o.request_digest", func(o *order.Row, r *sqlstmt.Row, i int) { o.Digest = r.Text(i) }),
	sqlstmt.Col("o.order_id", func(o *order.Row, r *sqlstmt.Row, i int) { o.Ref = r.Text(i) }),
	sqlstmt.Col("o.trace_id", func(o *order.Row, r *sqlstmt.Row, i int) { o.TraceID = r.Text(i) }),
	sqlstmt.Col("o.status", func(o *order.Row, r *sqlstmt.Row, i int) { o.State = order.State(r.Name(i)) }),
	sqlstmt.Col("o.attempts", func(o *order.Row, r *sqlstmt.Row, i int) { o.Attempts = int(r.Int(i)) }),
	sqlstmt.Col("o.last_error_code", func(o *order.Row, r *sqlstmt.Row, i int) { o.LastErrorCode = r.Text(i) }),
	sqlstmt.Col("o.last_error_msg", func(o *order.Row, r *sqlstmt.Row, i int) { o.LastErrorMsg = r.Text(i) }),
	sqlstmt.Col("o.locked_by", func(o *order.Row, r *sqlstmt.Row, i int) { o.LockedBy = r.Name(i) }),
	sqlstmt.Col("o.locked_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.LockedAt = r.Time(i) }),
	sqlstmt.Col("o.lease_until", func(o *order.Row, r *sqlstmt.Row, i int) { o.LeaseUntil = r.Time(i) }),
	sqlstmt.Col("o.token", func(o *order.Row, r *sqlstmt.Row, i int) { o.Token = r.Int(i) }),
	sqlstmt.Col("o.send_no", func(o *order.Row, r *sqlstmt.Row, i int) { o.SendNo = int(r.Int(i)) }),
	sqlstmt.Col("o.send_started_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.SendStartedAt = r.Time(i) }),
	sqlstmt.Col("o.send_ends_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.SendEndsAt = r.Time(i) }),
	sqlstmt.Col("o.send_open", func(o *order.Row, r *sqlstmt.Row, i int) { o.SendOpen = r.Bool(i) }),
	sqlstmt.Col("o.unknown", func(o *order.Row, r *sqlstmt.Row, i int) { o.Unknown = r.Bool(i) }),
	sqlstmt.Col("o.held", func(o *order.Row, r *sqlstmt.Row, i int) { o.Held = r.Bool(i) }),
	sqlstmt.Col("o.timeout", func(o *order.Row, r *sqlstmt.Row, i int) { o.Timeout = r.Duration(i) }),
	sqlstmt.Col("o.max_age", func(o *order.Row, r *sqlstmt.Row, i int) { o.MaxAge = r.Duration(i) }),
	sqlstmt.Col("o.stale_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.StaleAt = r.Time(i) }),
	sqlstmt.Col("o.next_run_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.NextRunAt = r.Time(i) }),
	sqlstmt.Col("o.created_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.CreatedAt = r.Time(i) }),
	sqlstmt.Col("o.updated_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.UpdatedAt = r.Time(i) }),
	sqlstmt.Col("o.expires_at", func(o *order.Row, r *sqlstmt.Row, i int) { o.ExpiresAt = r.Time(i) }),
	sqlstmt.Col("o.task_id", func(o *order.Row, r *sqlstmt.Row, i int) { o.Task = r.ID(i) }),
	sqlstmt.Col("o.step", func(o *order.Row, r *sqlstmt.Row, i int) { o.Step = r.Text(i) }),
	sqlstmt.Col("o.signalled", func(o *order.Row, r *sqlstmt.Row, i int) { o.Signalled = r.Bool(i) }),
}

// orderColumns are those of a row and its entry.
var orderColumns = func() (both sqlstmt.Columns[order.Order]) {
	for _, c := range rowColumns {
		both = append(both, sqlstmt.Col(c.Name, func(o *order.Order, r *sqlstmt.Row, i int) { c.Scan(&o.Row, r, i) }))
	}
	for _, c := range ledgerColumns {
		both = append(both, sqlstmt.Col(c.Name, func(o *order.Order, r *sqlstmt.Row, i int) { c.Scan(&o.Entry, r, i) }))
	}
	return both
}()

// ordersChunk is the number of keys that one statement reads.
const ordersChunk = 32

var (
	fromOrders = `
FROM weaver_outbox_orders o CROSS JOIN weaver_idempo_ledger l ON l.namespace = o.namespace AND l.idempotency_key = o.idempotency_key
WHERE o.namespace = ?1 `

	sqlOrder       = `SELECT ` + orderColumns.List() + fromOrders + `AND o.idempotency_key = ?2`
	sqlLockOrder   = sqlOrder + ` /*lock o, l*/`
	sqlLockOrders  = `SELECT ` + orderColumns.List() + fromOrders + `AND o.idempotency_key IN (` + paramList(2, ordersChunk) + `) ORDER BY o.idempotency_key /*lock o, l*/`
	sqlLedgerEntry = `SELECT ` + ledgerColumns.List() + ` FROM weaver_idempo_ledger l WHERE l.namespace = ?1 AND l.idempotency_key = ?2`

	sqlInsertLedger = `INSERT INTO weaver_idempo_ledger (namespace, ` + newLedgerFields.Names() + `, ` + ledgerFields.Names() + `)
VALUES (?1, ` + newLedgerFields.Params(2) + `, ` + ledgerFields.Params(2+len(newLedgerFields)) + `) ON CONFLICT DO NOTHING`
	sqlInsertOrder = `INSERT INTO weaver_outbox_orders (namespace, ` + newOrderFields.Names() + `, ` + orderFields.Names() + `)
VALUES (?1, ` + newOrderFields.Params(2) + `, ` + orderFields.Params(2+len(newOrderFields)) + `)`
	sqlUpdateLedger = `UPDATE weaver_idempo_ledger SET ` + assignments(ledgerFields, 3) + ` WHERE namespace = ?1 AND idempotency_key = ?2`
	sqlUpdateOrder  = `UPDATE weaver_outbox_orders SET ` + assignments(orderFields, 3) + ` WHERE namespace = ?1 AND id = ?2`
)

const sqlLedgerSeen = `UPDATE weaver_idempo_ledger SET last_seen_at = ?3 WHERE namespace = ?1 AND idempotency_key = ?2`

func paramList(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "?" + strconv.Itoa(first+i)
	}
	return strings.Join(list, ", ")
}

// assignments lists "column = ?n" for the SET of an update.
func assignments[T any](fs sqlstmt.Fields[T], first int) string {
	list := make([]string, len(fs))
	for i := range fs {
		list[i] = fs[i].Name + " = ?" + strconv.Itoa(first+i)
	}
	return strings.Join(list, ", ")
}

// AcceptOrders implements order.Store.
func (s *Store) AcceptOrders(ctx context.Context, ns string, in order.Tx, reqs ...order.New) ([]order.Accepted, error) {
	got := make([]order.Accepted, len(reqs))
	accept := func(t *Tx) error {
		for i := range reqs {
			got[i] = order.Accepted{}
			if err := t.acceptOrder(&reqs[i], &got[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	if in != nil {
		err = s.db.InTx(ctx, ns, in, accept)
	} else {
		err = s.write(ctx, ns, 2*len(reqs), accept)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

// acceptOrder stores a request, or finds the one that its key has. Two transactions with the
// same key wait for each other at the ledger's primary key.
// Crash after the commit: the same request finds its entry.
func (t *Tx) acceptOrder(n *order.New, got *order.Accepted) error {
	if got.Err = orderrules.Check(n); got.Err != nil {
		return nil
	}
	o := orderrules.Accept(n, t.at)
	st := t.stmt(sqlInsertLedger).Text(1, t.ns)
	newLedgerFields.Bind(st, 2, &o.Entry)
	created, err := ledgerFields.Bind(st, 2+len(newLedgerFields), &o.Entry).Exec()
	if err != nil {
		return err
	}
	if created == 0 {
		return t.existingOrder(n, got)
	}
	got.Created, got.Entry = true, o.Entry
	st = t.stmt(sqlInsertOrder).Text(1, t.ns)
	newOrderFields.Bind(st, 2, &o.Row)
	return orderFields.Bind(st, 2+len(newOrderFields), &o.Row).Run()
}

func (t *Tx) existingOrder(n *order.New, got *order.Accepted) error {
	old, err := ledgerColumns.One(t.stmt(sqlLedgerEntry).Text(1, t.ns).Text(2, n.Key))
	if err != nil {
		return err
	}
	if old == nil { // it was pruned meanwhile
		return t.acceptOrder(n, got)
	}
	got.Entry = *old
	if got.Err = orderrules.Existing(n, old); got.Err != nil {
		return nil
	}
	got.Entry.LastSeenAt = t.at
	return t.stmt(sqlLedgerSeen).Text(1, t.ns).Text(2, n.Key).Int(3, t.mic).Run()
}

// order reads and locks an order, or returns nil.
func (t *Tx) order(key string) (*order.Order, error) {
	return orderColumns.One(t.stmt(sqlLockOrder).Text(1, t.ns).Text(2, key))
}

// writeOrder writes the changes of a move: the ledger first, then the row, then the signal of a
// settled order.
func (t *Tx) writeOrder(o *order.Order, m *orderrules.Move) error {
	if m.Ledger {
		if err := ledgerFields.Bind(t.stmt(sqlUpdateLedger).Text(1, t.ns).Text(2, o.Entry.Key), 3, &o.Entry).Run(); err != nil {
			return err
		}
	}
	if m.Settled {
		if err := t.signalOrder(o); err != nil {
			return err
		}
	}
	if !m.Row {
		return nil
	}
	return orderFields.Bind(t.stmt(sqlUpdateOrder).Text(1, t.ns).Int(2, o.Row.ID), 3, &o.Row).Run()
}

// signalOrder gives the result to the task that waits for it. It never fails a settlement: a
// task that has ended, or is gone, needs no signal, and a signal that a task does not take because
// it keeps too many is sent again by ReclaimOrders.
func (t *Tx) signalOrder(o *order.Order) error {
	if o.Row.Task.IsZero() {
		return nil
	}
	op := operation{tx: t, moves: moves{tx: t}}
	cmd := store.SendSignal{
		Task: o.Row.Task, Name: orderrules.SignalName(o.Row.Step), Key: o.Row.Key, Payload: orderrules.Signal(o), Audit: store.Audit{By: orderActor},
	}
	var got store.CommandResult
	_, err := op.signal(&cmd, &got)
	if err == nil && errors.Is(got.Err, store.ErrConflict) { // a result before this one: the order was requeued, or in doubt
		cmd.Key = order.KeyHash(o.Row.Key) + "#" + strconv.FormatInt(t.mic, 10)
		got = store.CommandResult{}
		_, err = op.signal(&cmd, &got)
	}
	if err != nil {
		return err
	}
	o.Row.Signalled = got.Err == nil || got.State.Terminal() || got.State == ""
	return op.moves.propagate()
}

// orderActor is the actor of signals that settlements send.
const orderActor = "order"
