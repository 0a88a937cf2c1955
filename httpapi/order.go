package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/goweaver/weaver/internal/sealorder"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// OrderConfig describes the routes that accept orders; docs/orders.md has their contract.
type OrderConfig struct {
	Store    order.Store   // keeps the orders. Default the orders of the Client
	Orders   order.Profile // of POST /do/order, such as an order.Orders. Default none: there is no such path
	Webhooks order.Profile // of POST /do/webhook, such as an order.Webhooks. Default none: there is no such path

	// RatePerMin is how many requests of one client are accepted in a minute, counted by this
	// process: of a principal, or of an address where no credentials are asked for. Default 0,
	// no limit.
	RatePerMin int

	// Adapter is asked what became of an order with an unknown outcome before it is requeued, if
	// it is an order.Reconciler. Default none
	Adapter order.Adapter

	Wake    func()        // called after an acceptance, such as the Wake of an order.Worker. Default none
	Metrics order.Metrics // Default none
	Tracer  order.Tracer  // Default none
}

// withDefaults sets the defaults, and returns what is wrong.
func (o *OrderConfig) withDefaults(client *weaver.Client) (problems []error) {
	if o.Store == nil && client != nil {
		o.Store, _ = sealorder.Of(client.OpenStore())
	}
	if o.Store == nil {
		problems = append(problems, errors.New("Orders.Store is nil, and the store of the Client keeps no orders"))
	}
	if o.RatePerMin < 0 {
		problems = append(problems, fmt.Errorf("Orders.RatePerMin is %d: want more than 0, or 0 for no limit", o.RatePerMin))
	}
	return problems
}

const (
	// maxOrderBody bounds the body of an order, in bytes.
	maxOrderBody = 64 << 10
	// maxOrderWait bounds the ?wait= of an order.
	maxOrderWait = 30 * time.Second

	firstOrderPause = 10 * time.Millisecond // between looks at an order that is waited for
	lastOrderPause  = 500 * time.Millisecond
)

// OrderAck answers a request that is accepted and not settled.
type OrderAck struct {
	Status         string `json:"status"` // accepted
	OrderID        string `json:"order_id"`
	IdempotencyKey string `json:"idempotency_key"`
	TraceID        string `json:"trace_id"` // of the first request with this key
}

// OrderRefusal answers a request that was not accepted. It is not a problem of RFC 9457: the
// routes of orders have a contract of their own.
type OrderRefusal struct {
	Error          string             `json:"error"` // IDEMPOTENCY_CONFLICT, IDEMPOTENCY_MISMATCH, VALIDATION_ERROR, RATE_LIMITED or INTERNAL_ERROR
	Message        string             `json:"message"`
	IdempotencyKey string             `json:"idempotency_key,omitempty"`
	Fields         []order.FieldError `json:"fields,omitempty"`      // of VALIDATION_ERROR
	RetryAfter     int                `json:"retry_after,omitempty"` // seconds
}

// Words of OrderRefusal.Error that are no reason codes.
const (
	errMismatch = "IDEMPOTENCY_MISMATCH"
	errLimited  = "RATE_LIMITED"
)

// orderRoutes are the routes of orders, none without Config.Orders.
func (a *API) orderRoutes() (list []route) {
	cfg := a.cfg.Orders
	if cfg == nil {
		return nil
	}
	wait := query("wait", "string", "How long to wait until it is settled, as 30s, which is the most.")
	key := param{name: "Idempotency-Key", in: "header", typ: "string", summary: "The idempotency key; it must equal idempotency_key of the body."}
	refusal, result := typeOf[OrderRefusal](), typeOf[order.ExecResult]()
	add := func(p order.Profile, suffix string, of route) {
		if p == nil {
			return
		}
		d := &orderDoor{cfg: cfg, profile: p}
		of.method, of.pattern, of.access, of.ownKey = post, "/do/"+suffix, Submit, true
		of.params, of.maxBody, of.maxValues, of.maxDepth = []param{wait, key}, maxOrderBody, maxOrderBody, maxOrderBody
		of.answers = []answer{
			{status: 201, typ: typeOf[OrderAck](), summary: "It is accepted: durable, and not sent yet."},
			{status: 200, typ: typeOf[OrderAck](), also: result, summary: "It was accepted before: the acknowledgement until it is settled, then the result."},
			{status: 400, typ: result, summary: "It is settled: the partner refused it."},
			{status: 500, typ: result, also: refusal, summary: "It is settled with an error, or the server failed."},
			{status: 503, typ: result, also: refusal, headers: []string{"Retry-After"}, summary: "It is settled: the partner was down; or the store is away, and the order must be sent again with the same key."},
			{status: 504, typ: result, summary: "It is settled: the partner did not answer in time."},
			{status: 409, typ: refusal, summary: "The key has another request."},
			{status: 422, typ: refusal, summary: "The body is invalid, or the header Idempotency-Key is missing or differs from the body."},
			{status: 429, typ: refusal, headers: []string{"Retry-After"}, summary: "The client sent too many requests."},
		}
		of.handle = d.accept
		list = append(list, of, route{
			method: get, pattern: "/do/" + suffix + "/{key}", id: "get" + of.id[len("send"):], access: Read, more: "with payloads, the stored result, too",
			params: []param{wait}, answers: ok[order.Entry]("The ledger entry."), handle: d.entry,
			summary: "Read the ledger entry of a key; with ?wait= when it is settled, or the time is up.",
		})
	}
	add(cfg.Orders, "order", route{id: "sendOrder", summary: "Accept an order: it is sent at least once with its key, and settled once.", body: typeOf[OrderBody]()})
	add(cfg.Webhooks, "webhook", route{id: "sendWebhook", summary: "Accept a request to a URL: it is sent at least once with its key, and settled once.", body: typeOf[order.WebhookRequest]()})
	return append(list, a.orderVerbs()...)
}

// orderDoor serves the routes of one profile.
type orderDoor struct {
	cfg     *OrderConfig
	profile order.Profile
}

// accept answers a POST. Nothing is written of a request that is refused.
func (d *orderDoor) accept(c *call) (err error) {
	began := time.Now()
	ctx, end := c.api.orders.tracer.Start(c.r.Context(), order.SpanAccept)
	outcome := "failed"
	defer func() {
		c.api.orders.count(order.MetricRequests, "outcome", outcome)
		c.api.orders.observe("total", began)
		if _, refused := errors.AsType[*refusedOrder](err); refused {
			end(err)
			err = c.refuse(err)
			return
		}
		end(err)
	}()
	wait, err := c.span("wait", min(maxOrderWait, c.api.cfg.MaxWait))
	if err != nil {
		return err
	}
	n, err := d.request(c)
	if err != nil {
		outcome = outcomeOf(err)
		return err
	}
	c.api.orders.observe("validate", began)
	if wait > 0 { // before anything is accepted
		release, err := c.api.long.take(c.api.cfg.longLimits(), c.who.Name)
		if err != nil {
			outcome = "limited"
			return err
		}
		defer release()
	}
	stored := time.Now()
	got, err := d.store(c, ctx, n)
	c.api.orders.observe("accept", stored)
	if err != nil {
		outcome = outcomeOf(err)
		return err
	}
	status := http.StatusOK
	if outcome = "repeated"; got.Created {
		outcome, status = "accepted", http.StatusCreated
		if d.cfg.Wake != nil {
			d.cfg.Wake()
		}
	}
	entry := got.Entry
	if wait > 0 && entry.State == order.LedgerAccepted {
		waited := time.Now()
		entry = d.settled(c, &entry, wait)
		c.api.orders.observe("wait", waited)
		if err := c.r.Context().Err(); err != nil {
			return err
		}
	}
	return c.writeEntry(status, &entry)
}

// request reads, bounds and checks a request.
func (d *orderDoor) request(c *call) (order.New, error) {
	if retry := c.api.orders.rate.take(c.client(), time.Now()); retry > 0 {
		return order.New{}, &refusedOrder{status: http.StatusTooManyRequests, OrderRefusal: OrderRefusal{
			Error: errLimited, RetryAfter: retry, Message: fmt.Sprintf("more than %d requests came from this client in a minute; send it again in %d s", d.cfg.RatePerMin, retry),
		}}
	}
	if err := c.isJSON(); err != nil {
		return order.New{}, err
	}
	raw, err := c.body()
	if err != nil {
		return order.New{}, err
	}
	header, err := keyHeader(c.r)
	if err != nil {
		return order.New{}, err
	}
	parsed, err := d.profile.Parse(raw, time.Now())
	if wrong, is := errors.AsType[*order.Invalid](err); is {
		return order.New{}, &refusedOrder{status: http.StatusUnprocessableEntity, OrderRefusal: OrderRefusal{
			Error: string(order.ReasonValidation), Message: wrong.Error(), IdempotencyKey: shownKey(header), Fields: wrong.Fields,
		}}
	}
	if err != nil {
		return order.New{}, err
	}
	if parsed.Key != header {
		return order.New{}, mismatch("the header Idempotency-Key differs from idempotency_key in the body; send the same key in both")
	}
	return parsed.New(d.profile), nil
}

// keyHeader returns the header Idempotency-Key.
func keyHeader(r *http.Request) (string, error) {
	switch all := r.Header.Values("Idempotency-Key"); {
	case len(all) > 1:
		return "", mismatch(fmt.Sprintf("the header Idempotency-Key is given %d times; send it once", len(all)))
	case len(all) == 0 || all[0] == "":
		return "", mismatch("the header Idempotency-Key is missing; send idempotency_key of the body in it")
	default:
		return all[0], nil
	}
}

func mismatch(message string) error {
	return &refusedOrder{status: http.StatusUnprocessableEntity, OrderRefusal: OrderRefusal{Error: errMismatch, Message: message}}
}

// shownKey is a key as a refusal repeats it: "" for what is no key.
func shownKey(key string) string {
	if order.BadKey(key) != "" {
		return ""
	}
	return key
}

// store accepts a request, or finds the one that has its key.
func (d *orderDoor) store(c *call, ctx context.Context, n order.New) (order.Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, c.api.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(c.api.over, cancel)()
	list, err := d.cfg.Store.AcceptOrders(ctx, c.api.client.Namespace(), nil, n)
	switch {
	case c.r.Context().Err() != nil && err != nil:
		return order.Accepted{}, c.r.Context().Err()
	case err != nil:
		return order.Accepted{}, c.storeAway(err, n.Key)
	case len(list) != 1:
		return order.Accepted{}, fmt.Errorf("the store answered %d requests instead of 1", len(list))
	}
	got := list[0]
	if errors.Is(got.Err, order.ErrConflict) {
		c.api.orders.count(order.MetricConflicts)
		c.api.log.WarnContext(ctx, "an idempotency key came again with another request, which was refused", "idempotency_key_hash", order.KeyHash(n.Key), "principal", c.who.Name)
		return got, &refusedOrder{status: http.StatusConflict, OrderRefusal: OrderRefusal{
			Error: string(order.ReasonConflict), IdempotencyKey: n.Key,
			Message: "the key has another request; send the first request unchanged, or this one with a new key",
		}}
	}
	return got, got.Err
}

// unaccepted are errors after which the store holds nothing of a request.
var unaccepted = []error{
	store.ErrUnavailable, store.ErrBusy, store.ErrFull, store.ErrReadOnly, store.ErrNotMigrated, store.ErrNewerSchema, store.ErrClosed,
}

// storeAway is the refusal for an error of the store, which it logs.
func (c *call) storeAway(err error, key string) error {
	p, _ := problemOf(err)
	if p.Status < 500 {
		p = internal.of("")
	}
	c.api.failed(c.r.Context(), p, "an order could not be accepted", "operation", c.route.id, "idempotency_key_hash", order.KeyHash(key), "error", err)
	message := "it is not known whether the order was accepted; send it again with the same key"
	if !errors.Is(err, store.ErrUnknown) && slices.ContainsFunc(unaccepted, func(e error) bool { return errors.Is(err, e) }) {
		message = "the store is away and nothing was accepted; send the order again with the same key"
	}
	return &refusedOrder{status: http.StatusServiceUnavailable, OrderRefusal: OrderRefusal{
		Error: string(order.ReasonInternal), Message: message, IdempotencyKey: key, RetryAfter: max(1, p.RetryAfter),
	}}
}

// settled returns the entry when it is settled, or as it is when the time is up, the API stops,
// the client has gone or the store is away: the order is accepted all the same.
func (d *orderDoor) settled(c *call, entry *order.Entry, wait time.Duration) order.Entry {
	ctx, cancel := context.WithTimeout(c.r.Context(), wait)
	defer cancel()
	defer context.AfterFunc(c.api.ctx, cancel)()
	last := *entry
	for pause := firstOrderPause; last.State == order.LedgerAccepted; pause = min(pause*3/2, lastOrderPause) {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return last
		case <-timer.C:
		}
		if got, err := d.cfg.Store.GetOrder(ctx, c.api.client.Namespace(), entry.Key); err == nil && got.Entry.Digest == entry.Digest {
			last = got.Entry
		}
	}
	return last
}

// writeEntry answers with the acknowledgement, or with the stored result. Equal entries have
// equal answers, byte for byte. status is that of an acknowledgement.
func (c *call) writeEntry(status int, e *order.Entry) error {
	switch {
	case e.State == order.LedgerAccepted:
		return c.write(status, OrderAck{Status: string(order.LedgerAccepted), OrderID: e.Ref, IdempotencyKey: e.Key, TraceID: e.TraceID})
	case task.IsSealed(e.Result):
		return c.refuse(&refusedOrder{status: http.StatusInternalServerError, OrderRefusal: OrderRefusal{
			Error: string(order.ReasonInternal), Message: "the order is settled, and this server lacks the key that its result is sealed with", IdempotencyKey: e.Key,
		}})
	case e.HTTPStatus < 200 || e.HTTPStatus > 599 || !json.Valid(e.Result):
		return c.refuse(&refusedOrder{status: http.StatusInternalServerError, OrderRefusal: OrderRefusal{
			Error: string(order.ReasonInternal), Message: "the order is settled, and the ledger has no result of it", IdempotencyKey: e.Key,
		}})
	}
	return c.write(e.HTTPStatus, e.Result)
}

// entry answers a GET. What the partner answered is a value: it is shown with the access
// payloads only.
func (d *orderDoor) entry(c *call) error {
	wait, err := c.span("wait", min(maxOrderWait, c.api.cfg.MaxWait))
	if err != nil {
		return err
	}
	ctx, cancel := c.context()
	defer cancel()
	got, err := d.cfg.Store.GetOrder(ctx, c.api.client.Namespace(), c.path("key"))
	switch {
	case errors.Is(err, order.ErrNotFound) || err == nil && got.Row.Profile != d.profile.Name():
		return notFound.of("There is no %s with this key.", d.profile.Name())
	case err != nil:
		return err
	}
	e := got.Entry
	if wait > 0 && e.State == order.LedgerAccepted {
		release, err := c.api.long.take(c.api.cfg.longLimits(), c.who.Name)
		if err != nil {
			return err
		}
		defer release()
		e = d.settled(c, &e, wait)
		if err := c.r.Context().Err(); err != nil {
			return err
		}
	}
	if !c.who.Access.Has(Payloads) {
		e.Result = nil
	}
	return c.write(http.StatusOK, e)
}

// refusedOrder is an OrderRefusal as an error.
type refusedOrder struct {
	OrderRefusal
	status int
}

// Error implements error. The message of a refusal holds no value of the body but what is wrong
// with its fields.
func (r *refusedOrder) Error() string { return r.OrderRefusal.Error }

// refuse answers with a refusal.
func (c *call) refuse(err error) error {
	r, is := errors.AsType[*refusedOrder](err)
	if !is {
		return err
	}
	if r.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
	return c.write(r.status, r.OrderRefusal)
}

// outcomeOf is the label of a request that was not accepted.
func outcomeOf(err error) string {
	r, is := errors.AsType[*refusedOrder](err)
	if !is {
		return "invalid"
	}
	switch r.status {
	case http.StatusConflict:
		return "conflict"
	case http.StatusTooManyRequests:
		return "limited"
	case http.StatusUnprocessableEntity:
		return "invalid"
	}
	return "failed"
}

// client names who a rate counts: the principal, or the address if nobody has proved who it is.
func (c *call) client() string {
	if c.who.open {
		return "address " + addressOf(c.r)
	}
	return "principal " + c.who.Name
}
