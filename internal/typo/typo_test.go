package typo_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/typo"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 2, 0},
		{"run", "run", 0, 0},
		{"run", "rum", 2, 1},
		{"runing", "running", 2, 1},
		{"needs", "need", 2, 1},
		{"", "ab", 2, 2},
		{"kitten", "sitting", 5, 3},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 3},    // counting stops
		{"kitten", "sitting", 1, 2},    // counting stops earlier
		{"ab", "ba", 1, 2},             // over the limit only in the last place
		{"a", "abcdef", 2, 3},          // the lengths alone exceed the limit
		{"abcdefgh", "stuvwxyz", 2, 3}, // no row stays below the limit
	} {
		for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
			if got := typo.Distance(pair[0], pair[1], tc.limit); got != tc.want {
				t.Errorf("Distance(%q, %q, %d) = %d, want %d", pair[0], pair[1], tc.limit, got, tc.want)
			}
		}
	}
}
