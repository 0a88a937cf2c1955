package httpapi

import (
	"time"

	"github.com/goweaver/weaver/order"
)

// OrderBody is the body of POST /do/order as the document has it: an order.OrderRequest whose
// decimals may be numbers, too. order.Orders reads it.
type OrderBody struct {
	OrderID         string            `json:"order_id"`
	Instrument      string            `json:"instrument"` // on the list of ORDER_INSTRUMENTS, if there is one
	Side            order.Side        `json:"side"`       // BUY or SELL
	Qty             Decimal           `json:"qty"`        // greater than 0, at least the instrument's minimum, and a multiple of its step
	Price           *Decimal          `json:"price,omitempty"`
	TimeInForce     order.TimeInForce `json:"time_in_force,omitempty"` // IOC, FOK or GTC. Default IOC
	Tags            []string          `json:"tags,omitempty" max:"100"`
	IdempotencyKey  string            `json:"idempotency_key"` // up to 255 visible ASCII characters
	RequestedAt     time.Time         `json:"requested_at"`    // at most 5 minutes ahead
	RiskConstraints *RiskBody         `json:"risk_constraints,omitempty"`
	TraceID         string            `json:"trace_id,omitempty"`
}

// RiskBody are limits that the broker is asked to respect.
type RiskBody struct {
	MaxDD              *Decimal `json:"max_dd,omitempty"`
	MaxConsecutiveLoss *int     `json:"max_consecutive_loss,omitempty"`
	MaxSpread          *Decimal `json:"max_spread,omitempty"`
}

// Decimal is a decimal of a body: a JSON string or number.
type Decimal string
