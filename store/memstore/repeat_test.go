//go:build !race

package memstore_test

// repeat is the number of runs of the conformance suite's concurrent cases.
const repeat = 200
