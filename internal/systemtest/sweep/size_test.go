//go:build !race

package sweep_test

// sweepEvery says which points a plain run of TestSweep plays on each store:
// every nth.
var sweepEvery = map[string]int{"memstore": 3, "sqlite memory": 7, "sqlite file": 11}
