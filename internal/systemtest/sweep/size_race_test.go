//go:build race

package sweep_test

// sampleEvery is which points a plain run of TestSweep covers on each store
// under the race detector: every nth.
var sampleEvery = map[string]int{"memstore": 151, "sqlite memory": 521, "sqlite file": 521, "postgres": 4001}

// pairEvery is the same for the pairs of TestSweepTwoFaults. 0: none.
var pairEvery = map[string]int{"memstore": 8009}
