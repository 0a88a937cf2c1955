package order

import (
	"encoding/json"
	"time"
)

// Audit says who gives a command, and why.
type Audit struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// Command is a verb of an operator.
type Command interface{ audit() Audit }

// AuditOf returns who gives a command, and why.
func AuditOf(c Command) Audit { return c.audit() }

// Requeue sends an aborted order again, with 0 attempts. An order whose outcome is unknown is
// refused (ErrInDoubt) unless Confirmed says that the partner does not have it, or that a
// second execution under the same key is acceptable.
type Requeue struct {
	Audit
	Key       string
	Confirmed bool
}

// Unlock takes expired leases back to pending, also if no worker is steady. With Key it does so
// for one order.
type Unlock struct {
	Audit
	Key string
}

// SettleByHand settles an order: with Result if the partner has executed it, else as failed
// with Code and Message.
type SettleByHand struct {
	Audit
	Key     string
	Result  *ExecResult
	Stored  json.RawMessage // the result as it is stored, sealed; nil: its JSON
	Asked   bool            // Result is the partner's answer: it has no warning, and settles only what is not known to have failed
	Code    ReasonCode
	Message string
}

// Withdraw aborts an order that was not sent. The Ack says InDoubt if it may have been.
type Withdraw struct {
	Audit
	Key string
}

// Resubmit accepts the request of an aborted order, or a corrected one, under a new key.
type Resubmit struct {
	Audit
	Key string // of the aborted order
	New New
}

// Hold keeps all orders that are not settled from being sent, and ends their leases: after a
// restore, the partner may have them already.
type Hold struct{ Audit }

// Release lets held orders go on: one, or all without Key.
type Release struct {
	Audit
	Key string
}

// Prune removes a batch of settled orders, ledger and outbox together: succeeded ones whose
// time is over; with Aborted those aborted before At, unless their task has not ended.
type Prune struct {
	Audit
	Aborted bool
	Before  time.Time // zero: by expires_at
	Limit   int       // MaxPrune unless set
}

func (c Requeue) audit() Audit      { return c.Audit }
func (c Unlock) audit() Audit       { return c.Audit }
func (c SettleByHand) audit() Audit { return c.Audit }
func (c Withdraw) audit() Audit     { return c.Audit }
func (c Resubmit) audit() Audit     { return c.Audit }
func (c Hold) audit() Audit         { return c.Audit }
func (c Release) audit() Audit      { return c.Audit }
func (c Prune) audit() Audit        { return c.Audit }
