//go:build !race

package sweep_test

// sampleEvery is which points a plain run of TestSweep covers on each store:
// every nth.
var sampleEvery = map[string]int{"memstore": 13, "sqlite memory": 131, "sqlite file": 131, "postgres": 1009}

// pairEvery is the same for the pairs of TestSweepTwoFaults.
var pairEvery = map[string]int{"memstore": 2003, "sqlite memory": 8009}
