//go:build race

package simulation_test

// Under the race detector fewer seeds are enough. It chooses the next goroutine at random, so no two runs are alike
// there.
const (
	seeds = 6
	twice = 0
)
