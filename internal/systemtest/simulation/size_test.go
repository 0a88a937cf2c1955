//go:build !race

package simulation_test

// seeds is the number of seeds in every test run.
const (
	seeds = 20
	twice = 2 // number of seeds that run twice, to compare their logs
)
