//go:build !race

package memstore_test

// repeat is how often concurrent cases of the conformance suite run.
const repeat = 200
