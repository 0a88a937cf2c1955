package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/goweaver/weaver/internal/plainfile"
	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/order"
)

// audited is who gives a command on orders, and why.
func (a auditFlags) audited() order.Audit { return order.Audit{By: a.who(), Reason: a.Reason} }

// operateOrder gives a command and prints what it did.
func (s *session) operateOrder(ctx context.Context, verb, key string, cmd order.Command, said func(order.Ack) string) error {
	return s.withOrders(ctx, func(st order.Store, ns string) error {
		ack, err := st.OperateOrder(ctx, ns, cmd)
		if err != nil {
			return s.noOrder(err, ns)
		}
		return s.printAck(verb, key, ack, said(ack))
	})
}

// orderDone is what a verb did, for -o json.
type orderDone struct {
	Verb string `json:"verb"`
	Key  string `json:"idempotency_key,omitempty"`
	order.Ack
	Said string `json:"message"`
}

func (s *session) printAck(verb, key string, ack order.Ack, said string) error {
	if s.json() {
		return s.writeJSON(orderDone{Verb: verb, Key: key, Ack: ack, Said: said})
	}
	s.printf("%s\n", text.Printable(said))
	return nil
}

// readOrder reads a JSON file, or the standard input. flag names it in messages.
func (s *session) readOrder(flag, path string) ([]byte, error) {
	var raw []byte
	var err error
	if path == "-" {
		raw, err = io.ReadAll(io.LimitReader(s.stdin, maxOrderFile+1))
	} else {
		raw, err = plainfile.ReadStream(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, badInput("", "%s %s: there is no such file", flag, path)
	case err != nil:
		return nil, badInput("", "%s: %w", flag, err)
	case len(raw) > maxOrderFile:
		return nil, badInput("", "%s %s has more than %d bytes", flag, path, maxOrderFile)
	}
	return raw, nil
}

// maxOrderFile is the longest body of an order, as over HTTP.
const maxOrderFile = 64 << 10

// badOrder says what is wrong with the body of an order, field by field.
func badOrder(file string, err error) error {
	wrong, is := errors.AsType[*order.Invalid](err)
	if !is {
		return badInput("", "%s: %w", file, err)
	}
	var list []error
	for _, f := range wrong.Fields {
		if f.Field == "" {
			f.Field = "the body"
		}
		list = append(list, fmt.Errorf("%s: %s: %s", file, f.Field, f.Message))
	}
	return badInput("Nothing was stored; docs/orders.md lists the fields.", "%w", errors.Join(list...))
}

type orderRequeueCmd struct {
	Key       string `arg:"" help:"Idempotency key of an aborted order."`
	Confirmed bool   `help:"The partner does not have the order, or may get it again."`
	addressFlags
	auditFlags
}

// Help is shown by order requeue --help.
func (orderRequeueCmd) Help() string {
	return "The order has all its attempts ahead again, and the same key. If its outcome is unknown, the adapter of BROKER_ADAPTER asks the partner first, if it can: " +
		"an order that was executed is settled with the partner's result, one that the partner does not have is sent again. Else it is refused without --confirmed."
}

// Run implements the verb.
func (c *orderRequeueCmd) Run(ctx context.Context, s *session) error {
	if err := c.checkAddresses(); err != nil {
		return err
	}
	cfg, err := orderConfig()
	if err != nil {
		return err
	}
	return s.withOrderClient(ctx, &cfg, &c.addressFlags, func(orders *order.Client, ns string) error {
		ack, err := orders.Requeue(ctx, c.Key, c.Confirmed, c.audited())
		failed, unasked := errors.AsType[*order.AskError](err)
		switch {
		case unasked:
			return badInput("Ask the partner another way, then requeue it with --confirmed or settle it.", "the partner could not be asked about %q: %w", c.Key, failed.Err)
		case err != nil:
			return s.noOrder(err, ns)
		case ack.State == order.Succeeded:
			return s.printAck("requeue", c.Key, ack, fmt.Sprintf("Order %s was not sent again: the partner has executed it, and it is settled with its result.", c.Key))
		}
		return s.printAck("requeue", c.Key, ack, fmt.Sprintf("Order %s is pending again, with the same key and all its attempts.", c.Key))
	})
}

// askPartner asks what became of an order, through the adapter that the variables name. It refuses
// the addresses that a send refuses.
func askPartner(ctx context.Context, cfg *order.Config, addresses *addressFlags, st order.Store, ns, key string, by order.Audit) (order.Found, error) {
	a, err := cfg.NewAdapter(partnerClient(addresses))
	if err != nil {
		return order.FoundOpen, err
	}
	return order.AskPartner(ctx, st, ns, a, key, by)
}

type orderUnlockCmd struct {
	Key string `arg:"" optional:"" help:"Idempotency key; default: every expired lease."`
	auditFlags
}

// Run implements the verb.
func (c *orderUnlockCmd) Run(ctx context.Context, s *session) error {
	return s.operateOrder(ctx, "unlock", c.Key, order.Unlock{Audit: c.audited(), Key: c.Key}, func(a order.Ack) string {
		if a.More {
			return fmt.Sprintf("%s taken back; there are more: run it again.", text.Plural(a.Changed, "expired lease"))
		}
		return text.Plural(a.Changed, "expired lease") + " taken back."
	})
}

type orderSettleCmd struct {
	Key     string `arg:"" help:"Idempotency key of the order."`
	Result  string `xor:"outcome" required:"" placeholder:"FILE" help:"File with the ExecResult of the partner; - for stdin."`
	Failed  string `xor:"outcome" required:"" placeholder:"CODE" complete:"BROKER_REJECTED,BROKER_TIMEOUT,BROKER_DOWN,VALIDATION_ERROR,INTERNAL_ERROR" help:"Reason code if the partner did not execute it."`
	Message string `placeholder:"TEXT" help:"Last error, with --failed; default: the reason."`
	auditFlags
}

// Help is shown by order settle --help.
func (orderSettleCmd) Help() string {
	return "It writes the ledger first, then the outbox row, as a worker does; the result has the warning " + order.WarnByHand + ". " +
		"--result is also taken for an aborted order: the partner's truth may come late."
}

// Run implements the verb.
func (c *orderSettleCmd) Run(ctx context.Context, s *session) error {
	cmd := order.SettleByHand{Audit: c.audited(), Key: c.Key, Message: c.Message}
	if c.Failed != "" {
		cmd.Code = order.ReasonCode(c.Failed)
		if codes := order.SettleCodes(); !slices.Contains(codes, cmd.Code) {
			return badInput("", "--failed %q is not known%s; there are %s", c.Failed, didYouMean(c.Failed, codes), join(codes))
		}
		if cmd.Message == "" {
			cmd.Message = c.Reason
		}
		return s.operateOrder(ctx, "settle", c.Key, cmd, func(order.Ack) string {
			return fmt.Sprintf("Order %s is settled as failed, with %s.", c.Key, c.Failed)
		})
	}
	if c.Message != "" {
		return badInput("", "--message is given with --failed")
	}
	raw, err := s.readOrder("--result", c.Result)
	if err != nil {
		return err
	}
	return s.withOrderClient(ctx, nil, nil, func(orders *order.Client, ns string) error {
		ack, err := orders.Settle(ctx, c.Key, raw, cmd.Audit)
		if _, wrong := errors.AsType[*order.Invalid](err); wrong {
			return badOrder("--result "+c.Result, err)
		}
		if err != nil {
			return s.noOrder(err, ns)
		}
		return s.printAck("settle", c.Key, ack, fmt.Sprintf("Order %s is settled as succeeded.", c.Key))
	})
}

type orderResubmitCmd struct {
	Key    string `arg:"" help:"Idempotency key of an aborted order."`
	Body   string `placeholder:"FILE" help:"File with the corrected request; default: the stored one."`
	NewKey string `required:"" placeholder:"KEY" help:"Idempotency key of the new order."`
	auditFlags
}

// Help is shown by order resubmit --help.
func (orderResubmitCmd) Help() string {
	return "The partner sees a new order. It is refused for an order with an unknown outcome, which could be executed twice: settle or requeue that one."
}

// Run implements the verb.
func (c *orderResubmitCmd) Run(ctx context.Context, s *session) error {
	cfg, err := orderConfig()
	if err != nil {
		return err
	}
	if what := order.BadKey(c.NewKey); what != "" {
		return badInput("", "--new-key %.40q %s", c.NewKey, what)
	}
	if c.NewKey == c.Key {
		return badInput(fmt.Sprintf("`%s` sends it again with its key.", s.command("order", "requeue", c.Key)), "--new-key is the key that the order has")
	}
	var raw []byte
	if c.Body != "" {
		if raw, err = s.readOrder("--body", c.Body); err != nil {
			return err
		}
	}
	return s.withOrderClient(ctx, &cfg, nil, func(orders *order.Client, ns string) error {
		ack, err := orders.Resubmit(ctx, c.Key, c.NewKey, raw, c.audited())
		if _, wrong := errors.AsType[*order.Invalid](err); wrong {
			return badOrder("--body", err)
		}
		if err != nil {
			return s.noOrder(err, ns)
		}
		said := fmt.Sprintf("Order %s is accepted in place of %s.", c.NewKey, c.Key)
		if ack.Changed == 0 {
			said = fmt.Sprintf("Order %s was accepted before, with the same request.", c.NewKey)
		}
		return s.printAck("resubmit", c.NewKey, ack, said)
	})
}

type orderWithdrawCmd struct {
	Key string `arg:"" help:"Idempotency key of an order that was never sent."`
	auditFlags
}

// Run implements the verb.
func (c *orderWithdrawCmd) Run(ctx context.Context, s *session) error {
	return s.withOrders(ctx, func(st order.Store, ns string) error {
		ack, err := st.OperateOrder(ctx, ns, order.Withdraw{Audit: c.audited(), Key: c.Key})
		switch {
		case err != nil:
			return s.noOrder(err, ns)
		case ack.InDoubt:
			return fmt.Errorf("%w: %q was sent, and was not withdrawn", order.ErrInDoubt, c.Key)
		case ack.Changed == 0:
			return fmt.Errorf("%w: %q is %s; there is nothing to withdraw", order.ErrState, c.Key, ack.State)
		}
		return s.printAck("withdraw", c.Key, ack, fmt.Sprintf("Order %s is withdrawn: it was never sent, and will not be.", c.Key))
	})
}

type orderHoldCmd struct{ auditFlags }

// Help is shown by order hold --help.
func (orderHoldCmd) Help() string {
	return "After a restore the partner may have orders that the backup shows as unsent; `doctor --post-restore` holds them. Leases of workers end."
}

// Run implements the verb.
func (c *orderHoldCmd) Run(ctx context.Context, s *session) error {
	return s.operateOrder(ctx, "hold", "", order.Hold{Audit: c.audited()}, func(a order.Ack) string {
		return fmt.Sprintf("%s held; `%s` lets them go on.", text.Plural(a.Changed, "order"), s.command("order", "release"))
	})
}

type orderReleaseCmd struct {
	Key string `arg:"" optional:"" help:"Idempotency key; default: every held order."`
	auditFlags
}

// Run implements the verb.
func (c *orderReleaseCmd) Run(ctx context.Context, s *session) error {
	return s.operateOrder(ctx, "release", c.Key, order.Release{Audit: c.audited(), Key: c.Key}, func(a order.Ack) string {
		return text.Plural(a.Changed, "order") + " released: a worker sends what is due, with the same keys."
	})
}

type orderPruneCmd struct {
	Aborted   bool `help:"Remove aborted orders instead of succeeded ones."`
	OlderThan *age `placeholder:"AGE" help:"Minimum age, with --aborted; default 30d."`
	auditFlags
}

// Help is shown by order prune --help.
func (orderPruneCmd) Help() string {
	return "Succeeded orders go 48 h after they were settled; workers remove them by themselves. Ledger entry and outbox row go together, and the key is free then: " +
		"the same request would be accepted, and sent, anew. With --aborted it removes aborted orders whose tasks have ended."
}

// Run implements the verb.
func (c *orderPruneCmd) Run(ctx context.Context, s *session) error {
	if c.OlderThan != nil && !c.Aborted {
		return badInput("", "--older-than is given with --aborted: succeeded orders are kept for 48h")
	}
	cmd := order.Prune{Audit: c.audited(), Aborted: c.Aborted}
	if c.Aborted {
		old := order.AbortedKept
		if c.OlderThan != nil {
			old = time.Duration(*c.OlderThan)
		}
		cmd.Before = time.Now().Add(-old)
	}
	return s.withOrderClient(ctx, nil, nil, func(orders *order.Client, _ string) error {
		all, err := orders.Prune(ctx, cmd)
		if err != nil {
			return err
		}
		return s.printAck("prune", "", all, text.Plural(all.Changed, "order")+" removed.")
	})
}
