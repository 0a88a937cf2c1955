package cli

import "testing"

// A small heap may grow to five times its size, a large one to twice.
func TestPercentFor(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 400, 4 << 20: 400, 12 << 20: 400, 24 << 20: 200, 48 << 20: 100, 1 << 30: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB live: %d, want %d", live>>20, got, want)
		}
	}
}
