//go:build race

package memstore_test

// repeat is the number of runs of concurrent cases under the race detector, which makes
// everything about ten times slower.
const repeat = 10
