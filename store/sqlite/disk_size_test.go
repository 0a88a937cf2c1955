//go:build !race

package sqlite_test

// One of so many points of the short sizes is played. With fewer points a planted
// defect is missed (internal/mutation/guards/proofs.txt).
const (
	diskShare  = 4
	powerShare = 1 // of the power cuts of TestPowerFails
	otherShare = 4 // of the power cuts that find no more than those
)

// memoryPoints is how many points of each kind TestMemoryAgreesWithTheFileAfterADiskFault
// plays.
const memoryPoints = 5
