//go:build !race

package memstore_test

// repeat is how often concurrent scenes of the conformance suite play.
const repeat = 200
