package order

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/shopspring/decimal"
)

// Decimal is a decimal number as text: up to 20 digits before and 18 after the point,
// without trailing zeros. JSON may hold it as a string or a number; it is never read
// through a float, and is written as a string.
type Decimal string

var decimalForm = regexp.MustCompile(`^-?[0-9]{1,20}(\.[0-9]{1,18})?$`)

// ParseDecimal returns the normal form of a decimal: "1.50" is "1.5", "-0" is "0".
func ParseDecimal(text string) (Decimal, error) {
	if !decimalForm.MatchString(text) {
		return "", fmt.Errorf("%q is not a decimal: write up to 20 digits, and up to 18 behind a point", clip(text, 64))
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return "", fmt.Errorf("%q is not a decimal: %w", clip(text, 64), err)
	}
	return Decimal(d.String()), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Decimal) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if bytes.HasPrefix(raw, []byte(`"`)) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	v, err := ParseDecimal(text)
	if err == nil {
		*d = v
	}
	return err
}

// num returns the number. A Decimal that was not parsed counts as 0.
func (d Decimal) num() decimal.Decimal {
	v, err := decimal.NewFromString(string(d))
	if err != nil {
		return decimal.Zero
	}
	return v
}

// Positive reports whether d > 0.
func (d Decimal) Positive() bool { return d.num().IsPositive() }

// Less reports whether d < other.
func (d Decimal) Less(other Decimal) bool { return d.num().LessThan(other.num()) }

// MultipleOf reports whether d is a whole multiple of step; any d is one of step 0.
func (d Decimal) MultipleOf(step Decimal) bool {
	s := step.num()
	return s.IsZero() || d.num().Mod(s).IsZero()
}

// Sum adds decimals.
func Sum(of ...Decimal) Decimal {
	total := decimal.Zero
	for _, d := range of {
		total = total.Add(d.num())
	}
	return Decimal(total.String())
}

func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n] + "…"
}
