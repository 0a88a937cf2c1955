//go:build !race

package seal_test

// casesShare of 0 runs all cases of the suite.
const casesShare = 0
