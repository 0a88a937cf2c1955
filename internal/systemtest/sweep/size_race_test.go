//go:build race

package sweep_test

// sweepEvery says which points a plain run of TestSweep plays on each store
// under the race detector: every nth.
var sweepEvery = map[string]int{"memstore": 13, "sqlite memory": 67, "sqlite file": 67}
