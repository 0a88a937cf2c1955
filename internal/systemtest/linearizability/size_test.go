//go:build !race

package linearizability_test

// How many histories are recorded on each store, and the calls of one client.
const (
	leaseHistories = 6
	callsPerClient = 20
)
