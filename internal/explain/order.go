package explain

import (
	"fmt"
	"strings"

	"github.com/goweaver/weaver/internal/text"
	"github.com/goweaver/weaver/order"
)

// OrderStory says in sentences where an order stands.
type OrderStory struct {
	Key     string        `json:"idempotency_key"`
	State   order.State   `json:"status"`
	Summary string        `json:"summary"`
	Past    []string      `json:"past"`              // what happened, the first thing first
	Actions []OrderAction `json:"actions,omitempty"` // what helps
}

// OrderAction is a command that an operator may give.
type OrderAction struct {
	Command string `json:"command"`
	Effect  string `json:"effect"`
}

// Order tells the story of an order. command writes a command line. It shows neither the body
// nor the result.
func (c Clock) Order(o *order.Order, command func(args ...string) string) *OrderStory {
	r, e := &o.Row, &o.Entry
	st := &OrderStory{Key: r.Key, State: r.State, Past: []string{}}
	say := func(format string, args ...any) { st.Past = append(st.Past, fmt.Sprintf(format, args...)) }
	act := func(effect string, args ...string) {
		st.Actions = append(st.Actions, OrderAction{command(append([]string{"order"}, args...)...), effect})
	}
	say("It was accepted %s.", c.When(r.CreatedAt))
	if e.LastSeenAt.After(e.FirstSeenAt) {
		say("The same request came again; last %s.", c.When(e.LastSeenAt))
	}
	switch {
	case r.SendNo == 0:
		say("It was never sent.")
	case r.SendNo == 1:
		say("It was sent once, %s.", c.When(r.SendStartedAt))
	default:
		say("It was sent %d times, each time with the same key; last %s.", r.SendNo, c.When(r.SendStartedAt))
	}
	if r.Attempts > 0 {
		say("%s failed.", text.Plural(r.Attempts, "attempt"))
	}
	if r.LastErrorCode != "" {
		say("The last error is %s", text.Stop(r.LastErrorCode+": "+text.OneLine(r.LastErrorMsg, MaxMessage)))
	}
	if !r.Task.IsZero() {
		say("Task %s waits for it in the step %q.", r.Task, text.OneLine(r.Step, MaxNote))
	}
	st.Summary = c.orderSummary(o)
	switch {
	case r.Held:
		act("lets it go on: it is sent with the same key", "release", r.Key)
		act("aborts it, if it was never sent", "withdraw", r.Key)
		act("settles it with the partner's result", "settle", r.Key, "--result", "FILE")
	case r.State == order.Aborted && e.Digest != r.Digest:
		act("accepts the request under a new key", "resubmit", r.Key, "--new-key", "NEW")
	case r.State == order.Aborted && e.Unknown:
		act("asks the partner, if the adapter can; else it is refused without --confirmed", "requeue", r.Key)
		act("sends it again with the same key, after you asked the partner", "requeue", r.Key, "--confirmed")
		act("settles it with the partner's result", "settle", r.Key, "--result", "FILE")
	case r.State == order.Aborted:
		act("sends it again with the same key", "requeue", r.Key)
		act("accepts a corrected request under a new key", "resubmit", r.Key, "--body", "FILE", "--new-key", "NEW")
	case r.State == order.Sending && !r.LeaseUntil.After(c.Now):
		act("takes the expired lease back", "unlock", r.Key)
	case !r.State.Final() && r.SendNo == 0:
		act("aborts it before it is sent", "withdraw", r.Key)
	}
	return st
}

// orderSummary is the one sentence of where an order stands, and why it does not go on.
func (c Clock) orderSummary(o *order.Order) string {
	r, e := &o.Row, &o.Entry
	doubt := ""
	if r.Unknown || r.SendOpen && !r.State.Final() {
		doubt = " An earlier send may have reached the partner: it is sent again with the same key only, or the partner is asked."
	}
	switch r.State {
	case order.Succeeded:
		return fmt.Sprintf("It succeeded %s; the ledger keeps the result until %s.", c.When(r.UpdatedAt), c.Abs(e.ExpiresAt))
	case order.Aborted:
		switch {
		case e.Digest != r.Digest:
			return "It was aborted: the ledger holds another request under its key, and stays as it is."
		case e.Unknown:
			return fmt.Sprintf("It was given up %s, and its outcome is unknown: the partner may have executed it.", c.When(r.UpdatedAt))
		}
		return fmt.Sprintf("It was given up %s; the partner did not execute it. It is answered with the status %d.", c.When(r.UpdatedAt), e.HTTPStatus)
	}
	if r.Held {
		return "It is held, as after a restore, and is not sent until it is released: the partner may have it already." + doubt
	}
	switch {
	case r.State == order.Sending && r.LeaseUntil.After(c.Now):
		return fmt.Sprintf("Worker %s holds it until %s, and renewed that %s.", text.OneLine(r.LockedBy, MaxNote), c.When(r.LeaseUntil), c.When(r.LockedAt)) + c.sendIn(o)
	case r.State == order.Sending:
		return fmt.Sprintf("Worker %s held it, and its lease expired %s: a worker that runs takes it over.", text.OneLine(r.LockedBy, MaxNote), c.When(r.LeaseUntil)) + doubt
	case !r.StaleAt.IsZero() && !c.Now.Before(r.StaleAt):
		return fmt.Sprintf("It is older than %s, and is not sent any more: the next worker that claims it asks the partner or gives it up.", text.Setting(r.MaxAge)) + doubt
	case r.NextRunAt.After(c.Now):
		return fmt.Sprintf("It is sent again %s.", c.When(r.NextRunAt)) + doubt
	}
	return strings.TrimSpace("It is due: a worker with the role orders sends it. If it stays so, none runs, or the adapter is paused by its circuit breaker; the worker's log says so." + doubt)
}

// sendIn says whether the holder of an order is sending it.
func (c Clock) sendIn(o *order.Order) string {
	if o.Row.SendOpen {
		return fmt.Sprintf(" A send began %s and has no answer yet.", c.When(o.Row.SendStartedAt))
	}
	return ""
}
