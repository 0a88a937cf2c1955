package rules_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/rules"
)

func TestClaimLooks(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{0: 256, 1: 260, 100: 656, 1000: 4256} {
		if got := rules.ClaimLooks(limit); got != want {
			t.Errorf("ClaimLooks(%d) = %d, want %d", limit, got, want)
		}
	}
}
