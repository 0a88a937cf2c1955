//go:build race

package sqlite_test

// One of so many points of the short sizes is played under the race detector, which
// makes everything about ten times slower.
const (
	diskShare  = 16
	powerShare = 8
	otherShare = 8
)

const memoryPoints = 1
