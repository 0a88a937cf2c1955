//go:build !race

package simulation_test

// seeds is how many every run of the tests covers.
const (
	seeds = 20
	twice = 2 // of them run twice, for their logs
)
