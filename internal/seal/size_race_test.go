//go:build race

package seal_test

// casesShare runs one of this many cases of the suite.
const casesShare = 8
