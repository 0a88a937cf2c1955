//go:build race

package linearizability_test

// Under the race detector fewer histories say as much.
const (
	leaseHistories = 2
	callsPerClient = 20
)
