// Package orderrules defines the moves of an order, for all stores. It is pure: a rule takes a
// stored order and an instant, changes that value, and reports which parts a store has to
// write. docs/orders.md has the states and their moves.
package orderrules

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/goweaver/weaver/order"
)

// Move is the effect of a rule on an order. Path holds the states that the row went through, from
// its first one on; one state is no move.
type Move struct {
	Path    []order.State
	Ledger  bool // the entry changed
	Row     bool // the row changed
	Settled bool // the row ended: its task gets the result
}

func start(o *order.Order) Move { return Move{Path: []order.State{o.Row.State}} }

// to moves the row.
func (m *Move) to(o *order.Order, s order.State, now time.Time) {
	o.Row.State, o.Row.UpdatedAt = s, now
	m.Path, m.Row = append(m.Path, s), true
	if s == order.Pending && o.Row.NextRunAt.IsZero() {
		o.Row.NextRunAt = now
	}
	if s != order.Sending {
		o.Row.LockedBy, o.Row.LockedAt, o.Row.LeaseUntil = "", time.Time{}, time.Time{}
	}
	if s.Final() {
		o.Row.NextRunAt, o.Row.ExpiresAt = time.Time{}, now.Add(order.Kept)
		m.Settled = true
	}
}

// Check refuses a request that no store can keep: *order.Invalid.
func Check(n *order.New) error {
	if what := order.BadKey(n.Key); what != "" {
		return &order.Invalid{Fields: []order.FieldError{{Field: "idempotency_key", Message: what}}}
	}
	return nil
}

// Accept returns the stored form of a new request.
func Accept(n *order.New, now time.Time) order.Order {
	row := order.Row{
		Key: n.Key, Profile: n.Profile, Body: n.Body, Digest: n.Digest, Ref: n.Ref, TraceID: n.TraceID, State: order.Pending,
		Timeout: n.Timeout, MaxAge: n.MaxAge, NextRunAt: now, CreatedAt: now, UpdatedAt: now, Task: n.Task, Step: n.Step,
		Signalled: n.Task.IsZero(),
	}
	if n.MaxAge > 0 {
		row.StaleAt = now.Add(n.MaxAge)
	}
	return order.Order{Row: row, Entry: order.Entry{
		Key: n.Key, Digest: n.Digest, State: order.LedgerAccepted, Ref: n.Ref, TraceID: n.TraceID, FirstSeenAt: now, LastSeenAt: now,
	}}
}

// Existing answers a request whose key is stored.
func Existing(n *order.New, old *order.Entry) error {
	if n.Digest != old.Digest {
		return fmt.Errorf("%w: the key %q has another request", order.ErrConflict, n.Key)
	}
	return nil
}

// Due reports whether a claim may take a row.
func Due(r *order.Row, now time.Time) bool {
	return !r.Held && (r.State == order.Pending || r.State == order.Retrying) && !r.NextRunAt.After(now)
}

// Claim leases a due row, or ends it without a send: it follows the ledger (W-105), conflicts
// with it, is too old, or its task has ended before it was sent.
func Claim(o *order.Order, req *order.ClaimRequest, taskEnded bool, now time.Time) Move {
	m := start(o)
	if o.Row.State == order.Retrying {
		m.to(o, order.Pending, now)
	}
	r := &o.Row
	switch {
	case o.Entry.Digest != r.Digest:
		r.LastErrorCode, r.LastErrorMsg = string(order.ReasonConflict), "the ledger holds another request under this key"
		m.to(o, order.Aborted, now)
	case o.Entry.State == order.LedgerSucceeded:
		m.to(o, order.Succeeded, now)
	case o.Entry.State == order.LedgerFailed:
		m.to(o, order.Aborted, now)
	case r.SendNo == 0 && taskEnded:
		m.fail(o, result(o, order.ReasonInternal, order.WarnWithdrawn, now), nil, false, now)
		r.LastErrorCode, r.LastErrorMsg = order.WarnWithdrawn, "its task ended before it was sent"
		m.to(o, order.Aborted, now)
	case r.SendNo == 0 && stale(r, now):
		m.fail(o, result(o, order.ReasonTimeout, order.WarnExpired, now), nil, false, now)
		r.LastErrorCode, r.LastErrorMsg = order.WarnExpired, "it was not sent within "+r.MaxAge.String()
		m.to(o, order.Aborted, now)
	default:
		m.to(o, order.Sending, now)
		r.Token++
		r.LockedBy, r.LockedAt, r.LeaseUntil, r.NextRunAt = req.Worker, now, now.Add(req.Lease), time.Time{}
	}
	return m
}

func stale(r *order.Row, now time.Time) bool { return !r.StaleAt.IsZero() && !now.Before(r.StaleAt) }

// holds reports whether a lease is the row's.
func holds(r *order.Row, l order.Lease) bool { return r.State == order.Sending && r.Token == l.Token }

// Renew extends a lease, never shortening it. An expired one that nobody took is renewed.
func Renew(r *order.Row, l order.Lease, lease time.Duration, now time.Time) (ok bool) {
	if !holds(r, l) {
		return false
	}
	r.LockedAt, r.UpdatedAt = now, now
	if until := now.Add(lease); until.After(r.LeaseUntil) {
		r.LeaseUntil = until
	}
	return true
}

// Send records that a send begins.
func Send(o *order.Order, s *order.Send, now time.Time) (Move, error) {
	m := start(o)
	if !holds(&o.Row, s.Lease) {
		return m, lost(o, s.Lease)
	}
	r := &o.Row
	r.SendNo++
	r.SendStartedAt, r.SendEndsAt, r.SendOpen, r.UpdatedAt = now, s.EndsAt, true, now
	m.Row = true
	return m, nil
}

func lost(o *order.Order, l order.Lease) error {
	return fmt.Errorf("%w: it is %s, with token %d, not %d", order.ErrLeaseLost, o.Row.State, o.Row.Token, l.Token)
}

// Settle applies the verdict of a worker. A positive verdict needs no lease.
func Settle(o *order.Order, s *order.Settlement, now time.Time) (Move, order.Settled) {
	m := start(o)
	var err error
	again := false
	if s.Verdict == order.VerdictSucceeded {
		again, err = m.succeed(o, s.Digest, &s.Result, s.Stored, false, now)
	} else {
		err = m.negative(o, s, now)
	}
	return m, order.Settled{State: o.Row.State, Err: err, Again: again}
}

// succeed settles a key with the partner's positive answer: the ledger, then the row.
func (m *Move) succeed(o *order.Order, digest string, res *order.ExecResult, stored json.RawMessage, byHand bool, now time.Time) (again bool, err error) {
	e := &o.Entry
	if digest != e.Digest {
		return false, fmt.Errorf("%w: the ledger holds another request under the key %q", order.ErrConflict, e.Key)
	}
	switch {
	case e.State == order.LedgerSucceeded:
		again = true
	case e.State == order.LedgerFailed && !e.Unknown && !byHand:
		return false, fmt.Errorf("%w: the ledger says that the order %q failed, and not in doubt; the partner says that it succeeded: look at both", order.ErrState, e.Key)
	default:
		raw, sha, err := encode(res, stored)
		if err != nil {
			return false, err
		}
		e.State, e.HTTPStatus, e.Result, e.ResultSHA, e.Unknown = order.LedgerSucceeded, 200, raw, sha, false
		e.ExpiresAt = now.Add(order.Kept)
		m.Ledger = true
	}
	r := &o.Row
	if r.State == order.Succeeded {
		return again, nil
	}
	if r.State == order.Retrying || r.State == order.Aborted {
		m.to(o, order.Pending, now)
	}
	r.LastErrorCode, r.LastErrorMsg, r.SendOpen, r.Unknown = "", "", false, false
	m.to(o, order.Succeeded, now)
	return again, nil
}

func (m *Move) negative(o *order.Order, s *order.Settlement, now time.Time) error {
	r := &o.Row
	if !holds(r, s.Lease) {
		return lost(o, s.Lease)
	}
	if s.Verdict == order.VerdictRelease {
		if r.SendOpen {
			return fmt.Errorf("%w: a send of it began", order.ErrState)
		}
		r.NextRunAt = after(now, s.Delay)
		m.to(o, order.Pending, now)
		return nil
	}
	if s.Counts {
		r.Attempts++
	}
	r.LastErrorCode, r.LastErrorMsg = s.Code, Clip(s.Message)
	r.SendOpen, r.Unknown = false, s.Unknown
	switch s.Verdict {
	case order.VerdictRetry:
		m.to(o, order.Retrying, now)
		r.NextRunAt = now.Add(s.Delay)
	case order.VerdictAborted:
		if o.Entry.Digest == r.Digest && o.Entry.State == order.LedgerAccepted {
			m.fail(o, &s.Result, s.Stored, s.Unknown, now)
		}
		m.to(o, order.Aborted, now)
	default:
		return fmt.Errorf("%w: unknown verdict %q", order.ErrState, s.Verdict)
	}
	return nil
}

func after(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(d)
}

// fail settles the ledger entry with a failure.
func (m *Move) fail(o *order.Order, res *order.ExecResult, stored json.RawMessage, unknown bool, now time.Time) {
	raw, sha, err := encode(res, stored)
	if err != nil {
		raw, sha = nil, ""
	}
	e := &o.Entry
	e.State, e.HTTPStatus, e.Result, e.ResultSHA, e.Unknown = order.LedgerFailed, res.ReasonCode.HTTPStatus(), raw, sha, unknown
	e.ExpiresAt = now.Add(order.Kept)
	m.Ledger = true
}

func encode(res *order.ExecResult, stored json.RawMessage) (raw json.RawMessage, sha string, err error) {
	if raw = stored; raw != nil {
		sha, err = order.ResultDigest(res)
		return raw, sha, err
	}
	if raw, err = json.Marshal(res); err != nil {
		return nil, "", err
	}
	sha, err = order.ResultDigest(res)
	return raw, sha, err
}

// result is that of an order which no partner answered.
func result(o *order.Order, reason order.ReasonCode, warning string, now time.Time) *order.ExecResult {
	return order.NoResult(&o.Row, reason, now, warning)
}

// Reclaim takes a lease back. It counts as an attempt if the holder died or fell silent in a
// send: a request that kills its worker each time must end some day. An outage of the store,
// whose holders go on, counts nothing.
func Reclaim(o *order.Order, gone bool, now time.Time) (m Move, counted bool) {
	m = start(o)
	r := &o.Row
	if r.SendOpen {
		r.SendOpen, r.Unknown = false, true
		if gone {
			r.Attempts++
			counted = true
		}
	}
	r.NextRunAt = time.Time{}
	m.to(o, order.Pending, now)
	return m, counted
}

// Clip shortens a message to what last_error_msg holds.
func Clip(text string) string {
	if utf8.RuneCountInString(text) <= order.MaxMessage {
		return text
	}
	return string([]rune(text)[:order.MaxMessage])
}

// Wake is the payload of the signal that the task of a settled order gets. The result stays in
// the ledger.
type Wake struct {
	Key   string      `json:"idempotency_key"`
	State order.State `json:"status"`
}

// Signal returns the payload for a settled order.
func Signal(o *order.Order) json.RawMessage {
	raw, err := json.Marshal(Wake{o.Row.Key, o.Row.State})
	if err != nil { // two strings
		return json.RawMessage("{}")
	}
	return raw
}

// SignalName is the name of the signal for which the step of a task waits.
func SignalName(step string) string { return "order/" + step }
