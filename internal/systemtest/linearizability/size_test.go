//go:build !race

package linearizability_test

// How many histories are played on each store, and the calls of one player.
const (
	leaseHistories = 6
	leaseMoves     = 20
)
