package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
)

// The bodies of the verbs of orders.
type (
	orderRequeue struct {
		Reason    string `json:"reason,omitempty"`
		Confirmed bool   `json:"confirmed,omitempty"` // of an unknown outcome: the partner does not have the order, or may get it again
	}
	orderSettle struct {
		Reason  string           `json:"reason,omitempty"`
		Result  json.RawMessage  `json:"result,omitempty"`  // the partner's ExecResult: it has executed the order
		Failed  order.ReasonCode `json:"failed,omitempty"`  // the reason code: it has not
		Message string           `json:"message,omitempty"` // with failed: the last error. Default the reason
	}
	orderResubmit struct {
		Reason string          `json:"reason,omitempty"`
		NewKey string          `json:"new_key"`        // the idempotency key of the new order
		Body   json.RawMessage `json:"body,omitempty"` // the corrected request. Default the stored one
	}
	orderPrune struct {
		Reason  string    `json:"reason,omitempty"`
		Aborted bool      `json:"aborted,omitempty"` // remove aborted orders, instead of succeeded ones whose time is over
		Before  time.Time `json:"before,omitzero"`   // with aborted: only those aborted before it. Default 30 days ago
		Limit   int       `json:"limit,omitempty"`   // 1 to 500. Default 500
	}
)

// orderVerbs are the routes of operators.
func (a *API) orderVerbs() []route {
	read := func(pattern, id, summary string, answers []answer, handle func(*orderDesk, *call) error, params ...param) route {
		return route{method: get, pattern: pattern, id: id, summary: summary, access: Read, more: "with payloads, requests and results, too", params: params, answers: answers, handle: func(c *call) error { return handle(a.orders, c) }}
	}
	verb := func(name, id, summary string, body reflect.Type, handle func(*orderDesk, *call) (order.Command, error)) route {
		return route{
			method: post, pattern: "/v1/orders/{key}/" + name, id: id, summary: summary, access: Read | Operate, body: body, answers: ok[order.Ack]("What that did."),
			handle: func(c *call) error { return a.orders.operate(c, handle) },
		}
	}
	act := func(name, id, summary string, body reflect.Type, handle func(*orderDesk, *call, context.Context) (order.Ack, error)) route {
		r := verb(name, id, summary, body, nil)
		r.handle = func(c *call) error {
			return a.orders.act(c, func(ctx context.Context) (order.Ack, error) { return handle(a.orders, c, ctx) })
		}
		return r
	}
	many := func(name, id, summary string, body reflect.Type, handle func(*orderDesk, *call) (order.Command, error)) route {
		r := verb(name, id, summary, body, handle)
		r.pattern = "/v1/bulk/orders/" + name
		return r
	}
	return []route{
		many("hold", "holdOrders", "Keep all unsettled orders from being sent, and end their leases.", typeOf[verbRequest](), func(_ *orderDesk, c *call) (order.Command, error) {
			audit, err := c.orderAudit()
			return order.Hold{Audit: audit}, err
		}),
		many("release", "releaseOrders", "Let all held orders go on.", typeOf[verbRequest](), func(_ *orderDesk, c *call) (order.Command, error) {
			audit, err := c.orderAudit()
			return order.Release{Audit: audit}, err
		}),
		many("unlock", "unlockOrders", "Take expired leases back, up to 1,000; more asks for another request.", typeOf[verbRequest](), func(_ *orderDesk, c *call) (order.Command, error) {
			audit, err := c.orderAudit()
			return order.Unlock{Audit: audit}, err
		}),
		many("prune", "pruneOrders", "Remove up to 500 settled orders, ledger entry and outbox row together; more asks for another request.", typeOf[orderPrune](), (*orderDesk).prune),
		read("/v1/orders", "listOrders", "List orders, newest first.", ok[Page[order.Order]]("A page."), (*orderDesk).list, append([]param{
			query("status", "string", "Only orders in this status: pending, sending, failed (sent again), succeeded, aborted; several with commas.").repeated(),
			query("held", "boolean", "Only held orders."), query("task", "string", "Only orders of this task."),
		}, pageParams...)...),
		read("/v1/stats/orders", "getOrderStats", "Count orders by status: exact up to 10,000.", ok[order.Stats]("The counts."), (*orderDesk).stats),
		read("/v1/orders/{key}", "getOrderRecord", "Read an order: its ledger entry and its outbox row.", ok[order.Order]("The order."), (*orderDesk).get),
		read("/v1/orders/{key}/why", "explainOrder", "Explain the state of an order, what happened, and what helps.", ok[explain.OrderStory]("The explanation."), (*orderDesk).why),
		act("requeue", "requeueOrder", "Send an aborted order again, with the same key. Of one with an unknown outcome the partner is asked first, if the adapter can.", typeOf[orderRequeue](), (*orderDesk).requeue),
		verb("unlock", "unlockOrder", "Take the expired lease of an order back.", typeOf[verbRequest](), func(_ *orderDesk, c *call) (order.Command, error) {
			audit, err := c.orderAudit()
			return order.Unlock{Audit: audit, Key: c.path("key")}, err
		}),
		verb("release", "releaseOrder", "Let a held order go on.", typeOf[verbRequest](), func(_ *orderDesk, c *call) (order.Command, error) {
			audit, err := c.orderAudit()
			return order.Release{Audit: audit, Key: c.path("key")}, err
		}),
		verb("withdraw", "withdrawOrder", "Abort an order that was never sent; in_doubt says that it may have been.", typeOf[verbRequest](), func(_ *orderDesk, c *call) (order.Command, error) {
			audit, err := c.orderAudit()
			return order.Withdraw{Audit: audit, Key: c.path("key")}, err
		}),
		act("settle", "settleOrder", "Settle an order by hand: with result or failed.", typeOf[orderSettle](), (*orderDesk).settle),
		act("resubmit", "resubmitOrder", "Accept the request of an aborted order, or a corrected one, under a new key.", typeOf[orderResubmit](), (*orderDesk).resubmit),
	}
}

// orderAudit reads a body that says why only.
func (c *call) orderAudit() (order.Audit, error) {
	var body verbRequest
	err := c.decodeOptional(&body)
	return order.Audit{By: c.who.Name, Reason: body.Reason}, err
}

// shownOrder hides values from those who may not read them.
func (c *call) shownOrder(o order.Order) order.Order {
	if !c.who.Access.Has(Payloads) {
		o.Row.Body, o.Entry.Result = nil, nil
	}
	return o
}

func (d *orderDesk) list(c *call) error {
	var f order.Filter
	var err error
	states := []order.State{order.Pending, order.Sending, order.Retrying, order.Succeeded, order.Aborted}
	for _, name := range c.list("status") {
		if !slices.Contains(states, order.State(name)) {
			return badParam("status", "%q: unknown status; there are %v", name, states)
		}
		f.States = append(f.States, order.State(name))
	}
	if f.Held, err = c.is("held"); err != nil {
		return err
	}
	if f.Task, err = c.idParam("task"); err != nil {
		return err
	}
	if f.Limit, err = c.limit(store.MaxLimit); err != nil {
		return err
	}
	f.After = c.get("after")
	ctx, cancel := c.context()
	defer cancel()
	items, next, err := d.store.ListOrders(ctx, c.api.client.Namespace(), f)
	if err != nil {
		return err
	}
	page := Page[order.Order]{Items: make([]order.Order, len(items)), Next: next}
	for i := range items {
		page.Items[i] = c.shownOrder(items[i])
	}
	return c.write(200, page)
}

func (d *orderDesk) stats(c *call) error {
	ctx, cancel := c.context()
	defer cancel()
	got, err := d.store.OrderStats(ctx, c.api.client.Namespace())
	if err != nil {
		return err
	}
	return c.write(200, got)
}

// read reads the order that the path names.
func (d *orderDesk) read(c *call) (order.Order, error) {
	ctx, cancel := c.context()
	defer cancel()
	o, err := d.store.GetOrder(ctx, c.api.client.Namespace(), c.path("key"))
	return o, orderProblem(err)
}

func (d *orderDesk) get(c *call) error {
	o, err := d.read(c)
	if err != nil {
		return err
	}
	return c.write(200, c.shownOrder(o))
}

func (d *orderDesk) why(c *call) error {
	o, err := d.read(c)
	if err != nil {
		return err
	}
	clock := explain.Clock{Now: time.Now(), Zone: time.UTC}
	return c.write(200, clock.Order(&o, func(args ...string) string {
		words := []string{"weaver"}
		for _, a := range args {
			words = append(words, text.ShellWord(a))
		}
		return strings.Join(words, " ")
	}))
}

// operate gives a command.
func (d *orderDesk) operate(c *call, of func(*orderDesk, *call) (order.Command, error)) error {
	return d.act(c, func(ctx context.Context) (order.Ack, error) {
		cmd, err := of(d, c)
		if err != nil {
			return order.Ack{}, err
		}
		return d.store.OperateOrder(ctx, c.api.client.Namespace(), cmd)
	})
}

// act runs a verb and writes its result as the answer.
func (d *orderDesk) act(c *call, verb func(context.Context) (order.Ack, error)) error {
	ctx, cancel := c.context()
	defer cancel()
	ack, err := verb(ctx)
	if err != nil {
		return orderProblem(err)
	}
	if !c.who.Access.Has(Payloads) {
		ack.Entry.Result = nil
	}
	return c.write(200, ack)
}

// client returns the client that gives the verbs.
func (d *orderDesk) client(c *call) (*order.Client, error) {
	cfg := order.ClientConfig{Store: d.store, Namespace: c.api.client.Namespace(), Profiles: d.profiles}
	if d.adapter != nil {
		cfg.Ask = func(ctx context.Context, key string, by order.Audit) (order.Found, error) {
			return order.AskPartner(ctx, d.store, cfg.Namespace, d.adapter, key, by)
		}
	}
	return order.NewClient(cfg)
}

// requeue asks the partner about an unknown outcome, and may settle the order instead.
func (d *orderDesk) requeue(c *call, ctx context.Context) (order.Ack, error) {
	var body orderRequeue
	if err := c.decodeOptional(&body); err != nil {
		return order.Ack{}, err
	}
	orders, err := d.client(c)
	if err != nil {
		return order.Ack{}, err
	}
	key := c.path("key")
	ack, err := orders.Requeue(ctx, key, body.Confirmed, order.Audit{By: c.who.Name, Reason: body.Reason})
	if failed, is := errors.AsType[*order.AskError](err); is {
		c.api.failed(ctx, internal.of(""), "the partner could not be asked", "idempotency_key_hash", order.KeyHash(key), "error", failed.Err)
		err = fmt.Errorf("%w: the partner could not be asked about %q; ask it another way, then set confirmed", order.ErrInDoubt, key)
	}
	return ack, err
}

func (d *orderDesk) settle(c *call, ctx context.Context) (order.Ack, error) {
	var body orderSettle
	if err := c.decode(&body); err != nil {
		return order.Ack{}, err
	}
	orders, err := d.client(c)
	codes := order.SettleCodes()
	switch by := (order.Audit{By: c.who.Name, Reason: body.Reason}); {
	case err != nil:
		return order.Ack{}, err
	case (body.Result == nil) == (body.Failed == ""):
		return order.Ack{}, bodyProblem(invalidBody, "", "want one of result and failed")
	case body.Failed == "":
		ack, err := orders.Settle(ctx, c.path("key"), body.Result, by)
		return ack, under("/result", err)
	case !slices.Contains(codes, body.Failed):
		return order.Ack{}, bodyProblem(invalidBody, "/failed", fmt.Sprintf("%q: unknown reason code; there are %v", body.Failed, codes))
	default:
		return orders.SettleFailed(ctx, c.path("key"), body.Failed, body.Message, by)
	}
}

func (d *orderDesk) resubmit(c *call, ctx context.Context) (order.Ack, error) {
	var body orderResubmit
	if err := c.decode(&body); err != nil {
		return order.Ack{}, err
	}
	key := c.path("key")
	what := order.BadKey(body.NewKey)
	if body.NewKey == key {
		what = "is the key that the order has: requeue it instead"
	}
	if what != "" {
		return order.Ack{}, bodyProblem(invalidBody, "/new_key", what)
	}
	orders, err := d.client(c)
	if err != nil {
		return order.Ack{}, err
	}
	ack, err := orders.Resubmit(ctx, key, body.NewKey, body.Body, order.Audit{By: c.who.Name, Reason: body.Reason})
	return ack, under("/body", err)
}

// prune removes a batch: a request ends in bounded time.
func (d *orderDesk) prune(c *call) (order.Command, error) {
	var body orderPrune
	if err := c.decodeOptional(&body); err != nil {
		return nil, err
	}
	switch {
	case body.Limit < 0 || body.Limit > order.MaxPrune:
		return nil, bodyProblem(invalidBody, "/limit", fmt.Sprintf("it is %d: want 1 to %d", body.Limit, order.MaxPrune))
	case !body.Before.IsZero() && !body.Aborted:
		return nil, bodyProblem(invalidBody, "/before", "only with aborted: succeeded orders are kept for 48h")
	case body.Aborted && body.Before.IsZero():
		body.Before = time.Now().Add(-order.AbortedKept)
	}
	return order.Prune{Audit: order.Audit{By: c.who.Name, Reason: body.Reason}, Aborted: body.Aborted, Before: body.Before, Limit: body.Limit}, nil
}

// under is a problem with the fields below a place of the body.
func under(pointer string, err error) error {
	wrong, is := errors.AsType[*order.Invalid](err)
	if !is {
		return err
	}
	p := bodyProblem(invalidBody, pointer, "it is wrong")
	p.Errors = nil
	for _, f := range wrong.Fields {
		detail := f.Message
		if f.Field != "" {
			detail = f.Field + ": " + detail
		}
		p.Errors = append(p.Errors, ProblemError{Pointer: "#" + pointer, Detail: detail})
	}
	return p
}

// orderProblem turns the errors of orders into problems.
func orderProblem(err error) error {
	switch {
	case errors.Is(err, order.ErrNotFound):
		return notFound.of("There is no order with this key.")
	case errors.Is(err, order.ErrState), errors.Is(err, order.ErrInDoubt):
		return kindOfError(weaver.ErrState).of("%s", err)
	case errors.Is(err, order.ErrConflict):
		return kindOfError(weaver.ErrConflict).of("%s", err)
	}
	return err
}
