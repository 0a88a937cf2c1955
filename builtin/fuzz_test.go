package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goweaver/weaver/builtin"
)

// For any JSON, decoding returns an error with an example, or the value that Go
// parses, which round-trips.
func FuzzDuration(f *testing.F) {
	for _, raw := range []string{
		`"90s"`, `"1m30s"`, `"-1s"`, `"0"`, `"1.5h"`, `""`, `"5"`, `"1 s"`, `5`, `null`, `true`, `{}`, `["1s"]`, `"1\u0073"`, `"9223372036854775807ns"`, `"9223372036854775808ns"`,
		`"-9223372036854775808ns"`, `"1s" x`, "\"\xff\"", `"2µs"`, `"2μs"`, `"+1s"`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got builtin.Duration
		err := json.Unmarshal(raw, &got)
		var text string
		terr := json.Unmarshal(raw, &text)
		want, derr := time.ParseDuration(text)
		if string(raw) == "null" || terr == nil && strings.TrimSpace(string(raw)) == "null" {
			return // package json decides whether null is zero
		}
		if (err == nil) != (terr == nil && derr == nil) {
			t.Fatalf("%s: %v; as a text %v, by Go %v", raw, err, terr, derr)
		}
		if err != nil {
			if json.Valid(raw) && !strings.Contains(err.Error(), `"1m30s"`) {
				t.Errorf("%s: the error gives no example: %v", raw, err)
			}
			return
		}
		if time.Duration(got) != want {
			t.Errorf("%s is %v, and by Go %v", raw, time.Duration(got), want)
		}
		written, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var again builtin.Duration
		if err := json.Unmarshal(written, &again); err != nil || again != got {
			t.Errorf("%s is written as %s, which is %v, %v", raw, written, time.Duration(again), err)
		}
	})
}
