//go:build race

package simulation_test

// Under the race detector fewer seeds say as much.
const (
	seeds = 15
	twice = 3
)
