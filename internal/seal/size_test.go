//go:build !race

package seal_test

// casesShare: all cases of the suite are played.
const casesShare = 0
