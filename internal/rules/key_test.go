package rules_test

import (
	"testing"

	"github.com/goweaver/weaver/internal/rules"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		held, limit, due int
		room             bool
		wakes            int
	}{
		{0, 1, 0, true, 1},
		{0, 0, 0, true, 0}, // no holder: the next claim brings the limit
		{1, 1, 0, false, 0},
		{1, 3, 0, true, 2},
		{1, 3, 1, true, 1},
		{1, 3, 2, true, 0},
		{1, 3, 9, true, 0},
		{3, 1, 0, false, 0}, // the limit was lowered meanwhile
		{0, 5000, 0, true, 1000},
		{10, 5000, 400, true, 600},
		{10, 5000, 1000, true, 0},
		{10, 100, 50, true, 40},
	} {
		if got := rules.KeyHasRoom(tc.held, tc.limit); got != tc.room {
			t.Errorf("KeyHasRoom(%d, %d) = %v", tc.held, tc.limit, got)
		}
		if got := rules.KeyWakes(tc.held, tc.due, tc.limit); got != tc.wakes {
			t.Errorf("KeyWakes(%d, %d, %d) = %d, want %d", tc.held, tc.due, tc.limit, got, tc.wakes)
		}
	}
}

// While a key has room, each lane with waiters has a due row, regardless of other lanes.
func TestLaneWakes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		held, limit int
		due, want   bool
	}{
		{0, 1, false, true},
		{0, 1, true, false},
		{1, 1, false, false},
		{1, 2, false, true},
		{1, 2, true, false},
		{3, 1, false, false},
	} {
		if got := rules.LaneWakes(tc.held, tc.limit, tc.due); got != tc.want {
			t.Errorf("LaneWakes(%d, %d, %v) = %v", tc.held, tc.limit, tc.due, got)
		}
	}
}
