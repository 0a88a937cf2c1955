//go:build !race

package sqlite_test

// repeat is how often concurrent cases of the conformance suite run.
const repeat = 40
