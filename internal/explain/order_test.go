package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/internal/explain"
	"github.com/goweaver/weaver/order"
)

// The story of an order says where it stands, why it does not go on, and what helps.
func TestClock_Order(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		change  func(r *order.Row, e *order.Entry)
		summary string
		past    string
		action  string // "": none
	}{
		"due": {func(*order.Row, *order.Entry) {}, "It is due: a worker with the role orders sends it.", "It was never sent.", "order withdraw k"},
		"backoff": {func(r *order.Row, _ *order.Entry) {
			r.State, r.Attempts, r.SendNo, r.NextRunAt, r.LastErrorCode = order.Retrying, 2, 2, now.Add(time.Minute), "BROKER_DOWN"
		}, "It is sent again in 1m", "The last error is BROKER_DOWN: ", ""},
		"doubt": {func(r *order.Row, _ *order.Entry) {
			r.State, r.SendNo, r.Unknown, r.NextRunAt = order.Retrying, 1, true, now.Add(time.Minute)
		}, "An earlier send may have reached the partner", "It was sent once", ""},
		"sending": {func(r *order.Row, _ *order.Entry) {
			r.State, r.SendNo, r.SendOpen, r.LockedBy, r.LeaseUntil = order.Sending, 1, true, "w1", now.Add(time.Minute)
		}, "Worker w1 holds it", "It was sent once", ""},
		"expired": {func(r *order.Row, _ *order.Entry) {
			r.State, r.SendNo, r.LockedBy, r.LeaseUntil = order.Sending, 1, "w1", now.Add(-time.Minute)
		}, "its lease expired", "", "order unlock k"},
		"stale": {func(r *order.Row, _ *order.Entry) {
			r.MaxAge, r.StaleAt, r.SendNo = time.Minute, now.Add(-time.Second), 1
		}, "It is older than 1m", "", ""},
		"held":     {func(r *order.Row, _ *order.Entry) { r.Held = true }, "It is held, as after a restore,", "", "order release k"},
		"conflict": {func(r *order.Row, e *order.Entry) { r.State, e.Digest = order.Aborted, "other" }, "the ledger holds another request", "", "order resubmit k"},
		"unknown": {func(r *order.Row, e *order.Entry) {
			r.State, e.State, e.Unknown = order.Aborted, order.LedgerFailed, true
		}, "its outcome is unknown", "", "order requeue k --confirmed"},
		"rejected": {func(r *order.Row, e *order.Entry) {
			r.State, e.State, e.HTTPStatus = order.Aborted, order.LedgerFailed, 400
		}, "the partner did not execute it", "", "order resubmit k --body FILE"},
		"settled": {func(r *order.Row, e *order.Entry) {
			r.State, e.State, r.SendNo = order.Succeeded, order.LedgerSucceeded, 3
		}, "It succeeded", "It was sent 3 times, each time with the same key", ""},
	} {
		o := order.Order{
			Row:   order.Row{Key: "k", Digest: "d", State: order.Pending, Body: []byte(`{"secret":1}`), CreatedAt: now.Add(-time.Hour), UpdatedAt: now, NextRunAt: now},
			Entry: order.Entry{Key: "k", Digest: "d", State: order.LedgerAccepted, Result: []byte(`{"secret":2}`)},
		}
		c.change(&o.Row, &o.Entry)
		x := explain.Clock{Now: now, Zone: time.UTC}.Order(&o, func(args ...string) string { return strings.Join(args, " ") })
		past, actions := strings.Join(x.Past, "\n"), ""
		for _, a := range x.Actions {
			actions += a.Command + "\n"
		}
		if !strings.Contains(x.Summary, c.summary) || !strings.Contains(past, c.past) || !strings.Contains(actions, c.action) || (c.action == "") != (actions == "") {
			t.Errorf("%s: %s\n%s\n%s", name, x.Summary, past, actions)
		}
		if strings.Contains(x.Summary+past, "secret") {
			t.Errorf("%s shows a value", name)
		}
	}
}
