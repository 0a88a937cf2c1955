//go:build race

package seal_test

// casesShare: one case in so many of the suite is played.
const casesShare = 8
