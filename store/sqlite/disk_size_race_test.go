//go:build race

package sqlite_test

// The shares of the points in the short size under the race detector, which is about ten times
// slower.
const (
	diskShare  = 16
	powerShare = 8
	otherShare = 8
)

const memoryPoints = 1
