//go:build race

package sweep_test

// sampleEvery is which points a plain run of TestSweep covers on each store
// under the race detector: every nth.
var sampleEvery = map[string]int{"memstore": 13, "sqlite memory": 67, "sqlite file": 67, "postgres": 1009}

// pairEvery is the same for the pairs of TestSweepTwoFaults. 0: none.
var pairEvery = map[string]int{"memstore": 1009}
