package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ClientConfig describes a Client.
type ClientConfig struct {
	Store     Store
	Namespace string // "default" unless set
	// Ask asks the partner about an unknown outcome before a requeue, as AskPartner does. Optional.
	Ask func(ctx context.Context, key string, by Audit) (Found, error)
	// Profiles check requests. Orders{} and Webhooks{} unless set.
	Profiles []Profile
	// Wake is called after an acceptance, such as the Wake of a Worker of this process. Optional.
	Wake func()
}

// Client accepts, reads and operates the orders of a namespace. It is safe for concurrent use.
//
// Errors: those of the store; ErrNotFound for an unknown key; ErrState, ErrInDoubt or ErrConflict
// if a verb does not fit the order, which is unchanged then; *Invalid for a wrong request.
type Client struct{ cfg ClientConfig }

// NewClient returns a client. The store of a weaver.Client is that of ordertask.Orders.
func NewClient(cfg ClientConfig) (*Client, error) {
	if cfg.Store == nil {
		return nil, errors.New("order.NewClient: Store is nil: this store keeps no orders")
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "default"
	}
	if cfg.Profiles == nil {
		cfg.Profiles = []Profile{Orders{}, Webhooks{}}
	}
	return &Client{cfg}, nil
}

// AskError says that the partner could not be asked about an order with an unknown outcome. It is
// an ErrInDoubt.
type AskError struct {
	Key string
	Err error
}

// Error implements error.
func (e *AskError) Error() string {
	return fmt.Sprintf("the partner could not be asked about %q: %v", e.Key, e.Err)
}

// Unwrap returns ErrInDoubt and the reason.
func (e *AskError) Unwrap() []error { return []error{ErrInDoubt, e.Err} }

// Send accepts an order: durable when it returns, and sent by a Worker. The same order again is
// the one that is there; another one with its key is ErrConflict. A zero RequestedAt is now.
func (c *Client) Send(ctx context.Context, r OrderRequest) (Accepted, error) {
	if r.RequestedAt.IsZero() {
		r.RequestedAt = time.Now()
	}
	return c.send(ctx, Orders{}.Name(), r)
}

// SendWebhook is Send for a webhook.
func (c *Client) SendWebhook(ctx context.Context, r WebhookRequest) (Accepted, error) {
	return c.send(ctx, Webhooks{}.Name(), r)
}

func (c *Client) send(ctx context.Context, profile string, r any) (Accepted, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return Accepted{}, err
	}
	return c.SendJSON(ctx, profile, raw)
}

// SendJSON is Send for a body of a profile, such as "order".
func (c *Client) SendJSON(ctx context.Context, profile string, body []byte) (Accepted, error) {
	p, err := c.profile(profile)
	if err != nil {
		return Accepted{}, err
	}
	parsed, err := p.Parse(body, time.Now())
	if err != nil {
		return Accepted{}, err
	}
	list, err := c.cfg.Store.AcceptOrders(ctx, c.cfg.Namespace, nil, parsed.New(p))
	if err != nil {
		return Accepted{}, err
	}
	if list[0].Created && c.cfg.Wake != nil {
		c.cfg.Wake()
	}
	return list[0], list[0].Err
}

func (c *Client) profile(name string) (Profile, error) {
	i := slices.IndexFunc(c.cfg.Profiles, func(p Profile) bool { return p.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: requests of the profile %q are not taken here", ErrState, name)
	}
	return c.cfg.Profiles[i], nil
}

const (
	firstLook = 20 * time.Millisecond // between looks of Wait
	lastLook  = 500 * time.Millisecond
)

// Wait returns the ledger entry of a key when it is settled. When ctx ends it returns the entry
// as it was and the error of ctx.
func (c *Client) Wait(ctx context.Context, key string) (Entry, error) {
	var last Entry
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		o, err := c.Get(ctx, key)
		if ctx.Err() != nil {
			return last, ctx.Err()
		}
		if last = o.Entry; err != nil || last.State != LedgerAccepted {
			return last, err
		}
		if !sleep(ctx, pause) {
			return last, ctx.Err()
		}
	}
}

// Get returns an order.
func (c *Client) Get(ctx context.Context, key string) (Order, error) {
	return c.cfg.Store.GetOrder(ctx, c.cfg.Namespace, key)
}

// List returns a page of orders and the cursor of the next one, "" at the end.
func (c *Client) List(ctx context.Context, f Filter) (page []Order, next string, err error) {
	return c.cfg.Store.ListOrders(ctx, c.cfg.Namespace, f)
}

// Stats counts orders, and lists the workers that send them.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	return c.cfg.Store.OrderStats(ctx, c.cfg.Namespace)
}

// Do gives a command as it is: Hold, Release, Unlock, Withdraw, or one that has a method here.
func (c *Client) Do(ctx context.Context, cmd Command) (Ack, error) {
	return c.cfg.Store.OperateOrder(ctx, c.cfg.Namespace, cmd)
}

// Hold keeps all unsettled orders from being sent.
func (c *Client) Hold(ctx context.Context, by Audit) (Ack, error) { return c.Do(ctx, Hold{by}) }

// Release lets a held order go on, or all with the key "".
func (c *Client) Release(ctx context.Context, key string, by Audit) (Ack, error) {
	return c.Do(ctx, Release{by, key})
}

// Unlock takes the expired lease of an order back, or up to 1,000 with the key "".
func (c *Client) Unlock(ctx context.Context, key string, by Audit) (Ack, error) {
	return c.Do(ctx, Unlock{by, key})
}

// Withdraw aborts an order that was never sent. The Ack says InDoubt if it may have been.
func (c *Client) Withdraw(ctx context.Context, key string, by Audit) (Ack, error) {
	return c.Do(ctx, Withdraw{by, key})
}

// Requeue sends an aborted order again. If its outcome is unknown, and not confirmed, the partner
// is asked first: the Ack is in the state Succeeded if it has executed the order, which is settled
// with its result then. The error is an *AskError if the partner cannot be asked now.
func (c *Client) Requeue(ctx context.Context, key string, confirmed bool, by Audit) (Ack, error) {
	o, err := c.Get(ctx, key)
	if err != nil {
		return Ack{}, err
	}
	cmd := Requeue{Audit: by, Key: key, Confirmed: confirmed}
	if o.Row.State == Aborted && o.Entry.Unknown && !confirmed && c.cfg.Ask != nil {
		found, err := c.cfg.Ask(ctx, key, by)
		switch {
		case errors.Is(err, ErrState): // it has moved on
		case err != nil:
			return Ack{}, &AskError{key, err}
		case found == FoundResult:
			if o, err = c.Get(ctx, key); err != nil {
				return Ack{}, err
			}
			return Ack{State: o.Row.State, Changed: 1, Entry: o.Entry}, nil
		case found == FoundNothing:
			cmd.Confirmed = true
			cmd.Reason = strings.TrimSpace(cmd.Reason + " (the partner does not know the key)")
		}
	}
	return c.Do(ctx, cmd)
}

// Settle settles an order with the result of the partner, an ExecResult in JSON. Fields that the
// order knows may be left out.
func (c *Client) Settle(ctx context.Context, key string, result []byte, by Audit) (Ack, error) {
	o, err := c.Get(ctx, key)
	if err != nil {
		return Ack{}, err
	}
	res, err := ReadResult(result, &o.Row, time.Now())
	if err != nil {
		return Ack{}, err
	}
	return c.Do(ctx, SettleByHand{Audit: by, Key: key, Result: res})
}

// SettleFailed settles an order as not executed, with one of SettleCodes. The message "" is the reason of by.
func (c *Client) SettleFailed(ctx context.Context, key string, code ReasonCode, message string, by Audit) (Ack, error) {
	if codes := SettleCodes(); !slices.Contains(codes, code) {
		return Ack{}, invalid("", fmt.Sprintf("%q: unknown reason code; there are %v", code, codes))
	}
	if message == "" {
		message = by.Reason
	}
	return c.Do(ctx, SettleByHand{Audit: by, Key: key, Code: code, Message: message})
}

// Resubmit accepts the request of an aborted order under a new key, or body in its place if that
// is not nil. The idempotency key of body is replaced.
func (c *Client) Resubmit(ctx context.Context, key, newKey string, body []byte, by Audit) (Ack, error) {
	o, err := c.Get(ctx, key)
	if err != nil {
		return Ack{}, err
	}
	if newKey == key {
		return Ack{}, invalid("idempotency_key", "is the key that the order has: requeue it instead")
	}
	p, err := c.profile(o.Row.Profile)
	if err != nil {
		return Ack{}, err
	}
	if body == nil {
		body = o.Row.Body
	}
	if body, err = WithKey(body, newKey); err != nil {
		return Ack{}, err
	}
	parsed, err := p.Parse(body, time.Now())
	if err != nil {
		return Ack{}, err
	}
	return c.Do(ctx, Resubmit{Audit: by, Key: key, New: parsed.New(p)})
}

// Prune removes succeeded orders whose time is over, or aborted ones as cmd says, batch by batch.
func (c *Client) Prune(ctx context.Context, cmd Prune) (Ack, error) {
	var all Ack
	for {
		ack, err := c.Do(ctx, cmd)
		all.Changed += ack.Changed
		if err != nil || !ack.More {
			return all, err
		}
	}
}
