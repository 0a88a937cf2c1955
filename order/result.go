package order

import (
	"encoding/json"
	"fmt"
	"time"
)

// Status of a result.
type Status string

// Statuses of a result.
const (
	OK     Status = "ok"
	Failed Status = "error"
)

// ReasonCode says why a result is an error; "" for one that is not.
type ReasonCode string

// Reason codes.
const (
	ReasonConflict   ReasonCode = "IDEMPOTENCY_CONFLICT"
	ReasonValidation ReasonCode = "VALIDATION_ERROR"
	ReasonRejected   ReasonCode = "BROKER_REJECTED"
	ReasonTimeout    ReasonCode = "BROKER_TIMEOUT"
	ReasonDown       ReasonCode = "BROKER_DOWN"
	ReasonInternal   ReasonCode = "INTERNAL_ERROR"
)

// HTTPStatus is the status of an HTTP answer with a result of this reason.
func (c ReasonCode) HTTPStatus() int {
	switch c {
	case "":
		return 200
	case ReasonConflict:
		return 409
	case ReasonValidation, ReasonRejected:
		return 400
	case ReasonTimeout:
		return 504
	case ReasonDown:
		return 503
	}
	return 500
}

// Warnings of a result.
const (
	// WarnUnknown: the partner may have executed the request; nobody could find out.
	WarnUnknown = "OUTCOME_UNKNOWN"
	// WarnFillsUnknown: the partner said that it has executed the key already, and not how.
	WarnFillsUnknown = "FILLS_UNKNOWN"
	// WarnExpired: the request was too old to be sent.
	WarnExpired = "ORDER_EXPIRED"
	// WarnWithdrawn: the request was withdrawn before it was sent.
	WarnWithdrawn = "WITHDRAWN"
	// WarnByHand: an operator settled the request.
	WarnByHand = "SETTLED_BY_HAND"
)

// Fill is one execution.
type Fill struct {
	Px  Decimal   `json:"px"`
	Qty Decimal   `json:"qty"`
	TS  time.Time `json:"ts"`
}

// Broker names the partner, and the order by the partner's reference.
type Broker struct {
	Name     string `json:"name"`
	OrderRef string `json:"order_ref"`
}

// Latency are times in milliseconds.
type Latency struct {
	Queue     int64 `json:"queue"`
	BrokerRTT int64 `json:"broker_rtt"`
	Total     int64 `json:"total"`
}

// Response is the answer to a webhook.
type Response struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"` // JSON; any other body is a JSON string
}

// ExecResult is ExecResult v1.0, the outcome of a request.
type ExecResult struct {
	Status         Status     `json:"status"`
	OrderID        string     `json:"order_id"`
	Instrument     string     `json:"instrument"`
	Side           Side       `json:"side"`
	RequestedAt    time.Time  `json:"requested_at"`
	CompletedAt    time.Time  `json:"completed_at"`
	TraceID        string     `json:"trace_id"`
	IdempotencyKey string     `json:"idempotency_key"`
	Fills          []Fill     `json:"fills"`
	AvgPrice       *Decimal   `json:"avg_price,omitempty"`
	ExecutedQty    Decimal    `json:"executed_qty"`
	Cost           *Decimal   `json:"cost,omitempty"`
	Slippage       *Decimal   `json:"slippage,omitempty"`
	Broker         Broker     `json:"broker"`
	LatencyMS      Latency    `json:"latency_ms"`
	ReasonCode     ReasonCode `json:"reason_code"`
	Warnings       []string   `json:"warnings"`
	Response       *Response  `json:"response,omitempty"` // of a webhook
}

// MarshalJSON writes reason_code null, fills [] and warnings [] where they are empty.
func (r ExecResult) MarshalJSON() ([]byte, error) {
	type plain ExecResult
	if r.Fills == nil {
		r.Fills = []Fill{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	if r.ExecutedQty == "" {
		r.ExecutedQty = "0"
	}
	var reason *ReasonCode
	if r.ReasonCode != "" {
		reason = &r.ReasonCode
	}
	return json.Marshal(struct {
		plain
		ReasonCode *ReasonCode `json:"reason_code"`
	}{plain(r), reason})
}

// Check returns the mistake in a successful result of a profile.
func (r *ExecResult) Check(profile string) error {
	switch {
	case r.Status != OK || r.ReasonCode != "":
		return fmt.Errorf("a success has the status %q and the reason %q", r.Status, r.ReasonCode)
	case profile != "order":
		return nil
	case len(r.Fills) == 0:
		return fmt.Errorf("a success without fills")
	}
	qty := make([]Decimal, len(r.Fills))
	for i, f := range r.Fills {
		for _, d := range []Decimal{f.Px, f.Qty} {
			if _, err := ParseDecimal(string(d)); err != nil {
				return fmt.Errorf("fill %d: %w", i+1, err)
			}
		}
		qty[i] = f.Qty
	}
	if total := Sum(qty...); total.Less(r.ExecutedQty) || r.ExecutedQty.Less(total) {
		return fmt.Errorf("executed_qty is %s, the fills add up to %s", r.ExecutedQty, total)
	}
	return nil
}

// NoResult is the result of a request that the partner did not execute, or may have executed.
func NoResult(r *Row, reason ReasonCode, now time.Time, warnings ...string) *ExecResult {
	res := &ExecResult{
		Status: Failed, OrderID: r.Ref, RequestedAt: r.CreatedAt, CompletedAt: now, TraceID: r.TraceID, IdempotencyKey: r.Key,
		ExecutedQty: "0", ReasonCode: reason,
	}
	for _, w := range warnings {
		if w != "" {
			res.Warnings = append(res.Warnings, w)
		}
	}
	var body struct {
		Instrument  string    `json:"instrument"`
		Side        Side      `json:"side"`
		RequestedAt time.Time `json:"requested_at"`
	}
	if r.Profile == "order" && json.Unmarshal(r.Body, &body) == nil {
		res.Instrument, res.Side, res.RequestedAt = body.Instrument, body.Side, body.RequestedAt
	}
	return res
}
