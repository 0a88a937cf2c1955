package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goweaver/weaver/internal/jsonfields"
)

// Side of an order.
type Side string

// TimeInForce limits the life of an order at the broker.
type TimeInForce string

// Sides and times in force.
const (
	Buy  Side = "BUY"
	Sell Side = "SELL"

	ImmediateOrCancel TimeInForce = "IOC"
	FillOrKill        TimeInForce = "FOK"
	GoodTillCancelled TimeInForce = "GTC"
)

const (
	// MaxKey is the longest idempotency key, in bytes.
	MaxKey = 255
	// MaxAhead is the largest lead of requested_at over the server's clock.
	MaxAhead = 5 * time.Minute

	maxText = 255
	maxTags = 100
)

// OrderRequest is OrderRequest v1.1, a request to buy or sell.
type OrderRequest struct {
	OrderID         string      `json:"order_id"`
	Instrument      string      `json:"instrument"`
	Side            Side        `json:"side"`
	Qty             Decimal     `json:"qty"`
	Price           *Decimal    `json:"price"` // nil: at market
	TimeInForce     TimeInForce `json:"time_in_force"`
	Tags            []string    `json:"tags,omitempty"`
	IdempotencyKey  string      `json:"idempotency_key"`
	RequestedAt     time.Time   `json:"requested_at"`
	RiskConstraints *Risk       `json:"risk_constraints,omitempty"`
	TraceID         string      `json:"trace_id,omitempty"`
}

// Risk are limits that the broker is asked to respect.
type Risk struct {
	MaxDD              *Decimal `json:"max_dd,omitempty"`
	MaxConsecutiveLoss *int     `json:"max_consecutive_loss,omitempty"`
	MaxSpread          *Decimal `json:"max_spread,omitempty"`
}

// Instrument are the rules of one instrument; zero values allow anything.
type Instrument struct {
	MinQty  Decimal `json:"min_qty,omitempty"`
	QtyStep Decimal `json:"qty_step,omitempty"`
}

// Orders is the profile of OrderRequest v1.1.
type Orders struct {
	// Instruments are those that may be traded; nil allows all.
	Instruments map[string]Instrument
	// Timeout bounds each send; 0: 2.5 s for IOC, 5 s for FOK and GTC.
	Timeout time.Duration
	// MaxAge is the age after which an order is not sent any more; 0: 60 s for IOC and
	// FOK, 24 h for GTC.
	MaxAge time.Duration
}

// Name implements Profile.
func (Orders) Name() string { return "order" }

// Parse implements Profile.
func (p Orders) Parse(raw []byte, now time.Time) (Parsed, error) {
	if err := CheckJSON(raw); err != nil {
		return Parsed{}, err
	}
	var r OrderRequest
	if err := decodeStrict(raw, &r); err != nil {
		return Parsed{}, err
	}
	if r.TimeInForce == "" {
		r.TimeInForce = ImmediateOrCancel
	}
	if err := p.check(&r, now); err != nil {
		return Parsed{}, err
	}
	r.RequestedAt = r.RequestedAt.UTC()
	body, err := json.Marshal(&r)
	if err != nil {
		return Parsed{}, err
	}
	digest, err := Digest(body, "requested_at", "trace_id")
	if err != nil {
		return Parsed{}, err
	}
	parsed := Parsed{Key: r.IdempotencyKey, Ref: r.OrderID, TraceID: r.TraceID, Body: body, Digest: digest, Timeout: p.Timeout, MaxAge: p.MaxAge}
	quick := r.TimeInForce != GoodTillCancelled
	if parsed.Timeout == 0 {
		parsed.Timeout = 5 * time.Second
		if r.TimeInForce == ImmediateOrCancel {
			parsed.Timeout = 2500 * time.Millisecond
		}
	}
	if parsed.MaxAge == 0 {
		parsed.MaxAge = 24 * time.Hour
		if quick {
			parsed.MaxAge = time.Minute
		}
	}
	return parsed, nil
}

func (p Orders) check(r *OrderRequest, now time.Time) error {
	var e Invalid
	text := func(field, v string, required bool) {
		switch {
		case v == "" && required:
			e.add(field, "is missing")
		case len(v) > maxText:
			e.add(field, fmt.Sprintf("has %d bytes; the limit is %d", len(v), maxText))
		}
	}
	text("order_id", r.OrderID, true)
	text("instrument", r.Instrument, true)
	text("trace_id", r.TraceID, false)
	if what := BadKey(r.IdempotencyKey); what != "" {
		e.add("idempotency_key", what)
	}
	if r.Side != Buy && r.Side != Sell {
		e.add("side", fmt.Sprintf("%q: must be BUY or SELL", clip(string(r.Side), 32)))
	}
	if !slices.Contains([]TimeInForce{ImmediateOrCancel, FillOrKill, GoodTillCancelled}, r.TimeInForce) {
		e.add("time_in_force", fmt.Sprintf("%q: must be IOC, FOK or GTC", clip(string(r.TimeInForce), 32)))
	}
	switch {
	case r.Qty == "":
		e.add("qty", "is missing")
	case !r.Qty.Positive():
		e.add("qty", fmt.Sprintf("%s: must be greater than 0", r.Qty))
	default:
		p.checkInstrument(r, &e)
	}
	if r.Price != nil && !r.Price.Positive() {
		e.add("price", fmt.Sprintf("%s: must be greater than 0, or null for an order at market", *r.Price))
	}
	if len(r.Tags) > maxTags {
		e.add("tags", fmt.Sprintf("has %d tags; the limit is %d", len(r.Tags), maxTags))
	}
	for i, tag := range r.Tags {
		text("tags["+strconv.Itoa(i)+"]", tag, true)
	}
	switch ahead := r.RequestedAt.Sub(now); {
	case r.RequestedAt.IsZero():
		e.add("requested_at", "is missing")
	case ahead > MaxAhead:
		e.add("requested_at", fmt.Sprintf("is %s ahead of the server's clock; the limit is %s", ahead.Round(time.Second), MaxAhead))
	}
	return e.err()
}

func (p Orders) checkInstrument(r *OrderRequest, e *Invalid) {
	if p.Instruments == nil {
		return
	}
	rules, ok := p.Instruments[r.Instrument]
	if !ok {
		e.add("instrument", fmt.Sprintf("%q is not on the list of allowed instruments", clip(r.Instrument, 64)))
		return
	}
	if rules.MinQty != "" && r.Qty.Less(rules.MinQty) {
		e.add("qty", fmt.Sprintf("%s is below the minimum of %s: %s", r.Qty, r.Instrument, rules.MinQty))
	}
	if rules.QtyStep != "" && !r.Qty.MultipleOf(rules.QtyStep) {
		e.add("qty", fmt.Sprintf("%s is not a multiple of the step of %s: %s", r.Qty, r.Instrument, rules.QtyStep))
	}
}

// BadKey returns the mistake in an idempotency key, "" for a valid one.
func BadKey(key string) string {
	if key == "" {
		return "is missing"
	}
	if len(key) > MaxKey {
		return fmt.Sprintf("has %d bytes; the limit is %d", len(key), MaxKey)
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fmt.Sprintf("byte %d is not a visible ASCII character", i+1)
		}
	}
	switch key {
	case ".", "..", "/": // clients, proxies and servers take them out of a path, escaped or not
		return fmt.Sprintf("is %q, which no URL can name; use a longer key", key)
	}
	return ""
}

// decodeStrict decodes a checked body and refuses unknown fields, also those that differ
// from a known one in case.
func decodeStrict(raw []byte, v any) error {
	var e Invalid
	decodeFields("", raw, reflect.ValueOf(v).Elem(), &e)
	return e.err()
}

// decodeFields decodes each field by itself, so that every mistake has its path.
func decodeFields(path string, raw []byte, into reflect.Value, e *Invalid) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		e.add(path, "must be a JSON object")
		return
	}
	known := make(map[string]jsonfields.Field)
	for _, f := range jsonfields.Of(into.Type()) {
		known[f.Name] = f
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f, ok := known[name]
		if !ok {
			e.add(join(path, name), "is not a field of this request")
			continue
		}
		target := into.FieldByName(f.GoName)
		if target.Kind() == reflect.Pointer && target.Type().Elem().Kind() == reflect.Struct && string(fields[name]) != "null" {
			target.Set(reflect.New(target.Type().Elem()))
			decodeFields(join(path, name), fields[name], target.Elem(), e)
			continue
		}
		if err := json.Unmarshal(fields[name], target.Addr().Interface()); err != nil {
			e.add(join(path, name), what(err, target.Type()))
		}
	}
}

// what words the error of one field.
func what(err error, t reflect.Type) string {
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("is a JSON %s; must be %s", te.Value, jsonfields.Wanted(t))
	}
	if pe, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Sprintf("%s: must be a time of RFC 3339, such as 2026-11-20T15:04:05Z", clip(pe.Value, 64))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
