//go:build race

package sweep_test

// sampleEvery is which points a plain run of TestSweep covers on each store
// under the race detector: every nth.
var sampleEvery = map[string]int{"memstore": 31, "sqlite memory": 131, "sqlite file": 131, "postgres": 1009}

// pairEvery is the same for the pairs of TestSweepTwoFaults. 0: none.
var pairEvery = map[string]int{"memstore": 2003}
