package rules_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/rules"
	"github.com/goweaver/weaver/store"
)

func TestNewestSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schemas  map[string]int
		version  int
		handsOut bool
	}{
		{nil, 7, true},
		{map[string]int{"other": 1}, 7, true},
		{map[string]int{"this": 2}, 1, true},
		{map[string]int{"this": 2}, 2, true},
		{map[string]int{"this": 2}, 3, false},
	} {
		if got := c.version <= rules.NewestSchema(&store.ClaimRequest{Schemas: c.schemas}, "this"); got != c.handsOut {
			t.Errorf("%v hands out version %d: %v, want %v", c.schemas, c.version, got, c.handsOut)
		}
	}
}
