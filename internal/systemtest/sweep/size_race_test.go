//go:build race

package sweep_test

// sampleEvery selects the points of a plain run of TestSweep under the race detector on each store: every nth.
var sampleEvery = map[string]int{"memstore": 151, "sqlite memory": 521, "sqlite file": 521, "postgres": 4001}

// pairEvery selects the pairs of TestSweepTwoFaults: every nth; 0 selects no pair.
var pairEvery = map[string]int{"memstore": 8009}
