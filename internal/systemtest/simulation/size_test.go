//go:build !race

package simulation_test

// seeds is how many are played by every run of the tests.
const (
	seeds = 300
	twice = 20 // of them are played twice, for their logs
)
