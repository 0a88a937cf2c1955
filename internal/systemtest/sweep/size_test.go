//go:build !race

package sweep_test

// sampleEvery is which points a plain run of TestSweep covers on each store:
// every nth.
var sampleEvery = map[string]int{"memstore": 3, "sqlite memory": 7, "sqlite file": 11, "postgres": 97}

// pairEvery is the same for the pairs of TestSweepTwoFaults.
var pairEvery = map[string]int{"memstore": 499, "sqlite memory": 2003, "sqlite file": 4001}
