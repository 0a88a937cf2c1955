//go:build race

package linearizability_test

// Under the race detector fewer histories are enough.
const (
	leaseHistories = 2
	callsPerClient = 20
)
