//go:build race

package simulation_test

// Under the race detector fewer seeds say as much. It draws which goroutine runs next,
// so no two runs are alike there.
const (
	seeds = 6
	twice = 0
)
