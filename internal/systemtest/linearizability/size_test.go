//go:build !race

package linearizability_test

// The numbers of histories per store and of calls per client.
const (
	leaseHistories = 6
	callsPerClient = 20
)
