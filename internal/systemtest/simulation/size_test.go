//go:build !race

package simulation_test

// seeds is how many are played by every run of the tests.
const (
	seeds = 200
	twice = 12 // of them are played twice, for their logs
)
