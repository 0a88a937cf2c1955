// Package jsonnumber keeps the digits of JSON numbers. encoding/json decodes a number in an any to a float64, which
// makes two 64-bit IDs that differ in the last digit equal.
package jsonnumber

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// Equal reports whether two JSON numbers have the same exact value: 1.0 equals 1 and 10e-1.
func Equal(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, okX := parse(string(a))
	y, okY := parse(string(b))
	return okX && okY && x == y
}

// Is reports whether a text is a JSON number.
func Is(text string) bool {
	_, ok := parse(text)
	return ok && json.Valid([]byte(text))
}

// decimal is a number without redundant zeros: 0.digits · 10^exponent. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exponent int64
}

// maxExponent is the largest exponent that is parsed; larger ones are compared as text.
const maxExponent = math.MaxInt64 / 4

func parse(text string) (d decimal, ok bool) {
	text, d.negative = strings.CutPrefix(text, "-")
	mantissa, exponent, scientific := text, "", false
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent, scientific = text[:i], text[i+1:], true
	}
	if scientific {
		n, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil || n > maxExponent || n < -maxExponent {
			return d, false
		}
		d.exponent = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return d, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	d.exponent += int64(len(whole) - (len(whole) + len(fraction) - len(digits)))
	if d.digits = strings.TrimRight(digits, "0"); d.digits == "" {
		return decimal{}, true // -0 is 0
	}
	return d, true
}

// Unmarshal is [json.Unmarshal], but decodes each number in an any to a [json.Number].
func Unmarshal(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the first JSON value")
	}
	return nil
}

// Plain replaces each [json.Number] in a decoded value by a float64 if that prints as the same number.
func Plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && Equal(v, json.Number(strconv.FormatFloat(f, 'g', -1, 64))) && exact(f) {
			return f
		}
	case []any:
		for i := range v {
			v[i] = Plain(v[i])
		}
	case map[string]any:
		PlainMap(v)
	}
	return v
}

// PlainMap applies Plain to each value of a map.
func PlainMap(m map[string]any) {
	for key := range m {
		m[key] = Plain(m[key])
	}
}

// exact reports whether f identifies its integer exactly. From 2^53 on it does not: 2^53 prints like itself and may
// have been 2^53+1.
func exact(f float64) bool { return math.Abs(f) < 1<<53 || f != math.Trunc(f) || math.Abs(f) >= 1e21 }
