//go:build !race

package sqlite_test

// One point in each share is played. With fewer points a planted defect is missed
// (internal/mutation/guards/proofs.txt).
const (
	diskShare  = 4
	powerShare = 1 // of the power cuts of TestPowerFails
	otherShare = 4 // of the power cuts that find nothing more
)

// memoryPoints is the number of points of each kind in
// TestMemoryAgreesWithTheFileAfterADiskFault.
const memoryPoints = 5
