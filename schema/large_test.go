package schema_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/goweaver/weaver/schema"
)

// Validating a large value that is wrong everywhere costs a multiple of its size, and the message is short. The test
// is not parallel, because it counts allocations.
func TestManyProblems(t *testing.T) {
	const n = 200_000
	numbers := `{"a":[` + strings.Repeat("1,", n) + `1]}`
	long := strings.Repeat("k", 10_000)
	for _, c := range []struct{ schema, value, pointer, detail string }{
		{`{"properties":{"a":{"items":{"type":"string"}}}}`, numbers, "/a/10", "it is a number, want a string"},
		{`{"properties":{"a":{"items":{"enum":["x"]}}}}`, numbers, "/a/10", `it is not one of "x"`},
		{`{"anyOf":[{"type":"string"},{"properties":{"a":{"items":{"type":"string"}}}}]}`, numbers, "", "it fits none of the alternatives: /a/0 it is a number, want a string, or "},
		{`{"items":{"properties":{"x":{}},"additionalProperties":false}}`, "[" + strings.Repeat(`{"y":1},`, n) + "1]", "/10/y", `the field is not known; there are "x"`},
		{`{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + long + `":[1,2]}`, "", "it is a number, want a string"},
		{`{"additionalProperties":false}`, `{"` + long + `":1}`, "", "the field is not known; no field is allowed here"},
	} {
		s := compile(t, c.schema)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.Validate(json.RawMessage(c.value))
		runtime.ReadMemStats(&after)
		var wrong *schema.Error
		if !errors.As(err, &wrong) || len(wrong.Problems) > 100 || len(err.Error()) > 20_000 {
			t.Errorf("%s: %.300v", c.schema, err)
			continue
		}
		found := false
		for _, p := range wrong.Problems {
			found = found || p.Pointer == c.pointer && strings.Contains(p.Detail, c.detail)
		}
		if !found {
			t.Errorf("%s: %.300v, want %q at %q", c.schema, err, c.detail, c.pointer)
		}
		if used, size := after.TotalAlloc-before.TotalAlloc, uint64(len(c.value)); used > 600*size+(1<<20) {
			t.Errorf("%s: %d bytes were allocated for a value of %d", c.schema, used, size)
		}
	}
}
