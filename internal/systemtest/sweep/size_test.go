//go:build !race

package sweep_test

// sampleEvery selects the points of a plain run of TestSweep on each store: every nth.
var sampleEvery = map[string]int{"memstore": 13, "sqlite memory": 131, "sqlite file": 131, "postgres": 1009}

// pairEvery selects the pairs of TestSweepTwoFaults: every nth.
var pairEvery = map[string]int{"memstore": 2003, "sqlite memory": 8009}
