package orderrules

import (
	"fmt"
	"time"

	"github.com/goweaver/weaver/order"
)

// Requeue sends an aborted order again.
func Requeue(o *order.Order, cmd *order.Requeue, now time.Time) (Move, error) {
	m := start(o)
	r, e := &o.Row, &o.Entry
	switch {
	case r.State != order.Aborted:
		return m, fmt.Errorf("%w: %q is %s; only an aborted order can be requeued", order.ErrState, r.Key, r.State)
	case e.Digest != r.Digest:
		return m, fmt.Errorf("%w: the ledger holds another request under the key %q; resubmit it under a new key", order.ErrConflict, r.Key)
	case e.State == order.LedgerFailed && e.Unknown && !cmd.Confirmed:
		return m, fmt.Errorf("%w: %q was given up with an unknown outcome; ask the partner, then requeue it as confirmed, or settle it", order.ErrInDoubt, r.Key)
	}
	*e = order.Entry{
		Key: e.Key, Digest: e.Digest, State: order.LedgerAccepted, Ref: e.Ref, TraceID: e.TraceID, FirstSeenAt: e.FirstSeenAt, LastSeenAt: now,
	}
	m.Ledger = true
	r.Attempts, r.LastErrorCode, r.LastErrorMsg, r.Unknown, r.SendOpen, r.Signalled, r.Held = 0, "", "", false, false, r.Task.IsZero(), false
	m.to(o, order.Pending, now)
	r.NextRunAt, r.ExpiresAt = now, time.Time{}
	if r.MaxAge > 0 {
		r.StaleAt = now.Add(r.MaxAge)
	}
	return m, nil
}

// SettleByHand settles an order as an operator says.
func SettleByHand(o *order.Order, cmd *order.SettleByHand, now time.Time) (Move, error) {
	m := start(o)
	if cmd.Result != nil {
		res := *cmd.Result
		if !cmd.Asked {
			res.Warnings = append(append([]string(nil), res.Warnings...), order.WarnByHand)
		}
		if err := res.Check(o.Row.Profile); err != nil {
			return m, fmt.Errorf("%w: the result: %w", order.ErrState, err)
		}
		again, err := m.succeed(o, o.Row.Digest, &res, cmd.Stored, !cmd.Asked, now)
		if err == nil && again && !m.Row && !cmd.Asked {
			err = fmt.Errorf("%w: %q has succeeded already", order.ErrState, o.Row.Key)
		}
		return m, err
	}
	r := &o.Row
	if r.State.Final() || o.Entry.State == order.LedgerSucceeded {
		return m, fmt.Errorf("%w: %q is %s, its ledger entry %s", order.ErrState, r.Key, r.State, o.Entry.State)
	}
	if r.State == order.Retrying {
		m.to(o, order.Pending, now)
	}
	unknown := r.Unknown || r.SendOpen
	m.fail(o, order.NoResult(r, cmd.Code, now, order.WarnByHand), nil, unknown, now)
	r.LastErrorCode, r.LastErrorMsg, r.SendOpen, r.Unknown = string(cmd.Code), Clip(cmd.Message), false, unknown
	m.to(o, order.Aborted, now)
	return m, nil
}

// Sender returns the announcement of a worker without a pause that is over.
func Sender(s order.Sender, now time.Time) order.Sender {
	if !s.PausedUntil.After(now) {
		s.PausedUntil, s.Reason = time.Time{}, ""
	}
	return s
}

// Withdraw aborts an order that was never sent. inDoubt says that it may have been.
func Withdraw(o *order.Order, by string, now time.Time) (m Move, inDoubt bool) {
	m = start(o)
	r := &o.Row
	if r.State.Final() {
		return m, false
	}
	if r.SendNo > 0 {
		return m, true
	}
	m.fail(o, result(o, order.ReasonInternal, order.WarnWithdrawn, now), nil, false, now)
	r.LastErrorCode, r.LastErrorMsg = order.WarnWithdrawn, Clip("withdrawn by "+by)
	r.Token++ // a worker that claimed it sends nothing
	m.to(o, order.Aborted, now)
	return m, false
}

// Hold keeps an order from being sent until it is released. A worker's lease ends.
func Hold(o *order.Order, now time.Time) Move {
	m := start(o)
	r := &o.Row
	if r.State.Final() {
		return m
	}
	r.Held, r.UpdatedAt, m.Row = true, now, true
	if r.State == order.Sending {
		r.Token++
		r.SendOpen, r.Unknown = false, r.Unknown || r.SendOpen
		m.to(o, order.Pending, now)
	}
	return m
}

// Release lets a held order go on.
func Release(o *order.Order, now time.Time) (Move, error) {
	m := start(o)
	if !o.Row.Held {
		return m, fmt.Errorf("%w: %q is not held", order.ErrState, o.Row.Key)
	}
	o.Row.Held, o.Row.UpdatedAt, m.Row = false, now, true
	if o.Row.MaxAge > 0 && o.Row.SendNo == 0 {
		o.Row.StaleAt = now.Add(o.Row.MaxAge)
	}
	return m, nil
}

// Unlock takes an expired lease back.
func Unlock(o *order.Order, now time.Time) (Move, error) {
	r := &o.Row
	if r.State != order.Sending || r.LeaseUntil.After(now) {
		return start(o), fmt.Errorf("%w: %q has no expired lease", order.ErrState, r.Key)
	}
	m, _ := Reclaim(o, false, now)
	return m, nil
}

// Prunable reports whether a prune may remove an order.
func Prunable(o *order.Order, cmd *order.Prune, taskOpen bool, now time.Time) bool {
	if taskOpen {
		return false
	}
	switch o.Row.State {
	case order.Succeeded:
		return !o.Entry.ExpiresAt.IsZero() && !o.Entry.ExpiresAt.After(now) && !cmd.Aborted
	case order.Aborted:
		return cmd.Aborted && o.Row.UpdatedAt.Before(cmd.Before)
	}
	return false
}

// Resubmit refuses to accept the request of an order under a new key if the partner may execute
// both.
func Resubmit(o *order.Order) error {
	switch {
	case o.Row.State != order.Aborted:
		return fmt.Errorf("%w: %q is %s; only an aborted order can be resubmitted", order.ErrState, o.Row.Key, o.Row.State)
	case o.Entry.Unknown:
		return fmt.Errorf("%w: %q was given up with an unknown outcome, and a new key could execute it twice; ask the partner and settle it", order.ErrInDoubt, o.Row.Key)
	}
	return nil
}
