package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/goweaver/weaver/internal/sealorder"

	"github.com/goweaver/weaver"
)

// ordersLate is the age from which an unsettled order is worth a warning.
const ordersLate = 10 * time.Minute

// holdOrders keeps the orders of a restored store from being sent: the partner may have them.
func (c *doctorCmd) holdOrders(ctx context.Context, client *weaver.Client) (int, error) {
	audit := c.audited()
	if audit.Reason == "" {
		audit.Reason = "the store was restored"
	}
	return sealorder.Hold(ctx, client.OpenStore(), client.Namespace(), audit)
}

// examineOrders warns of orders that need a person.
func (f *checkup) examineOrders(ctx context.Context, s *session, client *weaver.Client) error {
	st, ok := sealorder.Of(client.OpenStore())
	if !ok {
		return nil
	}
	stats, err := st.OrderStats(ctx, client.Namespace())
	if err != nil {
		return err
	}
	warn := func(key, format string, args ...any) {
		f.Warnings = append(f.Warnings, warning{key, fmt.Sprintf(format, args...)})
	}
	if stats.Held > 0 {
		warn("held orders", "%s held and not sent, which the partner may have already: `%s` lists them, `%s` lets them go on",
			areOrIs(stats.Held, "order"), s.command("order", "ls", "--held"), s.command("order", "release"))
	}
	if stats.Unknown > 0 {
		warn("unknown orders", "%s aborted with an unknown outcome, and the partner may have executed them: `%s` lists them, `%s` tells what helps",
			areOrIs(stats.Unknown, "order"), s.command("order", "ls", "--status", "aborted"), s.command("order", "show", "KEY"))
	}
	if !stats.OldestAt.IsZero() && stats.Held == 0 && s.clock.Now.Sub(stats.OldestAt) > ordersLate {
		warn("late orders", "the oldest unsettled order was accepted %s: `%s` lists those that are not settled",
			s.clock.When(stats.OldestAt), s.command("order", "ls", "--status", "pending", "--status", "failed", "--status", "sending"))
	}
	return nil
}
