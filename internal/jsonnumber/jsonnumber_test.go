package jsonnumber_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/goweaver/weaver/internal/jsonnumber"
)

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  json.Number
		equal bool
	}{
		{"9007199254740993", "9007199254740992", false},
		{"18446744073709551615", "18446744073709551614", false},
		{"123456789012345678901234567890", "123456789012345678901234567891", false},
		{"0.12345678901234567891", "0.12345678901234567892", false},
		{"-9007199254740993", "9007199254740993", false},
		{"1e400", "1e401", false},
		{"1e-400", "0", false},
		{"1e400", "10e399", true},
		{"1", "1.0", true},
		{"1", "10e-1", true},
		{"0.10", "1E-1", true},
		{"100", "1e+2", true},
		{"-0", "0.00e7", true},
		{"1e99999999999999999999", "1e99999999999999999999", true},
		{"1e99999999999999999999", "1e99999999999999999998", false},
		{"x", "y", false},
	} {
		if got := jsonnumber.Equal(c.a, c.b); got != c.equal || jsonnumber.Equal(c.b, c.a) != c.equal {
			t.Errorf("Equal(%s, %s) = %v", c.a, c.b, got)
		}
	}
	for text, want := range map[string]bool{"1": true, "-1.5e3": true, "01": false, "1.": false, "": false, ".5": false, "+1": false, "1e": false, "x": false} {
		if jsonnumber.Is(text) != want {
			t.Errorf("Is(%q) = %v", text, !want)
		}
	}
}

// A value that is decoded and encoded again keeps its numbers.
func TestPlain(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]any{
		"1": 1.0, "0.1": 0.1, "1e3": 1000.0, "9007199254740991": 9007199254740991.0,
		"9007199254740993": json.Number("9007199254740993"), "0.12345678901234567891": json.Number("0.12345678901234567891"),
		"1e400": json.Number("1e400"), `[9007199254740993, "x", {"a": 2}]`: []any{json.Number("9007199254740993"), "x", map[string]any{"a": 2.0}},
	} {
		var v any
		if err := jsonnumber.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatal(err)
		}
		if got := jsonnumber.Plain(v); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v", raw, got, want)
		}
	}
	if err := jsonnumber.Unmarshal([]byte("1 2"), new(any)); err == nil {
		t.Error("two values are taken for one")
	}
}
