package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/sealorder"

	"github.com/goweaver/weaver"
	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/order"
	"github.com/goweaver/weaver/store"
	"github.com/goweaver/weaver/task"
)

// orderCmd groups the verbs of orders.
type orderCmd struct {
	Send     orderSendCmd     `cmd:"" help:"Accept an order or webhook from a file."`
	Ls       orderLsCmd       `cmd:"" help:"List orders, newest first."`
	Show     orderShowCmd     `cmd:"" help:"Show an order and its history."`
	Stats    orderStatsCmd    `cmd:"" help:"Count orders by status."`
	Requeue  orderRequeueCmd  `cmd:"" help:"Send an aborted order again, with the same key."`
	Unlock   orderUnlockCmd   `cmd:"" help:"Take expired leases back."`
	Settle   orderSettleCmd   `cmd:"" help:"Settle an order by hand."`
	Resubmit orderResubmitCmd `cmd:"" help:"Accept an aborted order again under a new key."`
	Withdraw orderWithdrawCmd `cmd:"" help:"Abort an order that was never sent."`
	Hold     orderHoldCmd     `cmd:"" help:"Keep all unsettled orders from being sent."`
	Release  orderReleaseCmd  `cmd:"" help:"Let held orders go on."`
	Prune    orderPruneCmd    `cmd:"" help:"Remove settled orders whose time is over."`
}

// Help is shown by order --help.
func (orderCmd) Help() string {
	return "An order is a request to a partner that is sent at least once with one idempotency key, and settled once; docs/orders.md has the whole. " +
		"`serve` accepts orders over HTTP with OUTBOX_ENABLED=true, and `serve` or `worker` with --roles orders sends them."
}

// ordersOf returns the orders of a client's store.
func (s *session) ordersOf(client *weaver.Client) (order.Store, error) {
	orders, ok := sealorder.Of(client.OpenStore())
	if !ok {
		return nil, badInput("", "%s keeps no orders", s.store())
	}
	return orders, nil
}

// withOrders runs fn with the orders of a store that can be used.
func (s *session) withOrders(ctx context.Context, fn func(st order.Store, ns string) error) error {
	return s.withClient(ctx, func(client *weaver.Client) error {
		st, err := s.ordersOf(client)
		if err != nil {
			return err
		}
		return fn(st, client.Namespace())
	})
}

// orderConfig reads the variables of orders; every mistake names its variable.
func orderConfig() (order.Config, error) {
	cfg, err := order.ConfigFromEnv(os.Getenv)
	if err != nil {
		return cfg, badInput("docs/orders.md lists the variables.", "%w", err)
	}
	return cfg, nil
}

// withOrderClient runs fn with a client of the orders of a store. cfg (may be nil) has the profiles of
// its requests. With addresses, a requeue asks the partner, at the addresses that they allow.
func (s *session) withOrderClient(ctx context.Context, cfg *order.Config, addresses *addressFlags, fn func(orders *order.Client, ns string) error) error {
	return s.withOrders(ctx, func(st order.Store, ns string) error {
		of := order.ClientConfig{Store: st, Namespace: ns}
		if cfg != nil {
			of.Profiles = []order.Profile{cfg.Orders(), cfg.Webhooks()}
		}
		if addresses != nil && cfg.Adapter != "" {
			of.Ask = func(ctx context.Context, key string, by order.Audit) (order.Found, error) {
				return askPartner(ctx, cfg, addresses, st, ns, key, by)
			}
		}
		orders, err := order.NewClient(of)
		if err != nil {
			return err
		}
		return fn(orders, ns)
	})
}

type orderLsCmd struct {
	Status []string `placeholder:"STATUS" complete:"pending,sending,failed,succeeded,aborted" help:"Only orders in this status; repeatable."`
	Held   bool     `help:"Only held orders."`
	Task   string   `placeholder:"ID" filter:"" help:"Only orders of this task."`
	pageFlags
}

var orderStates = []order.State{order.Pending, order.Sending, order.Retrying, order.Succeeded, order.Aborted}

// orderFilter reads the flags of a list.
func orderFilter(states []string, held bool, taskID string) (order.Filter, error) {
	f := order.Filter{Held: held}
	for _, name := range states {
		if !slices.Contains(orderStates, order.State(name)) {
			return f, badInput("", "--status %q is not known%s; there are %s", name, didYouMean(name, orderStates), join(orderStates))
		}
		f.States = append(f.States, order.State(name))
	}
	if taskID != "" {
		id, err := task.ParseID(taskID)
		if err != nil {
			return f, badInput("", "--task: %w", err)
		}
		f.Task = id
	}
	return f, nil
}

// Run implements the verb.
func (c *orderLsCmd) Run(ctx context.Context, s *session) error {
	if err := c.check(store.MaxLimit); err != nil {
		return err
	}
	f, err := orderFilter(c.Status, c.Held, c.Task)
	if err != nil {
		return err
	}
	return s.withOrders(ctx, func(st order.Store, ns string) error {
		list, next, err := fill(c.Limit, c.After, func(limit int, after string) ([]order.Order, string, error) {
			f.Limit, f.After = limit, after
			return st.ListOrders(ctx, ns, f)
		})
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(map[string]any{"orders": orEmpty(list), "next": next})
		}
		if len(list) == 0 {
			s.printf("No orders match in namespace %q of %s.\n", ns, s.store())
			return nil
		}
		t := newTable("KEY", "ORDER", "STATUS", "SENT", "ATTEMPTS", "ACCEPTED", "NEXT", "ERROR")
		t.gives = []give{{"ERROR", 12}, {"ORDER", 0}, {"KEY", 20}}
		for i := range list {
			r := &list[i].Row
			state := string(r.State)
			if r.Held {
				state += ", held"
			}
			if r.State == order.Aborted && list[i].Entry.Unknown {
				state += ", unknown"
			}
			t.add(plain(text.OneLine(r.Key, explain.MaxNote)), plain(text.OneLine(r.Ref, explain.MaxNote)), painted(state, orderColor(r.State)), plain(fmt.Sprint(r.SendNo)), plain(fmt.Sprint(r.Attempts)),
				s.when(r.CreatedAt), s.when(r.NextRunAt), plain(text.OneLine(r.LastErrorCode, explain.MaxNote)))
		}
		s.list(t)
		if next != "" {
			s.printf("There are more: --after %s\n", next)
		}
		return nil
	})
}

func orderColor(state order.State) string {
	switch state {
	case order.Succeeded:
		return text.Green
	case order.Aborted:
		return text.Red
	case order.Retrying:
		return text.Yellow
	}
	return ""
}

type orderShowCmd struct {
	Key string `arg:"" help:"Idempotency key of the order."`
}

// Run implements the verb.
func (c *orderShowCmd) Run(ctx context.Context, s *session) error {
	return s.withOrders(ctx, func(st order.Store, ns string) error {
		o, err := st.GetOrder(ctx, ns, c.Key)
		if err != nil {
			return s.noOrder(err, ns)
		}
		if s.json() {
			return s.writeJSON(o)
		}
		s.printOrder(s.clock.Order(&o, s.command))
		s.heading("Request")
		s.printf("  %s\n", jsonText(o.Row.Body))
		if len(o.Entry.Result) > 0 {
			s.heading("Result")
			s.printf("  HTTP status %d\n  %s\n", o.Entry.HTTPStatus, jsonText(o.Entry.Result))
		}
		return nil
	})
}

// noOrder says where an order was looked for.
func (s *session) noOrder(err error, ns string) error {
	if errors.Is(err, order.ErrNotFound) {
		return fmt.Errorf("%w in namespace %q of %s", err, ns, s.store())
	}
	return err
}

// printOrder prints the story of an order.
func (s *session) printOrder(x *explain.OrderStory) {
	s.printf("%s\n\n%s\n", s.paint.Paint(text.Bold, fmt.Sprintf("Order %s: %s", text.OneLine(x.Key, explain.MaxNote), x.State)), s.paint.Paint(orderColor(x.State), x.Summary))
	s.heading("What happened")
	for _, p := range x.Past {
		s.printf("  %s\n", p)
	}
	if len(x.Actions) > 0 {
		s.heading("What you can do")
		for _, a := range x.Actions {
			s.printf("  %s\n      %s\n", a.Command, a.Effect)
		}
	}
}

type orderStatsCmd struct{}

// Run implements the verb.
func (orderStatsCmd) Run(ctx context.Context, s *session) error {
	return s.withOrders(ctx, func(st order.Store, ns string) error {
		got, err := st.OrderStats(ctx, ns)
		if err != nil {
			return err
		}
		if s.json() {
			return s.writeJSON(got)
		}
		for _, state := range orderStates {
			s.printf("%-10s %d\n", state, got.Counts[state])
		}
		s.printf("%-10s %d\n%-10s %d\n%-10s %d\n", "held", got.Held, "unknown", got.Unknown, "ledger", got.Ledger)
		if got.More {
			s.printf("Counts end at 10,000.\n")
		}
		if !got.OldestAt.IsZero() {
			s.printf("The oldest unsettled order was accepted %s.\n", s.clock.When(got.OldestAt))
		}
		for i := range got.Senders {
			s.printf("%s\n", s.senderText(&got.Senders[i]))
		}
		return nil
	})
}

// senderText is a line of a worker, and of the state of its circuit breaker.
func (s *session) senderText(w *order.SenderStatus) string {
	said := fmt.Sprintf("Worker %s, adapter %s: ", text.OneLine(w.Name, explain.MaxNote), text.OneLine(w.Adapter, explain.MaxNote))
	switch {
	case w.Dead:
		return said + "dead."
	case w.Silent:
		return said + "silent since " + s.clock.When(w.LastSeen) + "."
	case !w.PausedUntil.IsZero():
		return said + fmt.Sprintf("sends nothing for now, and goes on %s: %s.", s.clock.When(w.PausedUntil), text.OneLine(w.Reason, explain.MaxMessage))
	}
	return said + fmt.Sprintf("%d of its last 20 sends timed out or found the partner down.", w.Failed)
}

type orderSendCmd struct {
	File    string        `arg:"" placeholder:"FILE" help:"JSON file with the request, or - for the standard input."`
	Webhook bool          `help:"The request is a webhook."`
	Wait    time.Duration `placeholder:"DURATION" help:"Maximum wait for the result."`
}

// Help is shown by order send --help.
func (orderSendCmd) Help() string {
	return "It stores the order as POST /do/order does, with the same checks; a worker with the role orders sends it. " +
		"The same order again changes nothing; another one with its key is refused. " +
		"With --wait the exit code is 1 if the order failed, or is not settled in time."
}

// Run implements the verb.
func (c *orderSendCmd) Run(ctx context.Context, s *session) error {
	cfg, err := orderConfig()
	if err != nil {
		return err
	}
	if c.Wait < 0 {
		return badInput("", "--wait %s: want 0s or more", c.Wait)
	}
	raw, err := s.readOrder("FILE", c.File)
	if err != nil {
		return err
	}
	profile := cfg.Orders().Name()
	if c.Webhook {
		profile = cfg.Webhooks().Name()
	}
	return s.withOrderClient(ctx, &cfg, nil, func(orders *order.Client, _ string) error {
		got, err := orders.SendJSON(ctx, profile, raw)
		if _, wrong := errors.AsType[*order.Invalid](err); wrong {
			return badOrder(c.File, err)
		}
		if err != nil {
			return err
		}
		e := got.Entry
		if c.Wait > 0 {
			waiting, stop := context.WithTimeout(ctx, c.Wait)
			defer stop()
			last, err := orders.Wait(waiting, e.Key)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && waiting.Err() == nil:
				return err
			case err == nil:
				e = last
			}
		}
		if s.json() {
			err = s.writeJSON(map[string]any{"created": got.Created, "ledger": e})
		} else {
			s.printSent(got.Created, &e)
		}
		if err == nil && (e.State == order.LedgerFailed || c.Wait > 0 && e.State == order.LedgerAccepted) {
			err = silent(exitFailed)
		}
		return err
	})
}

func (s *session) printSent(created bool, e *order.Entry) {
	switch {
	case e.State == order.LedgerSucceeded:
		s.printf("Order %s succeeded: %s\n", e.Key, jsonText(e.Result))
	case e.State == order.LedgerFailed:
		s.printf("Order %s failed with the status %d: %s\n", e.Key, e.HTTPStatus, jsonText(e.Result))
	case created:
		s.printf("Order %s is accepted; a worker with the role orders sends it.\n", e.Key)
	default:
		s.printf("Order %s was accepted before, %s, and is not settled yet.\n", e.Key, s.clock.When(e.FirstSeenAt))
	}
}
