package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// Orders are what the tools of orders need. Without a Store there are no such tools.
type Orders struct {
	Store order.Store
	// Why tells the story of an order in sentences, without its values. Required.
	Why func(*order.Order) string
	// Ask asks the partner what became of an aborted order with an unknown outcome, and
	// settles it if it was executed, with an audit entry. Optional.
	Ask func(ctx context.Context, key string, by order.Audit) (order.Found, error)
}

func (t tools) addOrderReads(s *mcp.Server) {
	hints := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add(t, s, "list_orders", "Lists orders (requests to a partner that are sent at least once with one key, and settled once), newest first.", hints, t.listOrders)
	add(t, s, "show_order", "Shows one order: where it stands, what happened, what helps, and its ledger entry.", hints, t.showOrder)
	add(t, s, "order_stats", "Counts orders by status, and lists the workers that send them, each with the state of its circuit breaker: paused_until says that it sends nothing for now.", hints, t.orderStats)
}

func (t tools) addOrderWrites(s *mcp.Server) {
	add(t, s, "requeue_order", "Sends an aborted order again, with the same key and all its attempts. If its outcome is unknown the partner is asked first, where it can be: an order that was executed is settled instead. Otherwise that is refused unless confirmed is set.", nil, t.requeueOrder)
	add(t, s, "hold_orders", "Keeps all unsettled orders from being sent, and ends the leases of workers, as after a restore: the partner may have them already.", nil, t.holdOrders)
	add(t, s, "release_orders", "Lets held orders go on: one, or all without a key. The partner must not have them, or take a second send with the same key.", nil, t.releaseOrders)
	add(t, s, "unlock_orders", "Takes expired leases of workers back: of one order, or of all without a key.", nil, t.unlockOrders)
	add(t, s, "prune_orders", "Removes up to 500 settled orders, ledger entry and outbox row together; their keys are free then. Succeeded ones after 48 h; with aborted_for_days those that were aborted longer ago.", nil, t.pruneOrders)
}

type listOrdersInput struct {
	Statuses []string `json:"statuses,omitempty" jsonschema:"any of: pending, sending, failed (it is sent again), succeeded, aborted"`
	Held     bool     `json:"held,omitempty" jsonschema:"only those that a restore holds"`
	Limit    int      `json:"limit,omitempty" jsonschema:"how many at most, 1 to 100; default 20"`
	After    string   `json:"after,omitempty" jsonschema:"go on where a page before ended: its next"`
}

// orderRow is an order in a list.
type orderRow struct {
	Key      string      `json:"key"`
	OrderID  string      `json:"order_id,omitempty"`
	Profile  string      `json:"profile"`
	Status   order.State `json:"status"`
	Held     bool        `json:"held,omitempty"`
	Unknown  bool        `json:"outcome_unknown,omitempty"`
	Sent     int         `json:"sent"`
	Attempts int         `json:"attempts"`
	Accepted time.Time   `json:"accepted"`
	Next     time.Time   `json:"next,omitzero"`
	Error    string      `json:"error,omitempty"`
}

func orderRowOf(o *order.Order) orderRow {
	r := &o.Row
	row := orderRow{
		Key: r.Key, OrderID: r.Ref, Profile: r.Profile, Status: r.State, Held: r.Held, Unknown: r.Unknown || o.Entry.Unknown,
		Sent: r.SendNo, Attempts: r.Attempts, Accepted: r.CreatedAt, Next: r.NextRunAt,
	}
	if r.LastErrorCode != "" {
		row.Error = short(r.LastErrorCode+": "+r.LastErrorMsg, maxMessage)
	}
	return row
}

func (t tools) listOrders(ctx context.Context, in listOrdersInput) (string, error) {
	f := order.Filter{Held: in.Held, Limit: in.Limit, After: in.After}
	switch {
	case in.Limit == 0:
		f.Limit = defaultRows
	case in.Limit < 0 || in.Limit > maxRows:
		return "", say("limit %d: want 1 to %d; next goes on behind them", in.Limit, maxRows)
	}
	states := []order.State{order.Pending, order.Sending, order.Retrying, order.Succeeded, order.Aborted}
	for _, name := range in.Statuses {
		if !slices.Contains(states, order.State(name)) {
			return "", say("%q: unknown status of an order%s; there are %v", short(name, 64), didYouMean(name, states), states)
		}
		f.States = append(f.States, order.State(name))
	}
	list, next, err := t.Orders.Store.ListOrders(ctx, t.Client.Namespace(), f)
	if errors.Is(err, store.ErrBadCursor) {
		return "", say("after %q did not come from a list", short(in.After, 64))
	}
	if err != nil {
		return "", err
	}
	p := page[orderRow]{Items: make([]orderRow, len(list)), Next: next}
	for i := range list {
		p.Items[i] = orderRowOf(&list[i])
	}
	return text(p)
}

type orderInput struct {
	Key string `json:"key" jsonschema:"the idempotency key of the order"`
}

// orderView is what show_order shows: named fields only, so that no value is among them that
// was not meant to be.
type orderView struct {
	orderRow
	Story      string            `json:"story"`
	Ledger     order.LedgerState `json:"ledger_status"`
	HTTPStatus int               `json:"http_status,omitempty"`
	Request    json.RawMessage   `json:"request,omitempty"`
	Result     json.RawMessage   `json:"result,omitempty"`
	Hidden     string            `json:"values,omitempty"` // why they are not shown
}

func (t tools) showOrder(ctx context.Context, in orderInput) (string, error) {
	o, err := t.order(ctx, in.Key)
	if err != nil {
		return "", err
	}
	v := orderView{orderRow: orderRowOf(&o), Story: t.Orders.Why(&o), Ledger: o.Entry.State, HTTPStatus: o.Entry.HTTPStatus}
	if t.ShowPayloads {
		v.Request, v.Result = cutValue(o.Row.Body), cutValue(o.Entry.Result)
	} else {
		v.Hidden = "request and result are hidden: " + t.ToShow
	}
	return text(v)
}

func (t tools) orderStats(ctx context.Context, _ struct{}) (string, error) {
	got, err := t.Orders.Store.OrderStats(ctx, t.Client.Namespace())
	if err != nil {
		return "", err
	}
	return text(got)
}

// cutValue is a value, or a text that says that it is too long.
func cutValue(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxValue {
		return raw
	}
	said, err := json.Marshal(short(string(raw), maxValue))
	if err != nil {
		return nil
	}
	return said
}

func (t tools) order(ctx context.Context, key string) (order.Order, error) {
	o, err := t.Orders.Store.GetOrder(ctx, t.Client.Namespace(), key)
	if errors.Is(err, order.ErrNotFound) {
		return o, say("there is no order with the key %q: list_orders lists them", short(key, 64))
	}
	return o, err
}

type requeueOrderInput struct {
	Key       string `json:"key" jsonschema:"the idempotency key of an aborted order"`
	Reason    string `json:"reason" jsonschema:"why; kept in the audit"`
	Confirmed bool   `json:"confirmed,omitempty" jsonschema:"of an order with an unknown outcome: the partner was asked and does not have it, or a second send with the same key does no harm"`
}

func (t tools) requeueOrder(ctx context.Context, in requeueOrderInput) (string, error) {
	if in.Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	orders, err := order.NewClient(order.ClientConfig{Store: t.Orders.Store, Namespace: t.Client.Namespace(), Ask: t.Orders.Ask})
	if err != nil {
		return "", err
	}
	_, err = orders.Requeue(ctx, in.Key, in.Confirmed, order.Audit{By: t.Actor, Reason: in.Reason})
	_, unasked := errors.AsType[*order.AskError](err)
	switch {
	case unasked:
		return "", say("the partner could not be asked about %q; ask it another way, then set confirmed", short(in.Key, 64))
	case errors.Is(err, order.ErrState), errors.Is(err, order.ErrInDoubt), errors.Is(err, order.ErrConflict):
		return "", say("%w", err)
	case err != nil && !errors.Is(err, order.ErrNotFound):
		return "", err
	}
	return t.showOrder(ctx, orderInput{in.Key}) // which says so if there is none
}

// operateOrders gives a command for one order or all.
func (t tools) operateOrders(ctx context.Context, cmd order.Command) (string, error) {
	if order.AuditOf(cmd).Reason == "" {
		return "", say("reason is empty: say why, for the audit")
	}
	ack, err := t.Orders.Store.OperateOrder(ctx, t.Client.Namespace(), cmd)
	if errors.Is(err, order.ErrNotFound) || errors.Is(err, order.ErrState) {
		return "", say("%w", err)
	}
	if err != nil {
		return "", err
	}
	return text(orderChange{Changed: ack.Changed, More: ack.More, Status: ack.State})
}

// orderChange is an order.Ack without values.
type orderChange struct {
	Changed int         `json:"changed"`
	More    bool        `json:"more,omitempty"` // call it again
	Status  order.State `json:"status,omitempty"`
}

type holdOrdersInput struct {
	Reason string `json:"reason" jsonschema:"why; kept in the audit"`
}

func (t tools) holdOrders(ctx context.Context, in holdOrdersInput) (string, error) {
	return t.operateOrders(ctx, order.Hold{Audit: order.Audit{By: t.Actor, Reason: in.Reason}})
}

type someOrdersInput struct {
	Key    string `json:"key,omitempty" jsonschema:"the idempotency key of an order; leave it out for all"`
	Reason string `json:"reason" jsonschema:"why; kept in the audit"`
}

func (t tools) releaseOrders(ctx context.Context, in someOrdersInput) (string, error) {
	return t.operateOrders(ctx, order.Release{Audit: order.Audit{By: t.Actor, Reason: in.Reason}, Key: in.Key})
}

func (t tools) unlockOrders(ctx context.Context, in someOrdersInput) (string, error) {
	return t.operateOrders(ctx, order.Unlock{Audit: order.Audit{By: t.Actor, Reason: in.Reason}, Key: in.Key})
}

type pruneOrdersInput struct {
	AbortedForDays int    `json:"aborted_for_days,omitempty" jsonschema:"remove orders aborted at least that many days ago, instead of succeeded ones"`
	Reason         string `json:"reason" jsonschema:"why; kept in the audit"`
}

func (t tools) pruneOrders(ctx context.Context, in pruneOrdersInput) (string, error) {
	if in.AbortedForDays < 0 || in.AbortedForDays > 36500 {
		return "", say("aborted_for_days %d: want 1 to 36500", in.AbortedForDays)
	}
	cmd := order.Prune{Audit: order.Audit{By: t.Actor, Reason: in.Reason}, Aborted: in.AbortedForDays > 0}
	if cmd.Aborted {
		cmd.Before = time.Now().Add(-time.Duration(in.AbortedForDays) * 24 * time.Hour)
	}
	return t.operateOrders(ctx, cmd)
}
