package order

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// ReadResult reads the result with which an operator settles an order. Fields that the order
// knows may be left out. The error of a wrong one is an *Invalid.
func ReadResult(raw []byte, r *Row, now time.Time) (*ExecResult, error) {
	if err := CheckJSON(raw); err != nil {
		return nil, err
	}
	known := NoResult(r, "", now.UTC())
	res := *known
	res.Status = OK
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, invalid("", strings.TrimPrefix(err.Error(), "json: "))
	}
	if res.IdempotencyKey != r.Key {
		return nil, invalid("idempotency_key", fmt.Sprintf("is %q; the order has the key %q", clip(res.IdempotencyKey, 64), r.Key))
	}
	res.OrderID, res.Instrument, res.Side, res.TraceID = known.OrderID, known.Instrument, known.Side, known.TraceID
	if err := res.Check(r.Profile); err != nil {
		return nil, invalid("", err.Error())
	}
	return &res, nil
}

// WithKey returns a request with another idempotency key.
func WithKey(raw []byte, key string) ([]byte, error) {
	if err := CheckJSON(raw); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, invalid("", "must be a JSON object")
	}
	quoted, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	fields["idempotency_key"] = quoted
	return json.Marshal(fields)
}

// SettleCodes are the reasons with which an operator may settle an order as failed.
func SettleCodes() []ReasonCode {
	return []ReasonCode{ReasonRejected, ReasonTimeout, ReasonDown, ReasonValidation, ReasonInternal}
}
