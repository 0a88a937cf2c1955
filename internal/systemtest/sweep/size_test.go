//go:build !race

package sweep_test

// sampleEvery is which points a plain run of TestSweep covers on each store:
// every nth.
var sampleEvery = map[string]int{"memstore": 9, "sqlite memory": 23, "sqlite file": 31, "postgres": 197}

// pairEvery is the same for the pairs of TestSweepTwoFaults.
var pairEvery = map[string]int{"memstore": 997, "sqlite memory": 4001, "sqlite file": 8009}
