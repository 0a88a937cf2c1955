//go:build !race

package sqlite_test

// repeat is how often concurrent scenes of the conformance suite play.
const repeat = 40
