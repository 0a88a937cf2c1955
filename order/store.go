package order

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goweaver/weaver/task"
)

// State of an outbox row.
type State string

// States of a row.
const (
	Pending   State = "pending"
	Sending   State = "sending"
	Succeeded State = "succeeded"
	Retrying  State = "failed" // until next_run_at
	Aborted   State = "aborted"
)

// Final reports whether no worker changes a row of this state.
func (s State) Final() bool { return s == Succeeded || s == Aborted }

// LedgerState of a ledger entry.
type LedgerState string

// States of an entry.
const (
	LedgerAccepted  LedgerState = "accepted"
	LedgerSucceeded LedgerState = "succeeded"
	LedgerFailed    LedgerState = "failed"
)

// Kept is the retention of a settled key.
const Kept = 48 * time.Hour

// AbortedKept is the minimum age at which operators prune aborted orders, unless they say otherwise.
const AbortedKept = 30 * 24 * time.Hour

// MaxPrune is the maximum number of orders that one Prune removes.
const MaxPrune = 500

// MaxMessage is the length of last_error_msg, in characters.
const MaxMessage = 512

// New is a request to accept.
type New struct {
	Profile string
	Parsed
	// Task and Step are set if a task waits for the result: settling sends it the signal
	// "order/STEP" with the result.
	Task task.ID
	Step string
}

// Accepted answers a New.
type Accepted struct {
	Created bool
	Entry   Entry // as it is stored
	Err     error // ErrConflict: the key has another digest; *Invalid: the key is not usable
}

// Entry is a ledger entry: the state and the result of a key.
type Entry struct {
	Key         string          `json:"idempotency_key"`
	Digest      string          `json:"request_digest"`
	ResultSHA   string          `json:"result_digest,omitempty"`
	State       LedgerState     `json:"status"`
	HTTPStatus  int             `json:"http_status,omitempty"` // of a settled entry
	Result      json.RawMessage `json:"response_payload_json,omitempty"`
	Ref         string          `json:"order_id,omitempty"`
	TraceID     string          `json:"trace_id,omitempty"`
	Unknown     bool            `json:"outcome_unknown,omitempty"` // failed, and the partner may have executed it
	FirstSeenAt time.Time       `json:"first_seen_at"`
	LastSeenAt  time.Time       `json:"last_seen_at"`
	ExpiresAt   time.Time       `json:"expires_at,omitzero"` // of a settled entry
}

// Row is an outbox row.
type Row struct {
	ID            int64           `json:"id"`
	Key           string          `json:"idempotency_key"`
	Profile       string          `json:"profile"`
	Body          json.RawMessage `json:"order_request_json,omitempty"`
	Digest        string          `json:"request_digest"`
	Ref           string          `json:"order_id,omitempty"`
	TraceID       string          `json:"trace_id,omitempty"`
	State         State           `json:"status"`
	Attempts      int             `json:"attempts"`
	LastErrorCode string          `json:"last_error_code,omitempty"`
	LastErrorMsg  string          `json:"last_error_msg,omitempty"`
	LockedBy      string          `json:"locked_by,omitempty"` // worker ID
	LockedAt      time.Time       `json:"locked_at,omitzero"`  // of its last heartbeat
	LeaseUntil    time.Time       `json:"lease_until,omitzero"`
	Token         int64           `json:"token"` // raised by each claim
	SendNo        int             `json:"send_no"`
	SendStartedAt time.Time       `json:"send_started_at,omitzero"`
	SendEndsAt    time.Time       `json:"send_ends_at,omitzero"` // no send of the holder lasts longer
	SendOpen      bool            `json:"send_open,omitempty"`   // a send began and has no answer on record
	Unknown       bool            `json:"unknown,omitempty"`     // a send that is over may have reached the partner
	Held          bool            `json:"held,omitempty"`        // a restore holds it until an operator releases it
	Timeout       time.Duration   `json:"timeout_ns"`
	MaxAge        time.Duration   `json:"max_age_ns"`
	StaleAt       time.Time       `json:"stale_at,omitzero"` // from then on it is not sent any more
	NextRunAt     time.Time       `json:"next_run_at,omitzero"`
	CreatedAt     time.Time       `json:"created_at"`
	UpdatedAt     time.Time       `json:"updated_at"`
	ExpiresAt     time.Time       `json:"expires_at,omitzero"`
	Task          task.ID         `json:"task_id,omitzero"`
	Step          string          `json:"step,omitempty"`
	Signalled     bool            `json:"signalled,omitempty"` // no task waits for the result any more
}

// Order is all that is stored under a key.
type Order struct {
	Entry Entry `json:"ledger"`
	Row   Row   `json:"outbox"`
}

// ClaimRequest asks for rows to send.
type ClaimRequest struct {
	Worker string        // its ID, as joined
	Lease  time.Duration // OUTBOX_LOCK_LEASE_SEC
	Limit  int
	// MaxAttempts is OUTBOX_MAX_ATTEMPTS: rows that have that many are claimed to be given
	// up, not to be sent.
	MaxAttempts int
}

// ClaimResult lists the claimed rows. Settled counts the rows that the claim ended without a send:
// they followed the ledger (W-105), conflict with it, or were withdrawn.
type ClaimResult struct {
	Claimed []Row
	Settled int
	Next    time.Duration // until a row is due, if none was claimed; negative if no row waits
}

// Lease names a claimed row.
type Lease struct {
	Key   string
	Token int64
}

// Send says that a send begins. The store records it first, so that "never sent" and "maybe
// sent" differ.
type Send struct {
	Lease
	EndsAt time.Time // no send lasts longer
}

// Verdict is the next state of a row.
type Verdict string

const (
	VerdictSucceeded Verdict = "succeeded" // the partner has executed it
	VerdictRetry     Verdict = "retry"     // again after Delay
	VerdictAborted   Verdict = "aborted"   // given up
	VerdictRelease   Verdict = "release"   // back to pending: it was not sent
)

// Settlement ends the holder's work on a row.
type Settlement struct {
	Lease
	Digest  string
	Verdict Verdict
	Result  ExecResult      // of succeeded and aborted
	Stored  json.RawMessage // the result as it is stored, sealed; nil: the JSON of Result
	Delay   time.Duration   // of retry
	Counts  bool            // retry and aborted: the attempt counts
	Unknown bool            // retry and aborted: the request may have reached the partner, in this send or an earlier one
	Code    string          // last_error_code
	Message string          // last_error_msg
}

// Settled answers a Settlement.
type Settled struct {
	State State // of the row now
	// Err: ErrLeaseLost if a negative verdict came too late, ErrConflict if the ledger has
	// another digest, ErrNotFound. Nothing was written then.
	Err error
	// Again is set if the key was settled already, with the same result or another one.
	Again bool
}

// Reclaimed counts the changes of a Reclaim.
type Reclaimed struct {
	Expired   int           // leases taken back
	Counted   int           // of these, those that count as an attempt
	Signals   int           // sent late, for settled rows
	WarmingUp bool          // expired leases were left: the worker is not steady yet (ADR 0015)
	Next      time.Duration // until the next lease ends; negative if there is no lease
}

// Filter selects orders, newest first.
type Filter struct {
	States []State
	Held   bool // only held ones
	Task   task.ID
	After  string // a cursor
	Limit  int
}

// WorkerInfo announces a worker.
type WorkerInfo struct {
	ID    string
	Name  string // host:pid/orders, for people
	Lease time.Duration
	Sender
}

// Sender is the adapter of a worker and the state of its circuit breaker.
type Sender struct {
	Adapter     string    `json:"adapter"`
	Failed      int       `json:"failed"`                // of its last 20 sends, those that timed out or found the partner down
	PausedUntil time.Time `json:"paused_until,omitzero"` // it sends nothing until then, by its clock
	Reason      string    `json:"reason,omitempty"`      // of the pause
}

// SenderStatus is the Sender of a worker as readers see it.
type SenderStatus struct {
	Worker   string    `json:"worker_id"`
	Name     string    `json:"name"`
	LastSeen time.Time `json:"last_seen"`
	Silent   bool      `json:"silent,omitempty"` // not seen for its lease
	Dead     bool      `json:"dead,omitempty"`   // its process is known to have ended
	Sender
}

// Stats are counts per state, up to 10,000 each.
type Stats struct {
	Counts   map[State]int `json:"counts"`
	More     bool          `json:"more,omitempty"` // a count stopped at its limit
	Held     int           `json:"held"`
	Unknown  int           `json:"unknown"`                   // aborted with an unknown outcome
	OldestAt time.Time     `json:"oldest_unsettled,omitzero"` // acceptance of the oldest order that is not settled
	Ledger   int           `json:"ledger_rows"`
	// Senders are the workers that joined, by ID; a pause that is over is left out.
	Senders []SenderStatus `json:"senders,omitempty"`
}

// Tx is a transaction of the caller's, such as sqlite.Tx or postgres.Tx.
type Tx interface {
	Driver() string
	Handle() any
}

// Store keeps orders. Every method is atomic and may be called again with the same
// arguments when its answer got lost. Errors of the store itself are those of package store.
type Store interface {
	// AcceptOrders stores requests, or finds those that are there. With tx it joins the
	// caller's transaction.
	AcceptOrders(ctx context.Context, ns string, tx Tx, reqs ...New) ([]Accepted, error)
	// JoinOrders announces a worker, whose death can be proven from then on, and counts as a
	// sign of life. A further call replaces its announcement. LeaveOrders ends that.
	JoinOrders(ctx context.Context, ns string, w WorkerInfo) error
	LeaveOrders(ctx context.Context, ns string, worker string) error
	// ClaimOrders leases due rows, the oldest due first.
	ClaimOrders(ctx context.Context, ns string, req ClaimRequest) (ClaimResult, error)
	// RenewOrders extends leases; lost[i] says that lease i is held by another worker or
	// settled. It counts as a sign of life of the worker.
	RenewOrders(ctx context.Context, ns string, worker string, lease time.Duration, leases ...Lease) (lost []bool, err error)
	// SendOrders records that sends begin. errs[i] is ErrLeaseLost if lease i is lost: it must
	// not be sent.
	SendOrders(ctx context.Context, ns string, sends ...Send) (errs []error, err error)
	// SettleOrders writes ledger entries first, then rows, and sends the signals of waiting tasks.
	SettleOrders(ctx context.Context, ns string, list ...Settlement) ([]Settled, error)
	// ReclaimOrders takes back leases of dead workers, and expired ones if the worker is steady,
	// and sends signals that could not be sent before. Workers without orders are forgotten when
	// they are known dead, or were silent for long. It counts as a sign of life.
	ReclaimOrders(ctx context.Context, ns string, worker string, lease time.Duration) (Reclaimed, error)
	// OperateOrder applies an operator's command, with its audit entry.
	OperateOrder(ctx context.Context, ns string, cmd Command) (Ack, error)
	// GetOrder returns the order of a key. The error is ErrNotFound.
	GetOrder(ctx context.Context, ns, key string) (Order, error)
	// ListOrders returns a page and the cursor of the next one.
	ListOrders(ctx context.Context, ns string, f Filter) (page []Order, next string, err error)
	// OrderStats counts.
	OrderStats(ctx context.Context, ns string) (Stats, error)
}

// Of returns the orders of a store of tasks, or of the store that it wraps (method Orders). It
// returns false for a store without orders. ordertask.Orders also seals them for a client with a Codec.
func Of(tasks any) (Store, bool) {
	if above, ok := tasks.(interface{ Orders() (Store, bool) }); ok {
		return above.Orders()
	}
	s, ok := tasks.(Store)
	return s, ok
}

// Ack answers a command.
type Ack struct {
	State   State `json:"status,omitempty"`   // of the row now
	Changed int   `json:"changed"`            // rows
	More    bool  `json:"more,omitempty"`     // prune: there is more to remove
	InDoubt bool  `json:"in_doubt,omitempty"` // withdraw: it may have reached the partner
	Entry   Entry `json:"ledger,omitzero"`
}
